"""Values in other strides: which readers do not care, and what becomes of the types of views."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator

from ...dialects.aten import AtenOp, TensorType
from ...dialects.sym import ONE, ZERO, Expr
from ._recompute import RecomputeClass, recompute_class
from ._replacement import type_of
from ._rules import permutation

Strides = tuple[Expr, ...]
_ATTENTION = "_scaled_dot_product"


def restrided(value: SSAValue, strides: Strides) -> list[tuple[SSAValue, Strides]] | str:
    """The values that change when `value` gets other strides, itself and views of it, each with its new ones.

    Text says which reader is in the way: one that is no nest and no attention, which read rows wherever they lie.
    """
    found = [(value, strides)]
    for use in value.uses:
        user = use.operation
        if user.has_trait(IsTerminator):
            return "the function returns it"
        kind = recompute_class(user)
        if kind is RecomputeClass.FREE:
            new = _of_view(user, type_of(value), strides)
            if new is None or len(user.results) != 1:
                return f"{user.name} of it would be no view"
            inner = restrided(user.results[0], new)
            if isinstance(inner, str):
                return inner
            found += inner
        elif kind in (RecomputeClass.HEAVY, RecomputeClass.NEVER) and not _reads_rows(user, strides):
            return f"{user.name} reads it"
    return found


def retype(values: Sequence[tuple[SSAValue, Strides]]) -> None:
    """Give values the strides that `restrided` has found for them."""
    for value, strides in values:
        old = type_of(value)
        Rewriter.replace_value_with_new_type(value, TensorType.get(old.shape, old.element, strides, old.device))


def _reads_rows(op: Operation, strides: Strides) -> bool:
    return isinstance(op, AtenOp) and op.packet.startswith(_ATTENTION) and strides[-1] is ONE


def _of_view(op: Operation, source: TensorType, strides: Strides) -> Strides | None:
    """The strides of a view of a tensor that gets other strides; None where it would have none, or nobody knows."""
    assert isinstance(op, AtenOp)
    order = permutation(op)
    if order is not None:
        return tuple(strides[d] for d in order)
    rule = _VIEWS.get(op.packet)
    return None if rule is None else rule(op, source, strides)


def _view(op: AtenOp, source: TensorType, strides: Strides) -> Strides | None:
    """Sizes that cut, or join, only dimensions that lie in memory as one."""
    left = list(type_of(op.results[0]).shape)
    found: list[Expr] = []
    for size, step in _blocks(source.shape, strides):
        taken = next((n for n in range(1, len(left) + 1) if math.prod(left[:n], start=ONE) is size), None)
        if taken is None:
            return None
        found += _dense(left[:taken], step)
        del left[:taken]
    return (*found, *[ONE] * len(left)) if all(size is ONE for size in left) else None


def _blocks(shape: Sequence[Expr], strides: Strides) -> list[tuple[Expr, Expr]]:
    """Dimensions that lie in memory as one, as one: its size, and the step between its elements."""
    blocks: list[tuple[Expr, Expr]] = []
    for size, step in zip(shape, strides, strict=True):
        if blocks and (size is ONE or blocks[-1][1] is size * step):
            blocks[-1] = (blocks[-1][0] * size, blocks[-1][1] if size is ONE else step)
        else:
            blocks.append((size, step))
    return blocks


def _dense(sizes: Sequence[Expr], step: Expr) -> Iterator[Expr]:
    return (step * math.prod(sizes[d + 1 :], start=ONE) for d in range(len(sizes)))


def _slice(op: AtenOp, source: TensorType, strides: Strides) -> Strides:
    dim = op.arg("dim") % len(strides)
    return (*strides[:dim], strides[dim] * op.arg("step"), *strides[dim + 1 :])


def _unsqueeze(op: AtenOp, source: TensorType, strides: Strides) -> Strides:
    dim = op.arg("dim") % (len(strides) + 1)
    step = source.shape[dim] * strides[dim] if dim < len(strides) else ONE
    return (*strides[:dim], step, *strides[dim:])


def _select(op: AtenOp, source: TensorType, strides: Strides) -> Strides:
    dim = op.arg("dim") % len(strides)
    return (*strides[:dim], *strides[dim + 1 :])


def _expand(op: AtenOp, source: TensorType, strides: Strides) -> Strides:
    new = type_of(op.results[0]).shape
    missing = len(new) - len(strides)
    old = (*[ZERO] * missing, *strides)
    sizes = (*[ONE] * missing, *source.shape)
    return tuple(
        step if a is b and d >= missing else ZERO for d, (a, b, step) in enumerate(zip(sizes, new, old, strict=True))
    )


_VIEWS: dict[str, Callable[[AtenOp, TensorType, Strides], Strides | None]] = {
    "view": _view, "_unsafe_view": _view, "slice": _slice, "unsqueeze": _unsqueeze, "select": _select,
    "expand": _expand,
}  # fmt: skip
