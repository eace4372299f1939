"""Strategies that work on the text: smaller sizes, no symbols, plain dtypes, simple constants.

Whether a number is replaced in all the right places is not asked: a module that does not verify afterwards, or in
which nothing is wrong any more, is not taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, IntegerType, ModuleOp

from ...dialects.context import new_context
from ...dialects.reading import Reader
from ...dialects.scalar import NarrowOp, WidenOp
from ...passes.printing import module_text
from ...records import dataclass
from .structure import Sites

#: an integer that stands alone or is a size of a shape
_INTEGER = re.compile(r"(?<![\w.%@#-])(?:(?<=[<x(])|(?<![x]))(\d+)(?=x|[^\w.]|$)|(?<=x)(\d+)(?=x)")
_SYMBOL = re.compile(r"#sym\.symbol<(\w+)")
_SMALL = (1, 2, 3, 4, 8)


@dataclass(frozen=True)
class TextEdits:
    """A strategy made of a function that proposes edits of a text; a site is an edit."""

    name: str
    propose: Callable[[str], Sequence[Callable[[str], str]]]

    def sites(self, module: ModuleOp) -> int:
        """How many edits there are."""
        return len(self.propose(module_text(module)))

    def apply(self, module: ModuleOp, first: int, last: int) -> ModuleOp | None:
        """The module with some edits, in order."""
        text = module_text(module)
        for edit in self.propose(text)[first:last]:
            text = edit(text)
        parsed = Reader(new_context(), text).parse_module()
        drop_idle_casts(parsed)
        return parsed


def drop_idle_casts(module: ModuleOp) -> None:
    """Remove casts between equal types, which changed dtypes leave."""
    for op in list(module.walk()):
        if isinstance(op, WidenOp | NarrowOp) and op.operands[0].type == op.results[0].type:
            op.results[0].replace_all_uses_with(op.operands[0])
            op.detach()
            op.erase()


def _integers(text: str) -> list[int]:
    found = {int(match[1] or match[2]) for match in _INTEGER.finditer(text)}
    return sorted((n for n in found if n > 1), reverse=True)


def _scaled(old: int, new: int, multiples: bool) -> Callable[[str], str]:
    """Replace a number, and its multiples likewise on request: strides and sizes of linear memory."""

    def number(match: re.Match[str]) -> str:
        value = int(match[0])
        if value == old or (multiples and value % old == 0):
            return str(value // old * new)
        return match[0]

    return lambda text: _INTEGER.sub(number, text)


def _sizes(text: str) -> list[Callable[[str], str]]:
    return [
        _scaled(old, new, multiples)
        for old in _integers(text)
        for new in _SMALL
        if new < old
        for multiples in (True, False)
    ]


def _without_symbols(text: str) -> list[Callable[[str], str]]:
    """Give each declared symbol a small value."""
    return [_constant_symbol(name, value) for name in dict.fromkeys(_SYMBOL.findall(text)) for value in (2, 3, 4)]


def _constant_symbol(name: str, value: int) -> Callable[[str], str]:
    declaration = re.compile(rf"#sym\.symbol<{name}(?:, [^>]*)?>(?:, )?")
    parameter = re.compile(rf"(symbols \([^)]*?)\b{name}\b(?:, )?")
    use = re.compile(rf"(?<![\w%@]){name}(?!\w)")

    def edit(text: str) -> str:
        text = parameter.sub(r"\1", declaration.sub("", text))
        text = re.sub(r" attributes \{symbols = \[\]\}|, symbols = \[\]|symbols = \[\](, )?", "", text)
        text = text.replace(", ])", "])").replace(", ]}", "]}").replace(", ) ", ") ").replace(" symbols ()", "")
        return use.sub(str(value), text)

    return edit


def _plain_dtypes(text: str) -> list[Callable[[str], str]]:
    wanted = (
        ("bf16", "f32"),
        ("f16", "f32"),
        ("f64", "f32"),
        ("i16", "i32"),
        ("i8", "i32"),
        ("i64", "i32"),
        ("i32", "f32"),
    )
    return [
        lambda text, old=old, new=new: re.sub(rf"(?<![A-Za-z_]){old}\b", new, text)
        for old, new in wanted
        if re.search(rf"(?<![A-Za-z_]){old}\b", text)
    ]


def _constants(module: ModuleOp) -> list[arith.ConstantOp]:
    return [op for op in module.walk() if isinstance(op, arith.ConstantOp) and _plain(op) is not None]


def _plain(op: arith.ConstantOp) -> IntegerAttr | FloatAttr | None:
    """The next simpler constant: 1, then 0; None for 0, and for infinities and NaN, which are there for a reason."""
    value, kind = op.value, op.result.type
    if isinstance(value, IntegerAttr) and isinstance(kind, IntegerType) and value.value.data not in (0, 1, -1):
        return IntegerAttr(1, kind)
    if isinstance(value, FloatAttr) and isinstance(kind, AnyFloat) and value.value.data not in (0.0, 1.0):
        finite = abs(value.value.data) != float("inf") and value.value.data == value.value.data
        return FloatAttr(1.0, kind) if finite else None
    return None


def _simplify_constant(op: object) -> bool:
    assert isinstance(op, arith.ConstantOp)
    plain = _plain(op)
    if plain is None:
        return False
    op.properties["value"] = plain
    return True


SHRINK_SIZES = TextEdits("shrink sizes", _sizes)
FIX_SYMBOLS = TextEdits("give symbols a value", _without_symbols)
PLAIN_DTYPES = TextEdits("plain dtypes", _plain_dtypes)
PLAIN_CONSTANTS = Sites("plain constants", _constants, _simplify_constant)
