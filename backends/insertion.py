"""The option `insert`: passes added to a pipeline by text, such as `{"after:loop-fuse": "my-pass{n=2}"}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.passes import ModulePass

from ..errors import UserError
from ..lowering.registry import nearest, parse_passes


def insert_passes(passes: Sequence[ModulePass], insert: Mapping[str, str]) -> list[ModulePass]:
    """`passes` with more behind or in front of the named ones.

    Raises UserError for a place that is not `after:PASS` or `before:PASS` with a pass of the pipeline.
    """
    result = list(passes)
    for place, text in insert.items():
        side, _, name = place.partition(":")
        names = [p.name for p in result]
        if side not in ("after", "before") or name not in names:
            hint = nearest(name, names) or "write after:PASS or before:PASS"
            raise UserError(f"cannot insert passes at {place!r}", hint)
        position = len(names) - 1 - names[::-1].index(name) + 1 if side == "after" else names.index(name)
        result[position:position] = parse_passes(text)
    return result
