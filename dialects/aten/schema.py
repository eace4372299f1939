"""Schemas of ATen overloads: what an overload takes, returns, reads and writes.

A schema is written as torch writes it, then the tags that a compiler asks for:

    slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a) | core
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cache, cached_property
from typing import Any, Final

from ...errors import InductileError
from ...records import dataclass

#: type in torch's notation -> kind of an argument or a result
KINDS: dict[str, str] = {
    "Tensor": "tensor",
    "int": "int",
    "SymInt": "int",
    "float": "float",
    "SymFloat": "float",
    "bool": "bool",
    "SymBool": "bool",
    "complex": "complex",
    "Scalar": "scalar",
    "str": "str",
    "ScalarType": "dtype",
    "Layout": "layout",
    "MemoryFormat": "memory_format",
    "Device": "device",
    "Generator": "generator",
}

#: torch's tags that decide what a compiler may do; the table keeps no others
TAGS: frozenset[str] = frozenset({
    "core", "cudagraph_unsafe", "data_dependent_output", "dynamic_output_shape", "flexible_layout", "inplace_view",
    "maybe_aliasing_or_mutating", "needs_contiguous_strides", "needs_exact_strides", "needs_fixed_stride_order",
    "nondeterministic_bitwise", "nondeterministic_seeded", "pointwise", "reduction", "view_copy",
})  # fmt: skip

#: torch prints defaults of these kinds as the numbers of its enumerations
ENUMERATORS: dict[str, dict[int, str]] = {
    "dtype": {4: "int64", 6: "float32", 11: "bool"},
    "layout": {0: "strided"},
    "memory_format": {0: "contiguous_format", 1: "preserve_format"},
}

REQUIRED: Final = object()
"""The default of an argument that has none."""


class SchemaError(InductileError):
    """A schema is malformed or has a type that no captured graph holds."""


@dataclass(frozen=True)
class Argument:
    """An argument of an overload."""

    name: str
    kind: str
    """A value of `KINDS`."""
    position: int
    default: Any = REQUIRED
    """Python value that stands for an argument left out; dtypes and formats by torch's name; lists as tuples."""
    is_list: bool = False
    size: int | None = None
    """Length that a single number is repeated to, for `int[2]`."""
    optional: bool = False
    """Whether None may be given."""
    optional_items: bool = False
    """Whether None may be an item of the list."""
    is_symbolic: bool = False
    """Whether torch takes a SymInt, SymFloat or SymBool; plain numbers specialise."""
    kwarg_only: bool = False
    alias: str = ""
    """Name of the alias set shared with results; empty when results never alias it."""
    writes: bool = False

    @property
    def is_tensor(self) -> bool:
        """Whether it holds tensors: it is an operand then, else a property."""
        return self.kind == "tensor"

    @property
    def may_be_left_out(self) -> bool:
        """Whether it has a default; None is the default of an optional argument without one."""
        return self.optional or self.default is not REQUIRED

    @property
    def is_variadic(self) -> bool:
        """Whether the number of operands may vary."""
        return self.is_list or self.optional


@dataclass(frozen=True)
class Return:
    """A result of an overload; `Tensor[]` stands for any number of results."""

    kind: str
    is_list: bool = False
    optional: bool = False
    name: str = ""
    alias: str = ""
    writes: bool = False


@dataclass(frozen=True)
class Schema:
    """An overload: `packet` "slice", `overload` "Tensor" (empty for torch's `.default`)."""

    packet: str
    overload: str
    arguments: tuple[Argument, ...]
    returns: tuple[Return, ...]
    tags: frozenset[str] = field(default=frozenset())

    @property
    def name(self) -> str:
        """`slice.Tensor`, without `.default`."""
        return f"{self.packet}.{self.overload}" if self.overload else self.packet

    @cached_property
    def by_name(self) -> dict[str, Argument]:
        """Arguments by name."""
        return {argument.name: argument for argument in self.arguments}

    @cached_property
    def tensors(self) -> tuple[Argument, ...]:
        """The arguments that are operands, in order."""
        return tuple(argument for argument in self.arguments if argument.is_tensor)

    @cached_property
    def is_mutable(self) -> bool:
        """Whether it writes an argument."""
        return any(argument.writes for argument in self.arguments)

    @cached_property
    def is_view(self) -> bool:
        """Whether a result may share an argument's memory without a write: views, and `reshape`, `contiguous`, ..."""
        return any(result.alias and not result.writes for result in self.returns)

    @cached_property
    def has_one_tensor_result(self) -> bool:
        """Whether a call gives the result itself, not a tuple or a list of results."""
        return len(self.returns) == 1 and not self.returns[0].is_list

    @cached_property
    def has_result_groups(self) -> bool:
        """Whether a list is one of several results, so that the number of results does not say which is whose."""
        return len(self.returns) > 1 and any(result.is_list for result in self.returns)

    @property
    def is_random(self) -> bool:
        """Whether it draws from a generator: calls must neither merge nor change their order."""
        return "nondeterministic_seeded" in self.tags

    @cached_property
    def is_pure(self) -> bool:
        """Whether a call may be removed, merged and moved. A call without results is there for its effect: a check."""
        return not self.is_mutable and not self.is_random and bool(self.returns)

    @property
    def is_pointwise(self) -> bool:
        """Whether each element depends on elements of the (broadcast) arguments at the same index only."""
        return "pointwise" in self.tags


