"""Eager, Inductor and inductile on the CPU, side by side: `python benchmarks/cpu.py [--models ...] [--patterns ...]`.

Each figure that depends on a fresh process (cold and warm first call) is taken in one; latencies are taken in one
process, interleaved. Results go to standard output as a Markdown table, and as JSON with `--json FILE`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from processes import MeasurementError, in_fresh_process

HERE = Path(__file__).parent
BACKENDS = ("aot_eager", "inductor", "inductile")


@dataclass
class Row:
    """Figures of one case. Seconds for first calls, milliseconds for latencies, MiB for memory."""

    case: str
    cold: dict[str, float] = field(default_factory=dict)
    warm: dict[str, float] = field(default_factory=dict)
    latency: dict[str, float] = field(default_factory=dict)
    peak: dict[str, float] = field(default_factory=dict)
    error: dict[str, float] = field(default_factory=dict)
    kernels: dict[str, int] = field(default_factory=dict)
    aten_calls: int = 0
    problem: str = ""

    def own_share(self, backend: str) -> float | None:
        """Cold seconds beyond those of aot_eager with our decompositions."""
        if backend not in self.cold or "aot_eager" not in self.cold:
            return None
        return self.cold[backend] - self.cold["aot_eager"]


def run_worker(arguments: list[str], cache: str, timeout: float) -> dict[str, Any]:
    """Run `worker.py` in a fresh process with its own caches; a failure becomes a `problem`."""
    try:
        return in_fresh_process(str(HERE / "worker.py"), arguments, cache, timeout)
    except MeasurementError as error:
        return {"problem": str(error)}


def measure(case: list[str], name: str, args: argparse.Namespace, headers: str) -> Row:
    """All figures of one case."""
    row = Row(name)
    with tempfile.TemporaryDirectory() as cache:
        if not args.no_cold:
            os.makedirs(f"{cache}/inductor")
            for backend in BACKENDS:
                _seed_headers(headers, f"{cache}/inductor")
                for kind in ("cold", "warm"):
                    answer = run_worker(["first", backend, *case], cache, args.timeout)
                    if "problem" in answer:
                        row.problem += f"{backend} {kind}: {answer['problem']}; "
                        continue
                    getattr(row, kind)[backend] = answer["seconds"]
        answer = run_worker(["latency", *case], cache, args.timeout)
    row.problem += str(answer.get("problem", ""))
    for key in ("latency", "peak", "error", "kernels", "aten_calls"):
        if key in answer:
            setattr(row, key, answer[key])
    return row


def _seed_headers(source: str, target: str) -> None:
    """Give Inductor its precompiled headers, which it needs once a machine, not once a model."""
    folder = Path(source) / "precompiled_headers"
    if folder.is_dir() and not (Path(target) / "precompiled_headers").exists():
        os.symlink(folder, Path(target) / "precompiled_headers")


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    head = (
        "| case | cold s: aot_eager / Inductor / ours | own share s: Inductor / ours | warm s: Inductor / ours "
        "| ms: eager / Inductor / ours | kernels: Inductor / ours | ATen calls | peak MiB: eager / Inductor / ours "
        "| error / eager's |"
    )
    lines = [head, "|" + "---|" * 9]
    for r in rows:
        cells = [
            r.case,
            _cell(r.cold, BACKENDS, 1),
            " / ".join(_number(r.own_share(b), 1) for b in BACKENDS[1:]),
            _cell(r.warm, BACKENDS[1:], 1),
            _cell(r.latency, ("eager", "inductor", "inductile"), 2),
            _cell(r.kernels, ("inductor", "inductile"), 0),
            str(r.aten_calls),
            _cell(r.peak, ("eager", "inductor", "inductile"), 1),
            f"{r.error.get('inductile', float('nan')):.1e} / {r.error.get('eager', float('nan')):.1e}",
        ]
        lines.append("| " + " | ".join(cells) + " |" + (f" {r.problem}" if r.problem else ""))
    return "\n".join(lines)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _cell(values: dict[str, float] | dict[str, int], names: tuple[str, ...], digits: int) -> str:
    return " / ".join(_number(values.get(n), digits) for n in names)


def mean_ratio(rows: list[Row], over: str) -> float | None:
    """Geometric mean of latency `over` / ours."""
    ratios = [r.latency[over] / r.latency["inductile"] for r in rows if {over, "inductile"} <= r.latency.keys()]
    return geometric_mean(ratios) if ratios else None


def main() -> None:
    """Command line."""
    sys.path.insert(0, str(HERE))
    import models
    import patterns

    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--models", nargs="*", default=None, help=f"default: all of {', '.join(models.MODELS)}")
    p.add_argument("--patterns", nargs="*", default=None, help=f"default: all of {', '.join(patterns.PATTERNS)}")
    p.add_argument("--rows", type=int, default=512, help="rows of the patterns")
    p.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    p.add_argument("--dynamic", action="store_true", help="compile with dynamic=True")
    p.add_argument("--small", action="store_true", help="models cut down, to try the command")
    p.add_argument("--no-cold", action="store_true", help="latencies only")
    p.add_argument("--timeout", type=float, default=600, help="seconds for one process")
    p.add_argument("--json", metavar="FILE", help="also write all figures")
    args = p.parse_args()
    both = args.models is None and args.patterns is None
    chosen_models = list(models.MODELS) if both or args.models == [] else args.models or []
    chosen_patterns = list(patterns.PATTERNS) if both or args.patterns == [] else args.patterns or []
    common = ["--dtype", args.dtype, *(["--dynamic"] if args.dynamic else [])]
    cases = [(["pattern", n, "--rows", str(args.rows), *common], n) for n in chosen_patterns]
    cases += [(["model", n, *common, *(["--small"] if args.small else [])], n) for n in chosen_models]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as headers:
        if not args.no_cold:
            run_worker(["first", "inductor", "pattern", "softmax", "--rows", "8"], headers, args.timeout)
        for case, name in cases:
            rows.append(measure(case, name, args, f"{headers}/inductor"))
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    print("\n" + table(rows))
    for over in ("inductor", "eager"):
        mean = mean_ratio(rows, over)
        if mean is not None:
            print(f"geometric mean of latency, {over} / inductile: {mean:.2f}")
    if args.json:
        Path(args.json).write_text(json.dumps([asdict(r) for r in rows], indent=1))


if __name__ == "__main__":
    main()
