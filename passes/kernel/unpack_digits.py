"""The pass `kernel-unpack-digits`."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, IntegerType, f32
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import kernel
from ...dialects.scalar import MOST_TAKEN_OFF, CastOp, HighDigitsOp, LowDigitsOp, NarrowOp, number_of
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .simplify_block import remove_dead

_DIGITS = 4
#: what is taken off is less: such numbers of float32 and all between them are exact
_MOST_OFF = 1 << 16
_BYTE = IntegerType(8)


class KernelUnpackDigits(KernelPass, kernels=all_for_gpu):
    """Read numbers of 4 bits from where they lie in a byte.

    Level: kernel.

    Precondition: behind all passes that simplify scalars; kernels for other machines than GPUs stay as they are.
    Guarantee: the same values. A float32 made of the lower or the upper half of a byte is one op, which a GPU computes
    of four bytes at once, without a number of 8 bits in between. A whole number that all users take off is taken off
    at once, which is exact. So is the number as a float of 16 bits, where matrix units read it.

        %a = arith.andi %byte, %c15 : i8
        %b = scalar.cast %a : ui8 to f32
        %c = arith.subf %b, %c8 : f32
    becomes
        %c = scalar.low_digits %byte less 8
    and where all users are `scalar.narrow %c : f32 to bf16`,
        %n = scalar.low_digits %byte less 8 to bf16
    """

    name = "kernel-unpack-digits"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Unpack in every kernel for a GPU."""
        casts = [op for op in function.walk() if isinstance(op, CastOp) and _half_of(op) is not None]
        for op in casts:
            if counter(self.name):
                _replace(op)
        if casts:
            remove_dead(function.body.block)


def _replace(op: CastOp) -> None:
    """Put what reads digits in the place of a cast, and of what takes the same number off it wherever it is used."""
    half, block = _half_of(op), op.parent
    assert half is not None and block is not None
    kind, byte = half
    users = [use.operation for use in op.result.uses]
    off = [number_of(user.rhs) if isinstance(user, arith.SubfOp) and user.lhs is op.result else None for user in users]
    less = int(off[0] or 0) if len(set(off)) == 1 and off[0] in range(_MOST_OFF) else 0
    replaced = [user.results[0] for user in users] if less else [op.result]
    narrows = [use.operation for value in replaced for use in value.uses]
    target = _narrowed(narrows, less)
    made = kind.of(byte, less, target)
    made.location, made.results[0].name_hint = op.location, op.result.name_hint
    block.insert_op_before(made, op)
    for value in replaced if target == f32 else [narrow.results[0] for narrow in narrows]:
        value.replace_all_uses_with(made.results[0])


def _narrowed(users: list[Operation], less: int) -> Attribute:
    """The type to which all users round a number, if it is exact; f32 where they do anything else."""
    targets = {user.target_element if isinstance(user, NarrowOp) else None for user in users}
    target = targets.pop() if len(targets) == 1 else None
    return f32 if target is None or not 0 <= less <= MOST_TAKEN_OFF.get(target, -1) else target


def _half_of(op: CastOp) -> tuple[type[LowDigitsOp | HighDigitsOp], SSAValue] | None:
    """Which half of which byte a cast reads; None for other casts."""
    if op.target_element != Float32Type() or op.value.type != _BYTE:
        return None
    digits = op.value.owner
    if isinstance(digits, arith.AndIOp) and number_of(digits.rhs) == (1 << _DIGITS) - 1:
        return LowDigitsOp, digits.lhs
    if isinstance(digits, arith.ShRUIOp) and number_of(digits.rhs) == _DIGITS:
        return HighDigitsOp, digits.lhs
    return None