def parse_schema(line: str) -> Schema:
    """Read a line of the table. Raises SchemaError naming what is not understood."""
    text, _, tags = line.partition(" | ")
    name, _, rest = text.partition("(")
    arguments, arrow, returns = rest.rpartition(" -> ")
    if not arrow or not arguments.endswith(")"):
        raise SchemaError(f"not a schema: {line!r}")
    packet, _, overload = name.partition(".")
    return Schema(
        packet,
        overload,
        tuple(_arguments(arguments[:-1])),
        tuple(_return(each) for each in _split(returns[1:-1] if returns.startswith("(") else returns)),
        frozenset(tags.split()),
    )


def _split(text: str) -> list[str]:
    """Split at the commas that are in no bracket and no string."""
    pieces: list[str] = []
    start = depth = 0
    quote = ""
    escaped = False
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote and not escaped else quote
            escaped = character == "\\" and not escaped
        elif character in "\"'":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and depth == 0:
            pieces.append(text[start:index].strip())
            start = index + 1
    last = text[start:].strip()
    return [*pieces, last] if last else pieces


def _arguments(text: str) -> Iterator[Argument]:
    position = 0
    kwarg_only = False
    for each in _split(text):
        if each == "*":
            kwarg_only = True
            continue
        declaration, equals, default = each.partition("=")
        written, _, name = declaration.rpartition(" ")
        options = _type(written)
        value = _default(default, options["kind"]) if equals else REQUIRED
        yield Argument(name, position=position, default=value, kwarg_only=kwarg_only, **options)
        position += 1


_TYPE = re.compile(r"(?P<base>\w+)(\((?P<alias>[^)]*)\))?(?P<item>\?)?(?P<list>\[(?P<size>\d*)\])?(?P<optional>\?)?\Z")


@cache
def _type(text: str) -> Mapping[str, Any]:
    """The fields of an `Argument` that its type says: `Tensor(a!)[]`, `int[2]?`, `Tensor?[]`."""
    match = _TYPE.match(text)
    if match is None or match["base"] not in KINDS:
        raise SchemaError(f"unknown type {text!r}")
    is_list = match["list"] is not None
    return {
        "kind": KINDS[match["base"]],
        "is_list": is_list,
        "size": int(match["size"]) if match["size"] else None,
        "optional": bool(match["optional"] or (match["item"] and not is_list)),
        "optional_items": bool(match["item"] and is_list),
        "is_symbolic": match["base"].startswith("Sym") or match["base"] == "Scalar",
        "alias": (match["alias"] or "").partition(" ")[0].rstrip("!"),
        "writes": "!" in (match["alias"] or ""),
    }


def _return(text: str) -> Return:
    written, _, name = text.rpartition(" ") if re.search(r" \w+\Z", text) else (text, "", "")
    options = _type(written)
    kept = ("kind", "is_list", "optional", "alias", "writes")
    return Return(name=name, **{key: options[key] for key in kept})


_CONSTANTS = {"None": None, "False": False, "True": True, "0": 0, "1": 1, "-1": -1}
"""What most defaults are, which Python need not read."""


def _default(text: str, kind: str) -> Any:
    """The Python value of a default, which the table spells as Python does."""
    value = _CONSTANTS[text] if text in _CONSTANTS else ast.literal_eval(text)
    if isinstance(value, list):
        return tuple(value)
    if kind in ENUMERATORS and isinstance(value, int):
        return ENUMERATORS[kind][value]
    return float(value) if kind == "float" and isinstance(value, int) else value
