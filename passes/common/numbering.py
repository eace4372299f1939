"""Value numbering: keys under which two ops, bodies included, compute the same.

xDSL's structural equivalence ignores result types and its hashes ignore regions, so neither is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.effects import is_pure
from ...dialects.loop import AssertOp
from ...dialects.raw import op_behind, operands_of, type_of
from ...dialects.sym import AxesAttr, Expr, MapAttr, SymAttr, symbol
from ..counters import counter

Key: TypeAlias = tuple[Any, ...]
_BITS = 32  # for the values of one body; the rest of a number is the depth
Scope: TypeAlias = "list[dict[Key, Operation]]"
"""Ops by key, innermost body last."""


class AttributeTokens:
    """A small number for each distinct attribute, found by identity first: hashing attributes is slow."""

    def __init__(self) -> None:
        self._by_identity: dict[int, int] = {}
        self._by_value: dict[Any, int] = {}
        self._dictionaries: dict[tuple[object, ...], int] = {}
        self._kept_alive: list[Attribute] = []

    def of(self, attribute: Attribute) -> int:
        """The same number for equal attributes. 0.0 and -0.0 are different, equal NaNs the same."""
        found = self._by_identity.get(id(attribute))
        if found is None:
            value: Any = attribute
            if type(attribute) is FloatAttr:
                value = ("float", repr(attribute.value.data), attribute.type)
            elif isinstance(attribute, ArrayAttr):
                value = ("array", *map(self.of, attribute.data))
            found = self._by_value.setdefault(value, len(self._by_value))
            self._by_identity[id(attribute)] = found
            self._kept_alive.append(attribute)
        return found

    def of_types(self, values: Sequence[SSAValue]) -> tuple[int, ...]:
        """The numbers of the types of values."""
        found = tuple(map(self._by_identity.get, map(id, map(type_of, values))))
        return tuple(map(self.of, map(type_of, values))) if None in found else cast("tuple[int, ...]", found)

    def of_all(self, attributes: Mapping[str, Attribute]) -> int:
        """The same number for dictionaries of equal attributes, in any order."""
        same = (*attributes, *map(id, attributes.values()))
        found = self._dictionaries.get(same)
        if found is None:
            value = tuple((name, self.of(attributes[name])) for name in sorted(attributes))
            found = self._dictionaries[same] = self._by_value.setdefault(value, len(self._by_value))
        return found


class NestNumbering:
    """Numbers the values inside one op with regions; merges equal ones where `merge` names a debug counter.

    Axis names count by position only: `(i0 in 4) { x[i0] }` and `(i5 in 4) { x[i5] }` have one key. Values from
    outside stand for themselves. Those inside are negative numbers, so that a key tells them from attributes.
    """

    def __init__(self, tokens: AttributeTokens, merge: str = "") -> None:
        self.tokens = tokens
        self.merge = merge
        #: by identity: a hash of a value is a call of Python; nothing here makes values, so none is taken for another
        self.numbers: dict[int, int] = {}
        self.renaming: dict[str, Expr] = {}
        self.axes = 0

    def key(self, op: Operation, scope: Scope) -> Key:
        """The key of an op; of one with regions after its bodies are numbered."""
        numbers, tokens = self.numbers, self.tokens
        operands = [numbers.get(id(v)) or self.outside(v) for v in operands_of(op)]
        types = tokens.of_types(op.results)
        if not op.regions:
            return type(op), self._properties(op), *operands, *types
        outer_renaming, outer_axes = self.renaming, self.axes
        self._bind_axes(op)
        bodies = [self._body(block, scope) for region in op.regions for block in region.blocks]
        key = (type(op), self._properties(op), *operands, *bodies, *types)
        self.renaming, self.axes = outer_renaming, outer_axes
        return key

    def outside(self, value: SSAValue) -> Any:
        """What stands in a key for a value from outside."""
        return value

    def _properties(self, op: Operation) -> Any:
        """Numbers for the attributes of an op."""
        properties: Mapping[str, Attribute] = op.properties
        if self.renaming and properties:
            properties = {name: self._renamed(attribute) for name, attribute in properties.items()}
        found = self.tokens.of_all(properties)
        return (found, self.tokens.of_all(op.attributes)) if op.attributes else found

    def _bind_axes(self, op: Operation) -> None:
        axes = op.properties.get("axes")
        if not isinstance(axes, AxesAttr):
            return
        renaming = dict(self.renaming)
        for name, _ in axes.data:
            canonical = symbol(f"i{self.axes}")
            self.axes += 1
            if str(canonical) != name:
                renaming[name] = canonical
            else:
                renaming.pop(name, None)
        self.renaming = renaming

    def _renamed(self, attribute: Attribute) -> Attribute:
        renaming = self.renaming
        if type(attribute) is MapAttr:
            return MapAttr.of(*(e.subs(renaming) for e in attribute.data))
        if type(attribute) is SymAttr:
            return SymAttr.of(attribute.data.subs(renaming))
        if type(attribute) is AxesAttr:
            return AxesAttr.of(*((str(symbol(n).subs(renaming)), size) for n, size in attribute.data))
        return attribute

    def _body(self, block: Block, scope: Scope) -> Key:
        scope = [*scope, {}]
        # by depth, so that equal bodies side by side get equal numbers
        number = -len(scope) << _BITS
        for argument in block.args:
            number -= 1
            self.numbers[id(argument)] = number
        entries: list[Key] = []
        op = block.first_op
        while op is not None:
            following = op_behind(op)
            key = self.key(op, scope)
            if not self.merge or not self._merged(op, key, scope, block):
                for result in op.results:
                    number -= 1
                    self.numbers[id(result)] = number
                entries.append(key)
            op = following
        return tuple(entries)

    def _merged(self, op: Operation, key: Key, scope: Scope, block: Block) -> bool:
        """Replace `op` by an equal one that dominates it."""
        if not (op.regions or type(op) is AssertOp or is_pure(op)):
            return False
        for known in scope:
            equal = known.get(key)
            if equal is not None and counter(self.merge):
                for old, new in zip(op.results, equal.results, strict=True):
                    old.replace_all_uses_with(new)
                block.erase_op(op)
                return True
        scope[-1][key] = op
        return False
