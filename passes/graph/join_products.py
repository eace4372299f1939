"""`graph-join-products`: products of one matrix with several frozen ones become one product."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp, TensorType
from ...dialects.aten.types import ITEM_SIZES, torch_name
from ...dialects.machine import target_at
from ...dialects.sym import ONE, ZERO, Expr
from ...machines import GpuTarget
from ...machines.target import Description
from ...records import dataclass
from ..analysis.kept import frozen_arguments, is_frozen, mark_packing
from ..analysis.memory import Mutations
from ..analysis.packing import ELEMENTS, is_small_product
from ..analysis.product_times import product_nanoseconds
from ..analysis.sizes import Sizes
from ..common.implementations import ALIGNMENT, BLAS, ONEDNN
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._binding_times import move_before
from ._operands import source_of_view
from ._replacement import Origin, ReplacementBuilder, type_of
from ._restriding import Strides, restrided, retype

_PRODUCTS = ("aten.mm", "aten.addmm")
_FEW_ROWS = 48
"""Most rows of products with packed weights that are joined on a CPU: 0.75 to 0.96 of the time apart up to 32 rows, in
float32 and bfloat16, and 1.00 from 64 on (one thread of an EPYC with AVX-512)."""


@dataclass(frozen=True)
class JoinProducts(AtenPass):
    """Compute products of one matrix with frozen weights, as queries, keys and values, or gates, are, in one product.

    level:         aten
    precondition:  arguments that are parameters, buffers or constants are marked `frozen`; `graph-cse`, so that equal
                   operands are one value; before `graph-hoist-weights`, which puts the weights together once
    guarantee:     the same values but for the order of sums. Weights lie one below the other, biases side by side; each
                   result is a view of some columns, so its rows lie farther apart, and so do those of views of it. They
                   are read by nests, which do not care, or by attention. A product whose result others read, or that
                   is returned, stays as it is. Decided by estimates (`product_times.py`) for the device's target.
                   On a CPU products of few rows are joined whose weights the library packs, for which they are copied
                   anyway: a call of the library less, and longer rows of the result in one pass.

    packed_weights: the elements of weights that a CPU's library can arrange on this machine, such as "f32,bf16"
    products:       who multiplies float32 matrices on a CPU; a BLAS packs nothing

        %q = aten.addmm(%bq, %x, %wq^T) : !aten.tensor<64x48xbf16, device = "cuda:0">
        %k = aten.addmm(%bk, %x, %wk^T) : !aten.tensor<64x48xbf16, device = "cuda:0">
    becomes
        %w = aten.cat([%wq, %wk]), transposed      %b = aten.cat([%bq, %bk])
        %y = aten.addmm(%b, %x, %w) : !aten.tensor<64x96xbf16, device = "cuda:0">
        %q = aten.slice.Tensor(%y, dim = 1, start = 0, end = 48) : !aten.tensor<64x48xbf16, strides = [96, 1], ...>
        %k = aten.slice.Tensor(%y, dim = 1, start = 48, end = 96) : !aten.tensor<64x48xbf16, strides = [96, 1], ...>
    """

    name = "graph-join-products"

    always: bool = False
    """Do it wherever that is possible, for tests and measurements."""
    packed_weights: str = ""
    products: str = BLAS

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function with frozen arguments."""
        if frozen_arguments(function):
            mutations, estimates = Mutations(block), Sizes.of_function(function)
            for members in _groups(block, mutations):
                self._consider(members, estimates)

    def _consider(self, products: Sequence[AtenOp], estimates: Sizes) -> None:
        members = self._willing(products)
        if len(members) < 2:
            return
        target = target_at(members[0], type_of(members[0].results[0]).device)
        if isinstance(target, GpuTarget):
            objection, figures = _estimated(members, target, estimates)
        else:
            objection, figures = self._packed(members, target, estimates), ""
        if objection is not None and not self.always:
            remark("missed", self.name, members[0], f"products of one operand stay {len(members)}: {objection}")
        elif counter(self.name):
            remark("passed", self.name, members[0], f"products of one operand are one: {len(members)}{figures}")
            _join(members)

    def _packed(self, members: Sequence[AtenOp], target: Description, estimates: Sizes) -> str | None:
        """Why products on a CPU stay apart."""
        element = ELEMENTS.get(torch_name(type_of(members[0].results[0]).element), "")
        is_packed = target.family.library.has_onednn and element in self.packed_weights.split(",")
        if not is_packed or (element == "f32" and self.products != ONEDNN):
            return "no rates of its products are known"
        left, right = map(type_of, members[0].operands[-2:])
        rows, sums = estimates.of(left.shape[0]), target.row_sums.get(element)
        if sums is not None and rows <= sums.vectors and right.strides[0] is ONE:
            return "nests read the rows of each"
        if rows > _FEW_ROWS:
            return "a call more is nothing beside so many rows"
        return "they are small" if any(is_small_product(op, estimates) for op in members) else None

    def _willing(self, products: Sequence[AtenOp]) -> list[AtenOp]:
        """The products whose results may have rows that lie apart."""
        step = _columns(products)
        found: list[AtenOp] = []
        for op in products:
            new = restrided(op.results[0], (step, ONE))
            if isinstance(new, str):
                remark("missed", self.name, op, f"it is not joined with other products of its operand: {new}")
            else:
                found.append(op)
        return found


