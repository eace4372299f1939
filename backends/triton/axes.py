"""Axes of a kernel in Triton: program ids, lanes of a tile, and Python loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from math import prod

from ...dialects import kernel
from ...dialects.sym import ZERO, Expr, Ranges, as_expr, simplify, symbol
from ...errors import UnsupportedError
from ...passes.analysis.loops import Loop
from ...passes.kernel.tiles import all_full, extent_of, is_tiled, steps, tile_of
from ..printing.axes import inside
from ..printing.code import ATOM, PRODUCT
from .context import Context, Lanes
from .index import Code
from .names import identifier
from .values import Value


def block_size(op: Loop) -> int:
    """The tile of an axis. UnsupportedError unless it is a power of two."""
    tile = tile_of(op)
    if tile & (tile - 1):
        raise UnsupportedError(f"axis {op.axis.data} has a tile of {tile}; Triton's blocks are powers of two")
    return tile


def tile_rank(op: Loop) -> int:
    """Dimensions of the tile of a loop with all that is nested in it.

    The depth of a product is none: its operands have one of the others beside it.
    """
    if op.mapping.data == "matrix":
        return 0
    inner = [
        tile_rank(nested) for region in op.regions for nested in region.block.ops if isinstance(nested, Loop)
    ]  # fmt: skip
    return is_tiled(op) + max(inner, default=0)


def _has_units(op: Loop) -> bool:
    """Whether a loop, or one right inside of it, runs on matrix units."""
    inner = (nested for region in op.regions for nested in region.block.ops if isinstance(nested, Loop))
    return any(loop.mapping.data == "matrix" for loop in (op, *inner))


class Axes:
    """Brings axes into scope. `constexprs` collects the block sizes: name -> elements."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.constexprs: dict[str, int] = {}
        self._blocks: dict[tuple[int, Expr, Expr], str] = {}
        self._ids: dict[str, str] = {}

    def block(self, op: Loop) -> str:
        """Name of the block size of a tiled axis. Axes that are alike share it, so that their lanes are one value."""
        key = (block_size(op), op.lo.data, op.hi.data)
        if key not in self._blocks:
            name = self.context.names.fresh(f"BLOCK_{identifier(op.axis.data).upper()}")
            self._blocks[key] = name
            self.constexprs[name] = key[0]
        return self._blocks[key]

    @property
    def program_id(self) -> str:
        """Text of the number of this program."""
        return "tl.program_id(0)" if self.context.width is None else f"tl.program_id(0).to({self.context.width})"

    def decompose_program_id(self, grid: Sequence[kernel.ForOp], number: str) -> None:
        """Number the programs along each grid axis; the last one runs fastest. `number` is this program's."""
        if len(grid) > 1 and not number.isidentifier():
            number = self.context.define(number, self._dtype, (), "pid").text
        for position, op in reversed(list(enumerate(grid))):
            count = self._count(op)
            if count.text == "1":
                self._ids[op.axis.data] = "0"
            elif all(self._count(outer).text == "1" for outer in grid[:position]):
                self._ids[op.axis.data] = number
            else:
                self._ids[op.axis.data] = f"{number} % {count.closed}"
                number = f"{number} // {count.closed}"
        for outer, inner in pairwise(grid):
            if outer.swizzle is not None:
                self._swizzle(outer, inner, outer.swizzle.value.data)
        for op in grid:
            if op.descending is not None and (count := self._count(op)).text != "1":
                last = str(int(count.text) - 1) if count.text.isdigit() else f"{count.closed} - 1"
                number = self._ids[op.axis.data]
                self._ids[op.axis.data] = f"{last} - {number if number.isidentifier() else f'({number})'}"

    def _swizzle(self, outer: kernel.ForOp, inner: kernel.ForOp, size: int) -> None:
        """Number programs of two axes down so many tiles of the outer one before the next tile of the inner one."""
        context = self.context
        axes = outer.axis.data, inner.axis.data
        names = [context.names.fresh(f"{axis}_tile") for axis in axes]
        arguments = [*(self._ids[axis] for axis in axes), *(self._count(op).text for op in (outer, inner)), str(size)]
        context.out.line(f"{', '.join(names)} = tl.swizzle2d({', '.join(arguments)})")
        self._ids.update(zip(axes, names, strict=True))

    def count(self, grid: Sequence[kernel.ForOp]) -> Code:
        """The number of programs of a nest."""
        counts = [self._count(op) for op in grid]
        if all(c.text.isdigit() for c in counts):
            return Code(str(prod(int(c.text) for c in counts)))
        return Code(" * ".join(c.closed for c in counts), PRODUCT if len(counts) > 1 else ATOM)

    def _count(self, op: Loop) -> Code:
        count = steps(op).as_int()
        if count is not None:
            return Code(str(count))
        extent = self.context.index(extent_of(op))
        return Code(f"tl.cdiv({extent.text}, {self.block(op)})") if is_tiled(op) else extent

    @contextmanager
    def on_grid(self, op: kernel.ForOp) -> Iterator[None]:
        """The axis stands for the elements of this program."""
        context, name = self.context, op.axis.data
        text = self._ids[name]
        if not is_tiled(op):
            if text == "0":
                text = f"tl.full([], 0, tl.{self._dtype})"
            self._bind(op, context.define(self._from(op, text), self._dtype, (), name))
            yield
            return
        if text == "0":
            with self.covered(op):
                yield
            return
        if " " in text:
            text = f"({text})"
        with self._lanes(op, self._from(op, f"{text} * {self.block(op)}"), ""):
            yield

    @contextmanager
    def covered(self, op: Loop) -> Iterator[None]:
        """One tile covers the axis."""
        with self._lanes(op, self._from(op, ""), "" if self.context.width is None else f".to({self.context.width})"):
            yield

    @contextmanager
    def looped(self, op: Loop) -> Iterator[None]:
        """A Python loop over the axis, by tiles where it has some. The body is a scope."""
        context, name = self.context, op.axis.data
        with self.stepped(op) as step:
            if is_tiled(op):
                with self.lanes(op, step):
                    yield
                return
            value = Value(step, self._dtype)
            if context.width is not None:
                value = context.define(f"tl.cast({step}, {context.width})", self._dtype, (), name)
            self._bind(op, value)
            yield

    @contextmanager
    def stepped(self, op: Loop) -> Iterator[str]:
        """A Python loop over the axis; gives the name of the number at which a step begins. The body is a scope."""
        name = op.axis.data
        step = self.context.names.fresh(f"{name}_start" if is_tiled(op) else name)
        self.context.out.line(f"for {step} in {self._steps(op)}:")
        with self.context.scope():
            yield step

    def lanes(self, op: Loop, step: str) -> AbstractContextManager[None]:
        """The lanes of one step of a loop are in scope."""
        return self._lanes(op, step, "" if self.context.width is None else f".to({self.context.width})")

    def _steps(self, op: Loop) -> str:
        """Text of what a loop's variable runs through."""
        lo, hi = self._bound(op, op.lo.data).text, self._bound(op, op.hi.data).text
        if isinstance(op, kernel.ReduceOp) and op.within:
            lo, hi = self._within(op, lo, hi)
        tail = f", {self.block(op)}" if is_tiled(op) else ""
        if op.unroll is not None:
            return f"tl.range({lo}, {hi}{tail}, loop_unroll_factor={op.unroll.value.data})"
        written_out = op.mapping.data == "unroll" and op.lo.data.is_constant and op.hi.data.is_constant
        head = hi if lo == "0" and not tail else f"{lo}, {hi}{tail}"
        return f"{'tl.static_range' if written_out else 'range'}({head})"

    def _within(self, op: kernel.ReduceOp, lo: str, hi: str) -> tuple[str, str]:
        """Bounds with which a loop runs only the steps that have something of a stretch."""
        first, last = map(self.context.value, op.within)
        if first.dims or last.dims:
            raise UnsupportedError(f"the places that {op.axis.data} is within differ among the lanes of a program")
        block = self.block(op)
        begin = f"tl.cast({first} // {block} * {block}, tl.{self._dtype})"
        begin = begin if lo == "0" else f"tl.maximum({lo}, {begin})"
        return begin, f"tl.minimum({hi}, tl.cast({last}, tl.{self._dtype}))"

    @contextmanager
    def _lanes(self, op: Loop, start: str, wide: str) -> Iterator[None]:
        context = self.context
        dim = len(context.lanes)
        if dim not in context.frame:
            raise UnsupportedError(f"axis {op.axis.data} is tiled deeper than the tile has dimensions")
        if isinstance(op, kernel.ForOp) and extent_of(op).as_int() == 1:
            self._bind(op, Value(self._from(op, "") or "0", self._dtype, (), True))
            with context.lane(Lanes(op.axis.data, dim, "1", None)):
                yield
            return
        block = self.block(op)
        lanes = context.along(f"tl.arange(0, {block}){wide}", dim)
        text = f"{start} + {lanes}" if start else lanes
        value = context.define(text, self._dtype, (dim,), op.axis.data)
        self._bind(op, value)
        mask = None
        if not all_full(op, context.ranges):
            limit = self._bound(op, op.hi.data)
            mask = context.define(f"{value} < {limit.closed}", "int1", (dim,), f"{op.axis.data}_mask")
        with context.lane(Lanes(op.axis.data, dim, block, mask, start)):
            yield

    def _bound(self, op: Loop, expr: Expr) -> Code:
        """A bound of a loop. With matrix units, one that depends on an axis that has tiles is the same for a tile."""
        context = self.context
        for lanes in context.lanes:
            if lanes.axis in expr.free_symbols:
                found = self._of_tile(expr, lanes)
                if found is None and _has_units(op):
                    raise UnsupportedError(f"a bound {expr} differs among the elements of a tile of {lanes.axis}")
                expr = found or expr
        return context.index(expr)

    def _of_tile(self, expr: Expr, lanes: Lanes) -> Expr | None:
        """An expression in terms of the number of an axis' tile, which is in scope then; None where elements differ."""
        context, axis = self.context, lanes.axis
        tile, lane = f"{axis}_tile", f"{axis}_lane"
        size = self.constexprs[lanes.block]
        _, most = context.ranges[axis]
        known = Ranges.of_axes(((lane, as_expr(size)),), context.ranges)
        known = inside(known, tile, ZERO, as_expr(1 << 31 if most is None else most // size + 1))
        found = simplify(expr.subs({axis: symbol(tile) * size + symbol(lane)}), known)
        if lane in found.free_symbols or axis not in self._ids:
            return None
        number = self._ids[axis]
        context.symbols[tile] = (
            Value("0", self._dtype, (), True) if number == "0" else context.define(number, self._dtype, (), tile)
        )
        context.ranges = inside(context.ranges, tile, ZERO, as_expr(1 << 31 if most is None else most // size + 1))
        return found

    def _from(self, op: Loop, text: str) -> str:
        """Add the axis' lower bound."""
        if op.lo.data is ZERO:
            return text
        lo = self.context.index(op.lo.data).closed
        return f"{lo} + {text}" if text else lo

    @property
    def _dtype(self) -> str:
        return "int32" if self.context.width is None else "int64"

    def _bind(self, op: Loop, value: Value) -> None:
        context, name = self.context, op.axis.data
        context.symbols[name] = value
        context.ranges = inside(context.ranges, name, op.lo.data, op.hi.data, runs=False)
