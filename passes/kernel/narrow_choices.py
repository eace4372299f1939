"""The pass `kernel-narrow-choices`."""

from __future__ import annotations

import struct

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, BFloat16Type, FloatAttr
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.scalar import NarrowOp, WidenOp
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import tiled_for_cpu
from .simplify_block import remove_dead

_CHOICES = (arith.SelectOp, arith.MaximumfOp, arith.MinimumfOp)
_MOST = 16
"""Ops that choose one after the other, at most: a window of a pool has as many elements."""


class KernelNarrowChoices(KernelPass, kernels=tiled_for_cpu):
    """Choose among numbers of bfloat16 as such, where what is chosen is stored so again.

    Level: kernel.

    Precondition: `kernel-choose-threads`, behind `kernel-elide-casts`, which goes the other way round where a choice is
    computed with; in front of `kernel-split-lanes`.
    Guarantee: the same values. A rounding of one of some numbers, a select, a maximum or a minimum, is that one where
    all of them were widened from the narrow type, or are constants that it has. Rounding to bfloat16 takes a processor
    without instructions for it a dozen of others. The rectifier of 802,816 numbers, one core of an AMD EPYC: 102 us
    with the rounding, 36 without.

        %w = scalar.widen %v : bf16 to f32
        %c = arith.cmpf olt, %w, %zero : f32
        %s = arith.select %c, %zero, %w : f32
        %n = scalar.narrow %s : f32 to bf16
    becomes
        %w = scalar.widen %v : bf16 to f32
        %c = arith.cmpf olt, %w, %zero : f32
        %n = arith.select %c, %zero_1, %v : bf16
    """

    name = "kernel-narrow-choices"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Narrow what is chosen from in a kernel for a CPU."""
        found = [op for op in function.walk() if isinstance(op, NarrowOp) and _is_choice(op)]
        for op in found:
            if counter(self.name):
                _replace(op)
        if found:
            remove_dead(function.body.block)


def _is_choice(op: NarrowOp) -> bool:
    """Whether what is narrowed is chosen among numbers of the narrow type."""
    if not isinstance(op.target_element, BFloat16Type) or not isinstance(op.operands[0].owner, _CHOICES):
        return False
    waiting, seen = [op.operands[0]], 0
    while waiting:
        value = waiting.pop()
        owner = value.owner
        if isinstance(owner, _CHOICES):
            seen += 1
            waiting += owner.operands[-2:]
        elif not _is_narrow(owner, op):
            return False
        if seen > _MOST:
            return False
    return True


def _is_narrow(owner: object, op: NarrowOp) -> bool:
    """Whether a number is one of the narrow type."""
    if isinstance(owner, WidenOp):
        return owner.source_element == op.target_element
    return isinstance(owner, arith.ConstantOp) and isinstance(owner.value, FloatAttr) and _has(owner.value.value.data)


def _has(value: float) -> bool:
    """Whether bfloat16 has a number: a float32 without the lower half of its bits, or an infinity."""
    try:
        (bits,) = struct.unpack("I", struct.pack("f", value))
    except OverflowError:
        return False
    return value == value and not bits & 0xFFFF and struct.unpack("f", struct.pack("I", bits))[0] == value


def _replace(op: NarrowOp) -> None:
    """Put a choice among narrow numbers in the place of a rounding."""
    made: list[Operation] = []
    known: dict[SSAValue, SSAValue] = {}
    result = _narrow(op.operands[0], op, made, known)
    for each in made:
        each.location = op.location
    block = op.parent
    assert block is not None
    block.insert_ops_before(made, op)
    op.results[0].replace_all_uses_with(result)


def _narrow(value: SSAValue, op: NarrowOp, made: list[Operation], known: dict[SSAValue, SSAValue]) -> SSAValue:
    if value not in known:
        known[value] = _narrowed(value, op, made, known)
    return known[value]


def _narrowed(value: SSAValue, op: NarrowOp, made: list[Operation], known: dict[SSAValue, SSAValue]) -> SSAValue:
    owner, element = value.owner, op.target_element
    if isinstance(owner, WidenOp):
        return owner.operands[0]
    if isinstance(owner, arith.ConstantOp):
        assert isinstance(owner.value, FloatAttr) and isinstance(element, AnyFloat)
        new: Operation = arith.ConstantOp(FloatAttr(owner.value.value.data, element))
    else:
        assert isinstance(owner, _CHOICES)
        left, right = (_narrow(each, op, made, known) for each in owner.operands[-2:])
        new = arith.SelectOp(owner.cond, left, right) if isinstance(owner, arith.SelectOp) else type(owner)(left, right)
    made.append(new)
    return new.results[0]
