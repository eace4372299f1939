"""Products on matrix units: a reduction with `map matrix` becomes a loop around `tl.dot`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import ZERO, symbol
from ...errors import UnsupportedError
from ...passes.kernel.tiles import is_persistent, tile_of
from .axes import Axes
from .context import Context, Lanes
from .dtypes import dtype_name, is_float
from .values import Value

#: elements of the depth whose products of 8-bit floats matrix units add with fewer bits than float32 has
EXACT_STEPS = 128


class Contractions:
    """Emits reductions on matrix units.

    ops: emits ops in order
    """

    def __init__(self, context: Context, axes: Axes, ops: Callable[[Iterable[Operation]], None]) -> None:
        self.context = context
        self.axes = axes
        self.ops = ops
        #: (first element, block) of lanes -> a name for what has both
        self._names: dict[tuple[str, str], str] = {}
        #: dimensions of rows and the depth, and what was emitted in front of all else in the body of a loop over these
        self._led: tuple[tuple[int, int], frozenset[Operation]] = (0, 0), frozenset()

    def emit(self, op: kernel.ReduceOp) -> None:
        """Emit a loop over the depth, whose accumulators are tiles of rows and columns, and bind its results."""
        context, found = self.context, kernel.contraction_of(op)
        if isinstance(found, str):
            raise UnsupportedError(f"a reduction runs on no matrix units: {found}")
        products, *sides = found
        context.narrow.update(kernel.operand_of(factor) for each in products for factor in (each.left, each.right))
        context.in_registers.update(kernel.operand_of(each.left) for each in products)
        rows, columns = (next(lanes.dim for lanes in context.lanes if lanes.axis == axis) for axis in sides)
        depth = len(context.lanes)
        if self.is_one_step(op):
            self._at_once(op, products, rows, columns, depth)
            return
        totals = [self._total(op, k, (rows, columns)) for k in range(len(op.results))]
        self.ahead(op, (rows, depth))
        with self.axes.stepped(op) as step:
            self._lead(op, step, (rows, depth))
            for product, total in zip(products, totals, strict=True):
                left = self.operand(op, step, product.left, (rows, depth))
                right = self.operand(op, step, product.right, (depth, columns))
                context.out.line(f"{total} = tl.dot({left}, {right}, {total}{_arguments(product, op)})")
                if context.nvidia and total.dtype == "float32" and self._is_converted(product.left, op):
                    context.out.line(f"{total} = nvidia.settled({total})")
        context.values.update(zip(op.results, totals, strict=True))

    def _total(self, op: kernel.ReduceOp, number: int, dims: tuple[int, int]) -> Value:
        """Emit the accumulator of a result: 0, or what the reduction goes on from, which nothing else reads then."""
        context, result = self.context, op.results[number]
        dtype = dtype_name(result.type)
        if op.goes_on and op.init[number].has_one_use():
            before = context.values[op.init[number]]
            if before.dims == dims and before.text.isidentifier():
                return before
        name = context.names.fresh(f"{result.name_hint or 'product'}_acc")
        start = f"tl.zeros({context.shape(dims)}, tl.{dtype})"
        if op.goes_on:
            start = f"tl.broadcast_to({context.tensor(context.value(op.init[number]))}, {context.shape(dims)})"
        context.out.line(f"{name} = {start}")
        return Value(name, dtype, dims)

    def is_one_step(self, op: kernel.ReduceOp) -> bool:
        """Whether one tile covers the depth, from its first element."""
        return op.lo.data is ZERO and not op.goes_on and is_persistent(op, self.context.ranges)

    def _at_once(
        self, op: kernel.ReduceOp, products: list[kernel.Product], rows: int, columns: int, depth: int
    ) -> None:
        """Emit a product whose depth is one step, and bind its results."""
        context = self.context
        for product, result in zip(products, op.results, strict=True):
            left = self.operand(op, "", product.left, (rows, depth))
            right = self.operand(op, "", product.right, (depth, columns))
            text = f"tl.dot({left}, {right}{_arguments(product, op)})"
            dims = tuple(sorted((rows, columns)))
            found = context.define(text, dtype_name(result.type), dims, result.name_hint or "product")
            context.values[result] = found

    def ahead(self, outer: kernel.ReduceOp, frame: tuple[int, int]) -> None:
        """Emit, in front of a loop, the factors of products in its body that are the same in all its steps.

        frame: dimensions of the rows and of the loop's axis
        """
        context = self.context
        rows, along = frame
        for op in outer.body.block.ops:
            if not isinstance(op, kernel.ReduceOp) or not self.is_one_step(op):
                continue
            found = kernel.contraction_of(op)
            assert not isinstance(found, str)
            for product in found[0]:
                if self._is_of_rows(product.left, outer, op):
                    with context.lane(Lanes(outer.axis.data, along, "", None)):
                        self.operand(op, "", product.left, (rows, along + 1))

    def _lead(self, op: kernel.ReduceOp, step: str, frame: tuple[int, int]) -> None:
        """Emit products in the body that stand in front of what is made of them."""
        made = [result for each in kernel.leading_products(op) for result in each.results]
        ops = self.sources(op, made)
        if ops:
            with self.context.framed(frame), self.axes.lanes(op, step):
                self.ops(ops)
        self._led = frame, frozenset(ops)

    def columns_ahead(self, outer: kernel.ReduceOp) -> None:
        """Emit, where a step begins, the right factors of products in it that take one step themselves."""
        context = self.context
        for op in outer.body.block.ops:
            if not isinstance(op, kernel.ReduceOp) or not self.is_one_step(op):
                continue
            found = kernel.contraction_of(op)
            assert not isinstance(found, str)
            products, _, axis = found
            columns = next(lanes.dim for lanes in context.lanes if lanes.axis == axis)
            context.narrow.update(kernel.operand_of(each.right) for each in products)
            for product in products:
                if self._is_loaded(product.right, op):
                    self.operand(op, "", product.right, (len(context.lanes), columns))

    def _is_converted(self, factor: SSAValue, op: kernel.ReduceOp) -> bool:
        """Whether a step computes a factor of what it loads, and of no product, into registers."""
        value = kernel.operand_of(factor)
        sources = self.sources(op, [value])
        return len(sources) > 1 and not any(isinstance(each, kernel.ReduceOp) for each in sources)

    def _is_loaded(self, factor: SSAValue, op: kernel.ReduceOp) -> bool:
        """Whether a factor is what memory holds, at a place that is known where the step begins."""
        load = kernel.operand_of(factor).owner
        return (
            isinstance(load, kernel.LoadOp) and load.mask is None and not load.dynamic and load.parent is op.body.block
        )

    def _is_of_rows(self, factor: SSAValue, outer: kernel.ReduceOp, op: kernel.ReduceOp) -> bool:
        """Whether a factor needs nothing of the loop around its product, neither the axis nor a value."""
        if outer.axis.data in kernel.axes_of(factor):
            return False
        needed = {value.owner for each in self.sources(op, [kernel.operand_of(factor)]) for value in each.operands}
        return not any(isinstance(each, Operation) and each.parent is outer.body.block for each in needed)

    def operand(self, op: kernel.ReduceOp, step: str, factor: SSAValue, frame: tuple[int, int]) -> Value:
        """Emit what a factor is computed from as a tile of two axes, 0 beyond the depth."""
        context, value = self.context, kernel.operand_of(factor)
        with context.framed(frame), self.axes.lanes(op, step):
            inside = context.lanes[-1].mask
            zeroed = inside is not None and _is_plain_load(value)
            if zeroed:
                context.zeroed.add(value)
            context.narrow.add(value)
            key = None if zeroed else self._key(value, frame)
            turned = None if key is None else context.tile(key[::-1])
            kept = None if key is None or turned is not None else context.tile(key)
            if kept is not None:  # the same tile, in front of the loop before this one
                context.values[value] = kept
            elif turned is not None:  # the same elements stand in shared memory, where units read them either way
                context.values[value] = context.define(
                    f"tl.trans({turned})", turned.dtype, tuple(sorted(frame)), "turned"
                )
            else:
                led = self._led[1] if frame == self._led[0] else ()
                self.ops(each for each in self.sources(op, [value]) if each not in led)
            found = context.value(value)
            if key is not None:
                context.keep_tile(key, found)
            if found.dims != (dims := tuple(sorted(frame))):
                text = f"tl.broadcast_to({context.tensor(found)}, {context.shape(dims)})"
                found = context.define(text, found.dtype, dims, "block")
            if inside is not None and not zeroed:
                text = f"tl.where({inside}, {found}, {0.0 if is_float(found.dtype) else 0})"
                found = context.define(text, found.dtype, dims, f"{found}_inside")
        return found

    def _key(self, value: SSAValue, frame: tuple[int, int]) -> tuple[str, ...] | None:
        """What tells the elements of a loaded tile, in its order; None for one that may be another where it is read."""
        context, op = self.context, value.owner
        if not isinstance(op, kernel.LoadOp) or op.mask is not None or op.dynamic or op.buffer in context.written:
            return None
        lanes = {each.dim: each for each in context.lanes if each.dim in frame}
        if set(lanes) != set(frame) or any(each.mask is not None for each in lanes.values()):
            return None
        names = {
            dim: self._names.setdefault((e.start, e.block), f"lanes{len(self._names)}") for dim, e in lanes.items()
        }
        place = op.map.data[0].subs({each.axis: symbol(names[dim]) for dim, each in lanes.items()})
        if len(set(names.values())) != len(names) or any(each.axis in place.free_symbols for each in context.lanes):
            return None
        return names[frame[0]], f"{context.buffers[op.buffer]}[{place}]", names[frame[1]]

    @staticmethod
    def sources(op: kernel.ReduceOp, values: Iterable[SSAValue]) -> list[Operation]:
        """The ops of a body that values are computed from, in order."""
        found: set[Operation] = set()
        todo = [*values]
        while todo:
            owner = todo.pop().owner
            if isinstance(owner, Operation) and owner.parent is op.body.block and owner not in found:
                found.add(owner)
                todo += owner.operands
                todo += [v for inner in owner.walk() if inner is not owner for v in inner.operands]
        return [each for each in op.body.block.ops if each in found]

    @staticmethod
    def precision(element: Attribute | None, precision: str | None) -> str:
        """What `tl.dot` is told of factors of float32."""
        if element != Float32Type():
            return ""
        return f', input_precision="{"tf32" if precision == "tf32" else "ieee"}"'


def _is_plain_load(value: SSAValue) -> bool:
    return isinstance(value.owner, kernel.LoadOp) and value.owner.mask is None


def _arguments(product: kernel.Product, op: kernel.ReduceOp) -> str:
    """What `tl.dot` is told beside its operands."""
    element = kernel.element_of(product)
    if element == Float32Type():
        return Contractions.precision(element, product.precision)
    if isinstance(element, kernel.FLOATS8) and product.precision != "fast":
        return f", max_num_imprecise_acc={min(EXACT_STEPS, tile_of(op))}"  # then float32 takes over
    return "" if is_float(dtype_name(product.op.results[0].type)) else ", out_dtype=tl.int32"
