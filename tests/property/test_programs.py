"""A few hundred random programs against eager, at each commit a third of the seeded ones; `run.py` runs thousands."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .. import eager_compare
from ..rotation import part
from . import programs


def check(program: programs.Program, name: str, dynamic: bool | None = None) -> None:
    options, reference = programs.compile_options(program), programs.reference(program)
    faults = eager_compare.compare(program.run, program.inputs, dynamic=dynamic, options=options, reference=reference)
    assert not faults, f"{name}: {faults}\n{program}"


@pytest.mark.parametrize("block", part(range(12), 3))
def test_seeded_programs(block: int) -> None:
    for seed in range(100_000 + 10 * block, 100_000 + 10 * (block + 1)):
        check(programs.seeded_program(seed), f"seed {seed}")


@pytest.mark.parametrize(
    "seed, wide",
    [(947, False), (300_167, True), (300_693, True)],
    ids=["written where elements overlap", "sums in float16", "written through windows"],
)
def test_seeds_that_differed(seed: int, wide: bool) -> None:
    check(programs.seeded_program(seed, wide=wide), f"seed {seed}")


@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(st.data())
def test_drawn_programs(data: st.DataObject) -> None:
    """Drawn by hypothesis, so that a failing program shrinks."""
    program = programs.random_program(lambda options: data.draw(st.sampled_from(list(options))), steps=6)
    check(program, "drawn")


@pytest.mark.parametrize("block", part(range(3), 3))
def test_dynamic_programs(block: int) -> None:
    for seed in range(200_000 + 10 * block, 200_000 + 10 * (block + 1)):
        check(programs.seeded_program(seed), f"seed {seed}", dynamic=True)
