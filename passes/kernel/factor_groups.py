"""The pass `kernel-factor-groups`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.effects import has_side_effect
from ...dialects.scalar import CONVERSIONS, HighDigitsOp, LowDigitsOp, NarrowOp, WidenOp
from ...dialects.sym import ZERO, Expr, Ranges, as_expr, simplify, symbol
from ...records import dataclass
from ..analysis.effects import needed_by
from ..analysis.loops import fresh_axis, kernel_names, loops_in
from ..counters import counter
from ..remarks import remark
from .factor_sums import rounded
from .gpu_blocks import power_above
from .kernel_pass import KernelFacts, KernelPass
from .lane_indices import atoms_on, expr_of, set_expr
from .scheduled import all_for_gpu
from .simplify_block import remove_dead
from .transforms import set_mapping, set_range

#: matrix units take as many elements of the depth at once
_LEAST, _MOST = 16, 256
_BYTE = 8


@dataclass(frozen=True)
class KernelFactorGroups(KernelPass, kernels=all_for_gpu):
    """Multiply what matrix units sum of a group with its scale once, instead of each element of a factor.

    Level: kernel.

    Precondition: behind `kernel-map-products`.
    Guarantee: a sum of products on matrix units, one factor of each of which is a number of 8 bits, less a zero point
    perhaps, times a scale, rounded for the units, where the scale is the same for whole groups of the depth, is a sum
    over groups of the sum over one, times the scale: a step of the units is a group. So a scale is loaded once for a
    group and a column, and not for each element, and the number is rounded instead of the product, which is exact for
    small integers. Groups are of 16 to 256 elements, and fill the depth. A scale that is the same for the whole depth
    is multiplied with the sum. Scales count as finite.

        %s = kernel.reduce sum i2 in 0 to 2048 map matrix tile 128 {
          %a = kernel.load %x[2048*i0 + i2]  %b = kernel.load %w[2048*i1 + i2]
          %f = kernel.load %scales[16*i1 + i2 floordiv 128]
          %y = arith.mulf %b, %f   %n = scalar.narrow %y  ...  kernel.yield %product }
    becomes
        %s = kernel.reduce sum i3 in 0 to 16 {
          %f = kernel.load %scales[16*i1 + i3]
          %g = kernel.reduce sum i2 in 0 to 128 map matrix tile 128 {
            %a = kernel.load %x[2048*i0 + 128*i3 + i2]  %b = kernel.load %w[2048*i1 + 128*i3 + i2]
            %n = scalar.narrow %b  ...  kernel.yield %product }
          %y = arith.mulf %g, %f   kernel.yield %y }
    """

    name = "kernel-factor-groups"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Factor the sums of a kernel."""
        changed = False
        for op in list(loops_in(function.body.block)):
            if not isinstance(op, kernel.ReduceOp) or op.mapping.data != "matrix":
                continue
            found = _scales_of(op)
            if isinstance(found, str):
                continue
            group = _group_of(op, found, facts.ranges)
            if isinstance(group, str):
                remark("missed", self.name, function, f"scales are multiplied with each element: {group}")
            elif counter(self.name):
                _factor(op, found, group, facts.ranges, kernel_names(function))
                remark("passed", self.name, function, "sums of groups are multiplied with their scales", group=group)
                changed = True
        if changed:
            remove_dead(function.body.block)


@dataclass(frozen=True)
class _Scaled:
    """A product one of whose factors is scaled.

    place:  which factor of the multiplication that is
    narrow: what rounds it for the units
    x:      the factor without the scale
    scale:  what it is multiplied with
    ops:    what the scale is computed from in the body, in order
    """

    product: kernel.Product
    place: int
    narrow: NarrowOp
    x: SSAValue
    scale: SSAValue
    ops: tuple[Operation, ...]


def _scales_of(op: kernel.ReduceOp) -> list[_Scaled] | str:
    """The scales of all products that a reduction sums, or why there are none."""
    products = kernel.products_of(op)
    if isinstance(products, str):
        return products
    if op.init or op.within or op.lo.data is not ZERO or op.hi.data.as_int() is None:
        return "it goes on from another sum, or its depth is not constant"
    found = [_scaled(op, product) for product in products]
    return "a factor has no scale" if None in found else [each for each in found if each is not None]


def _scaled(op: kernel.ReduceOp, product: kernel.Product) -> _Scaled | None:
    """The scale of a factor of a product, which changes along the depth from group to group at most."""
    for place, factor in enumerate(product.op.operands):
        narrow = factor.owner.operands[0].owner if isinstance(factor.owner, WidenOp) else None
        multiplied = narrow.operands[0].owner if isinstance(narrow, NarrowOp) else None
        if not isinstance(narrow, NarrowOp) or not isinstance(multiplied, arith.MulfOp):
            continue
        for x, scale in (multiplied.operands, reversed(multiplied.operands)):
            ops = _made_of(op, scale)
            is_loaded = any(isinstance(each, kernel.LoadOp) for each in ops)
            if is_loaded and is_small(x) and all(_is_of_groups(op.axis.data, each) for each in ops):
                return _Scaled(product, place, narrow, x, scale, ops)
    return None


