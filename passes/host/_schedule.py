"""The steps of a program as a schedule: what may change places, and how much memory is alive at each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ...records import dataclass
from ..analysis.memory_order import Touched


@dataclass(eq=False)
class Step:
    """One launch or call. Memory is named by numbers.

    makes:      memory that it allocates
    touched:    all memory that it reads, writes or makes
    is_fixed:   whether nothing may move past it
    is_random:  whether it may draw random numbers: all that do stay in order, others may move past
    """

    makes: frozenset[int]
    touched: Touched[int]
    is_fixed: bool = False
    is_random: bool = False

    def may_swap(self, other: Step) -> bool:
        """Whether the two may run in either order."""
        if self.is_fixed or other.is_fixed or (self.is_random and other.is_random):
            return False
        return not self.touched.conflicts(other.touched)


@dataclass
class Schedule:
    """Steps in order, and bytes by memory.

    size:   bytes of each memory that counts
    first:  step that makes it; -1 for what is there from the start
    last:   last step that uses it; the number of steps for what is returned
    alive:  bytes while each step runs: what it makes is there before, what it uses last goes away behind it
    """

    steps: list[Step]
    size: dict[int, int]
    returned: frozenset[int] = frozenset()
    first: dict[int, int] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    alive: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.update()

    @property
    def peak(self) -> int:
        """The most bytes at once."""
        return max(self.alive, default=0)

    @property
    def floor(self) -> int:
        """Bytes below which no order gets: what is there at the start, or returned at the end."""
        start = sum(size for memory, size in self.size.items() if self.first[memory] < 0 <= self.last[memory])
        return max(start, sum(self.size.get(memory, 0) for memory in self.returned))

    def update(self) -> None:
        """Find lives anew, from the order of the steps."""
        self.first = dict.fromkeys(self.size, -1)
        self.last = dict.fromkeys(self.size, -1)
        for position, step in enumerate(self.steps):
            for memory in step.touched.used & self.size.keys():
                self.last[memory] = position
            for memory in step.makes & self.size.keys():
                self.first[memory] = position
        changes = [0] * (len(self.steps) + 1)
        for memory, size in self.size.items():
            if memory in self.returned:
                self.last[memory] = len(self.steps)
            if self.last[memory] >= 0:
                changes[max(self.first[memory], 0)] += size
                changes[min(self.last[memory] + 1, len(self.steps))] -= size
        total, self.alive = 0, []
        for change in changes[:-1]:
            total += change
            self.alive.append(total)

    def move(self, source: int, target: int) -> None:
        """Take a step out and put it in so that it is at `target`."""
        self.steps.insert(target, self.steps.pop(source))
        self.update()

    def reach(self, source: int, direction: int) -> Sequence[int]:
        """The positions that a step may move to in a direction, nearest first."""
        step, found = self.steps[source], []
        position = source + direction
        while 0 <= position < len(self.steps) and step.may_swap(self.steps[position]):
            found.append(position)
            position += direction
        return found

    def can_reach(self, source: int, target: int) -> bool:
        """Whether a step may move to a position."""
        step, direction = self.steps[source], 1 if target > source else -1
        passed = range(source + direction, target + direction, direction)
        return all(step.may_swap(self.steps[position]) for position in passed)

    def gain(self, position: int) -> int:
        """Bytes that the step at a position makes, less those that go away behind it."""
        step = self.steps[position]
        made = sum(self.size.get(memory, 0) for memory in step.makes)
        gone = sum(self.size[m] for m in step.touched.used if self.last.get(m) == position and m not in step.makes)
        return made - gone


#: positions that are tried, of those where a step would find little enough alive
_NEAREST = 8
#: steps on either side of the peak that may make room for it
_AROUND = 64
#: the part of a peak, one of so many, that a move has to save
_WORTH = 1000


def lower_peak(schedule: Schedule, most: int) -> list[tuple[int, int]]:
    """Move steps while that lowers the peak; the moves (from, to), `most` at most.

    The step at the peak moves to where less is alive: earlier, when it makes less than goes away behind it, or later.
    Or a step that only adds to the peak moves behind it, or one that takes away moves in front. Before that,
    `defer_growth` takes down what no single move does: a plateau, as of a backward pass whose gradients grow by casts.
    """
    moves = defer_growth(schedule)
    most += len(moves)
    while len(moves) < most:
        peak = schedule.peak
        best = min(_moves(schedule), key=lambda found: (found[0], abs(found[1] - found[2])), default=(peak, 0, 0))
        if best[0] > peak - peak // _WORTH or best[0] >= peak:
            break
        schedule.move(*best[1:])
        moves.append(best[1:])
    return moves


def defer_growth(schedule: Schedule) -> list[tuple[int, int]]:
    """Let all steps that only turn memory into larger results wait, where that lowers the peak; the moves.

    Those that do not raise it again go back, the last ones first: there less is alive.
    """
    before, order = schedule.peak, list(schedule.steps)
    growing = [step for position, step in enumerate(order) if _only_grows(schedule, position)]
    for step in reversed(growing):
        position = schedule.steps.index(step)
        reach = schedule.reach(position, 1)
        if reach:
            schedule.move(position, reach[-1])
    lowest = schedule.peak
    if lowest >= before - before // _WORTH:
        schedule.steps = order
        schedule.update()
        return []
    for step in reversed(growing):
        source, target = schedule.steps.index(step), _home(schedule, order, step)
        if target < source and schedule.can_reach(source, target) and _result(schedule, source, target)[0] <= lowest:
            schedule.move(source, target)
    places = {id(step): position for position, step in enumerate(order)}
    found = ((places[id(step)], position) for position, step in enumerate(schedule.steps) if step in growing)
    return [(source, target) for source, target in found if source < target]


def _only_grows(schedule: Schedule, position: int) -> bool:
    step = schedule.steps[position]
    return not step.is_fixed and schedule.gain(position) > 0 and len(step.makes) > 0 and step.makes <= schedule.returned


def _home(schedule: Schedule, order: Sequence[Step], step: Step) -> int:
    """Where a step stands behind the one that it stood behind."""
    position = order.index(step)
    return schedule.steps.index(order[position - 1]) + 1 if position else 0


def _moves(schedule: Schedule) -> list[tuple[int, int, int]]:
    """(peak, from, to) of the moves that may lower the peak where it is first reached."""
    position = schedule.alive.index(schedule.peak)
    found: list[tuple[int, int, int]] = []
    for direction in (-1, 1):
        reach = schedule.reach(position, direction)
        if reach:
            found.append(_nearest(schedule, position, reach))
        other = position + direction
        for _ in range(_AROUND):
            if not 0 <= other < len(schedule.steps) or schedule.steps[other].is_fixed:
                break
            if direction * schedule.gain(other) < 0 and schedule.can_reach(other, position):
                found.append(_result(schedule, other, position))
            other += direction
    return found


def _nearest(schedule: Schedule, source: int, reach: Sequence[int]) -> tuple[int, int, int]:
    """The move to where least is alive, or to the nearest place that is as good."""
    best = _result(schedule, source, min(reach, key=lambda target: schedule.alive[target]))
    enough = [target for target in reach if schedule.alive[target] <= best[0]]
    nearer = (_result(schedule, source, target) for target in enough[:_NEAREST])
    return next((found for found in nearer if found[0] <= best[0]), best)


def _result(schedule: Schedule, source: int, target: int) -> tuple[int, int, int]:
    steps = list(schedule.steps)
    steps.insert(target, steps.pop(source))
    return Schedule(steps, schedule.size, schedule.returned).peak, source, target
