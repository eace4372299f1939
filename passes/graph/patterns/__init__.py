"""The patterns that `graph-match-patterns` knows."""

from __future__ import annotations

import difflib

from .... import extensions
from ....errors import UserError
from .._pattern import Pattern, either
from .attention import ATTENTION
from .copies import CAT_OF_PARTS, EMBEDDING_OF_RANGE, SLICE_OF_CAT
from .epilogues import ADDMM_GELU, ADDMM_RELU
from .grouped_heads import GROUPED_HEADS, GROUPED_HEADS_CUDNN, GROUPED_HEADS_FLASH
from .products import ADDMM, SUM_OF_PRODUCTS

__all__ = ["PATTERNS", "Pattern", "chosen_patterns", "either", "register_pattern"]

#: in the order in which they are tried
PATTERNS: list[Pattern] = [
    ATTENTION,
    GROUPED_HEADS,
    GROUPED_HEADS_CUDNN,
    GROUPED_HEADS_FLASH,
    SUM_OF_PRODUCTS,
    ADDMM,
    ADDMM_RELU,
    ADDMM_GELU,
    SLICE_OF_CAT,
    CAT_OF_PARTS,
    EMBEDDING_OF_RANGE,
]
_OWN = frozenset(pattern.name for pattern in PATTERNS)


def register_pattern(pattern: Pattern) -> None:
    """Make a pattern known in this process, as a plugin file does. UserError when the name is that of one of ours.

    It takes the place of one that was registered under its name before: a file may be loaded again.
    """
    if pattern.name in _OWN | {"exact", "all", "none"}:
        raise UserError(f"the pattern name {pattern.name!r} is taken", "give the plugin's pattern another name")
    extensions.add("inductile.patterns", pattern.name, pattern)
    PATTERNS[:] = [known for known in PATTERNS if known.name != pattern.name] + [pattern]


def chosen_patterns(text: str) -> list[Pattern]:
    """The patterns of a list such as "exact,attention". UserError for a name that no pattern has."""
    names = {name.strip() for name in text.split(",") if name.strip()}
    known = {pattern.name for pattern in PATTERNS}
    for name in names - known - {"exact", "all", "none"}:
        close = difflib.get_close_matches(name, [*known, "exact", "all", "none"], n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: exact, all, none, {', '.join(sorted(known))}"
        raise UserError(f"unknown pattern {name!r}", hint)
    return [
        pattern
        for pattern in PATTERNS
        if "all" in names or pattern.name in names or ("exact" in names and pattern.is_exact)
    ]
