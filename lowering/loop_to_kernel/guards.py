"""What an assert protects: an access whose index was found out of range must not happen, the error comes later.

A kernel only notes that an assert failed and goes on, so accesses with dynamic indices behind it are masked by its
condition. Where it fails, what they give does not matter: the program raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import kernel

#: how many ops back a condition is followed to the index it is about
_DEPTH = 12


class Guards:
    """The conditions of asserts that dominate the place where ops are being emitted."""

    def __init__(self) -> None:
        self._known: list[tuple[SSAValue, set[SSAValue]]] = []

    @contextmanager
    def inner(self) -> Iterator[None]:
        """What is asserted inside does not dominate what comes behind."""
        count = len(self._known)
        yield
        del self._known[count:]

    def add(self, condition: SSAValue) -> None:
        """Note an assert."""
        self._known.append((condition, _slice(condition)))

    def mask(self, dynamic: tuple[SSAValue, ...], mask: SSAValue | None, block: Block) -> SSAValue | None:
        """`mask` and every known condition about the given indices; emits what combines them."""
        if not dynamic or not self._known:
            return mask
        about = set().union(*(_slice(value) for value in dynamic))
        for condition, values in self._known:
            if about.isdisjoint(values) or condition is mask:
                continue
            if mask is None:
                mask = condition
            else:
                both = arith.AndIOp.create(operands=(mask, condition), result_types=(i1,))
                block.add_op(both)
                mask = both.results[0]
        return mask


def _slice(value: SSAValue) -> set[SSAValue]:
    """What a value is computed from, down to loads and block arguments; constants tell nothing."""
    found: set[SSAValue] = set()
    front = [value]
    for _ in range(_DEPTH):
        following: list[SSAValue] = []
        for each in front:
            owner = each.owner
            if each in found or isinstance(owner, arith.ConstantOp):
                continue
            found.add(each)
            if isinstance(owner, Operation) and not isinstance(owner, kernel.LoadOp) and not owner.regions:
                following.extend(owner.operands)
        if not following:
            break
        front = following
    return found


def zero_of(type_: Attribute) -> Attribute | None:
    """The attribute of a zero; None for types of which arith has no constants."""
    if isinstance(type_, IntegerType):
        return IntegerAttr(0, type_)
    return FloatAttr(0.0, type_) if isinstance(type_, BFloat16Type | Float16Type | Float32Type | Float64Type) else None