def _groups(block: Block, mutations: Mutations) -> list[list[AtenOp]]:
    """Products that may be one: of one left operand, of one kind, with frozen matrices and biases."""
    found: dict[tuple[object, ...], list[AtenOp]] = {}
    for op in block.ops:
        if isinstance(op, AtenOp) and op.target in _PRODUCTS and not op.attributes and _is_joinable(op):
            left, right = op.operands[-2:]
            is_turned = type_of(right).strides[0] is ONE
            group = found.setdefault((op.target, left, type_of(right).element, is_turned), [])
            if not group or not mutations.moves_past_write((left,), op, group[0]):
                group.append(op)
    return [group for group in found.values() if len(group) > 1]


def _is_joinable(op: AtenOp) -> bool:
    left, right = op.operands[-2:]
    result, kind = type_of(op.results[0]), type_of(right)
    columns = kind.shape[1].as_int()
    if not is_frozen(_base(right)) or not result.is_contiguous or columns is None or kind.shape[0].as_int() is None:
        return False
    aligned = columns * ITEM_SIZES.get(torch_name(result.element), 1) % ALIGNMENT == 0
    if not aligned or {type_of(left).element, kind.element} != {result.element} or ONE not in kind.strides:
        return False
    if op.target == "aten.mm":
        return True
    bias = op.operands[0]
    is_bias = type_of(bias).shape == (kind.shape[1],) and type_of(bias).element == result.element
    return is_bias and is_frozen(_base(bias)) and op.arg("beta") == 1 and op.arg("alpha") == 1


def _base(value: SSAValue) -> SSAValue:
    while (source := source_of_view(value)) is not None:
        value = source
    return value


def _columns(members: Sequence[AtenOp]) -> Expr:
    total: Expr = ZERO
    for op in members:
        total = total + type_of(op.operands[-1]).shape[1]
    return total


def _estimated(members: Sequence[AtenOp], target: GpuTarget, estimates: Sizes) -> tuple[str | None, str]:
    """Why products on a GPU stay apart, and else what is gained."""
    before, after = _times(members, target, estimates)
    if before is None or after is None:
        return "no rates of its products are known", ""
    if after >= before:
        return "the estimate is not lower", ""
    return None, f"; estimated at {after / 1e3:.0f} us instead of {before / 1e3:.0f}"


def _times(members: Sequence[AtenOp], target: GpuTarget, estimates: Sizes) -> tuple[float | None, float | None]:
    """Estimates for the products apart, and for one."""
    result = type_of(members[0].results[0])
    bits = 8 * ITEM_SIZES[torch_name(result.element)]
    rows, depth = (estimates.of(size) for size in type_of(members[0].operands[-2]).shape)
    columns = [estimates.of(type_of(op.operands[-1]).shape[1]) for op in members]
    apart = [product_nanoseconds(target, bits, ALIGNMENT, (1, rows, depth, n)) for n in columns]
    known = [each for each in apart if each is not None]
    joined = product_nanoseconds(target, bits, ALIGNMENT, (1, rows, depth, sum(columns)))
    return (sum(known), joined) if len(known) == len(apart) else (None, joined)


def _join(members: Sequence[AtenOp]) -> None:
    first = members[0]
    parts = [value for op in members for value in (*op.operands[:-2], op.operands[-1])]
    move_before(parts, first)
    aten = ReplacementBuilder(first, Origin(first.location, {}))
    left, total = first.operands[-2], _columns(members)
    right = _weights(aten, [op.operands[-1] for op in members], total)
    old = type_of(first.results[0])
    whole = TensorType.get((old.shape[0], total), old.element, None, old.device)
    if first.target == "aten.mm":
        value = aten.mm(left, right, types=[whole])
    else:
        biases = [op.operands[0] for op in members]
        kind = type_of(biases[0])
        bias = aten.cat(biases, dim=0, types=[TensorType.get((total,), kind.element, None, kind.device)])
        mark_packing(cast(Operation, bias.owner), _base(biases[0]))
        value = aten.addmm(bias, left, right, types=[whole])
    start: Expr = ZERO
    for op in members:
        end = start + type_of(op.operands[-1]).shape[1]
        result = op.results[0]
        strides: Strides = (total, ONE)
        changed = restrided(result, strides)
        assert not isinstance(changed, str)
        retype(changed[1:])
        type_ = TensorType.get(type_of(result).shape, old.element, strides, old.device)
        columns = aten.slice.Tensor(value, dim=1, start=start.as_int(), end=end.as_int(), step=1, types=[type_])
        columns.name_hint = result.name_hint
        result.replace_all_uses_with(columns)
        start = end
    block = first.parent
    assert block is not None
    for op in members:
        block.erase_op(op)


def _weights(aten: ReplacementBuilder, weights: Sequence[SSAValue], total: Expr) -> SSAValue:
    """The matrices side by side; in memory one below the other where their columns lie side by side."""
    kind = type_of(weights[0])
    if kind.strides[0] is not ONE:
        type_ = TensorType.get((kind.shape[0], total), kind.element, None, kind.device)
        whole = aten.cat(weights, dim=1, types=[type_])
        mark_packing(cast(Operation, whole.owner), _base(weights[0]))
        return whole
    turned = [aten.permute(weight, dims=(1, 0)) for weight in weights]
    type_ = TensorType.get((total, kind.shape[0]), kind.element, None, kind.device)
    whole = aten.cat(turned, dim=0, types=[type_])
    mark_packing(cast(Operation, whole.owner), _base(weights[0]))
    return aten.permute(whole, dims=(1, 0))
