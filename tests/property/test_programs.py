"""A few hundred random programs against eager; `run.py` runs thousands."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .. import eager_compare
from . import programs


@pytest.mark.parametrize("block", range(12))
def test_seeded_programs(block: int) -> None:
    for seed in range(100_000 + 10 * block, 100_000 + 10 * (block + 1)):
        program = programs.seeded_program(seed)
        options = programs.compile_options(program)
        faults = eager_compare.compare(program.run, program.inputs, options=options)
        assert not faults, f"seed {seed}: {faults}\n{program}"


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
@given(st.data())
def test_drawn_programs(data: st.DataObject) -> None:
    """Drawn by hypothesis, so that a failing program shrinks."""
    program = programs.random_program(lambda options: data.draw(st.sampled_from(list(options))), steps=6)
    faults = eager_compare.compare(program.run, program.inputs, options=programs.compile_options(program))
    assert not faults, f"{faults}\n{program}"


@pytest.mark.parametrize("block", range(3))
def test_dynamic_programs(block: int) -> None:
    for seed in range(200_000 + 10 * block, 200_000 + 10 * (block + 1)):
        program = programs.seeded_program(seed)
        options = programs.compile_options(program)
        faults = eager_compare.compare(program.run, program.inputs, dynamic=True, options=options)
        assert not faults, f"seed {seed}: {faults}\n{program}"
