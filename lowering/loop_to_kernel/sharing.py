"""Fusions of one function that are equal but for what they read are lowered once.

A model repeats its layers, so most fusions repeat one before them. They are recognised by their value-numbered bodies,
and all that follows (lowering, verification, passes on kernels, tiling, emission) is done once for each distinct one.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel, loop
from ...dialects.sym import MapAttr
from ...passes.common.locations import merged
from ...passes.common.numbering import AttributeTokens, Key, NestNumbering
from ...records import dataclass
from .kernel_builder import KernelBuilder, Operand


class FusionNumbering(NestNumbering):
    """Numbers the inside of a fusion, and what it reads from outside by first use: `outer`, in that order."""

    def __init__(self, tokens: AttributeTokens) -> None:
        super().__init__(tokens)
        self.outer: list[SSAValue] = []

    def outside(self, value: SSAValue) -> Any:
        """The same value has the same number; names and owners of values do not count."""
        self.outer.append(value)
        number = self.numbers[id(value)] = -len(self.outer)
        return number

    def _bind_axes(self, op: Operation) -> None:
        """Axes count by name: equal layers have equal names, and renaming costs more than all the rest."""


def fusion_key(fusion: loop.FusionOp, tokens: AttributeTokens) -> tuple[Key, list[SSAValue]]:
    """(key, values from outside): fusions of one function with equal keys become the same kernel.

    The key holds all that the lowering looks at: the bodies, types, names of axes and symbols, which
    values from outside are the same, their types, and of those that a kernel does not find in memory what they are.
    """
    numbering = FusionNumbering(tokens)
    key = numbering.key(fusion, [])
    return (key, *(_facts(value, tokens) for value in numbering.outer)), numbering.outer


def _facts(value: SSAValue, tokens: AttributeTokens) -> tuple[object, ...]:
    owner = value.owner
    constant = tokens.of(owner.value) if isinstance(owner, arith.ConstantOp) else None
    return tokens.of(value.type), constant, isinstance(owner, loop.EmptyOp)


@dataclass(frozen=True)
class Buffer:
    """A buffer of a shared kernel; `outer` is the position of its value among those from outside."""

    operand: Operand
    outer: int | None

    def of(self, outer: list[SSAValue]) -> Operand:
        """The operand for another fusion, which reads other values."""
        if self.outer is None:
            return self.operand
        return Operand(self.operand.kind, self.operand.type, outer[self.outer])


@dataclass
class SharedKernel:
    """A kernel and what a launch of it needs. `results` gives the buffer of each result of a fusion."""

    function: kernel.FuncOp
    symbols: MapAttr
    buffers: list[Buffer]
    results: list[int]
    locations: list[LocationAttr]

    @staticmethod
    def of(function: kernel.FuncOp, symbols: MapAttr, builder: KernelBuilder, outer: list[SSAValue]) -> SharedKernel:
        """From the builder that made the kernel, and the values from outside of its fusion."""
        positions = {value: position for position, value in enumerate(outer)}
        buffers = [
            Buffer(operand, None if operand.value is None else positions[operand.value]) for operand in builder.operands
        ]
        return SharedKernel(function, symbols, buffers, builder.results, [function.location])

    def locate(self) -> None:
        """Let the kernel name all places that it stems from."""
        if len(self.locations) > 1:
            self.function.location = merged(self.locations)
