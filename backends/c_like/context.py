"""What the emission of one kernel keeps: names, values, buffers, and what is known of symbols."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import kernel
from ...dialects.access import dynamic_name
from ...dialects.sym import Expr, Ranges
from ...dialects.sym.expr import Atom
from ...records import dataclass
from ..printing.axes import inside
from ..printing.code import Code
from ..printing.index import IndexPrinter
from ..printing.locations import source_lines
from ..printing.writer import Writer
from .index import CIndices
from .language import Language, Needs
from .names import KernelNames

#: the index of a lane, as a symbol of index expressions that no lowering makes
LANE = "lane$"


@dataclass(frozen=True)
class Buffer:
    """A buffer's name and element type; `lanes` copies of a local buffer lie interleaved."""

    name: str
    element: Attribute
    lanes: int = 1


class Context:
    """State shared by the parts of the emitter; one for each kernel.

    checked: whether accesses and loops are checked when they run, see `checked`
    """

    def __init__(self, language: Language, checked: bool = False) -> None:
        self.language = language
        self.checked = checked
        self.out = Writer()
        self.need = Needs(language)
        self.names = KernelNames(language)
        self.values: dict[SSAValue, Code] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.symbols: dict[str, Code] = {LANE: Code("lane")}
        self.parameters: dict[str, str] = {}
        """The C types of the function's parameters by name."""
        self.ranges = Ranges()
        self.has_symbols = False
        """Whether the kernel has symbols, so that indices may be divided by them."""
        self.quotients: dict[Atom, str] = {}
        """Names of quotients and rests that were computed in front of a loop."""
        self.divisions: dict[Operation, tuple[Atom, ...]] = {}
        """The quotients that stand in each loop of the nests that were looked through."""
        self.touched: set[str] = set()
        """Symbols and axes that were printed since the set was last replaced."""
        self.in_parallel = False
        self._commented: Attribute | None = None

    def index(self, expr: Expr, dynamic: tuple[SSAValue, ...] = ()) -> Code:
        """An index expression; `d0, d1, ...` are the values `dynamic`."""
        names = {dynamic_name(k): value for k, value in enumerate(dynamic)}

        def lookup(symbol: str) -> Code:
            value = names.get(symbol)
            if value is not None:
                return self.value(value)
            self.touched.add(symbol)
            return self.symbols[symbol]

        known = {atom: name for atom, name in self.quotients.items() if atom.free_symbols.isdisjoint(names)}
        return IndexPrinter(lookup, self.ranges, CIndices.of(self.need, self.checked), known).print(expr)

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
        outer, quotients = self.ranges, dict(self.quotients)
        self.ranges = inside(outer, name, lo, hi)
        self.symbols[name] = Code(text)
        try:
            yield
        finally:
            self.ranges, self.quotients = outer, quotients
            del self.symbols[name]
            self.names.release(text, *others)


_MAX_LOCATIONS = 3


def location_lines(location: Attribute) -> list[str]:
    """`file:line` of a location, without folders; a few for a fused one; none when it is unknown."""
    return [_plain(line) for line in source_lines(location)[:_MAX_LOCATIONS]]


def _plain(line: str) -> str:
    if line.isascii() and line.isprintable() and "\\" not in line:
        return line
    return "".join(c if c.isascii() and c.isprintable() and c != "\\" else "_" for c in line)
