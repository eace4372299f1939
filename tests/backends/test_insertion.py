"""The option `insert`: where passes go, and places that are wrong."""

from __future__ import annotations

import pytest

from inductile.backends.insertion import insert_passes
from inductile.errors import UserError
from inductile.lowering.pipeline import named_passes


def names(insert: dict[str, str]) -> list[str]:
    return [p.name for p in insert_passes(named_passes(), insert)]


def test_behind_the_last_and_in_front_of_the_first() -> None:
    plain = [p.name for p in named_passes()]
    assert plain.count("loop-cse") == 2
    behind = names({"after:loop-cse": "loop-fuse"})
    assert behind[len(plain) - plain[::-1].index("loop-cse")] == "loop-fuse"
    before = names({"before:loop-cse": "loop-fuse"})
    assert before[plain.index("loop-cse")] == "loop-fuse"


def test_several_at_one_place_and_around_a_lowering() -> None:
    plain = [p.name for p in named_passes()]
    found = names({"before:lower-aten-to-loop": "graph-cse,graph-dce", "after:lower-aten-to-loop": "loop-dce"})
    place = plain.index("lower-aten-to-loop")
    assert found[place : place + 4] == ["graph-cse", "graph-dce", "lower-aten-to-loop", "loop-dce"]


def test_kernels_and_their_program_are_of_one_level() -> None:
    assert "kernel-cse" in names({"after:host-reuse": "kernel-cse"})


@pytest.mark.parametrize(
    ("insert", "message"),
    [
        ({"after:loop-fus": "loop-dce"}, "did you mean 'loop-fuse'"),
        ({"behind:loop-fuse": "loop-dce"}, "cannot insert passes at 'behind:loop-fuse'"),
        ({"after:loop-fuse": "kernel-cse"}, "'kernel-cse' works on kernel and host IR and finds nothing in loop IR"),
        ({"after:graph-dce": "loop-dce"}, "for its level: after:PASS with one of: loop-eliminate-views, "),
        ({"after:lower-loop-to-kernel": "loop-dce"}, "'loop-dce' works on loop IR"),
    ],
)
def test_wrong_places_say_what_to_write(insert: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        names(insert)
