"""`loop-simplify-indices`: ranges of axes and symbols simplify index maps and decide masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i1, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import scalar
from ...dialects.access import compact_dynamic, dynamic_name
from ...dialects.loop import AssertOp, FusionOp, IndexOp, LoadOp, ReduceOp, ScatterOp, ViewOp, yielded
from ...dialects.sym import AxesAttr, Expr, MapAttr, Ranges, SymAttr, const, simplify, symbol
from ..analysis.functions import symbol_ranges
from ..analysis.memory import NESTS
from ..counters import counter
from ..function_pass import LoopPass
from ._accesses import access_of, body_ops, map_of, set_access
from ._axis_tables import AxisTables
from ._digital_lines import line_through
from ._integer_folding import ARITHMETIC, decide, is_small, opposite_comparison

#: debug counter, asked for each change of an op; that of the pass, which other passes share that simplify a nest
COUNTER = "loop-simplify-indices"


class SimplifyIndices(LoopPass):
    """Simplify index expressions, and what bodies compute of indices, with the ranges of axes and symbols.

    level:         loop
    precondition:  none; behind `loop-eliminate-views` more is seen
    guarantee:     maps and `loop.index` are simplified for the points of their domain. Integer arithmetic on indices
                   and constants is a `loop.index`; comparisons that ranges decide are constants; so are `select`s,
                   masks and asserts on them. `select c, true, false` is c, and the negation of a comparison is the
                   opposite one. A dynamic index that is an expression is part of the map.
                   An integer converted from what is computed of one axis with few points, in floating point too, is
                   the expression `(a*i + b) floordiv c`, clamped, that has its values at all points
                   (`_axis_tables.py`, `_digital_lines.py`); comparisons that are the same at all points are
                   constants; a float op with a constant that changes no bit at any point goes (x * 1, x + 0 where no
                   x is -0.0).

        %i = loop.index i0
        %zero = arith.constant 0 : i64
        %inside = arith.cmpi sge, %i, %zero : i64
        %v = loop.load %x[d0, i1 mod 4] (d0 = %i) if %inside else %other    // i1 in 4
    becomes
        %v = loop.load %x[i0, i1]

        %f = scalar.cast %i : i64 to f32
        %g = arith.mulf %f, %half : f32
        %k = scalar.cast %g : f32 to i64
        %v = loop.load %x[d0] (d0 = %k)
    becomes
        %v = loop.load %x[i0 floordiv 2]
    """

    name = "loop-simplify-indices"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        ranges = symbol_ranges(function)
        for inner in block.ops:
            _visit(inner, ranges)


def _visit(op: Operation, ranges: Ranges) -> None:
    if type(op) in NESTS:
        simplify_nest(op, ranges)
    elif type(op) is FusionOp:
        for member in op.members:
            simplify_nest(member, ranges)
    elif type(op) is ViewOp:
        inside = Ranges.of_axes(op.axes.data, ranges)
        _set_map(op, tuple(simplify(e, inside) for e in op.map.data))


def simplify_nest(nest: Operation, ranges: Ranges) -> None:
    """Simplify one generate, scan or scatter; `ranges` are those of the function's symbols."""
    _Body(ranges).run(nest)


