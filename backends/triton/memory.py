"""Loads, stores, local rows and checks."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from ...dialects import kernel, scalar
from ...dialects.access import string_attr
from ...dialects.sym import Expr, symbol
from ...errors import UnsupportedError
from ...passes.kernel.gpu_legality import has_atomic
from ..printing.code import PRODUCT
from ..printing.monoids import STORE_MONOIDS
from .boxes import load_box
from .context import Context
from .dtypes import dtype_name, is_float, typed_constant
from .groups import load_groups
from .index import Code
from .monoids import identity, monoid_named, reduce_text
from .values import Dims, Value, union

Access = kernel.LoadOp | kernel.StoreOp
_MATRIX = string_attr("matrix")


def load(context: Context, op: kernel.LoadOp) -> None:
    """Emit a load; one whose only use widens it is written with the conversion."""
    mask = None if op.mask is None else context.value(op.mask)
    other = None if op.other is None else context.value(op.other)
    if op.buffer.type.local:  # pyright: ignore[reportAttributeAccessIssue]
        context.values[op.value] = _load_row(context, op, mask, other)
        return
    if op.half is not None:
        _load_pair(context, *_halves(op))
        return
    dtype = dtype_name(op.buffer.type.element)  # pyright: ignore[reportAttributeAccessIssue]
    place = _index(context, op.map.data[0], op.dynamic)
    dims = union(place.dims, *(v for v in (mask, other) if v is not None))
    arguments = [_pointer(context, op.buffer, place, dims)]
    condition = context.mask(dims, mask, *context.guards_of(op.dynamic))
    if condition is not None:
        arguments.append(f"mask={condition}")
        if other is not None:
            arguments.append(f"other={other}")  # a literal takes the type of the buffer
        elif op.value in context.zeroed:
            arguments.append("other=0.0" if dtype.startswith("float8") else "other=0")  # these take no integer
    if op.cache is not None:
        arguments.append(f'eviction_policy="{op.cache.data}"')
    text = f"tl.load({', '.join(arguments)})"
    if condition is None and (row := _place_of_rows(context, op, place)) is not None:
        rows = ", ".join([_pointer(context, op.buffer, row, row.dims), *arguments[1:]])
        text = context.along(f"tl.load({rows})", row.dims[0])
    text = load_groups(context, op, place, context.buffers[op.buffer], _policy(op)) or text
    is_wide = op.in_lanes is not None and context.nvidia
    if is_wide:
        lane = f"{context.buffers[op.buffer]}, {place.text}"
        where = f"({lane})" if condition is None else f"_where({lane}, {condition})"
        text = f"nvidia.load_in_lanes{where}"
    if op.box is not None and context.takes_boxes:
        text = load_box(context, op, text)
    _bind(context, op, text, dtype, dims, is_wide)


def _place_of_rows(context: Context, op: kernel.LoadOp, place: Code) -> Code | None:
    """The place of a number of each row, in a block of one dimension; None for other loads.

    As a column of a tile, each thread would load it once for each element that it has of a row: 64 times in a program
    of four rows of 8 bits.
    """
    if op.in_lanes is not None or op.box is not None or op.dynamic:
        return None
    if len(place.dims) != 1 or place.dims != context.scope_dims or place.dims[0] == context.frame[-1]:
        return None
    lanes, expr = context.lanes[0], op.map.data[0]
    varying = {name for name in expr.free_symbols if context.symbols[name].dims}
    if len(context.lanes) != 1 or lanes.axis not in context.symbols or varying != {lanes.axis}:
        return None
    column = context.symbols[lanes.axis]
    width = "" if context.width is None or lanes.start else f".to({context.width})"
    steps = f"tl.arange(0, {lanes.block}){width}"
    text = f"{lanes.start} + {steps}" if lanes.start else steps
    context.symbols[lanes.axis] = context.define(text, column.dtype, column.dims, f"{lanes.axis}_rows")
    try:
        return _index(context, expr, ())
    finally:
        context.symbols[lanes.axis] = column


def _bind(context: Context, op: kernel.LoadOp, text: str, dtype: str, dims: Dims, is_wide: bool = False) -> None:
    """Give what was loaded a name.

    is_wide: it is a float32 that holds the element
    """
    widen = op.value.get_user_of_unique_use()
    result = op.value
    if isinstance(widen, scalar.WidenOp) and op.value not in context.narrow:
        dtype = dtype_name(widen.target_element)
        text += "" if is_wide and dtype == "float32" else f".to(tl.{dtype})"
        result = widen.results[0]
    elif is_wide and dtype != "float32":
        text += f".to(tl.{dtype})"
    pure = op.buffer not in context.written
    value = context.define(text, dtype, dims, _hint(result, context.buffers[op.buffer]), pure)
    context.values[op.value] = value
    if result is not op.value:
        context.values[result] = value


def _halves(op: Access) -> tuple[Access, Access]:
    """The two halves of an access of neighbours, the lower place first."""
    other = kernel.other_half(op)
    assert other is not None
    return (op, other) if op.half == string_attr(kernel.HALVES[0]) else (other, op)


def _load_pair(context: Context, low: Access, high: Access) -> None:
    """Load two neighbours at once, where the first of them is wanted."""
    if low.results[0] in context.values:
        return
    place = _index(context, low.map.data[0], ())
    wide = _lanes_of_pairs(context, low)
    names = [context.names.fresh(f"{context.buffers[low.buffer]}_{word}") for word in ("even", "odd")]
    if wide is None:
        pointer, rest = _of_pair(context, low, place, place.dims)
    else:
        inside = context.mask(place.dims, None)
        pointer = _pointer(context, low.buffer, wide, place.dims)
        rest = ("" if inside is None else f", mask={inside}") + _policy(low)
    if "mask=" in rest and not context.zeroed.isdisjoint((low.results[0], high.results[0])):
        rest += ", other=0"
    text = f"tl.load({pointer}{rest})"
    if wide is not None:
        text = f"tl.reshape({text}, {context.shape(place.dims)[:-1]}, 2])"
    context.out.line(f"{', '.join(names)} = tl.split({text})")
    dtype = dtype_name(low.buffer.type.element)  # pyright: ignore[reportAttributeAccessIssue]
    for name, op in zip(names, (low, high), strict=True):
        assert isinstance(op, kernel.LoadOp)
        _bind(context, op, name, dtype, place.dims)


def _lanes_of_pairs(context: Context, low: Access) -> Code | None:
    """Places of both neighbours of a factor of a product, where they are along the last dimension of its tile.

    Lanes that go by one are copied 16 bytes at a time into the memory from which units read them.
    """
    loop, lanes = low.parent_op(), {each.dim: each for each in context.lanes}.get(context.frame[-1])
    if lanes is None or lanes.mask is not None or loop is None or loop.properties.get("mapping") != _MATRIX:
        return None
    expr, axis = low.map.data[0], lanes.axis
    rest = expr - symbol(axis) * 2
    if axis in rest.free_symbols:
        return None
    width = "" if context.width is None else f".to({context.width})"
    steps = context.along(f"tl.arange(0, 2 * {lanes.block}){width}", lanes.dim)
    text = f"2 * {lanes.start} + {steps}" if lanes.start else steps
    pair = f"{axis}_pair"
    context.symbols[pair] = context.define(text, context.symbols[axis].dtype, (lanes.dim,), pair)
    return context.index(rest + symbol(pair))


def _store_pair(context: Context, op: kernel.StoreOp, low: Access, high: Access) -> None:
    """Store two neighbours at once, where the second of them is known."""
    context.half_stored.add(op)
    if not {low, high} <= context.half_stored:
        return
    assert isinstance(low, kernel.StoreOp) and isinstance(high, kernel.StoreOp)
    element = dtype_name(op.buffer.type.element)  # pyright: ignore[reportAttributeAccessIssue]
    values = [_as(context, context.value(value), element) for value in (low.value, high.value)]
    place = _index(context, low.map.data[0], ())
    dims = union(place.dims, *values)
    halves = (
        text if value.dims == dims else f"tl.broadcast_to({text}, {context.shape(dims)})"
        for value, text in zip(values, map(context.typed, values), strict=True)
    )
    pointer, rest = _of_pair(context, low, place, dims)
    context.out.line(f"tl.store({pointer}, tl.join({', '.join(halves)}){rest})")


def _of_pair(context: Context, low: Access, place: Code, dims: Dims) -> tuple[str, str]:
    """Pointer to two neighbours, along one more dimension, and what else an access of them says."""
    pointer = f"tl.expand_dims({_pointer(context, low.buffer, place, dims)}, {context.rank}) + tl.arange(0, 2)"
    inside = context.mask(dims, None)
    mask = "" if inside is None else f", mask=tl.expand_dims({inside}, {context.rank})"
    return pointer, mask + _policy(low)


def _policy(op: Access) -> str:
    return "" if op.cache is None else f', eviction_policy="{op.cache.data}"'


def _hint(value: SSAValue, buffer: str) -> str:
    return value.name_hint or f"{buffer}_value"


def _index(context: Context, expr: Expr, dynamic: Sequence[SSAValue]) -> Code:
    return context.index(expr, dynamic)


def _pointer(context: Context, buffer: SSAValue, place: Code, dims: Dims) -> str:
    name = context.buffers[buffer]
    text = name if place.text == "0" else f"{name} + {place.at(PRODUCT)}"
    return text if place.dims == dims else f"tl.broadcast_to({text}, {context.shape(dims)})"


def barrier(context: Context, op: kernel.BarrierOp) -> None:
    """Emit a barrier."""
    context.out.line("tl.debug_barrier()")


def wait(context: Context, op: kernel.AwaitOp) -> None:
    """Emit that a program waits for the launches in front; other GPUs than NVIDIA's begin no launch before."""
    if context.nvidia:
        context.out.line("nvidia.await_launches()")


