"""The order that memory demands of steps, against the order of all pairs that conflict."""

from __future__ import annotations

import random

import pytest

from inductile.passes.analysis.memory_order import MemoryOrder, Touched


def random_step(draw: random.Random) -> Touched[int]:
    used = frozenset(draw.sample(range(5), draw.randrange(4)))
    return Touched(used, frozenset(memory for memory in used if draw.random() < 0.4))


@pytest.mark.parametrize("seed", range(50))
def test_what_conflicts_is_ordered_and_nothing_else(seed: int) -> None:
    draw = random.Random(seed)
    steps = [random_step(draw) for _ in range(12)]
    order = MemoryOrder[int, int]()
    before: list[set[int]] = []
    for number, step in enumerate(steps):
        direct = order.visit(number, step)
        assert all(steps[earlier].conflicts(step) for earlier in direct)
        before.append(direct.union(*(before[earlier] for earlier in direct)))
    for number, step in enumerate(steps):
        assert {k for k in range(number) if steps[k].conflicts(step)} <= before[number]
