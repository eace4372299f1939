"""The pass `kernel-factor-sums`."""

from __future__ import annotations

from math import inf

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, FloatAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.scalar import CastOp, NarrowOp, WidenOp, number_of
from ...records import dataclass
from ..analysis.loops import loops_in
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .simplify_block import remove_dead


@dataclass(frozen=True)
class KernelFactorSums(KernelPass, kernels=all_for_gpu):
    """Multiply a sum on matrix units with a number once, instead of each element of a factor.

    Level: kernel.

    Precondition: `kernel-map-chained-products`.
    Guarantee: where a factor of the products that a reduction on matrix units sums is made of what products in its body
    make, and is a number times x, rounded for the units, the factor is x, and the number is multiplied with the sum.
    So a tile of elements is rounded once less; where x was rounded before, the values are the same, but for those below
    the normal numbers.

        %g = kernel.reduce sum i3 ... map matrix { ...
          %y = arith.mulf %x, %eighth   %n = scalar.narrow %y   %w = scalar.widen %n   %r = arith.mulf %w, %k
          kernel.yield %r }
    becomes
        %s = kernel.reduce sum i3 ... map matrix { ...
          %n = scalar.narrow %x   %w = scalar.widen %n   %r = arith.mulf %w, %k   kernel.yield %r }
        %g = arith.mulf %s, %eighth
    """

    name = "kernel-factor-sums"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Factor the sums of a kernel."""
        changed = False
        for op in list(loops_in(function.body.block)):
            if not isinstance(op, kernel.ReduceOp) or op.mapping.data != "matrix" or op.init:
                continue
            products = kernel.products_of(op, chained=True)
            if isinstance(products, str) or not any(each.regions for each in op.body.block.ops):
                continue
            for product, result in zip(products, op.results, strict=True):
                number = _taken_out(product) if len(list(product.op.results[0].uses)) == 1 else None
                if number is not None:
                    _multiply(op, result, number)
                    changed = True
                    remark("passed", self.name, function, f"a sum is multiplied with {number}, not its summands")
        if changed:
            remove_dead(function.body.block)


def _taken_out(product: kernel.Product) -> float | None:
    """The number that was taken out of a factor of a product; None where there is none."""
    for place, factor in enumerate(product.op.operands):
        widen = factor.owner
        narrow = widen.operands[0].owner if isinstance(widen, WidenOp) else None
        scaled = narrow.operands[0].owner if isinstance(narrow, NarrowOp) else None
        if not isinstance(narrow, NarrowOp) or not isinstance(scaled, arith.MulfOp):
            continue
        for x, other in (scaled.operands, reversed(scaled.operands)):
            number = number_of(other)
            if number is None or not 0 < abs(number) < inf or not counter(KernelFactorSums.name):
                continue
            product.op.operands[place] = rounded(x, narrow, product.op)
            return float(number)
    return None


def rounded(x: SSAValue, narrow: NarrowOp, before: Operation) -> SSAValue:
    """A number as units read it: rounded as another one was, unless it is of that type already.

    An integer of 8 bits is cast at once, for types of 16 bits hold it.
    """
    owner, element = x.owner, narrow.results[0].type
    if isinstance(owner, WidenOp) and owner.operands[0].type == element:
        return x
    block = before.parent
    assert block is not None
    new: Operation = NarrowOp.of(x, x.type, element)
    if isinstance(owner, CastOp) and owner.source_element == _BYTE:
        new = CastOp.of(owner.value, owner.source_element, element)
    wide = WidenOp.of(new.results[0], element, x.type)
    block.insert_ops_before([new, wide], before)
    return wide.results[0]


_BYTE = IntegerType(8)


def _multiply(op: kernel.ReduceOp, result: SSAValue, number: float) -> None:
    """Multiply a result of a reduction with a number behind it."""
    block = op.parent
    assert block is not None and isinstance(result.type, Float32Type)
    constant = arith.ConstantOp(FloatAttr(number, result.type))
    scaled = arith.MulfOp(result, constant.result)
    constant.location = scaled.location = op.location
    result.replace_uses_with_if(scaled.result, lambda use: use.operation is not scaled)
    scaled.result.name_hint = result.name_hint
    block.insert_ops_after([constant, scaled], op)