def release(context: Context, op: kernel.ReleaseOp) -> None:
    """Emit that the launch behind may begin; on other GPUs than NVIDIA's it does not."""
    if context.nvidia:
        context.out.line("nvidia.let_next_begin()")


def store(context: Context, op: kernel.StoreOp) -> None:
    """Emit a store, plain, combining or atomic."""
    value = context.value(op.value)
    mask = None if op.mask is None else context.value(op.mask)
    if op.buffer.type.local:  # pyright: ignore[reportAttributeAccessIssue]
        _store_row(context, op, value)
        return
    if op.half is not None:
        _store_pair(context, op, *_halves(op))
        return
    place = _index(context, op.map.data[0], op.dynamic)
    kind = op.kind.data
    varying = [v for v in (value, mask) if v is not None]
    if kind == "set":
        dims = union(place.dims, *varying)
    else:
        value, mask, dims = _combined_lanes(context, kind, value, mask, place)
    condition = context.mask(dims, mask, *context.guards_of(op.dynamic))
    pointer = _pointer(context, op.buffer, place, dims)
    tail = "" if condition is None else f", mask={condition}"
    element = dtype_name(op.buffer.type.element)  # pyright: ignore[reportAttributeAccessIssue]
    if kind == "set":
        context.out.line(f"tl.store({pointer}, {context.typed(value)}{tail}{_policy(op)})")
    elif op.atomic is not None:
        _atomic(context, op, pointer, value, dims, condition)
    else:
        # low precision is combined in float32, and rounded as it is stored
        dtype = "float32" if element in ("float16", "bfloat16") else element
        old = _as(context, Value(f"tl.load({pointer}{tail})", element, dims), dtype)
        new = monoid_named(STORE_MONOIDS[kind]).combine(context, (old,), (_as(context, value, dtype),))[0]
        rounded = f"({new}).to(tl.{element})" if dtype != element else new
        context.out.line(f"tl.store({pointer}, {rounded}{tail})")


