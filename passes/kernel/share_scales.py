"""The pass `kernel-share-scales`."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.loop import yielded
from ..analysis.loops import loops_in
from ..counters import counter
from .factor_groups import is_small
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .simplify_block import remove_dead


class KernelShareScales(KernelPass, kernels=all_for_gpu):
    """Multiply what the numbers of one byte add to a sum with their scale once, instead of each number.

    Level: kernel.

    Precondition: `kernel-pair-lanes`, which lets a step of a sum take both numbers of a byte; `kernel-map`.
    Guarantee: where lanes sum up p * (a * s) + q * (b * s), a and b whole numbers of 8 bits or fewer, less a constant
    perhaps, the sum is of (p * a + q * b) * s, with a multiplication less. The product that is added last is not
    rounded by itself. Scales count as finite, as they do for `kernel-factor-groups`.

        %s = kernel.reduce sum i1 in 0 to 1024 map vector tile 1024 { ...
          %x = arith.mulf %a, %scale  %u = arith.mulf %p, %x
          %y = arith.mulf %b, %scale  %v = arith.mulf %q, %y
          %r = arith.addf %u, %v  kernel.yield %r }
    becomes
        %s = kernel.reduce sum i1 in 0 to 1024 map vector tile 1024 { ...
          %u = arith.mulf %p, %a  %v = math.fma %q, %b, %u
          %r = arith.mulf %v, %scale  kernel.yield %r }
    """

    name = "kernel-share-scales"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Look at what each sum in lanes adds up."""
        changed = False
        for op in loops_in(function.body.block):
            if not isinstance(op, kernel.ReduceOp) or op.mapping.data != "vector" or op.combine is not None:
                continue
            if {name.data for name in op.combiners} == {"sum"}:
                adds = [value.owner for value in yielded(op.body)]
                own = [add for add in adds if isinstance(add, arith.AddfOp) and add.parent is op.body.block]
                for add in own:
                    changed |= _share(add)
        if changed:
            remove_dead(function.body.block)


def _share(add: arith.AddfOp) -> bool:
    """Rewrite a sum of two products with one scale; whether it was."""
    left, right = (_scaled(value) for value in add.operands)
    scales = [scale for scale in left if scale in right]
    if not scales or add.result.type != f32 or not counter(KernelShareScales.name):
        return False
    (p, a), (q, b) = left[scales[0]], right[scales[0]]
    first = arith.MulfOp(p, a)
    both = math.FmaOp(q, b, first.result)
    scaled = arith.MulfOp(both.result, scales[0])
    assert add.parent is not None
    for op in (first, both, scaled):
        op.location = add.location
    add.parent.insert_ops_before([first, both, scaled], add)
    add.result.replace_all_uses_with(scaled.result)
    return True


def _scaled(value: SSAValue) -> dict[SSAValue, tuple[SSAValue, SSAValue]]:
    """Scale -> (p, a) of a value that is p * (a * scale), and used once, as the product in it is."""
    found: dict[SSAValue, tuple[SSAValue, SSAValue]] = {}
    for p, inner in _factors(value):
        for a, scale in _factors(inner):
            if is_small(a):
                found[scale] = p, a
    return found


def _factors(value: SSAValue) -> list[tuple[SSAValue, SSAValue]]:
    """The factors of a product that is used once, in both orders."""
    op = value.owner
    if not isinstance(op, arith.MulfOp) or not value.has_one_use():
        return []
    return [(op.lhs, op.rhs), (op.rhs, op.lhs)]