def is_small(value: SSAValue) -> bool:
    """Whether a number is one of 8 bits, or what is left of it behind a subtraction: a type of 16 bits has room for it.

    Other numbers may be too large for float16 without their scale.
    """
    op = value.owner
    if isinstance(op, LowDigitsOp | HighDigitsOp):
        return True
    if isinstance(op, arith.SubfOp):
        return is_small(op.lhs)
    if not isinstance(op, CONVERSIONS):
        return False
    return _bits(op.source_element) == _BYTE or is_small(op.operands[0])


def _bits(element: Attribute) -> int:
    if isinstance(element, IntegerType):
        return element.width.data
    return element.bitwidth if isinstance(element, AnyFloat) else 0


def _made_of(op: kernel.ReduceOp, value: SSAValue) -> tuple[Operation, ...]:
    """The ops of a body that a value is computed from, in order."""
    if not isinstance(value.owner, Operation) or value.owner.parent is not op.body.block:
        return ()
    needed = needed_by(value.owner, op.body.block) | {value.owner}
    return tuple(each for each in op.body.block.ops if each in needed)


def _is_of_groups(axis: str, op: Operation) -> bool:
    """Whether what an op computes changes along an axis with a quotient of it alone."""
    if op.regions or has_side_effect(op):
        return False
    expr = expr_of(op)
    if expr is None or axis not in expr.free_symbols:
        return True
    atoms = dict.fromkeys(atoms_on(expr, axis, ("floordiv",)))
    return bool(atoms) and all(atom.args[0] is symbol(axis) and atom.args[1].as_int() for atom in atoms)


def _group_of(op: kernel.ReduceOp, scaled: list[_Scaled], ranges: Ranges) -> int | str:
    """Elements of the depth that share their scales, 0 for all of them; or why sums of groups are not multiplied."""
    axis, depth = op.axis.data, op.hi.data.as_int() or 0
    exprs = [expr for each in scaled for made in each.ops if (expr := expr_of(made)) is not None]
    exprs = [expr for expr in exprs if axis in expr.free_symbols]
    divisors = {atom.args[1].as_int() or 0 for expr in exprs for atom in atoms_on(expr, axis, ("floordiv",))}
    if not divisors:
        return 0
    group = min(divisors)
    if not _LEAST <= group <= _MOST or depth % group:
        return f"groups of {group} elements of {depth}"
    parts, facts = _parts(axis, "group", depth, group, ranges)
    if any(axis in simplify(expr.subs(parts), facts).free_symbols for expr in exprs):
        return "they change within a group"
    return group


def _parts(axis: str, outer: str, depth: int, group: int, ranges: Ranges) -> tuple[dict[str, Expr], Ranges]:
    """A place of the depth by its group and what is left, and what is known of both."""
    facts = Ranges.of_axes([(outer, as_expr(depth // group)), (axis, as_expr(group))], ranges)
    return {axis: symbol(outer) * group + symbol(axis)}, facts


def _factor(op: kernel.ReduceOp, scaled: list[_Scaled], group: int, ranges: Ranges, names: set[str]) -> None:
    """Let a sum be one over groups of the sum over each, times its scale; or multiply all of it."""
    block, axis = op.parent, op.axis.data
    assert block is not None
    for each in scaled:
        each.product.op.operands[each.place] = rounded(each.x, each.narrow, each.product.op)
    behind, products = _copied(op, scaled)
    if not group:
        block.insert_ops_after([*behind, *products], op)
        for old, new in zip(op.results, products, strict=True):
            old.replace_uses_with_if(new.result, lambda use: use.operation not in products)
        return
    outer, depth = fresh_axis(names), op.hi.data.as_int() or 0
    parts, facts = _parts(axis, outer, depth, group, ranges)
    _put_apart(op.body.block.ops, parts, facts)
    _put_apart(behind, {axis: symbol(outer) * group}, facts)
    body = Block([*behind, *products, kernel.YieldOp.create(operands=[each.result for each in products])])
    combiners = [each.data for each in op.combiners]
    whole = kernel.ReduceOp.of(outer, ZERO, as_expr(depth // group), combiners, Region(body), location=op.location)
    block.insert_op_before(whole, op)
    for old, new in zip(op.results, whole.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_uses_with_if(new, lambda use: use.operation not in products)
    op.detach()
    body.insert_op_before(op, products[0])  # behind loads of scales, which are on their way meanwhile
    set_range(op, (axis, ZERO, as_expr(group)))
    set_mapping(op, "matrix", power_above(group))


def _copied(op: kernel.ReduceOp, scaled: list[_Scaled]) -> tuple[list[Operation], list[arith.MulfOp]]:
    """Copies of what the scales are computed from, and the results of a reduction times the scales."""
    needed = set[Operation]().union(*(each.ops for each in scaled))
    copied: dict[SSAValue, SSAValue] = {}
    ops = [each.clone(copied) for each in op.body.block.ops if each in needed]
    factors = [copied.get(each.scale, each.scale) for each in scaled]
    products = [arith.MulfOp(result, factor) for result, factor in zip(op.results, factors, strict=True)]
    for each in products:
        each.location = op.location
    return ops, products


def _put_apart(ops: Iterable[Operation], values: Mapping[str, Expr], facts: Ranges) -> None:
    """Replace an axis in indices by what it is now."""
    for op in ops:
        expr = expr_of(op)
        if expr is not None:
            set_expr(op, simplify(expr.subs(values), facts))
