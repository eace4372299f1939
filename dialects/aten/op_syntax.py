"""Text of `AtenOp`, driven by the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from ..access import parse_ssa
from .arguments import canonical, describe, is_allowed
from .attributes import NONE, DeviceAttr, PresenceAttr
from .syntax import parse_arguments, parse_value, print_value

if TYPE_CHECKING:
    from .ops import AtenOp

Op = TypeVar("Op", bound="AtenOp")


def print_op(op: AtenOp, printer: Printer) -> None:
    """Print `(%x, dim = 1) binds [u0] {attributes} : T`."""
    with printer.in_parens():
        _print_arguments(op, printer)
    if op.binds:
        printer.print_string(f" binds [{', '.join(op.binds)}]")
    printer.print_op_attributes(op.attributes)
    if not op.results:
        return
    printer.print_string(" : ")
    if not op.schema.has_result_groups:
        printer.print_list(op.result_types, printer.print_attribute)
        return
    types = iter(op.result_types)
    for position, (result, size) in enumerate(zip(op.schema.returns, op.result_sizes, strict=True)):
        group = ", ".join(str(next(types)) for _ in range(size))
        printer.print_string(", " if position else "")
        printer.print_string(f"[{group}]" if result.is_list else group)


def _print_arguments(op: AtenOp, printer: Printer) -> None:
    separator = ""
    tensors = [op.arg(argument.name) for argument in op.schema.tensors]
    while tensors and tensors[-1] is None:
        tensors.pop()
    for value in tensors:
        printer.print_string(separator)
        _print_tensors(printer, value)
        separator = ", "
    for argument in op.schema.arguments:
        attribute = op.properties.get(argument.name)
        if argument.is_tensor or attribute is None:
            continue
        printer.print_string(f"{separator}{argument.name} = ")
        if isinstance(attribute, DeviceAttr):  # the schema says what the string means
            printer.print_string_literal(attribute.data)
        else:
            print_value(printer, attribute, op.dynamic)
        separator = ", "


def _print_tensors(printer: Printer, value: SSAValue | tuple[SSAValue | None, ...] | None) -> None:
    if value is None:
        printer.print_string("none")
    elif isinstance(value, tuple):
        with printer.in_square_brackets():
            printer.print_list(value, lambda item: _print_tensors(printer, item))
    else:
        printer.print_ssa_value(value)


class _Reader:
    """The parts of an op, as its text is read."""

    def __init__(self, cls: type[AtenOp], parser: Parser) -> None:
        self.cls = cls
        self.parser = parser
        self.operands: list[SSAValue] = []
        self.sizes: list[int] = []
        self.dynamic: list[SSAValue] = []
        self.properties: dict[str, Attribute] = {}

    def tensor(self) -> None:
        """The next positional argument."""
        tensors = self.cls.schema.tensors
        if len(self.sizes) == len(tensors):
            self.parser.raise_error(f"{self.cls.name} takes {len(tensors)} tensors by position")
        argument = tensors[len(self.sizes)]
        if not argument.is_list:
            item = self._item(argument.optional)
            self.operands += [] if item is None else [item]
            self.sizes.append(0 if item is None else 1)
            return
        if argument.optional and self.parser.parse_optional_keyword("none") is not None:
            self.properties[argument.name] = NONE
            self.sizes.append(0)
            return
        items = self.parser.parse_comma_separated_list(
            self.parser.Delimiter.SQUARE, lambda: self._item(argument.optional_items)
        )
        present = [item for item in items if item is not None]
        if len(present) < len(items):
            self.properties[argument.name] = PresenceAttr(tuple(item is not None for item in items))
        self.operands += present
        self.sizes.append(len(present))

    def _item(self, optional: bool) -> SSAValue | None:
        if optional and self.parser.parse_optional_keyword("none") is not None:
            return None
        return parse_ssa(self.parser)

    def property(self, name: str) -> None:
        """The value of a named argument."""
        argument = self.cls.schema.by_name.get(name)
        if argument is None or argument.is_tensor:
            named = [a.name for a in self.cls.schema.arguments if not a.is_tensor]
            self.parser.raise_error(f"{self.cls.name} takes by name: {', '.join(named) or 'nothing'}; not {name}")
        if name in self.properties:
            self.parser.raise_error(f"argument {name} is given twice")
        attribute = canonical(argument, parse_value(self.parser, self.dynamic))
        if not is_allowed(argument, attribute):
            self.parser.raise_error(f"argument {name} of {self.cls.name} takes {describe(argument)}, not {attribute}")
        if attribute != self.cls._default_attributes[name]:
            self.properties[name] = attribute

    def finish_tensors(self) -> None:
        """Absent optional tensors at the end."""
        for argument in self.cls.schema.tensors[len(self.sizes) :]:
            if not argument.may_be_left_out:
                self.parser.raise_error(f"{self.cls.name} needs tensor '{argument.name}'")
            self.sizes.append(0)
            if argument.is_list:
                self.properties[argument.name] = NONE


def parse_op(cls: type[Op], parser: Parser) -> Op:
    """Parse what `print_op` prints."""
    reader = _Reader(cls, parser)
    parse_arguments(parser, reader.tensor, reader.property)
    reader.finish_tensors()
    binds = parse_binds(parser)
    attributes = parser.parse_optional_attr_dict()
    types, sizes = _parse_results(cls, parser)
    op = cls.assemble(
        reader.operands, reader.sizes, reader.dynamic, reader.properties, types, binds=binds, result_sizes=sizes
    )
    op.attributes.update(attributes)
    return op


def parse_binds(parser: Parser) -> list[str]:
    """Parse an optional `binds [u0, u1]`."""
    if parser.parse_optional_keyword("binds") is None:
        return []
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)


def _parse_results(cls: type[AtenOp], parser: Parser) -> tuple[Sequence[Attribute], Sequence[int]]:
    """Result types, and how many of them each return has."""
    if parser.parse_optional_punctuation(":") is None:
        return (), [0] * len(cls.schema.returns)
    if not cls.schema.has_result_groups:
        types = [parser.parse_type()]
        while parser.parse_optional_punctuation(",") is not None:
            types.append(parser.parse_type())
        return types, ()
    groups: list[list[Attribute]] = []
    for position, result in enumerate(cls.schema.returns):
        if position:
            parser.parse_punctuation(",")
        if result.is_list:
            groups.append(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_type))
        else:
            groups.append([parser.parse_type()])
    return [type_ for group in groups for type_ in group], [len(group) for group in groups]
