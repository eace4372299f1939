"""The pass `kernel-fuse-scales`."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.scalar import number_of
from ..analysis.loops import loops_in
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .products import NARROW
from .scheduled import all_for_gpu
from .simplify_block import remove_dead


class KernelFuseScales(KernelPass, kernels=all_for_gpu):
    """Let one multiply-add scale what matrix units made of 16 bits, and add to it.

    Level: kernel.

    Precondition: `kernel-fold-exponents`, which takes scales that nothing is added to.
    Guarantee: in the body of a reduction on matrix units, a product that the program rounds to 16 bits, times a number,
    plus anything, is rounded once, not twice. So an element of scores with a bias takes an instruction less. The result
    is nearer to the exact one.

        %s = kernel.reduce sum ... map matrix ...   %y = arith.mulf %s, %eighth   %x = arith.addf %y, %bias
    becomes
        %s = kernel.reduce sum ... map matrix ...   %x = math.fma %s, %eighth, %bias
    """

    name = "kernel-fuse-scales"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Fuse the scales of a kernel."""
        changed = False
        for loop in loops_in(function.body.block):
            if isinstance(loop, kernel.ReduceOp) and loop.mapping.data == "matrix":
                for op in [each for each in loop.body.block.ops if isinstance(each, arith.AddfOp)]:
                    changed |= _fuse(op)
        if changed:
            remove_dead(function.body.block)


def _fuse(op: arith.AddfOp) -> bool:
    """Replace a sum of which one side is a scaled product; whether it was."""
    for scaled, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        times = scaled.owner
        if op.result.type != f32 or not isinstance(times, arith.MulfOp) or not scaled.has_one_use():
            continue
        for product, number in (times.operands, reversed(times.operands)):
            if number_of(number) is not None and _is_of_narrow(product) and counter(KernelFuseScales.name):
                fused = math.FmaOp(product, number, other)
                fused.location = op.location
                assert op.parent is not None
                op.parent.insert_op_before(fused, op)
                op.result.replace_all_uses_with(fused.result)
                return True
    return False


def _is_of_narrow(value: SSAValue) -> bool:
    """Whether matrix units made a number of factors of 16 bits."""
    op = value.owner
    if not isinstance(op, kernel.ReduceOp) or op.mapping.data != "matrix":
        return False
    products = kernel.products_of(op)
    return not isinstance(products, str) and all(
        product.precision in NARROW or kernel.element_of(product) in NARROW.values() for product in products
    )
