"""`inductile.explain(fn)(*inputs)`: what was compiled, what was fused and what was not, as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ..passes.common.library_call import LibraryCall
from ..passes.remarks import Remark, collecting
from ..records import dataclass
from .compiled import REPORTS, GraphReport


@dataclass(frozen=True)
class Explanation:
    """Reports of the graphs that were compiled and the remarks that passes made."""

    reports: tuple[GraphReport, ...]
    remarks: tuple[Remark, ...]
    result: Any

    def __str__(self) -> str:
        """Tables: what runs, then what passes say, in the order of the program's lines."""
        if not self.reports and not self.remarks:
            return "nothing was compiled"
        lines: list[str] = []
        for report in self.reports:
            runs = {"kernel": report.kernels, "ATen call": report.aten_calls, "once": report.once}
            rows = [
                (name, kind, str(times), together(report.lines.get(name, ())))
                for kind, those in runs.items()
                for name, times in those.items()
            ]
            lines += [str(report), *_table(("what runs", "kind", "times", "lines"), rows), ""]
            if report.products:
                titles = ("product or attention", "estimated us", "times", "line", "library kernel and why")
                lines += [*_table(titles, _library_rows(report.products)), ""]
        if self.remarks:
            told = Counter((r.location, r.pass_name, r.kind, _said(r)) for r in self.remarks)
            rows = [
                (_short(location), name, kind, said if times == 1 else f"{said} (x{times})")
                for (location, name, kind, said), times in sorted(told.items(), key=lambda row: _place(row[0][0]))
            ]
            lines += _table(("line", "pass", "", "what and why"), rows)
        return "\n".join(lines).rstrip()


_MOST_LINES = 6


def together(lines: Sequence[str]) -> str:
    """Lines of the user's in order, a file once: `model.py:17, 18; layers.py:3`."""
    files: dict[str, list[int]] = {}
    for file, number in sorted({_place(line) for line in lines}):
        files.setdefault(file, []).append(number)
    shown = [
        f"{file}:{', '.join(map(str, numbers[:_MOST_LINES]))}{', ...' if len(numbers) > _MOST_LINES else ''}"
        if numbers != [0]
        else file  # a module that has no lines
        for file, numbers in files.items()
    ]
    return "; ".join([*shown[:_MOST_LINES], *["..."] * (len(shown) > _MOST_LINES)])


def _library_rows(calls: Sequence[LibraryCall]) -> list[tuple[str, ...]]:
    """Equal calls of one line are one row."""
    rows = Counter(calls)
    return [
        (
            each.call, "-" if each.microseconds is None else f"{each.microseconds:.0f}", str(times),
            _short(each.location) or "-", each.kernel,
        )
        for each, times in rows.items()
    ]  # fmt: skip


def _said(remark: Remark) -> str:
    figures = ", ".join(f"{name} {value}" for name, value in remark.figures.items())
    hint = f" ({remark.suggestion})" if remark.suggestion else ""
    return f"{remark.about}: {remark.reason}{hint}{f'; {figures}' if figures else ''}".removeprefix(": ")


def _place(location: str) -> tuple[str, int]:
    file, _, line = location.rpartition(":")
    return (file, int(line)) if line.isdigit() else (location, 0)


def _short(location: str) -> str:
    return location.rpartition("/")[2]


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest entry; the last one is free."""
    widths = [max(len(row[k]) for row in (titles, *rows)) for k in range(len(titles) - 1)]
    rows = (titles, *rows)
    return [("  " + "  ".join(f"{c:{w}s}" for c, w in zip(row, (*widths, 0), strict=True))).rstrip() for row in rows]


def explain(
    function: Callable[..., Any], options: Mapping[str, Any] | None = None, dynamic: bool | None = None
) -> Callable[..., Explanation]:
    """A callable that compiles `function` afresh for its inputs, runs it once, and returns an `Explanation`.

    Compiled code of other functions is dropped, as `torch.compiler.reset` does.
    """

    def run(*args: Any, **kwargs: Any) -> Explanation:
        torch.compiler.reset()
        before = list(REPORTS)
        compiled = torch.compile(function, backend="inductile", dynamic=dynamic, options=dict(options or {}))
        with collecting() as remarks:
            result = compiled(*args, **kwargs)
        reports = tuple(r for r in REPORTS if all(r is not old for old in before))
        return Explanation(reports, tuple(remarks), result)

    return run
