"""The pass `kernel-approximate`."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, FloatAttr, f32
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation, SSAValue, Use

from ...dialects import kernel
from ...dialects.scalar import CastOp, NarrowOp
from ...machines import GpuTarget
from ...records import dataclass
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass

#: widest result that hides the error of an approximate function, in bits
BITS = 16
#: a function that a target may approximate to a few units in the last place of the argument
APPROXIMATE = FastMathFlagsAttr([FastMathFlag.APPROX_FUNC])
#: a quotient that may be the product with a reciprocal
RECIPROCAL = FastMathFlagsAttr([FastMathFlag.ALLOW_RECIP])
_SCALED = (arith.MulfOp, arith.NegfOp)
#: reductions of one value each that keep small errors small
_REDUCTIONS = ("sum", "max", "min")
_CONTINUOUS = (*_SCALED, arith.AddfOp, arith.SubfOp, arith.DivfOp, arith.MaximumfOp, arith.MinimumfOp)


@dataclass(frozen=True)
class KernelApproximate(KernelPass):
    """Mark the functions and quotients in float32 that reach nothing wider than 16 bits.

    Level: kernel.

    Precondition: `kernel-elide-casts`, which leaves the roundings of what goes to memory, and before tiling, which
    writes ops that reduce.
    Guarantee: the same values up to the marks, `fastmath<afn>` and `fastmath<arcp>`, which a target may ignore. An
    exponential is marked where every use goes through sums, products, quotients, extrema, selects, reductions of these
    and local buffers to a rounding of at most 16 bits: exp(x) with an error of |x| units of float32 is the exact
    exponential of an argument that is off by half a unit, so that no more is lost than by rounding the argument once. A
    quotient is marked where it is only scaled in between, since a difference could magnify its error. No
    comparison and no index depends on either. Both are marked for a GPU. For a CPU an error function is marked to which
    one is added each time, as by gelu, where the sum is only scaled on its way to a rounding: then an error that is
    small beside the sum is lost, and small results of the function itself need no more digits. Nothing is marked under
    `emulate_precision_casts`, which promises the bits of eager.

        %e = math.exp %x : f32
        %d = arith.addf %e, %one : f32
        %q = arith.divf %y, %d : f32
        %n = scalar.narrow %q : f32 to bf16
    becomes
        %e = math.exp %x fastmath<afn> : f32
        %d = arith.addf %e, %one : f32
        %q = arith.divf %y, %d fastmath<arcp> : f32
        %n = scalar.narrow %q : f32 to bf16
    """

    name = "kernel-approximate"
    emulate_precision_casts: bool = False

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Mark ops in every kernel."""
        if self.emulate_precision_casts:
            return
        if isinstance(facts.target, GpuTarget):
            approximate(function)
        else:
            approximate_error_functions(function)


def approximate_error_functions(function: kernel.FuncOp) -> None:
    """Mark error functions in one kernel."""
    scaled = _Reach(_SCALED)
    for op in function.walk():
        is_error = isinstance(op, math_dialect.ErfOp) and _is_f32(op.result)
        if is_error and _is_added_to_one(op.results[0], scaled) and counter("kernel-approximate"):
            op.properties["fastmath"] = APPROXIMATE


def _is_added_to_one(value: SSAValue, scaled: _Reach) -> bool:
    """Whether all uses of a value add one to it, and the sums reach nothing but roundings."""
    users = [use.operation for use in value.uses]
    return bool(users) and all(
        isinstance(user, arith.AddfOp)
        and any(_is_one(operand) for operand in user.operands)
        and scaled.is_rounded(user.result)
        for user in users
    )


def _is_one(value: SSAValue) -> bool:
    constant = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return isinstance(constant, FloatAttr) and constant.value.data == 1.0


def approximate(function: kernel.FuncOp) -> None:
    """Mark ops in one kernel for a GPU."""
    ops = [op for op in function.walk() if isinstance(op, math_dialect.ExpOp | arith.DivfOp) and _is_f32(op.results[0])]
    if not ops:
        return
    behind_continuous, behind_scaled = _Reach(_CONTINUOUS), _Reach(_SCALED)
    for op in ops:
        is_exp = isinstance(op, math_dialect.ExpOp)
        reach, flags = (behind_continuous, APPROXIMATE) if is_exp else (behind_scaled, RECIPROCAL)
        if reach.is_rounded(op.results[0]) and counter("kernel-approximate"):
            op.properties["fastmath"] = flags


def may_approximate(op: Operation) -> bool:
    """Whether a function or a quotient has been marked."""
    return op.properties.get("fastmath") in (APPROXIMATE, RECIPROCAL)


class _Reach:
    """Which values reach nothing but roundings to few bits, through ops of some types."""

    def __init__(self, through: tuple[type[Operation], ...]) -> None:
        self.through = through
        self._known: dict[SSAValue, bool] = {}

    def is_rounded(self, value: SSAValue) -> bool:
        """Whether all uses of a value end in a rounding."""
        if value not in self._known:
            self._known[value] = False  # a way that leads back to itself rounds nothing
            self._known[value] = all(self._ends_rounded(use) for use in value.uses)
        return self._known[value]

    def _ends_rounded(self, use: Use) -> bool:
        op = use.operation
        if isinstance(op, NarrowOp | CastOp):
            return isinstance(op.target_element, AnyFloat) and op.target_element.bitwidth <= BITS
        if isinstance(op, arith.SelectOp):
            return use.index > 0 and self.is_rounded(op.result)
        if isinstance(op, self.through):
            return self.is_rounded(op.results[0])
        if isinstance(op, kernel.StoreOp):
            return use.index == 0 and self._is_local_and_rounded(op)
        return isinstance(op, kernel.YieldOp) and self._is_reduced_and_rounded(op, use.index)

    def _is_local_and_rounded(self, op: kernel.StoreOp) -> bool:
        """Whether a value goes into a local buffer whose loads all reach roundings."""
        if not isinstance(op.buffer.owner, kernel.LocalOp) or op.atomic is not None:
            return False
        readers = [use.operation for use in op.buffer.uses if isinstance(use.operation, kernel.LoadOp)]
        return all(self.is_rounded(reader.value) for reader in readers)

    def _is_reduced_and_rounded(self, op: kernel.YieldOp, index: int) -> bool:
        """Whether a value is summed up, or the largest one is found, and the result reaches roundings."""
        parent = op.parent_op()
        if not isinstance(parent, kernel.ReduceOp) or op.parent_block() is not parent.body.block:
            return False
        plain = all(name.data in _REDUCTIONS for name in parent.combiners)
        return plain and self.is_rounded(parent.results[index])


def _is_f32(value: SSAValue) -> bool:
    return value.type == f32
