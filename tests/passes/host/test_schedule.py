"""Orders of steps in which less memory is alive: what depends on something stays behind it, and no peak rises."""

from __future__ import annotations

import random

import pytest

from inductile.passes.analysis.memory_order import Touched
from inductile.passes.host._schedule import Schedule, Step, lower_peak


def step(makes: set[int], uses: set[int], writes: set[int], fixed: bool = False, is_random: bool = False) -> Step:
    """A step that makes, uses and writes memory; what it makes counts as all three."""
    return Step(frozenset(makes), Touched(frozenset(uses | makes), frozenset(writes | makes)), fixed, is_random)


def random_schedule(seed: int) -> Schedule:
    """Steps that make memory, use some of what was made or given before, and write to a little of it."""
    draw = random.Random(seed)
    size = {number: draw.choice([1, 4, 16, 64]) * 1000 for number in range(draw.randrange(4))}
    steps: list[Step] = []
    for _ in range(draw.randrange(2, 24)):
        there = sorted(size)
        uses = set(draw.sample(there, min(len(there), draw.randrange(4))))
        writes = {number for number in uses if draw.random() < 0.2}
        makes: set[int] = set()
        if draw.random() < 0.7:
            size[len(size)] = draw.choice([1, 4, 16, 64]) * 1000
            makes = {len(size) - 1}
        fixed, is_random = draw.random() < 0.1, draw.random() < 0.3
        steps.append(step(makes, uses, writes, fixed, is_random))
    returned = frozenset(draw.sample(sorted(size), len(size) // 3))
    return Schedule(steps, size, returned)


def bytes_by_running(schedule: Schedule) -> list[int]:
    """Bytes at each step, counted by running: given memory from the start, all until the last use."""
    made = {number for step in schedule.steps for number in step.makes}
    used = {number for step in schedule.steps for number in step.touched.used} | schedule.returned
    alive = {number for number in schedule.size if number not in made and number in used}
    found: list[int] = []
    for position, step in enumerate(schedule.steps):
        alive |= step.makes
        found.append(sum(schedule.size[number] for number in alive))
        later = set(schedule.returned).union(*(after.touched.used for after in schedule.steps[position + 1 :]))
        alive &= later
    return found


@pytest.mark.parametrize("seed", range(200))
def test_what_depends_stays_behind_and_the_peak_falls(seed: int) -> None:
    schedule = random_schedule(seed)
    before, steps = schedule.peak, list(schedule.steps)
    assert schedule.alive == bytes_by_running(schedule)
    for source in range(len(steps)):
        reach = {*schedule.reach(source, -1), source, *schedule.reach(source, 1)}
        assert reach == {target for target in range(len(steps)) if schedule.can_reach(source, target)}
    moves = lower_peak(schedule, 32)
    assert schedule.alive == bytes_by_running(schedule)
    assert sorted(map(id, schedule.steps)) == sorted(map(id, steps))
    assert schedule.floor <= schedule.peak
    assert schedule.peak < before if moves else schedule.steps == steps
    place = {id(step): position for position, step in enumerate(schedule.steps)}
    for position, step in enumerate(steps):
        for other in steps[position + 1 :]:
            assert step.may_swap(other) or place[id(step)] < place[id(other)]
    assert [step for step in schedule.steps if step.is_random] == [step for step in steps if step.is_random]
    for step in (each for each in steps if each.is_fixed):
        assert set(schedule.steps[: place[id(step)]]) == set(steps[: steps.index(step)])


def test_the_step_at_the_peak_moves_no_farther_than_it_helps() -> None:
    """It makes 8 of 4 beside 7 that is given: behind the step that frees 6 of it is as good as behind all."""
    size = {0: 4000, 1: 6000, 2: 1000, 3: 8000}
    big = step({3}, {0}, set())
    frees = [step(set(), {number}, set()) for number in (1, 2)]
    schedule = Schedule([big, *frees, *frees], size, frozenset([3]))
    assert schedule.peak == 19000
    assert lower_peak(schedule, 8)
    assert schedule.peak == 12000


def test_a_plateau_is_lowered_by_many_moves_at_once() -> None:
    """Each layer's gradient of 2 becomes a result of 4, and only 2 that was saved is freed: no single cast is to blame.
    Behind the layers with large weights come those with large activations, 8 each."""
    layers = range(0, 60, 3)
    size = {base + k: 1000 * count for base in layers for k, count in enumerate((2, 2, 4))}
    steps: list[Step] = []
    for saved, gradient, result in ((base, base + 1, base + 2) for base in layers):
        steps.append(step({gradient}, {saved}, set()))
        steps.append(step({result}, {gradient}, set()))
    for activation in range(100, 110):
        size[activation] = 8000
        steps.append(step(set(), {activation}, set()))
    schedule = Schedule(steps, size, frozenset(base + 2 for base in layers))
    assert schedule.peak == 162000
    assert lower_peak(schedule, 8)
    assert schedule.peak <= 124000