class _Body:
    """One sweep over the body of a nest. `known` has the values that are index expressions or constants."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.known: dict[SSAValue, Expr] = {}
        self.tables = AxisTables(self.known)

    def run(self, nest: Operation) -> None:
        """Simplify the bodies of a nest, then the map of a scatter."""
        outer = self.ranges
        axes = nest.properties["axes"]
        self.ranges = Ranges.of_axes(cast(AxesAttr, axes).data, outer)
        for region in nest.regions:
            block = region.blocks.first
            for op in body_ops(block):
                rule = _RULES.get(type(op))
                if rule is not None:
                    rule(self, op)
        if type(nest) is ScatterOp:
            self.scatter(nest)
        self.ranges = outer

    def reduce(self, op: Operation) -> None:
        self.run(op)

    def constant(self, op: Operation) -> None:
        value = op.properties["value"]
        if isinstance(value, IntegerAttr) and value.type in (i64, i1):
            self.known[op.results[0]] = const(value.value.data & 1 if value.type == i1 else value.value.data)

    def index(self, op: Operation) -> None:
        old = cast(SymAttr, op.properties["expr"]).data
        exprs, dynamic = self.fold_dynamic((old,), tuple(op.operands))
        changes = exprs[0] is not old or len(dynamic) != len(op.operands)
        if changes and counter(COUNTER):
            if len(dynamic) != len(op.operands):
                op.operands = dynamic
            op.properties["expr"] = SymAttr.of(exprs[0])
        if not dynamic:
            self.known[op.results[0]] = exprs[0]

    def arithmetic(self, op: Operation) -> None:
        x, y = (self.known.get(v) for v in op.operands)
        if x is None or y is None or op.results[0].type != i64:
            return
        expr = ARITHMETIC[type(op)](x, y, self.ranges)
        if expr is not None and is_small(expr):
            self.replace(op, simplify(expr, self.ranges))

    def logic(self, op: Operation) -> None:
        """`x and true == x`, `x and false == false`, and so on, on i1."""
        left, right = op.operands
        if left.type != i1:
            return
        for value, other in ((left, right), (right, left)):
            known = self.known.get(value)
            if known is None:
                continue
            absorbing = type(op) is arith.OrIOp
            self.forward(op, value if bool(known.as_int()) == absorbing else other)
            return

    def compare(self, op: Operation) -> None:
        x, y = (self.known.get(v) for v in op.operands)
        if x is None or y is None:
            self.compare_points(op)
            return
        if op.operands[0].type != i64:
            return
        predicate = cast(IntegerAttr, op.properties["predicate"]).value.data
        truth = decide(predicate, x, y, self.ranges)
        if truth is not None:
            self.replace(op, const(truth))

    def compare_points(self, op: Operation) -> None:
        """A comparison with the same result at all points of an axis."""
        table = self.tables.table(op.results[0], self.ranges)
        if table is not None and (table == table[0]).all():
            self.replace(op, const(int(table[0])))

    def convert(self, op: Operation) -> None:
        """An integer that is computed of one axis in another type."""
        if op.properties["to"] != i64:
            return
        axis, table = (of(op.results[0], self.ranges) for of in (self.tables.axis, self.tables.table))
        if axis is None or table is None:
            return
        expr = line_through(table, symbol(axis.name)) if axis.name else const(int(table[0]))
        if expr is not None:
            self.replace(op, simplify(expr, self.ranges))

    def float_arithmetic(self, op: Operation) -> None:
        """`x op constant` that has the bits of x at all points of an axis."""
        for k, value in enumerate(op.operands):
            if type(value.owner) is arith.ConstantOp:
                x = op.operands[1 - k]
                before, after = (self.tables.table(v, self.ranges) for v in (x, op.results[0]))
                if before is not None and after is not None and before.tobytes() == after.tobytes():
                    self.forward(op, x)
                    return

    def select(self, op: Operation) -> None:
        condition, x, y = op.operands
        known = self.known.get(condition)
        if known is not None:
            self.forward(op, x if known.as_int() else y)
        elif x is y:
            self.forward(op, x)
        elif x.type == i1 and x in self.known and y in self.known:
            self.select_truth(op, condition)
        elif type(x.owner) is arith.SelectOp and x.owner.operands[0] is condition:
            op.operands[1] = x.owner.operands[1]  # what this select chooses, that one has chosen as well

    def select_truth(self, op: Operation, condition: SSAValue) -> None:
        """`select c, true, false == c`, `select c, false, true == not c`, of two equal ones that one."""
        _, x, y = op.operands
        first, second = self.known[x].as_int(), self.known[y].as_int()
        if first == second:
            self.forward(op, x)
        elif first:
            self.forward(op, condition)
        elif not self.negate(op, condition):
            self.insert(op, arith.XOrIOp.create(operands=(condition, y), result_types=(i1,)))

    def exclusive_or(self, op: Operation) -> None:
        """`xor x, false == x`; `xor x, true == not x`, of a comparison the opposite one."""
        for value, other in (op.operands, op.operands[::-1]):
            known = self.known.get(value)
            if known is None or value.type != i1:
                continue
            if known.as_int():
                self.negate(op, other)
            else:
                self.forward(op, other)
            return

    def negate(self, op: Operation, value: SSAValue) -> bool:
        """Replace an op by the opposite of a condition, where that costs no op more; whether it does not."""
        owner = value.owner
        if isinstance(owner, arith.XOrIOp):
            inner = next((x for x, y in (owner.operands, owner.operands[::-1]) if self.is_true(y)), None)
            if inner is not None:
                self.forward(op, inner)
            return inner is not None
        opposite = opposite_comparison(owner) if isinstance(owner, arith.CmpiOp | arith.CmpfOp) else None
        if opposite is not None:
            self.insert(op, opposite)
        return opposite is not None

    def is_true(self, value: SSAValue) -> bool:
        """Whether an i1 is certainly true."""
        known = self.known.get(value)
        return known is not None and value.type == i1 and known.as_int() == 1

    def insert(self, op: Operation, new: Operation) -> None:
        """Replace an op by a new one."""
        if counter(COUNTER):
            new.location = op.location
            block = op.parent
            assert isinstance(block, Block)
            block.insert_op_before(new, op)
            _forward(op, new.results[0])

    def check(self, op: Operation) -> None:
        known = self.known.get(op.operands[0])
        if known is not None and known.as_int() and counter(COUNTER):
            _erase(op)

    def load(self, op: Operation) -> None:
        assert isinstance(op, LoadOp)
        access, exprs = access_of(op), map_of(op).data
        mask = self.known.get(access.mask) if access.mask is not None else None
        if mask is not None and access.other is not None and not mask.as_int():
            self.forward(op, access.other)
            return
        exprs, dynamic = self.fold_dynamic(exprs, access.dynamic)
        changes = exprs != map_of(op).data or mask is not None or len(dynamic) != len(access.dynamic)
        if not changes or not counter(COUNTER):
            return
        if mask is not None or len(dynamic) != len(access.dynamic):
            access = access._replace(dynamic=dynamic, **({} if mask is None else {"mask": None, "other": None}))
            set_access(op, access, MapAttr.of(*exprs))
        else:
            op.properties["map"] = MapAttr.of(*exprs)

    def scatter(self, op: ScatterOp) -> None:
        values = yielded(op.body)
        dynamic = op.dynamic
        exprs, kept = self.fold_dynamic(op.map.data, dynamic)
        mask = values[1 + len(dynamic) :]
        known = self.known.get(mask[0]) if mask else None
        decided = known is not None and known.as_int()
        if not (decided or exprs != op.map.data or len(kept) != len(dynamic)) or not counter(COUNTER):
            return
        if decided:
            mask = ()
            del op.properties["masked"]
        last = op.body.block.last_op
        assert last is not None
        last.operands = (values[0], *kept, *mask)
        op.properties["map"] = MapAttr.of(*exprs)

    def fold_dynamic(
        self, exprs: tuple[Expr, ...], dynamic: tuple[SSAValue, ...]
    ) -> tuple[tuple[Expr, ...], tuple[SSAValue, ...]]:
        """Simplified index expressions in which dynamic indices that are expressions stand for themselves."""
        known = {dynamic_name(k): self.known[v] for k, v in enumerate(dynamic) if v in self.known}
        if known:
            index_map, dynamic = compact_dynamic(tuple(e.subs(known) for e in exprs), dynamic)
            exprs = index_map.data
        return tuple(simplify(e, self.ranges) for e in exprs), dynamic

    def replace(self, op: Operation, expr: Expr) -> None:
        """Replace an integer op by an expression, which is a constant or a `loop.index`."""
        if not counter(COUNTER):
            return
        value, type_ = expr.as_int(), op.results[0].type
        if value is not None:
            attribute = IntegerAttr(value, i1 if type_ == i1 else i64)
            new: Operation = arith.ConstantOp.create(properties={"value": attribute}, result_types=(type_,))
        else:
            new = IndexOp.create(properties={"expr": SymAttr.of(expr)}, result_types=(i64,))
        new.location = op.location
        block = op.parent
        assert isinstance(block, Block)
        block.insert_op_before(new, op)
        self.known[new.results[0]] = expr
        _forward(op, new.results[0])

    def forward(self, op: Operation, value: SSAValue) -> None:
        if counter(COUNTER):
            _forward(op, value)


def _forward(op: Operation, value: SSAValue) -> None:
    op.results[0].replace_all_uses_with(value)
    _erase(op)


def _set_map(op: Operation, exprs: tuple[Expr, ...]) -> None:
    if exprs != cast(MapAttr, op.properties["map"]).data and counter(COUNTER):
        op.properties["map"] = MapAttr.of(*exprs)


def _erase(op: Operation) -> None:
    block = op.parent
    assert isinstance(block, Block)
    block.erase_op(op)


_RULES: dict[type[Operation], Callable[[_Body, Operation], None]] = {
    arith.ConstantOp: _Body.constant,
    arith.CmpiOp: _Body.compare,
    arith.CmpfOp: _Body.compare_points,
    scalar.CastOp: _Body.convert,
    arith.SelectOp: _Body.select,
    arith.AndIOp: _Body.logic,
    arith.OrIOp: _Body.logic,
    arith.XOrIOp: _Body.exclusive_or,
    AssertOp: _Body.check,
    IndexOp: _Body.index,
    LoadOp: _Body.load,
    ReduceOp: _Body.reduce,
    **dict.fromkeys(ARITHMETIC, _Body.arithmetic),
    **dict.fromkeys((arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp), _Body.float_arithmetic),
}