def _as(context: Context, value: Value, dtype: str) -> Value:
    if value.dtype == dtype or value.literal:
        return Value(value.text, dtype, value.dims, value.literal)
    return Value(f"{value.text}.to(tl.{dtype})", dtype, value.dims)


def _combined_lanes(
    context: Context, kind: str, value: Value, mask: Value | None, place: Code
) -> tuple[Value, Value | None, Dims]:
    """Combine over the lanes that share one place before memory is touched, because each of them counts once."""
    shared = tuple(d for d in context.scope_dims if d not in place.dims)
    dims = union(place.dims, context.scope_dims)
    if not shared:
        return value, mask, dims
    monoid = monoid_named(STORE_MONOIDS[kind])
    inside = context.mask(dims, mask)
    neutral = identity(monoid.name, value.dtype)[0]
    text = context.typed(value)
    if inside is not None:
        text = f"tl.where({inside}, {text}, {context.tensor(neutral)})"
        if union(value, inside) != dims:
            text = f"tl.broadcast_to({text}, {context.shape(dims)})"
    elif value.dims != dims:
        text = f"tl.broadcast_to({text}, {context.shape(dims)})"
    block = value if text == value.text else context.define(text, value.dtype, dims, "part", pure=False)
    for dim in shared if place.dims else (None,):
        text = reduce_text(monoid, (block,), dim, keep=bool(place.dims))
        block = context.define(text, value.dtype, tuple(d for d in block.dims if d != dim), "combined", pure=False)
    return Value(block.text, value.dtype, place.dims), None, place.dims


