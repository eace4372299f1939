"""What the emission of one kernel keeps: names, values, buffers, and what is known of symbols."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import FileLineColLoc, FusedLoc
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import kernel
from ...dialects.access import dynamic_name
from ...dialects.sym import Expr, Ranges
from .code import Code, identifier
from .index import IndexPrinter
from .writer import Writer

#: the index of a lane, as a symbol of index expressions that no lowering makes
LANE = "lane$"


@dataclass(frozen=True)
class Buffer:
    """A buffer's C++ name and element type; `lanes` copies of a local buffer lie interleaved."""

    name: str
    element: Attribute
    lanes: int = 1


class Context:
    """State shared by the parts of the emitter; one for each kernel.

    checked: whether accesses and loops are checked when they run, see `checked`
    """

    def __init__(self, checked: bool = False) -> None:
        self.checked = checked
        self.out = Writer()
        self.sections: dict[str, None] = {}
        self.taken: set[str] = set()
        self.values: dict[SSAValue, Code] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.symbols: dict[str, Code] = {LANE: Code("lane")}
        self.ranges = Ranges()
        self.touched: set[str] = set()
        """Symbols and axes that were printed since the set was last replaced."""
        self.in_parallel = False
        self._commented: Attribute | None = None
        self._temporaries = 0

    def need(self, section: str) -> None:
        """Note that the text uses a section of the prelude."""
        self.sections[section] = None

    def name(self, wanted: str) -> str:
        """A fresh identifier like `wanted`."""
        name = identifier(wanted, self.taken)
        self.taken.add(name)
        return name

    def temporary(self) -> str:
        """A fresh name of a scalar, numbered in program order."""
        while True:
            name = f"v{self._temporaries}"
            self._temporaries += 1
            if name not in self.taken:
                self.taken.add(name)
                return name

    def index(self, expr: Expr, dynamic: tuple[SSAValue, ...] = ()) -> Code:
        """An index expression; `d0, d1, ...` are the values `dynamic`."""
        names = {dynamic_name(k): value for k, value in enumerate(dynamic)}

        def lookup(symbol: str) -> Code:
            value = names.get(symbol)
            if value is not None:
                return self.value(value)
            self.touched.add(symbol)
            return self.symbols[symbol]

        return IndexPrinter(lookup, self.ranges, self.need, self.checked).print(expr)

    def value(self, value: SSAValue) -> Code:
        """The expression of a scalar. Index values are printed where they are used."""
        found = self.values.get(value)
        if found is not None:
            return found
        op = value.owner
        assert isinstance(op, kernel.IndexOp), f"{value} was not emitted"
        return self.index(op.expr.data, tuple(op.dynamic))

    def comment(self, op: Operation) -> None:
        """Write the user's file and line above a statement, when they changed."""
        location = op.location
        if location is self._commented or location == self._commented:
            return
        lines = location_lines(location)
        if lines:
            self._commented = location
            self.out.line(f"// {', '.join(lines)}")

    @contextmanager
    def axis(self, name: str, text: str, lo: Expr, hi: Expr, *others: str) -> Iterator[None]:
        """Inside, the symbol `name` is an axis from lo to hi, spelled `text`; its names are free again behind."""
        outer = self.ranges
        self.ranges = _with_axis(outer, name, lo, hi)
        self.symbols[name] = Code(text)
        try:
            yield
        finally:
            self.ranges = outer
            del self.symbols[name]
            self.taken.difference_update((text, *others))


def _with_axis(ranges: Ranges, name: str, lo: Expr, hi: Expr) -> Ranges:
    """What holds inside a loop: its axis has bounds, and the loop runs, so a symbol as `hi` is above `lo`."""
    start = lo.as_int()
    if start is None or start < 0:
        return ranges
    if start == 0:
        return Ranges.of_axes(((name, hi),), _positive(ranges, hi, 1))
    known = _positive(ranges, hi, start + 1)
    end = hi.as_int()
    intervals = {**known.intervals, name: (start, None if end is None else end - 1)}
    return Ranges(intervals, known.divisors, {**known.sizes, name: hi}, known.positive)


def _positive(ranges: Ranges, hi: Expr, least: int) -> Ranges:
    atom = hi.as_atom
    if atom is None or atom.kind != "symbol":
        return ranges
    lo, up = ranges[atom.name]
    if lo is not None and lo >= least:
        return ranges
    return Ranges({**ranges.intervals, atom.name: (least, up)}, ranges.divisors, ranges.sizes, ranges.positive)


_MAX_LOCATIONS = 3


def location_lines(location: Attribute) -> list[str]:
    """`file:line` of a location, without folders; several for a fused one; none when it is unknown."""
    if isinstance(location, FileLineColLoc):
        name = location.filename.data.rpartition("/")[2]
        safe = "".join(c if c.isascii() and c.isprintable() and c != "\\" else "_" for c in name)
        return [f"{safe}:{location.line.data}"]
    if isinstance(location, FusedLoc):
        parts = [line for each in location.locations for line in location_lines(each)]  # pyright: ignore
        return list(dict.fromkeys(parts))[:_MAX_LOCATIONS]
    return []
