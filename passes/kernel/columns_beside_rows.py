"""One kernel that reduces rows and sums columns, each program the rows of a part, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.sym import ZERO, Expr, MapAttr, Ranges, SymAttr, simplify, smin, symbol
from ..analysis.loops import fresh_axis, loops_in, rename_axes, substitute_axes
from .rows_and_columns import Columns

Buffers = Mapping[SSAValue, SSAValue]


def lay_columns_beside_rows(
    block: Block, rows: kernel.ForOp, of_rows: Buffers, columns: Sequence[tuple[Columns, Buffers]], taken: set[str]
) -> None:
    """Append to the block of a kernel a nest that does what a row kernel and kernels of columns do.

    All columns are summed in the same parts of rows. `of_rows`, and the second of each of `columns`, map the buffers of
    these kernels to those of the new one; `taken` are names of axes that are not free.
    """
    first = columns[0][0]
    part, row = fresh_axis(taken), fresh_axis(taken)
    start = first.rows * symbol(part)
    end, total = start + first.rows, rows.hi.data
    if first.rows * first.parts is not total:
        end = smin(end, total)
    row_body = _row_body(rows, row, of_rows, taken)
    sums = [_Sums(each, buffers, part, row, total, fresh_axis(taken)) for each, buffers in columns]
    for each in sums:
        row_body.insert_op_before(each.add_row(), _last(row_body))
    body: list[Operation] = [op for each in sums for op in each.begin()]
    body.append(kernel.ForOp.of(row, start, end, Region(row_body), location=rows.location))
    body += [each.end() for each in sums]
    whole = Region(Block([*body, kernel.YieldOp.create()]))
    block.add_op(kernel.ForOp.of(part, ZERO, first.parts, whole, location=rows.location))


def _row_body(rows: kernel.ForOp, row: str, buffers: Buffers, taken: set[str]) -> Block:
    """The body of the row kernel, for the row `row`, in axes of its own."""
    loop = rows.clone(dict(buffers))
    inner = {each.axis.data for each in loops_in(loop.body.block)}
    rename_axes(loop, {loop.axis.data: row, **{axis: fresh_axis(taken) for axis in sorted(inner)}})
    body = loop.body.block
    loop.body.detach_block(body)
    return body


def _last(block: Block) -> Operation:
    assert block.last_op is not None
    return block.last_op


class _Sums:
    """The sums of one kernel of columns, in local buffers of a program."""

    def __init__(self, columns: Columns, buffers: Buffers, part: str, row: str, total: Expr, column: str) -> None:
        self.columns, self.buffers, self.total, self.row = columns, buffers, total, row
        self.values = columns.values(total)
        self.axes = {columns.part.axis.data: symbol(part), columns.column.axis.data: symbol(column)}
        self.row_axis = {columns.reduce.axis.data: symbol(row) - columns.rows * symbol(part)}
        self.column, self.length = column, columns.column.hi.data
        self.place = MapAttr.of(symbol(column))
        self.locals = [kernel.LocalOp.of(r.type, SymAttr.of(self.length)) for r in columns.reduce.results]
        for local, result in zip(self.locals, columns.reduce.results, strict=True):
            local.buffer.name_hint = result.name_hint or "total"

    def begin(self) -> list[Operation]:
        """The buffers, filled with zeros."""
        ops: list[Operation] = []
        for local, result in zip(self.locals, self.columns.reduce.results, strict=True):
            zero = arith.ConstantOp.create(properties={"value": _zero(result.type)}, result_types=(result.type,))
            ops += [zero, kernel.StoreOp.of(zero.results[0], local.buffer, self.place, location=self.location)]
        return [*self.locals, self._loop(ops)]

    def add_row(self) -> kernel.ForOp:
        """The loop over the columns that adds what a row has to each sum."""
        assert self.values is not None
        columns, copies = self.columns, dict(self.buffers)
        ops: list[Operation] = [op.clone(copies) for op in (*columns.before, *list(columns.reduce.body.block.ops)[:-1])]
        for local, value in zip(self.locals, self.values, strict=True):
            old = kernel.LoadOp.of(local.buffer, self.place, location=self.location)
            new = arith.AddfOp(old.results[0], copies[value])
            new.location = self.location
            ops += [old, new, kernel.StoreOp.of(new.results[0], local.buffer, self.place, location=self.location)]
        loop = self._loop(ops)
        substitute_axes(loop.body.block, {**self.axes, **self.row_axis})
        _simplify(loop.body.block.ops, Ranges.of_axes([(self.row, self.total), (self.column, self.length)]))
        return loop

    def end(self) -> kernel.ForOp:
        """The loop over the columns that does with the sums what is to be done."""
        copies = dict(self.buffers)
        ops: list[Operation] = [op.clone(copies) for op in self.columns.before]
        for local, result in zip(self.locals, self.columns.reduce.results, strict=True):
            total = kernel.LoadOp.of(local.buffer, self.place, location=self.location)
            copies[result] = total.results[0]
            ops.append(total)
        ops += [op.clone(copies) for op in self.columns.behind]
        loop = self._loop(ops)
        substitute_axes(loop.body.block, self.axes)
        return loop

    @property
    def location(self) -> LocationAttr:
        """Where the sums come from."""
        return self.columns.reduce.location

    def _loop(self, ops: Sequence[Operation]) -> kernel.ForOp:
        body = Region(Block([*ops, kernel.YieldOp.create()]))
        return kernel.ForOp.of(self.column, ZERO, self.length, body, location=self.location)


def _zero(type_: Attribute) -> FloatAttr:
    return FloatAttr(0.0, type_)  # pyright: ignore[reportArgumentType,reportCallIssue]


def _simplify(ops: Iterable[Operation], ranges: Ranges) -> None:
    """Drop from indices what keeps a row in front of the end: all rows here are."""
    for op in ops:
        if isinstance(op, kernel.LoadOp | kernel.StoreOp):
            op.properties["map"] = MapAttr.of(simplify(op.map.data[0], ranges))
