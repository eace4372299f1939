"""The ops of the aten dialect: one class per overload, made from its schema when it is first asked for.

    %y = aten.slice.Tensor(%x, dim = 1, end = s0 + 1) : !aten.tensor<4x(s0 + 1)xf32, strides = [...]>
    %a, %b = aten.split.Tensor(%x, split_size = 2) : !aten.tensor<2xf32>, !aten.tensor<2xf32>
    %n = aten.item(%x) binds [u0] : index

Tensors are operands, by position: `none` for an optional one that is absent, `[%a, none]` for lists. Everything
else is a property by the argument's name, left out when it has its default. A list result is several results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr
from xdsl.ir import Attribute, Operation, OpTraits, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from ..access import segments
from ..fast_create import create
from ..plain_classes import PlainMeta
from .arguments import argument_attribute, default_attribute, default_value
from .attributes import NONE, PresenceAttr
from .op_syntax import parse_op, print_op
from .schema import Argument, Schema
from .table import schema_of
from .values import SSA_CLASSES, Value, decode
from .verification import verify_op

SEGMENTS = "operandSegmentSizes"
RESULT_SEGMENTS = "resultSegmentSizes"
BINDS = "binds"
CHECKED = "checked"
"""Attribute of a call whose data decides sizes that the types of its results already name: it is an error where they
differ."""
#: values of arguments whose attributes are kept, at most `_MOST_KEPT` an overload
_PLAIN = frozenset({int, bool, str, type(None)})
_MOST_KEPT = 1024
Tensors = SSAValue | None | tuple[SSAValue | None, ...]

_item = tuple.__getitem__  # that of xDSL's tuples of values is a call of Python


class AtenOp(Operation, metaclass=PlainMeta):
    """Base of the ops of ATen overloads. Build with `AtenOp.of` or `build`; read arguments with `arg`."""

    schema: ClassVar[Schema]
    target: ClassVar[str]
    """The op's name, "aten.slice.Tensor"."""
    packet: ClassVar[str]
    """The name that overloads share, "slice"."""
    _groups: ClassVar[dict[str, int]]
    """Position of each tensor argument's operand group."""
    _is_plain: ClassVar[bool]
    """Whether each tensor argument is exactly one operand; then only dynamic operands need segment sizes."""
    _attributes: ClassVar[dict[tuple[str, type, Value], Attribute]]
    _defaults: ClassVar[dict[str, Value]]
    _default_attributes: ClassVar[dict[str, Attribute | None]]

    @staticmethod
    def of(
        name: str,
        args: Mapping[str, Value],
        result_types: Sequence[Attribute],
        location: Attribute | None = None,
        binds: Sequence[str] = (),
    ) -> AtenOp:
        """Build the op `name` ("aten.add.Tensor") from its arguments by name.

        Raises KeyError for an unknown op, TypeError for arguments that the schema does not take.
        """
        cls = op_class(name)
        if cls is None:
            raise KeyError(f"no ATen overload is called {name}")
        return cls.build(args, result_types, location, binds)

    @classmethod
    def build(
        cls,
        args: Mapping[str, Value],
        result_types: Sequence[Attribute],
        location: Attribute | None = None,
        binds: Sequence[str] = (),
        result_sizes: Sequence[int] = (),
    ) -> Self:
        """Build from arguments by name; tensor lists are sequences, absent optional tensors None.

        `binds` names the symbols that the results define. `result_sizes` is needed when a list is one of several
        results: how many of `result_types` belong to each.
        """
        operands: list[SSAValue] = []
        sizes: list[int] = []
        dynamic: list[SSAValue] = []
        properties: dict[str, Attribute] = {}
        missing = len(args)
        for argument in cls.schema.arguments:
            name = argument.name
            if name not in args:
                if not argument.may_be_left_out:
                    raise TypeError(f"{cls.name} needs argument '{name}'")
                if argument.is_tensor:
                    sizes.append(0)
                continue
            missing -= 1
            if argument.is_tensor:
                sizes.append(_append_tensors(argument, args[name], operands, properties))
                continue
            attribute = cls._encoded(argument, args[name], dynamic)
            default = cls._default_attributes[name]
            if attribute is not default and attribute != default:
                properties[name] = attribute
        if missing:
            unknown = ", ".join(args.keys() - cls.schema.by_name.keys())
            raise TypeError(f"{cls.name} has no argument {unknown}")
        return cls.assemble(operands, sizes, dynamic, properties, result_types, location, binds, result_sizes)

    @classmethod
    def _encoded(cls, argument: Argument, value: Value, dynamic: list[SSAValue]) -> Attribute:
        """The attribute of an argument's value. Layers repeat theirs, so plain ones are kept."""
        kind = type(value)
        if kind not in _PLAIN and not (kind is tuple and {*map(type, cast(tuple, value))} <= {int}):
            return argument_attribute(argument, value, dynamic)
        key = (argument.name, kind, value)  # with its type, for `True` equals 1
        found = cls._attributes.get(key)
        if found is None:
            found = argument_attribute(argument, value, dynamic)
            if len(cls._attributes) < _MOST_KEPT:
                cls._attributes[key] = found
        return found

    @classmethod
    def assemble(
        cls,
        operands: list[SSAValue],
        sizes: Sequence[int],
        dynamic: Sequence[SSAValue],
        properties: dict[str, Attribute],
        result_types: Sequence[Attribute],
        location: Attribute | None = None,
        binds: Sequence[str] = (),
        result_sizes: Sequence[int] = (),
    ) -> Self:
        """Build from encoded parts: `sizes` of the tensor arguments' groups, dynamic operands behind them."""
        if dynamic or not cls._is_plain:
            properties[SEGMENTS] = segments(*sizes, len(dynamic))
        if binds:
            properties[BINDS] = names_attr(*binds)
        if cls.schema.has_result_groups:
            properties[RESULT_SEGMENTS] = segments(*result_sizes)
        given = (*operands, *dynamic)
        return create(cls, given, tuple(result_types), properties, location=location)  # pyright: ignore[reportArgumentType]

    def arg(self, name: str) -> Value:
        """The value of an argument, its default when it is not spelled. KeyError for an unknown name.

        Tensors: an SSA value, None, or a tuple of such. Others: int, float, bool, complex, str, `Expr`, an element
        type for a dtype, a tuple of such, or the SSA value of a number that another op made.
        """
        group = self._groups.get(name)
        if group is not None:
            return _item(self._operands, group) if self._is_plain else self._tensors(name, group)
        attribute = self.properties.get(name)
        return self._defaults[name] if attribute is None else decode(attribute, self.dynamic)

    @property
    def written(self) -> tuple[SSAValue, ...]:
        """The tensors that this op writes, by its schema."""
        given = [self.arg(argument.name) for argument in self.schema.arguments if argument.writes]
        tensors = [each for value in given for each in (value if isinstance(value, tuple) else (value,))]
        return tuple([each for each in tensors if isinstance(each, SSAValue)])

    def args(self) -> dict[str, Value]:
        """All arguments by name, in the schema's order."""
        return {argument.name: self.arg(argument.name) for argument in self.schema.arguments}

    def _tensors(self, name: str, group: int) -> Tensors:
        sizes = self.segment_sizes
        start = sum(sizes[:group])
        values = self._operands[start : start + sizes[group]]
        argument = self.schema.by_name[name]
        if not argument.is_list:
            return values[0] if values else None
        presence = self.properties.get(name)
        if presence is None:
            return tuple(values)
        if not isinstance(presence, PresenceAttr):
            return None
        present = iter(values)
        return tuple(next(present) if there else None for there in presence.data)

    @property
    def segment_sizes(self) -> tuple[int, ...]:
        """How many operands each tensor argument has, then how many dynamic operands there are."""
        sizes = self.properties.get(SEGMENTS)
        if sizes is None:
            return (*(1 for _ in self._groups), 0)
        return _sizes(sizes)

    @property
    def dynamic(self) -> Sequence[SSAValue]:
        """Operands that stand for numbers which other ops made; properties refer to them by `#aten.operand`."""
        if SEGMENTS not in self.properties:
            return ()
        return self._operands[len(self._operands) - self.segment_sizes[-1] :]

    @property
    def binds(self) -> tuple[str, ...]:
        """Names of the symbols that this op defines: its integer results, or sizes of its tensor results."""
        names = self.properties.get(BINDS)
        return () if names is None else tuple(name.data for name in names)  # pyright: ignore

    @property
    def result_sizes(self) -> tuple[int, ...]:
        """How many results each of the schema's returns has."""
        sizes = self.properties.get(RESULT_SEGMENTS)
        if sizes is not None:
            return _sizes(sizes)
        is_list = len(self.schema.returns) == 1 and self.schema.returns[0].is_list
        return (len(self.results),) if is_list else tuple(1 for _ in self.schema.returns)

    def verify_(self) -> None:
        """Check operands, properties and results against the schema."""
        verify_op(self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Parse `(%x, dim = 1) binds [u0] : T`."""
        return parse_op(cls, parser)

    def print(self, printer: Printer) -> None:
        """Print what `parse` reads."""
        print_op(self, printer)


@lru_cache(maxsize=1024)
def names_attr(*names: str) -> ArrayAttr[StringAttr]:
    """The `binds` property for the given symbols."""
    return ArrayAttr([StringAttr(name) for name in names])


@lru_cache(maxsize=1024)
def _sizes(attribute: Attribute) -> tuple[int, ...]:
    assert isinstance(attribute, DenseArrayBase)
    return tuple(int(size) for size in attribute.get_values())


def _append_tensors(
    argument: Argument, value: Value, operands: list[SSAValue], properties: dict[str, Attribute]
) -> int:
    """Append the operands of a tensor argument; returns how many."""
    if type(value) in SSA_CLASSES:
        operands.append(value)
        return 1
    if value is None:
        if not argument.optional:
            raise TypeError(f"argument '{argument.name}' must be a tensor, not None")
        if argument.is_list:
            properties[argument.name] = NONE
        return 0
    if not argument.is_list:
        raise TypeError(f"argument '{argument.name}' must be a tensor value, not {value!r}")
    present = [item for item in value if item is not None]
    if len(present) < len(value):
        properties[argument.name] = PresenceAttr(tuple(item is not None for item in value))
    if not all(type(item) in SSA_CLASSES for item in present):
        raise TypeError(f"argument '{argument.name}' must be a list of tensor values, not {value!r}")
    operands += present
    return len(present)


def _define(name: str, schema: Schema) -> type[AtenOp]:
    tensors = schema.tensors
    others = [argument for argument in schema.arguments if not argument.is_tensor]
    is_pure = schema.is_pure
    members = {
        "__doc__": f"The ATen overload {schema.name}.",
        "__module__": __name__,
        "name": name,
        "target": name,
        "packet": schema.packet,
        "schema": schema,
        "traits": OpTraits(lambda: (Pure(),) if is_pure else ()),
        "_attributes": {},
        "_groups": {argument.name: k for k, argument in enumerate(tensors)},
        "_is_plain": not any(argument.is_variadic for argument in tensors),
        "_defaults": {argument.name: default_value(argument) for argument in others},
        "_default_attributes": {argument.name: default_attribute(argument) for argument in others},
    }
    return type(f"{schema.name.replace('.', '_')}_Op", (AtenOp,), members)


_CLASSES: dict[str, type[AtenOp] | None] = {}


def op_class(name: str) -> type[AtenOp] | None:
    """The class of the op `name` ("aten.add.Tensor"), made at the first call; None for an unknown overload."""
    if name in _CLASSES:
        return _CLASSES[name]
    schema = schema_of(name.removeprefix("aten.")) if name.startswith("aten.") else None
    found = None if schema is None else _define(name, schema)
    # setdefault keeps one class when two threads ask for the same overload; unknown names are not remembered,
    # for they come from untrusted text.
    return None if found is None else _CLASSES.setdefault(name, found)
