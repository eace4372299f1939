"""State of the emission of one kernel: lines, names, the values of SSA values, the tile, and what is known there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial

from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.access import dynamic_name
from ...dialects.sym import Expr, Ranges
from ...errors import UnsupportedError
from ...records import dataclass
from ..printing.writer import Writer
from .boxes import Boxes
from .dtypes import is_plain_literal, typed_constant
from .index import Code, may_overflow, print_index, surely_overflows
from .names import Names
from .values import Dims, Value, union


@dataclass(frozen=True)
class Lanes:
    """A tiled axis in scope.

    dim:   the dimension of the tile that it runs along
    block: text of the tile's extent
    mask:  which lanes are inside of the axis; None where all are
    start: text of the first element
    """

    axis: str
    dim: int
    block: str
    mask: Value | None
    start: str = ""


@dataclass
class Context:
    """One for each kernel.

    rank:   dimensions of the tile: the deepest nesting of tiled axes
    ranges: facts about symbols and the axes in scope
    width:  text of the integer type of indices, or None where plain 32-bit arithmetic is enough
    """

    rank: int
    ranges: Ranges
    width: str | None = None
    extents: tuple[Expr, ...] = ()
    """Lengths of the buffers."""
    nvidia: bool = False
    """Whether the kernel runs on a GPU of NVIDIA, so that it may call `nvidia.py`."""
    half_stored: set[Operation] = field(default_factory=set)
    """Stores of pairs that were reached; the second of two stores both."""
    status: str = ""
    """Name of the word to which checks report."""
    out: Writer = field(default_factory=partial(Writer, "    ", 1))
    names: Names = field(default_factory=Names)
    values: dict[SSAValue, Value] = field(default_factory=dict)
    buffers: dict[SSAValue, str] = field(default_factory=dict)
    symbols: dict[str, Value] = field(default_factory=dict)
    """Values of symbols and of the axes in scope."""
    lanes: list[Lanes] = field(default_factory=list)
    rows: dict[SSAValue, dict[str, Value]] = field(default_factory=dict)
    """Local buffers: text of the index -> the register tile that was stored there; another one is an error."""
    guards: list[tuple[Value, frozenset[str]]] = field(default_factory=list)
    """Conditions that `kernel.assert` checked in the scope, with what they depend on."""
    narrow: set[SSAValue] = field(default_factory=set)
    """Loaded values that stay as narrow as they are in memory: matrix units read them."""
    in_registers: set[SSAValue] = field(default_factory=set)
    """Computed values that matrix units read from registers."""
    zeroed: set[SSAValue] = field(default_factory=set)
    """Loaded values that are 0 in lanes outside of their axes."""
    frame: Dims = ()
    """The dimensions of the tiles that are emitted, in the order in which they lie; see `framed`."""
    takes_boxes: bool = False
    """Whether the host passes memory for descriptors."""
    boxes: Boxes = field(default_factory=Boxes)
    """Descriptors of what a copy engine brings."""
    written: frozenset[SSAValue] = frozenset()
    """Buffers that the kernel stores to anywhere."""
    _known: list[dict[str, Value]] = field(default_factory=lambda: [{}])
    _location: Attribute | None = None

    def __post_init__(self) -> None:
        self.frame = self.frame or tuple(range(self.rank))

    # scopes

    @contextmanager
    def framed(self, dims: Dims) -> Iterator[None]:
        """Tiles have these dimensions, in this order: an operand of a product has rows, or columns, and the depth.

        An axis in scope keeps its place in the frame, or its values are bound anew.
        """
        outer, self.frame = self.frame, dims
        try:
            yield
        finally:
            self.frame = outer

    @contextmanager
    def scope(self) -> Iterator[None]:
        """The body of a Python loop: what is defined inside is unknown behind it."""
        guards = len(self.guards)
        rows = {buffer: dict(found) for buffer, found in self.rows.items()}
        self._known.append({})
        try:
            with self.out.indented():
                yield
        finally:
            self._known.pop()
            self.rows = rows
            del self.guards[guards:]

    @contextmanager
    def lane(self, lanes: Lanes) -> Iterator[None]:
        """A tiled axis is in scope."""
        guards = len(self.guards)
        self.lanes.append(lanes)
        try:
            yield
        finally:
            self.lanes.pop()
            del self.guards[guards:]

    # values

    def define(self, text: str, dtype: str, dims: Dims, hint: str, pure: bool = True) -> Value:
        """Bind an expression to a name, or find the name that it has already in scope."""
        if pure:
            for known in reversed(self._known):
                found = known.get(text)
                if found is not None:  # axes of different dimensions may lie in one place of different frames
                    return found if found.dims == dims else replace(found, dims=dims)
        value = Value(self.names.fresh(hint), dtype, dims)
        self.out.line(f"{value.text} = {text}")
        if pure:
            self._known[-1][text] = value
        return value

    def once(self, text: str) -> None:
        """Write a statement, unless the same one stands in scope."""
        if not any(text in known for known in self._known):
            self.out.line(text)
            self._known[-1][text] = Value(text, "")

    def tile(self, key: object) -> Value | None:
        """What `keep_tile` kept under a key, where it is in scope."""
        text = f"tile {key}"
        return next((known[text] for known in reversed(self._known) if text in known), None)

    def keep_tile(self, key: object, value: Value) -> None:
        """Keep a tile under a key, as long as it is in scope."""
        self._known[-1].setdefault(f"tile {key}", value)

    def sources(self, value: SSAValue) -> frozenset[str]:
        """The loaded values, and results of loops, that a scalar is computed from."""
        op = value.owner
        if isinstance(op, Block | kernel.LoadOp) or op.regions:
            return frozenset((self.values[value].text,)) if value in self.values else frozenset()
        return frozenset().union(*(self.sources(v) for v in op.operands))

    def guards_of(self, dynamic: Sequence[SSAValue]) -> list[Value]:
        """The checks of dynamic indices: where one failed the index must not be followed."""
        if not dynamic or not self.guards:
            return []
        own = frozenset().union(*(self.sources(v) for v in dynamic))
        return [condition for condition, sources in self.guards if not own.isdisjoint(sources)]

    def value(self, value: SSAValue) -> Value:
        """The Triton value of an SSA value that was emitted."""
        return self.values[value]

    def tensor(self, value: Value) -> str:
        """Text of a value as a tensor of its dtype, also where it is a literal that Triton would read as another."""
        if value.literal and not is_plain_literal(value.dtype):
            return typed_constant(value.text, value.dtype)
        return value.text

    def typed(self, value: Value) -> str:
        """Text of a value that is a tensor in any case."""
        return typed_constant(value.text, value.dtype) if value.literal else value.text

    def index(self, expr: Expr, dynamic: Sequence[SSAValue] = (), is_offset: bool = True) -> Code:
        """An index expression; `d0, d1, ...` are the values `dynamic`.

        is_offset: it is an offset into a buffer, which `width` has room for; any other value has 64 bits if need be
        """
        names = {dynamic_name(k): self.values[v] for k, v in enumerate(dynamic)}
        overflows = surely_overflows(expr, self.ranges) if is_offset else may_overflow(expr, self.ranges, self.extents)
        widens = overflows and self.width != "tl.int64"

        def lookup(name: str) -> Value:
            value = names[name] if name in names else self.symbols[name]
            if not widens or name in names or value.literal:
                return value
            return Value(f"tl.cast({value}, tl.int64)", "int64", value.dims)

        return print_index(expr, lookup, self.ranges)

    # the tile

    def block_of(self, dim: int) -> str:
        """Text of the extent of a dimension of the tile."""
        for lanes in self.lanes:
            if lanes.dim == dim:
                return lanes.block
        raise UnsupportedError(f"no axis in scope runs along dimension {dim} of the tile")

    def shape(self, dims: Dims) -> str:
        """The shape of a value that varies along `dims`."""
        if not dims:
            return "[]"
        return f"[{', '.join(self.block_of(d) if d in dims else '1' for d in self.frame)}]"

    def along(self, text: str, dim: int) -> str:
        """A one-dimensional block as a block of the tile's rank."""
        if len(self.frame) == 1:
            return text
        places = ", ".join(":" if d == dim else "None" for d in self.frame)
        return f"{text}[{places}]"

    @property
    def scope_dims(self) -> Dims:
        """All dimensions along which an axis in scope runs."""
        return tuple(sorted(lanes.dim for lanes in self.lanes))

    def mask(self, dims: Dims, *conditions: Value | None) -> Value | None:
        """Where all lanes along `dims` are inside of their axes and the conditions hold; None for everywhere."""
        parts = [lanes.mask for lanes in self.lanes if lanes.dim in dims]
        kept = list(dict.fromkeys(p for p in (*parts, *conditions) if p is not None and p.text != "True"))
        if not kept:
            return None
        if len(kept) == 1:
            return kept[0]
        text = " & ".join(self.tensor(k) for k in kept)
        return self.define(text, "int1", union(*kept), "mask")
