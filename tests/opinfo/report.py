"""The coverage page from result files of `run.py`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def load(paths: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Case name -> result."""
    lines = (line for path in paths for line in Path(path).read_text().splitlines() if line.strip())
    return {result["case"]: result for result in map(json.loads, lines)}


def _kind(case: str) -> str:
    return case.partition(":")[2]


def coverage_page(paths: Iterable[str], baseline_paths: Iterable[str] = ()) -> str:
    """Markdown: totals per kind, remaining faults, and what each op became."""
    results, baseline = load(paths), load(baseline_paths)
    owed = {c for c, r in baseline.items() if r["status"] == "pass"} if baseline else set(results)
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for case, result in results.items():
        totals[_kind(case)][result["status"]] += 1
        totals[_kind(case)]["owed"] += case in owed
        totals[_kind(case)]["owed and right"] += case in owed and result["status"] == "pass"
    lines = [
        "# Operator coverage",
        "",
        "| kind | pass | fail | error | of those that aot_eager passes |",
        "|---|---|---|---|---|",
    ]
    for kind, t in sorted(totals.items()):
        lines.append(f"| {kind} | {t['pass']} | {t['fail']} | {t['error']} | {t['owed and right']} of {t['owed']} |")
    lines += ["", "## Differences", ""]
    for case, result in sorted(results.items()):
        if result["status"] != "pass" and case in owed:
            lines.append(f"- `{case}` {result['status']}: {result['faults'][0] if result['faults'] else ''}")
    lines += ["", "## ATen calls", "", "Cases (float32) whose graphs still call ATen, by op:", ""]
    calls: Counter[str] = Counter()
    for case, result in results.items():
        if _kind(case) == "float32":
            calls.update(set(result.get("aten", ())))
    lines += [f"- `{name}`: {count} cases" for name, count in calls.most_common()]
    return "\n".join(lines)
