"""`--pass-statistics`: what each pass did to the number of ops, and how many rewrites it made and refused."""

from __future__ import annotations

from collections import Counter as Tally
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..records import dataclass
from .counters import active
from .manager import Instrumentation

_RULE = "===" + "-" * 73 + "==="
_TITLE = "... Pass statistics report ..."


@dataclass(frozen=True)
class Row:
    """Figures of one pass: ops by dialect behind it, and (asked, allowed) of each counter while it ran."""

    name: str
    ops: dict[str, int]
    change: int
    rewrites: dict[str, tuple[int, int]]


@dataclass
class Statistics(Instrumentation):
    """Rows in the order of the passes. Rewrites are seen only inside `counters.counting()`."""

    rows: list[Row] = field(default_factory=list)
    _total: int = 0
    _asked: dict[str, tuple[int, int]] = field(default_factory=dict)

    def before_run(self, module: ModuleOp) -> None:
        """Count the input."""
        self._add("(input)", module, {})

    def before_pass(self, done: int, module_pass: ModulePass, module: ModuleOp) -> None:
        """Note how often counters were asked so far."""
        self._asked = {name: (c.asked, c.allowed) for name, c in active().items()}

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Count behind the pass."""
        rewrites: dict[str, tuple[int, int]] = {}
        for name, counter in active().items():
            asked, allowed = self._asked.get(name, (0, 0))
            if counter.asked > asked:
                rewrites[name] = (counter.asked - asked, counter.allowed - allowed)
        self._add(module_pass.name, module, rewrites)

    def _add(self, name: str, module: ModuleOp, rewrites: dict[str, tuple[int, int]]) -> None:
        ops = Tally(op.name.partition(".")[0] for op in module.walk())
        del ops["builtin"]
        total = sum(ops.values())
        self.rows.append(Row(name, dict(sorted(ops.items())), total - self._total, rewrites))
        self._total = total

    def text(self) -> str:
        """The statistics of each pass as MLIR prints them: `(S) number name - description`."""
        lines = [_RULE, _TITLE.center(len(_RULE)).rstrip(), _RULE]
        before: dict[str, int] = {}
        for row in self.rows:
            lines.append(row.name)
            figures = [(sum(row.ops.values()), "num-ops", f"Ops behind it ({row.change:+d})")]
            for dialect in sorted({*row.ops, *before}):
                count, change = row.ops.get(dialect, 0), row.ops.get(dialect, 0) - before.get(dialect, 0)
                if change:
                    figures.append((count, f"num-{dialect}", f"Ops of {dialect} ({change:+d})"))
            before = row.ops
            for name, (asked, allowed) in row.rewrites.items():
                refused = f", {asked - allowed} refused by its counter" if allowed < asked else ""
                figures.append((allowed, f"num-{name}", f"Rewrites made{refused}"))
            lines += [f"  (S) {number:6d} {name} - {what}" for number, name, what in figures]
        return "\n".join(lines)
