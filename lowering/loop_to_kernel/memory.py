"""Where a tensor's elements lie: linear indices, extents of buffers, strided views."""

from __future__ import annotations

from functools import lru_cache

from ...dialects.aten.types import TensorType
from ...dialects.kernel import BufferType
from ...dialects.loop import ViewOp
from ...dialects.sym import ONE, ZERO, Expr, MapAttr, symbol
from ...errors import UnsupportedError

Rename = tuple[tuple[str, str], ...]


@lru_cache(maxsize=8192)
def linear_index(index: MapAttr, strides: tuple[Expr, ...]) -> Expr:
    """The offset in elements of a logical index: `sum(index[k] * strides[k])`."""
    total = ZERO
    for expr, stride in zip(index.data, strides, strict=True):
        total = total + expr * stride
    return total


@lru_cache(maxsize=8192)
def renamed(expr: Expr, rename: Rename) -> Expr:
    """`expr` with axes renamed, given as (old, new) pairs."""
    return expr.subs({old: symbol(new) for old, new in rename})


@lru_cache(maxsize=4096)
def extent(tensor: TensorType) -> Expr:
    """Number of elements between the first and the last one, both included; 0 for an empty tensor."""
    total = ONE
    for size, stride in zip(tensor.shape, tensor.strides, strict=True):
        if size is ZERO:
            return ZERO
        total = total + (size - 1) * stride
    return total


@lru_cache(maxsize=4096)
def buffer_type(tensor: TensorType) -> BufferType:
    """The buffer in which a kernel sees a tensor."""
    return BufferType.get(tensor.element, extent(tensor))


def row_strides(sizes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Row-major strides of a local buffer of the given sizes."""
    strides: list[Expr] = []
    step = ONE
    for size in reversed(sizes):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def strided_view(view: ViewOp) -> tuple[Expr, TensorType]:
    """(offset in elements, type with strides) of a view that `loop-eliminate-views` left.

    Strides come from composing the map with the source's strides; only where a dimension has size 1 does the
    view's own type decide, because there the map does not tell. Raises UnsupportedError for a map that no strides
    can express.
    """
    source, out = view.source.type, view.out.type
    assert isinstance(source, TensorType) and isinstance(out, TensorType)
    parts = linear_index(view.map, source.strides).split(view.axes.names)
    if parts is None:
        raise UnsupportedError(f"no strides express the view [{', '.join(map(str, view.map.data))}]; it needs a copy")
    coefficients, offset = parts
    strides = tuple(
        own if size is ONE else coefficients.get(name, ZERO)
        for (name, size), own in zip(view.axes.data, out.strides, strict=True)
    )
    return offset, TensorType.get(out.shape, out.element, strides, out.device)
