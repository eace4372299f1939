"""The coverage page from result files of `run.py`."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from exceptions import EXCEPTIONS

Results = dict[str, dict[str, Any]]

#: mark of a case in the table of operators -> what it says
MARKS = {
    "L": "right; kernels alone",
    "M": "right; kernels and ATen calls",
    "A": "right; ATen calls alone",
    "V": "right; graphs without either: views, inputs handed on, empty tensors",
    "D": "right, but no graph came: Dynamo found nothing to compute, or ran it in eager",
    "x": "not owed (see below)",
    "**F**": "differs from eager",
    "**E**": "error",
    "": "not in the database for this dtype, or not run",
}


def load(paths: Iterable[str]) -> Results:
    """Case name -> result; of several the last."""
    lines = (line for path in paths for line in Path(path).read_text().splitlines() if line.strip())
    return {result["case"]: result for result in map(json.loads, lines)}


def kind_of(case: str) -> str:
    """`float32:gradient` of `exp:float32:gradient`."""
    return case.partition(":")[2]


def not_owed(results: Results, baseline: Results) -> dict[str, str]:
    """Case that does not pass -> why it need not: an exception, or what aot_eager does with it."""
    wrong = [c for c, r in results.items() if r["status"] != "pass"]
    found = {c: EXCEPTIONS[c] for c in wrong if c in EXCEPTIONS}
    for case in wrong:
        if case in baseline and baseline[case]["status"] != "pass":
            found.setdefault(case, "aot_eager fails as well: " + _first_fault(baseline[case]))
    return found


def _first_fault(result: dict[str, Any]) -> str:
    text = result["faults"][0] if result["faults"] else ""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")[:200]


def aten_calls(result: dict[str, Any]) -> set[str]:
    """Operators on tensors that a case calls; `math::trunc` of a size and the like belong to the host program."""
    return {name for name in result["aten"] if name.partition("::")[0] not in ("operator", "math", "torch")}


def mark(result: dict[str, Any], excused: bool) -> str:
    """What a case became, as a key of `MARKS`."""
    if result["status"] != "pass":
        return "x" if excused else f"**{result['status'][0].upper()}**"
    if aten_calls(result):
        return "M" if result["kernels"] else "A"
    if result["kernels"]:
        return "L"
    return "V" if result["graphs"] else "D"


def coverage_page(found: Results, baseline: Results, known: list[str], packets: int, taken: str) -> str:
    """The page as Markdown.

    baseline: results of aot_eager on cases that do not pass
    known:   names of all cases of the database, run or not
    packets: number of ATen operators with a lowering
    taken:   a sentence on how the results came about
    """
    results = {c: found[c] for c in known if c in found}
    excused = not_owed(results, baseline)
    marks = {c: mark(r, c in excused) for c, r in results.items()}
    sections = [
        _introduction(results, known, taken),
        _totals(results, known, excused),
        _remaining(results, excused),
        _became(marks),
        _left_to_aten(results, packets),
        _operators(marks),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections)


def _introduction(results: Results, known: list[str], taken: str) -> list[str]:
    samples = sum(r["samples"] for r in results.values())
    return [
        "# Operator coverage",
        "",
        "torch's operator database (`op_db`, the inputs torch tests its own operators with), each operator compiled",
        "alone on a CPU and compared with eager: values, dtypes, shapes, strides, signs of zeros, aliasing, mutation.",
        "`float32` takes every sample, the other kinds two a case. The commands that take the results and write",
        "this page: `python tests/opinfo/run.py --help`.",
        "",
        f"Run: {len(results):,} of {len(known):,} cases, {samples:,} samples. {taken}",
    ]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else ""


def _totals(results: Results, known: list[str], excused: dict[str, str]) -> list[str]:
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for case in known:
        rows[kind_of(case)]["known"] += 1
    for case, result in results.items():
        for row in (rows[kind_of(case)], rows["all"]):
            row["run"] += 1
            row["excused"] += case in excused
            row[result["status"]] += 1
    rows["all"]["known"] = len(known)
    lines = [
        "## Right and wrong",
        "",
        "A case is owed unless `aot_eager`, which runs the traced graph op by op in eager, differs as well, or",
        "`tests/opinfo/exceptions.py` names a reason. `aot_eager` was run only on cases that do not pass.",
        "",
        "| kind | cases | run | pass | fail | error | not owed | pass, of the owed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind, t in rows.items():
        figures = [t[k] for k in ("known", "run", "pass", "fail", "error", "excused")]
        share = _share(t["pass"], t["run"] - t["excused"])
        lines.append(f"| {kind} | " + " | ".join(map(str, figures)) + f" | {share} |")
    return lines


def _remaining(results: Results, excused: dict[str, str]) -> list[str]:
    wrong = {c: r for c, r in sorted(results.items()) if r["status"] != "pass"}
    owed = [f"- `{c}` {r['status']}: {_first_fault(r)}" for c, r in wrong.items() if c not in excused]
    rest = [f"- `{c}`: {excused[c]}" for c in wrong if c in excused]
    return ["## Owed and wrong", "", *(owed or ["None."]), "", "## Not owed", "", *(rest or ["None."])]


def _became(marks: dict[str, str]) -> list[str]:
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for case, m in marks.items():
        rows[kind_of(case)][m] += 1
        rows["all"][m] += 1
    lines = [
        "## Lowered, or an ATen call",
        "",
        "What the cases that pass became. An ATen call is right, but nothing is fused with it.",
        "",
        "| kind | kernels alone | kernels and ATen calls | ATen calls alone | neither | no graph |",
        "|---|---|---|---|---|---|",
    ]
    order = [*(k for k in rows if k != "all"), "all"]
    return lines + [f"| {kind} | " + " | ".join(str(rows[kind][m]) for m in "LMAVD") + " |" for kind in order]


def _left_to_aten(results: Results, packets: int) -> list[str]:
    calls: Counter[str] = Counter()
    for result in results.values():
        calls.update(aten_calls(result))
    return [
        "## Left to ATen",
        "",
        f"{packets} ATen operators (counted without overloads) have a lowering. The compiled graphs still called",
        f"{len(calls)} overloads, some only for a dtype or an argument that the lowering refuses. With the number",
        "of cases:",
        "",
        ", ".join(f"`{name}` {count}" for name, count in sorted(calls.items(), key=lambda i: (-i[1], i[0]))) + ".",
    ]


def _operators(marks: dict[str, str]) -> list[str]:
    kinds = list(dict.fromkeys(map(kind_of, marks)))
    rows: dict[str, dict[str, str]] = defaultdict(dict)
    for case, m in marks.items():
        rows[case.partition(":")[0]][kind_of(case)] = m
    legend = [f"- {m or 'blank'}: {text}" for m, text in MARKS.items()]
    lines = [
        "## By operator",
        "",
        *legend,
        "",
        "| operator | " + " | ".join(kinds) + " |",
        "|---" * (len(kinds) + 1) + "|",
    ]
    for name, row in rows.items():
        lines.append(f"| {name} | " + " | ".join(row.get(kind, "") for kind in kinds) + " |")
    return lines
