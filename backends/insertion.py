"""The option `insert`: passes added to a pipeline by text, such as `{"after:loop-fuse": "my-pass{n=2}"}`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.passes import ModulePass

from ..errors import UserError
from ..lowering.levels import mismatch, stages_of_pass
from ..lowering.registry import nearest, parse_passes
from .torch_bisector import is_refused


def insert_passes(passes: Sequence[ModulePass], insert: Mapping[str, str]) -> list[ModulePass]:
    """`passes` with more behind or in front of the named ones.

    Raises UserError for a place that is not `after:PASS` or `before:PASS` with a pass of the pipeline, and for a pass
    whose level is not that of the IR there.
    """
    result = list(passes)
    for place, text in insert.items():
        side, _, name = place.partition(":")
        names = [p.name for p in result]
        if side not in ("after", "before") or name not in names:
            hint = nearest(name, names) or f"write after:PASS or before:PASS with one of: {_listed(names)}"
            raise UserError(f"cannot insert passes at {place!r}", hint)
        position = len(names) - 1 - names[::-1].index(name) + 1 if side == "after" else names.index(name)
        added = parse_passes(text)
        stage = _stage_at(result, position)
        _check_levels(added, stage, place, passes)
        result[position:position] = [each for each in added if not is_refused(each, stage)]
    return result


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def _stage_at(passes: Sequence[ModulePass], position: int) -> int | None:
    """Stage of the IR in front of the pass at a position: what the last pass left, or the next one takes."""
    before = [stages[1] for p in passes[:position] if (stages := stages_of_pass(p)) is not None]
    behind = [stages[0] for p in passes[position:] if (stages := stages_of_pass(p)) is not None]
    return before[-1] if before else behind[0] if behind else None


def _check_levels(added: Sequence[ModulePass], stage: int | None, place: str, passes: Sequence[ModulePass]) -> None:
    for each in added:
        found = None if stage is None else mismatch(each, stage)
        stages = stages_of_pass(each)
        if found is not None and stages is not None:
            fitting = [p.name for p in passes if stages_of_pass(p) == (stages[0], stages[0])]
            hint = f"for its level: after:PASS with one of: {_listed(fitting)}" if fitting else found[1]
            raise UserError(f"cannot insert at {place!r}: {found[0]}", hint)
        stage = stages[1] if stages is not None else stage
