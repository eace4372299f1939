"""What the kernel passes estimate: trip counts, work, and how an access moves along an axis.

The unit of work is one access to an element in cache; what an op takes of it says `machines/costs.py`. Estimates steer
choices only: no result depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from math import prod
from typing import cast, get_args

from xdsl.dialects.builtin import AnyFloat, IntegerType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.raw import operands_of, ops_of
from ...dialects.scalar import CastOp
from ...dialects.sym import ZERO, Expr
from ...machines.costs import WORK_FROM_LONG, cost_of
from ...records import dataclass
from .effects import is_local
from .loops import Loop, is_loop, ops_in
from .sizes import Sizes

_FLOATS = frozenset(get_args(AnyFloat))
"""`isinstance` of what is none asks each of these abstract classes."""


def work_of_op(op: Operation, sizes: Sizes) -> float:
    """Work of an op with everything nested in it."""
    if is_loop(op):
        return sizes.trips(op) * sum(work_of_block(region.block, sizes) for region in op.regions)
    if isinstance(op, CastOp) and op.value.type == i64 and isinstance(op.result.type, AnyFloat):
        return WORK_FROM_LONG
    return cost_of(op.name).work


def work_of_ops(ops: Iterable[Operation], sizes: Sizes) -> float:
    """Work of some ops with everything nested in them."""
    return sum(work_of_op(op, sizes) for op in ops)


def work_of_block(block: Block, sizes: Sizes) -> float:
    """Work of one run of a block."""
    return work_of_ops([op for op in ops_of(block) if type(op) is not kernel.YieldOp], sizes)


@dataclass(frozen=True)
class Access:
    """One load or store in a nest.

    index:    linear index, dynamic operands included as `d0, d1, ...`
    varying:  axes on which the dynamic operands depend
    loops:    the loops around it inside the nest, outermost first
    bytes:    size of an element
    """

    op: kernel.LoadOp | kernel.StoreOp
    index: Expr
    varying: frozenset[str]
    loops: tuple[Loop, ...]
    bytes: int

    def runs(self, sizes: Sizes) -> int:
        """How often the access happens in one run of the nest."""
        return prod(sizes.trips(op) for op in self.loops)

    def stride(self, axis: str) -> Expr | None:
        """Distance in elements between neighbours along an axis; None when there is no constant distance."""
        if axis in self.varying:
            return None
        return self.index.coefficient(axis) if axis in self.index.free_symbols else ZERO


_NONE: frozenset[str] = frozenset()


@dataclass
class Nest:
    """The accesses of a loop nest."""

    accesses: list[Access] = field(default_factory=list)
    _axes: dict[SSAValue, frozenset[str]] = field(default_factory=dict)

    @staticmethod
    def of(op: Loop) -> Nest:
        """Collect the accesses below a loop, itself included."""
        nest = Nest()
        nest._loop(op, ())
        return nest

    def shares_only_numbers(self, axes: Sequence[str]) -> bool:
        """Whether each access is to an element that no other point of the axes touches, or to one that all touch."""
        used = [sum(a.stride(axis) is not ZERO for axis in axes) for a in self.accesses]
        return all(count in (0, len(axes)) for count in used)

    def _loop(self, op: Loop, outer: tuple[Loop, ...]) -> None:
        for region in op.regions:
            self._block(region.block, (*outer, op))
        below = frozenset().union(*(self._of(v) for v in _last_operands(op))) - {op.axis.data}
        for result in op.results:
            self._axes[result] = below

    def _block(self, block: Block, loops: tuple[Loop, ...]) -> None:
        for argument in block.args:
            self._axes[argument] = frozenset(op.axis.data for op in loops)
        for op in ops_of(block):
            if is_loop(op):
                self._loop(op, loops)
                continue
            axes = frozenset().union(*map(self._of, operands_of(op)))
            if type(op) is kernel.LoadOp or type(op) is kernel.StoreOp:
                index = op.map.data[0]
                varying = frozenset().union(*map(self._of, op.dynamic)) if axes else _NONE
                self.accesses.append(Access(op, index, varying, loops, element_bytes(op.buffer.type)))
                axes |= index.free_symbols
            elif isinstance(op, kernel.IndexOp):
                axes |= op.expr.data.free_symbols
            for result in op.results if axes else ():
                self._axes[result] = axes

    def _of(self, value: SSAValue) -> frozenset[str]:
        return self._axes.get(value, _NONE)


def _last_operands(op: Loop) -> tuple[SSAValue, ...]:
    last = op.body.block.last_op
    return tuple(last.operands) if last is not None else ()


def element_bytes(type_: Attribute) -> int:
    """Bytes of an element of a buffer, or of a scalar."""
    element = type_.element if isinstance(type_, kernel.BufferType) else type_
    if isinstance(element, IntegerType):
        return max(element.width.data // 8, 1)
    return cast(AnyFloat, element).bitwidth // 8 if type(element) in _FLOATS else 8


def buffer_bytes(buffer: SSAValue, sizes: Sizes) -> int:
    """Bytes of a buffer of a kernel."""
    assert isinstance(buffer.type, kernel.BufferType)
    return sizes.of(buffer.type.extent) * element_bytes(buffer.type)


def bytes_of_block(block: Block, sizes: Sizes) -> int:
    """Bytes that a block reads and writes, each place of a buffer once for reading and once for writing."""
    moved: dict[tuple[SSAValue, bool], int] = {}
    _add_accesses(block, sizes, 1, moved)
    return sum(min(each, buffer_bytes(buffer, sizes)) for (buffer, _), each in moved.items())


def _add_accesses(block: Block, sizes: Sizes, runs: int, moved: dict[tuple[SSAValue, bool], int]) -> None:
    for op in ops_of(block):
        if (type(op) is kernel.LoadOp or type(op) is kernel.StoreOp) and not is_local(op.buffer):
            key = op.buffer, type(op) is kernel.StoreOp
            moved[key] = moved.get(key, 0) + runs * element_bytes(key[0].type)
        inner = runs * sizes.trips(op) if is_loop(op) else runs
        for region in op.regions:
            _add_accesses(region.block, sizes, inner, moved)


def widest_scalar(op: Operation) -> int:
    """Bytes of the widest scalar that an op and everything nested in it compute.

    Integers count where they are stored or reduced: those that only index or compare leave the lanes to the rest.
    """
    widest = 1
    for inner in ops_in(op):
        types: list[Attribute] = [result.type for result in inner.results if type(result.type) in _FLOATS]
        if isinstance(inner, kernel.StoreOp):
            types.append(inner.value.type)
        elif isinstance(inner, kernel.YieldOp):
            types += [value.type for value in inner.values]
        widest = max([widest, *(element_bytes(type_) for type_ in types)])
    return widest


def is_unit(stride: Expr | None) -> bool:
    """Whether neighbours along an axis lie next to each other."""
    return stride is not None and stride.as_int() == 1
