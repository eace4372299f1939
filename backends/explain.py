"""`inductile.explain(fn)(*inputs)`: what was compiled, what was fused and what was not, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..passes.remarks import Remark, collecting
from .compiled import REPORTS, GraphReport


@dataclass(frozen=True)
class Explanation:
    """Reports of the graphs that were compiled and the remarks that passes made."""

    reports: tuple[GraphReport, ...]
    remarks: tuple[Remark, ...]
    result: Any

    def __str__(self) -> str:
        lines: list[str] = []
        for report in self.reports:
            lines.append(str(report))
            lines += [f"  kernel    {name}: launched {n} times" for name, n in report.kernels.items()]
            lines += [f"  ATen call {name}: {n} times" for name, n in report.aten_calls.items()]
        lines += [str(remark) for remark in self.remarks]
        return "\n".join(lines) if lines else "nothing was compiled"


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
