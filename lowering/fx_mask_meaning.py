"""What a mask of attention means for all sizes that are symbols: visible, causal, or with the own position in sight."""

from __future__ import annotations

import torch
from torch.fx import Node

from ..dialects.sym import Ranges, symbol
from .fx_mask_floats import visibility
from .fx_mask_terms import TRUE, All, Index, Term, Terms, UnknownTermError, expression, negated, stretched, truth_of


def _term(mask: Node, is_hiding: bool, diagonal: bool = False) -> tuple[Term, Index, Index]:
    """What an element of a mask means, its index and the sizes; on the diagonal, the column is the row.

    UnknownTermError, with the term that is in the way, for what is no mask of truths, nor of 0 and what hides.
    """
    value = mask.meta["example_value"]
    is_added = value.dtype.is_floating_point and not is_hiding
    if not (is_added or value.dtype is torch.bool) or value.dim() < 2:
        raise UnknownTermError("it is no matrix of truths")
    shape = tuple(map(expression, value.shape))
    if diagonal and shape[-1] is not shape[-2]:
        raise UnknownTermError("it is no square")
    axes = tuple((f"i{k}", size) for k, size in enumerate(shape))
    terms = Terms(lambda: ranges, takes_any=diagonal)
    ranges = Ranges.of_axes(axes, Ranges({name: (0, None) for size in shape for name in size.free_symbols}))
    index = tuple(symbol(name) for name, _ in axes)
    if diagonal:
        index = (*index[:-1], index[-2])
    elements = visibility(terms, mask, value.dtype) if is_added else terms.of(mask)
    term = truth_of(terms, stretched(elements, len(shape))(index))
    return negated(terms, term) if is_hiding else term, index, shape


def shows_diagonal(mask: Node, is_hiding: bool = False) -> bool:
    """Whether each row of a square sees the column of its own number, for all sizes; UnknownTermError as `meaning`."""
    return _term(mask, is_hiding, diagonal=True)[0] == TRUE


def meaning(mask: Node, is_hiding: bool = False) -> str:
    """ "visible" or "causal", with `is_hiding` of a mask whose truths stand for what is hidden.

    UnknownTermError, with the term that is in the way, for any other mask.
    """
    term, index, shape = _term(mask, is_hiding)
    if term == TRUE:
        return "visible"
    rows, columns = index[-2:]
    if isinstance(term, All) and term.conditions == (rows - columns,) and shape[-2] is shape[-1]:
        return "causal"
    found = " and ".join(f"{each} >= 0" for each in term.conditions) if isinstance(term, All) else "nothing is visible"
    raise UnknownTermError(f"it means {found}")