#: (kind of store, whether it combines floats) -> function that does it in memory
_ATOMICS: dict[tuple[str, bool], str] = {
    ("add", True): "tl.atomic_add",
    ("add", False): "tl.atomic_add",
    ("amax", False): "tl.atomic_max",
    ("amin", False): "tl.atomic_min",
    ("amax", True): "prelude.atomic_maximum",
    ("amin", True): "prelude.atomic_minimum",
}


def _atomic(
    context: Context, op: kernel.StoreOp, pointer: str, value: Value, dims: Dims, condition: Value | None
) -> None:
    element = dtype_name(op.buffer.type.element)  # pyright: ignore[reportAttributeAccessIssue]
    function = _ATOMICS.get((op.kind.data, is_float(element)))
    if function is None or not has_atomic(op):
        raise UnsupportedError(f"Triton has no atomic {op.kind.data} on {element}; its loops have to be serial")
    value = _as(context, value, element)
    text = context.typed(value)
    if value.dims != dims:
        text = f"tl.broadcast_to({text}, {context.shape(dims)})"
    if function.startswith("prelude."):
        tail = f", {typed_constant('True', 'int1') if condition is None else condition}"
    else:
        tail = ', sem="relaxed"' if condition is None else f', mask={condition}, sem="relaxed"'
    context.out.line(f"{function}({pointer}, {text}{tail})")


# local rows


def _row_key(context: Context, op: kernel.LoadOp | kernel.StoreOp) -> str:
    return _index(context, op.map.data[0], op.dynamic).text


def _registers(op: kernel.LoadOp | kernel.StoreOp) -> str:
    """How a local buffer lies in registers."""
    local = op.buffer.owner
    assert isinstance(local, kernel.LocalOp)
    if local.registers is None:
        raise UnsupportedError("a local buffer lies in no registers: kernel-spill, kernel-assign-registers are missing")
    return local.registers.data


def _load_row(context: Context, op: kernel.LoadOp, mask: Value | None, other: Value | None) -> Value:
    registers, value = _registers(op), context.rows.get(op.buffer, {}).get(_row_key(context, op))
    if value is None:
        raise UnsupportedError(
            f"a local buffer is read at [{op.map.data[0]}], where no register tile of this program was stored"
        )
    if registers == "carried":  # under a name of its own, because the next store changes what the old one means
        value = context.define(value.text, value.dtype, value.dims, op.value.name_hint or value.text, pure=False)
    if mask is None or other is None:
        return value
    text = f"tl.where({context.typed(mask)}, {context.typed(value)}, {context.tensor(other)})"
    return context.define(text, value.dtype, union(mask, value, other), "v")


def _store_row(context: Context, op: kernel.StoreOp, value: Value) -> None:
    rows = context.rows.setdefault(op.buffer, {})
    if _registers(op) == "tile":
        rows[_row_key(context, op)] = value
        return
    place = _index(context, op.map.data[0], op.dynamic)
    if op.kind.data == "add":
        _add_to_row(context, op, rows.get(place.text), value, place)
        return
    dims = union(place.dims, value)
    text = f"tl.broadcast_to({context.tensor(value)}, {context.shape(dims)})" if value.dims != dims else value.text
    if value.literal:
        text = f"tl.full({context.shape(dims)}, {value.text}, tl.{value.dtype})"
    if place.text in rows:
        context.out.line(f"{rows[place.text].text} = {text}")
    else:
        rows[place.text] = context.define(text, value.dtype, dims, op.buffer.name_hint or "row", pure=False)


def _add_to_row(context: Context, op: kernel.StoreOp, row: Value | None, value: Value, place: Code) -> None:
    """Add what the lanes of each element have to a variable of a loop."""
    added, _, dims = _combined_lanes(context, "add", value, None, place)
    if row is None or row.dims != dims:
        raise UnsupportedError(f"lanes add to a local buffer at [{op.map.data[0]}], of which no such tile was stored")
    context.out.line(f"{row} = {row} + {context.tensor(added)}")


# checks


def check(context: Context, op: kernel.AssertOp) -> None:
    """Emit a check; dynamic indices are followed only where it holds."""
    condition = context.value(op.condition)
    assert isinstance(op.condition.type, IntegerType)
    if condition.literal:
        condition = context.define(typed_constant(condition.text, "int1"), "int1", (), "ok")
    failed = context.define(f"~{condition}", "int1", condition.dims, "failed")
    # lanes outside of the domain compute from nothing and must not report
    inside = context.mask(condition.dims, failed)
    assert inside is not None
    context.once(f"prelude.report({context.status}, {inside}, {op.code.data})")
    context.guards.append((condition, context.sources(op.condition)))
