"""Bytes of tensors, as expressions."""

from __future__ import annotations

from functools import lru_cache

from ...dialects.aten.types import ITEM_SIZES, TensorType, torch_name
from ...dialects.sym import ONE, ZERO, Expr
from ..common.strided_views import extent


@lru_cache(maxsize=4096)
def bytes_of(tensor: TensorType) -> Expr:
    """Bytes from the first to the last element, both included; 0 for an empty tensor."""
    reach = extent(tensor)
    return reach if reach is ZERO else reach * item_size(tensor)


@lru_cache(maxsize=4096)
def is_dense(tensor: TensorType) -> bool:
    """Whether each byte between the first and the last element belongs to exactly one element.

    The strides are then those of a row-major tensor with its dimensions in another order.
    """
    if ZERO in tensor.shape:
        return True
    left = [(stride, size) for stride, size in zip(tensor.strides, tensor.shape, strict=True) if size is not ONE]
    step = ONE
    while left:
        found = next((pair for pair in left if pair[0] is step), None)
        if found is None:
            return False
        left.remove(found)
        step = step * found[1]
    return True


def item_size(tensor: TensorType) -> int:
    """Bytes of one element. Raises KeyError for a type that only ATen knows."""
    return ITEM_SIZES[torch_name(tensor.element)]
