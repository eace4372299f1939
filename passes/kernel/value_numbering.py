"""A kernel's body as a key that names, locations and the order of properties do not touch."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, get_args

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.raw import ops_of
from ...dialects.sym import Expr, MapAttr, SymAttr, symbol
from ..analysis.loops import Loop

Key = tuple[Any, ...]
_NAMES = frozenset(("sym_name", "axis", "target"))
#: classes are compared by identity: `isinstance` of another class of ops or attributes is a call of Python
_LOOPS: frozenset[type[Operation]] = frozenset(get_args(Loop))


def kernel_key(function: kernel.FuncOp) -> Key:
    """Equal for two kernels exactly if one is the other with other names of symbols, axes and values."""
    numbering = _Numbering([s.data for s in function.symbols])
    buffers = tuple(numbering.buffer(argument) for argument in function.body.block.args)
    schedule = function.target, function.num_warps, function.num_stages, function.programs, function.streams
    return *schedule, function.boxes, function.errors, buffers, numbering.block(function.body.block)


def region_key(region: Region) -> Key:
    """Equal for two regions that compute the same from their arguments and from the same other values."""
    numbering = _Numbering(())
    for argument in region.block.args:
        numbering.number(argument)
    return numbering.block(region.block)


class _Numbering:
    def __init__(self, symbols: Iterable[str]) -> None:
        self.rename = {name: f"s.{position}" for position, name in enumerate(symbols)}
        self.numbers: dict[SSAValue, int] = {}
        self.pairs: tuple[tuple[str, str], ...] = tuple(self.rename.items())
        self.axes = 0

    def buffer(self, argument: SSAValue) -> Key:
        type_ = argument.type
        assert isinstance(type_, kernel.BufferType)
        self.number(argument)
        return type_.element, self._expr(type_.extent), type_.local

    def block(self, block: Block) -> Key:
        return tuple(self._op(op) for op in ops_of(block))

    def _op(self, op: Operation) -> Key:
        if type(op) in _LOOPS:
            axis = op.properties["axis"]
            assert isinstance(axis, StringAttr)
            # counted, for a later loop may reuse the name of an axis and must not share the number of another
            self.rename[axis.data] = f"a.{self.axes}"
            self.axes += 1
            self.pairs = tuple(self.rename.items())
        operands = tuple([self.numbers.get(value, value) for value in op.operands])
        properties = tuple(
            [(name, self._attribute(op.properties[name])) for name in sorted(op.properties) if name not in _NAMES]
        )
        regions: list[Key] = []
        for region in op.regions:
            for argument in region.block.args:
                self.number(argument)
            regions.append(self.block(region.block))
        for result in op.results:
            self.number(result)
        types = tuple([self._type(result.type) for result in op.results])
        return op.name, operands, types, properties, tuple(regions)

    def number(self, value: SSAValue) -> None:
        self.numbers[value] = len(self.numbers)

    def _type(self, type_: Attribute) -> Any:
        if type(type_) is kernel.BufferType:
            return type_.element, self._expr(type_.extent), type_.local
        return type_

    def _attribute(self, attribute: Attribute) -> Any:
        if type(attribute) is MapAttr:
            return tuple(self._expr(expr) for expr in attribute.data)
        if type(attribute) is SymAttr:
            return self._expr(attribute.data)
        return attribute

    def _expr(self, expr: Expr) -> Expr:
        if not expr.free_symbols:
            return expr
        return _renamed(expr, self.pairs)


@lru_cache(maxsize=8192)
def _renamed(expr: Expr, pairs: tuple[tuple[str, str], ...]) -> Expr:
    return expr.subs({old: symbol(new) for old, new in pairs})
