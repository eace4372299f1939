"""What programs call to run bodies of higher-order operators: branches and loops on the host.

A body is a program: it takes one list of values, which it clears, and returns a list. Between two runs of a body the
values stay as they are; nothing is looked at but the predicate. Loops of files end after `most` steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ...errors import of_program
from ..limits import STEPS_OF_RUN, too_many_steps

Body = Callable[[list[Any]], list[Any]]
Layout = tuple[Sequence[int], Sequence[int], torch.dtype, torch.device]
"""Sizes, strides, dtype and device of a result that a loop fills row by row."""


def cond(predicate: Any, taken: Body, other: Body, operands: Sequence[Any]) -> list[Any]:
    """The results of one of two bodies."""
    return _own((taken if predicate else other)([*operands]), operands)


def invoke(body: Body, _: Any, *operands: Any) -> list[Any]:
    """The results of a body."""
    return _own(body([*operands]), operands)


def while_loop(
    condition: Body, body: Body, carried: Sequence[Any], additional: Sequence[Any], *, most: int | None = None
) -> list[Any]:
    """The carried values when the condition first says no."""
    values = [*carried]
    runs = 0
    while condition([*values, *additional])[0]:
        runs += 1
        _check(runs, most)
        values = body([*values, *additional])
    return _own(values, [*carried, *additional])


def while_loop_stack(
    condition: Body, body: Body, carried: Sequence[Any], additional: Sequence[Any], *, most: int | None = None
) -> list[Any]:
    """The carried values behind each run of the body, stacked; those of no run are the first ones, as torch has it."""
    values = [*carried]
    rows: list[list[Any]] = []
    while condition([*values, *additional])[0]:
        values = body([*values, *additional])
        rows.append(values)
        _check(len(rows), most)
    if not rows:
        return [torch.stack([each]) for each in carried]
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def scan(
    body: Body,
    init: Sequence[Any],
    xs: Sequence[torch.Tensor],
    additional: Sequence[Any],
    *,
    layouts: Sequence[Layout],
    most: int | None = None,
) -> list[Any]:
    """The carried values at the end, and of each run what else the body returns, as rows."""
    carry, count = [*init], len(init)
    stacked, targets = _stacked(layouts[count:], _length(xs, most))
    for row, target in zip(_rows(xs), targets, strict=True):
        results = body([*carry, *row, *additional])
        carry = results[:count]
        _fill(target, results[count:])
    return [*_own(carry, [*init, *xs, *additional]), *stacked]


def map_rows(
    body: Body,
    xs: Sequence[torch.Tensor],
    additional: Sequence[Any],
    *,
    layouts: Sequence[Layout],
    most: int | None = None,
) -> list[Any]:
    """What a body returns for each row: a scan that carries nothing."""
    return scan(body, (), xs, additional, layouts=layouts, most=most)


def associative_scan(
    body: Body,
    xs: Sequence[torch.Tensor],
    additional: Sequence[Any],
    *,
    layouts: Sequence[Layout],
    most: int | None = None,
) -> list[Any]:
    """Inclusive scan: the first row, and behind it each row combined with what was made of those before."""
    stacked, targets = _stacked(layouts, _length(xs, most))
    before: list[Any] = []
    for row, target in zip(_rows(xs), targets, strict=True):
        before = body([*before, *row, *additional]) if before else [*row]
        _fill(target, before)
    return stacked


def _check(runs: int, most: int | None) -> None:
    """Raise UserError for more runs of a body than a file may take."""
    if most is not None and runs * STEPS_OF_RUN > most:
        raise too_many_steps("the program", most)


def _length(xs: Sequence[torch.Tensor], most: int | None) -> int:
    """How many rows tensors have."""
    count = len(xs[0])
    if any(len(x) != count for x in xs):
        raise of_program(RuntimeError(f"a loop over the rows of tensors with {[len(x) for x in xs]} rows"))
    _check(count, most)
    return count


def _rows(xs: Sequence[torch.Tensor]) -> Iterator[tuple[torch.Tensor, ...]]:
    return zip(*(x.unbind(0) for x in xs), strict=True)


def _stacked(layouts: Sequence[Layout], count: int) -> tuple[list[Any], list[Sequence[torch.Tensor]]]:
    """Memory for results of so many runs, and for each run the rows that it fills."""
    wrong = next((size for size, *_ in layouts if tuple(size[:1]) != (count,)), None)
    if wrong is not None:
        raise of_program(RuntimeError(f"a loop runs {count} times, and its results are of sizes {list(wrong)}"))
    made = [torch.empty_strided(size, stride, dtype=dtype, device=device) for size, stride, dtype, device in layouts]
    return made, list(zip(*(each.unbind(0) for each in made), strict=True)) if made else [()] * count


def _fill(rows: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
    """Copy what a run of a body returns into the rows that it fills."""
    for row, result in zip(rows, results, strict=True):
        row.copy_(result)


def _own(results: list[Any], given: Sequence[Any]) -> list[Any]:
    """Results of which none is an argument or another result: who gets them may write over each."""
    seen = set(map(id, given))
    for number, result in enumerate(results):
        if id(result) in seen and isinstance(result, torch.Tensor):
            results[number] = result.clone()
        seen.add(id(result))
    return results


#: what runs a call whose bodies are programs, by the operator
RUNNERS: dict[str, Callable[..., list[Any]]] = {
    "higher_order::cond": cond,
    "higher_order::invoke_subgraph": invoke,
    "higher_order::while_loop": while_loop,
    "higher_order::while_loop_stack_output": while_loop_stack,
    "higher_order::scan": scan,
    "higher_order::map_impl": map_rows,
    "higher_order::associative_scan": associative_scan,
}
LOOPS = frozenset({while_loop, while_loop_stack, scan, map_rows, associative_scan})
STACKING = frozenset({scan, map_rows, associative_scan})
"""Those that are told the layouts of the results, for they make them."""
