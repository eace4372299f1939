"""Eager, Inductor and inductile on the CPU, side by side: `python benchmarks/cpu.py [--models ...] [--patterns ...]`.

Each figure that depends on a fresh process (cold and warm first call) is taken in one; latencies are taken in one
process, interleaved. Results go to standard output as a Markdown table, and as JSON with `--json FILE`, which is
written after each case: with `--resume` the cases that are in it already are not measured again, so that a long run
can be cut off and continued.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import models
import patterns
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
    moved: float = 0.0
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
        answer = run_worker(["latency", *case, "--seconds", str(args.seconds)], cache, args.timeout)
    row.problem += str(answer.get("problem", ""))
    for key in ("latency", "peak", "error", "kernels", "aten_calls", "moved"):
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
        "| ms: eager / Inductor / ours | kernels: Inductor / ours | ATen calls | MiB moved "
        "| peak MiB: eager / Inductor / ours | error / eager's |"
    )
    lines = [head, "|" + "---|" * 10]
    for r in rows:
        cells = [
            r.case,
            _cell(r.cold, BACKENDS, 1),
            " / ".join(_number(r.own_share(b), 1) for b in BACKENDS[1:]),
            _cell(r.warm, BACKENDS[1:], 1),
            _cell(r.latency, ("eager", "inductor", "inductile"), 2),
            _cell(r.kernels, ("inductor", "inductile"), 0),
            str(r.aten_calls),
            f"{r.moved:.0f}",
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


def arguments() -> argparse.Namespace:
    """The command line."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--models", nargs="*", default=None, help=f"default: all of {', '.join(models.MODELS)}")
    p.add_argument("--patterns", nargs="*", default=None, help=f"default: all of {', '.join(patterns.PATTERNS)}")
    p.add_argument("--rows", type=int, default=512, help="rows of the patterns")
    p.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    p.add_argument("--dynamic", action="store_true", help="the batch or the length of a sequence as a symbol")
    p.add_argument("--small", action="store_true", help="models cut down, to try the command")
    p.add_argument("--no-cold", action="store_true", help="latencies only")
    p.add_argument("--seconds", type=float, default=6, help="of calls for the latencies of a case")
    p.add_argument("--timeout", type=float, default=600, help="seconds for one process")
    p.add_argument("--json", metavar="FILE", help="also write all figures, after each case")
    p.add_argument("--resume", action="store_true", help="leave out cases that FILE has, measured without a problem")
    args = p.parse_args()
    if args.resume and not args.json:
        p.error("--resume needs --json FILE")
    return args


def chosen(args: argparse.Namespace) -> list[tuple[list[str], str]]:
    """(arguments of the worker, name) of each case asked for; in bfloat16 all models are those measured in it."""
    everything = args.models is None and args.patterns is None
    every_model = [name for name, m in models.MODELS.items() if args.dtype == "float32" or m.bfloat16]
    if args.dynamic:
        every_model = [name for name in every_model if models.MODELS[name].dynamic]
    chosen_models = every_model if everything or args.models == [] else args.models or []
    chosen_patterns = list(patterns.PATTERNS) if everything or args.patterns == [] else args.patterns or []
    common = ["--dtype", args.dtype, *(["--dynamic"] if args.dynamic else [])]
    size = ["--small"] if args.small else []
    label = " ".join(
        [""] + [args.dtype] * (args.dtype != "float32") + ["dynamic"] * args.dynamic + ["small"] * args.small
    )
    rows = "" if args.rows == 512 else f" {args.rows} rows"
    cases = [(["pattern", n, "--rows", str(args.rows), *common], n + label + rows) for n in chosen_patterns]
    return cases + [(["model", n, *common, *size], n + label) for n in chosen_models]


def earlier(args: argparse.Namespace) -> list[Row]:
    """The rows of the JSON file that need not be measured again."""
    if not args.resume or not Path(args.json).exists():
        return []
    return [row for entry in json.loads(Path(args.json).read_text()) if not (row := Row(**entry)).problem]


def write(args: argparse.Namespace, rows: list[Row]) -> None:
    """Write the JSON file, whole or not at all."""
    if args.json:
        part = Path(f"{args.json}.part")
        part.write_text(json.dumps([asdict(r) for r in rows], indent=1))
        part.replace(args.json)


def main() -> None:
    """Measure, print, write."""
    args = arguments()
    rows = earlier(args)
    done = {row.case for row in rows}
    left = [(case, name) for case, name in chosen(args) if name not in done]
    with tempfile.TemporaryDirectory() as headers:
        if not args.no_cold and left:
            run_worker(["first", "inductor", "pattern", "softmax", "--rows", "8"], headers, args.timeout)
        for case, name in left:
            rows.append(measure(case, name, args, f"{headers}/inductor"))
            write(args, rows)
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    print("\n" + table(rows))
    for over in ("inductor", "eager"):
        mean = mean_ratio(rows, over)
        if mean is not None:
            print(f"geometric mean of latency, {over} / inductile: {mean:.2f}")


if __name__ == "__main__":
    main()
