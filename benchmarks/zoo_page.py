"""docs/models.md, made of results of the zoo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

Result: TypeAlias = dict[str, Any]

HEAD = """# Models

Models that nobody here wrote, tiny and with random weights, under inductile and in eager. `python benchmarks/zoo.py
--write-docs` makes this page. A cell is `ok` where outputs, gradients and buffers are as near the model in float64 as
eager's are (at most twice eager's own error and a few units in the last place) with eager's shapes, strides and
dtypes. `ok at a kink` marks values that differ where eager's own jump as far when weights are moved by one unit in the
last place, and that agree on both sides. `shared` marks what differs under `aot_eager` too, which compiles nothing;
`eager` what fails without torch.compile; a dash, a mode that the model does not have.

Graphs, kernels and ATen calls are those of a step of training where the model has one. First calls are in seconds on
a busy machine: they tell what is slow, not how slow. Recompiles are those of the second size.

On CUDA, MetaFormer's gradients are not eager's, which are wrong there: of a padded average pool with channels last, in
torch 2.11 (pytorch/pytorch#188344). Ours are those of the CPU.
"""
COLUMNS = ("graphs", "breaks", "kernels", "ATen calls", "first call s", "recompiles")


def page(results: Sequence[Result]) -> str:
    """The page."""
    parts = [HEAD]
    by_version: dict[tuple[str, str], list[Result]] = {}
    for r in results:
        by_version.setdefault((r["device"].partition(":")[0], r["torch"].partition("+")[0]), []).append(r)
    for (device, torch), of in sorted(by_version.items()):
        parts.append(f"## {device}, torch {torch}\n\n{_counts(of)}\n\n{_table(of)}\n")
    return "\n".join(parts)


def _counts(results: Sequence[Result]) -> str:
    counts = Counter("shared" if r.get("shared") else r["status"] for r in results)
    models = len({r["model"] for r in results})
    words = {"pass": "as eager", "none": "without such a mode or a graph", "missing": "not installed",
             "shared": "shared by aot_eager", "eager": "fail in eager", "values": "with other values",
             "error": "with an error", "crash": "ended by a crash", "time": "without an answer in time"}  # fmt: skip
    lines = [f"{count} {words[status]}" for status, count in counts.most_common()]
    return f"{models} models, {len(results)} results: {', '.join(lines)}."


def _table(results: Sequence[Result]) -> str:
    modes = list(dict.fromkeys(r["mode"] for r in results))
    heads = ["model", "family", *modes, *COLUMNS]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    by_model: dict[str, dict[str, Result]] = {}
    for result in results:
        by_model.setdefault(result["model"], {})[result["mode"]] = result
    for name, of in sorted(by_model.items(), key=lambda item: (_family(item[1]), item[0])):
        cells = [cell(of[mode]) if mode in of else "" for mode in modes]
        lines.append(f"| {' | '.join([name, _family(of), *cells, *_figures(of)])} |")
    return "\n".join(lines)


def _family(of: dict[str, Result]) -> str:
    return next((str(r["family"]) for r in of.values() if "family" in r), "")


def cell(result: Result) -> str:
    """A result in a few words."""
    status, problem = result["status"], str(result["problem"]).replace("|", "/").replace("<", "(").replace(">", ")")
    if status == "pass":
        return "ok at a kink" if result.get("kink") else "ok"
    if status in ("none", "missing"):
        return "not installed" if status == "missing" else "–"
    if status == "eager":
        return "eager"
    return f"{'shared' if result.get('shared') else '**' + status + '**'}: {problem[:60]}".replace("\n", " ")


def _figures(of: dict[str, Result]) -> list[str]:
    counted = of.get("training", {}) if of.get("training", {}).get("graphs") else of.get("inference", {})
    if not counted.get("graphs"):
        return [""] * len(COLUMNS)
    aten = sorted(counted["aten"].items(), key=lambda item: -item[1])
    names = ", ".join(f"{name.removeprefix('aten.')} {count}" for name, count in aten[:5])
    names += f" and {len(aten) - 5} more" if len(aten) > 5 else ""
    first = " / ".join(f"{r['first']:.1f}" for r in of.values() if r.get("first"))
    again = " / ".join(str(n) for n in of.get("dynamic", {}).get("recompiles", ()))
    return [str(counted["graphs"]), str(counted["breaks"]), str(counted["kernels"]), names, first, again]
