"""Products on matrix units: a reduction with `map matrix` becomes a loop around `tl.dot`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...errors import UnsupportedError
from .axes import Axes
from .context import Context
from .dtypes import dtype_name, is_float
from .values import Value


class Contractions:
    """Emits reductions on matrix units.

    ops: emits ops in order
    """

    def __init__(self, context: Context, axes: Axes, ops: Callable[[Iterable[Operation]], None]) -> None:
        self.context = context
        self.axes = axes
        self.ops = ops

    def emit(self, op: kernel.ReduceOp) -> None:
        """Emit a loop over the depth, whose accumulators are tiles of rows and columns, and bind its results."""
        context, found = self.context, kernel.contraction_of(op)
        if isinstance(found, str):
            raise UnsupportedError(f"a reduction runs on no matrix units: {found}")
        products, *sides = found
        rows, columns = (next(lanes.dim for lanes in context.lanes if lanes.axis == axis) for axis in sides)
        depth = len(context.lanes)
        totals: list[Value] = []
        for result in op.results:
            dtype = dtype_name(result.type)
            name = context.names.fresh(f"{result.name_hint or 'product'}_acc")
            context.out.line(f"{name} = tl.zeros({context.shape((rows, columns))}, tl.{dtype})")
            totals.append(Value(name, dtype, (rows, columns)))
        with self.axes.stepped(op) as step:
            for product, total in zip(products, totals, strict=True):
                left = self._operand(op, step, product.left, (rows, depth))
                right = self._operand(op, step, product.right, (depth, columns))
                context.out.line(f"{total} = tl.dot({left}, {right}, {total}{_arguments(product)})")
        context.values.update(zip(op.results, totals, strict=True))

    def _operand(self, op: kernel.ReduceOp, step: str, factor: SSAValue, frame: tuple[int, int]) -> Value:
        """Emit what a factor is computed from as a tile of two axes, 0 beyond the depth."""
        context, value = self.context, kernel.operand_of(factor)
        with context.framed(frame), self.axes.lanes(op, step):
            inside = context.lanes[-1].mask
            zeroed = inside is not None and _is_plain_load(value)
            if zeroed:
                context.zeroed.add(value)
            context.narrow.add(value)
            self.ops(_sources(op, value))
            found = context.value(value)
            if found.dims != (dims := tuple(sorted(frame))):
                text = f"tl.broadcast_to({context.tensor(found)}, {context.shape(dims)})"
                found = context.define(text, found.dtype, dims, "block")
            if inside is not None and not zeroed:
                text = f"tl.where({inside}, {found}, {0.0 if is_float(found.dtype) else 0})"
                found = context.define(text, found.dtype, dims, f"{found}_inside")
        return found


def _is_plain_load(value: SSAValue) -> bool:
    return isinstance(value.owner, kernel.LoadOp) and value.owner.mask is None


def _sources(op: kernel.ReduceOp, value: SSAValue) -> list[Operation]:
    """The ops of a body that a value is computed from, in order."""
    found: set[Operation] = set()
    todo = [value]
    while todo:
        owner = todo.pop().owner
        if isinstance(owner, Operation) and owner.parent is op.body.block and owner not in found:
            found.add(owner)
            todo += owner.operands
    return [each for each in op.body.block.ops if each in found]


def _arguments(product: kernel.Product) -> str:
    """What `tl.dot` is told beside its operands."""
    element = kernel.element_of(product)
    if element == Float32Type():
        return f', input_precision="{"tf32" if product.precision == "tf32" else "ieee"}"'
    return "" if is_float(dtype_name(product.op.results[0].type)) else ", out_dtype=tl.int32"
