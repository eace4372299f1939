"""What kind of mask it is whose elements are known: causal, a window, a prefix, documents, padding."""

from __future__ import annotations

from collections.abc import Iterator

import torch

VISIBLE, CAUSAL = "visible", "causal"
_UNKNOWN = "it is no mask of a known kind"


def kind_of(visible: torch.Tensor) -> str:
    """ "visible", "causal", or in words what truths say who sees whom; the last two dimensions are rows and columns."""
    if bool(visible.all()):
        return VISIBLE
    first = _one_for_all(visible)
    if first is None:
        return "it differs between batches or heads"
    rows, columns = first.shape
    row, column = torch.arange(rows)[:, None], torch.arange(columns)[None, :]
    for text, expected in _candidates(first, row, column):
        if torch.equal(first, expected.expand(rows, columns)):
            return text
    hidden = int((~first.any(-1)).sum())
    return f"{hidden} rows see nothing" if hidden else _UNKNOWN


def first_keys(visible: torch.Tensor) -> int | None:
    """How many keys all rows see, where these are the first and nobody sees others: padding by length."""
    first = _one_for_all(visible)
    if first is None or not bool((first == first[:1]).all()):
        return None
    count = int(first[0].sum())
    return count if count and bool(first[0, :count].all()) else None


def _one_for_all(visible: torch.Tensor) -> torch.Tensor | None:
    """The matrix that is the same for all batches and heads."""
    matrices = visible.reshape(-1, *visible.shape[-2:])
    return matrices[0] if bool((matrices == matrices[:1]).all()) else None


def _candidates(first: torch.Tensor, row: torch.Tensor, column: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Kinds, with the masks that they would be for what the first row and column see."""
    rows, columns = first.shape
    causal = column <= row
    seen, seeing = int(first[0].sum()), int(first[:, 0].sum())
    widest = int(first.sum(-1).max())
    if rows == columns:
        yield CAUSAL, causal
    else:
        yield "it is causal from the bottom right", column <= row + columns - rows
        yield "it is causal, but no square", causal
    if (count := first_keys(first)) is not None:
        yield f"the first {count} of {columns} keys are seen", column < count
    yield f"it is a window of {widest} positions", causal & (row - column < widest)
    yield f"it is a window of {seen - 1} positions to both sides", (row - column).abs() < seen
    yield f"it is causal behind a prefix of {seen} positions", causal | (column < seen)
    if rows == columns and seen and not columns % seen:
        yield f"it is {columns // seen} documents of {seen} positions", row // seen == column // seen
    if rows == columns and seeing and not columns % seeing:
        yield (
            f"it is {columns // seeing} causal documents of {seeing} positions",
            causal & (row // seeing == column // seeing),
        )
