"""Kernel and host passes keep what a program computes: each stage is run by the interpreter and compared with the loop
level. The interpreter also checks bounds, lifetimes, undefined memory and iterations that meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductile.backends.reference.errors import RaceError

from .random_programs import random_program
from .stages import check_stages

PROGRAMS = Path(__file__).parents[2] / "filecheck" / "lowering" / "loop_to_kernel.mlir"
MORE = Path(__file__).parent / "Inputs" / "programs.mlir"
SEEDS = range(24)
#: a program without an answer of its own: any of the values that are stored at one place may stay
MEETING = ("meet", "cuda:90")


def _parts() -> list[str]:
    return [part for file in (PROGRAMS, MORE) for part in file.read_text().split("// -----")]


def _name(part: str) -> str:
    return part.partition("func.func @")[2].partition("(")[0]


def _cases() -> list[tuple[str, str]]:
    return [(part, target) for part in _parts() for target in ("cpp", "cuda:90") if (_name(part), target) != MEETING]


@pytest.mark.rotates(3)
@pytest.mark.parametrize(("part", "target"), _cases(), ids=lambda each: _name(each) or each)
def test_each_stage_keeps_the_answer(part: str, target: str) -> None:
    last = "kernel-choose-threads" if target == "cpp" else "kernel-tile"
    tiled = {last} if "loop." in part else set[str]()  # a copy of ATen is no kernel
    assert {"lower-loop-to-kernel"} | tiled <= check_stages(part, target=target)


def test_stores_that_meet_win_in_any_order_on_a_gpu() -> None:
    """As in eager, which does not say which element is left where indices are equal: the interpreter tells the race."""
    (part,) = (part for part in _parts() if _name(part) == MEETING[0])
    with pytest.raises(RaceError, match="one iteration writes place"):
        check_stages(part, target=MEETING[1])


@pytest.mark.parametrize("seed", SEEDS)
def test_stages_keep_the_answer_of_random_programs(seed: int) -> None:
    target = ("cpp", "cuda:90", "hip:gfx942")[seed % 3]
    between = (
        "lower-loop-to-kernel",
        "kernel-collapse",
        "kernel-tile",
        "kernel-stage-blocks",
        "kernel-spill",
        "host-free",
    )
    check_stages(random_program(seed), between, target)
