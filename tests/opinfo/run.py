"""Run torch's operator database through a backend: resumable, sharded.

    python tests/opinfo/run.py --out results.jsonl [--shard 0/4] [--backend inductile] [--ops add,exp] [--limit 2]
    python tests/opinfo/run.py --report results.jsonl --baseline aot_eager.jsonl > docs/coverage.md

One JSON line a case: name, status (pass, fail, error), faults, lowered or ATen call. Cases that the output file already
has are skipped, so an interrupted run goes on where it stopped; a case that kills the process is marked as such.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import cases
import eager_compare
import torch
from report import coverage_page


class CaseTimeoutError(Exception):
    """A case took too long."""


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise CaseTimeoutError in the main thread after some seconds."""

    def stop(*_: Any) -> None:
        raise CaseTimeoutError(f"no result after {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def graph_reports() -> list[Any]:
    """Reports of the graphs that inductile compiled; empty for other backends."""
    compiled = sys.modules.get("inductile.backends.compiled")
    return compiled.REPORTS if compiled is not None else []


def aten_calls() -> dict[str, int]:
    """ATen calls of the compiled graphs."""
    found: dict[str, int] = {}
    for report in graph_reports():
        for name, count in report.aten_calls.items():
            found[name] = found.get(name, 0) + count
    return found


def run_case(case: cases.Case, backend: str, limit: int | None, seconds: int) -> dict[str, Any]:
    """Compare all samples of a case; the first few faults are kept."""
    faults: list[str] = []
    status, count = "pass", 0
    graph_reports().clear()
    start = time.perf_counter()
    try:
        with time_limit(seconds):
            for function, tensors in cases.samples(case, limit):
                count += 1
                faults += compare_sample(case, function, tensors, backend)
                if len(faults) > 3:
                    break
    except CaseTimeoutError as error:
        status, faults = "error", [*faults, str(error)]
    except Exception as error:
        status, faults = "error", [*faults, f"{type(error).__name__}: {str(error)[:300]}"]
    if faults and status == "pass":
        raised = any("compiled: " in f and "compiled: no error" not in f for f in faults)
        status = "error" if raised else "fail"
    return {
        "case": case.name,
        "status": status,
        "samples": count,
        "faults": faults[:4],
        "aten": aten_calls(),
        "kernels": sum(sum(r.kernels.values()) for r in graph_reports()),
        "seconds": round(time.perf_counter() - start, 2),
    }


def compare_sample(case: cases.Case, function: Any, tensors: list[torch.Tensor], backend: str) -> list[str]:
    """Faults of one sample."""
    wide = cases.widened(case)

    def in_wide_type(*args: torch.Tensor) -> Any:
        return function(*(a.to(wide) if a.is_floating_point() else a for a in args))

    return eager_compare.compare(
        function,
        tensors,
        backend,
        values=not case.is_random,
        dynamic=True if case.dynamic else None,
        reference=in_wide_type if wide is not None else None,
    )


def chosen_cases(args: argparse.Namespace) -> list[cases.Case]:
    """The cases of this shard that the output file lacks."""
    number, total = (int(x) for x in args.shard.split("/"))
    wanted = [c for k, c in enumerate(cases.all_cases()) if k % total == number]
    if args.ops:
        names = set(args.ops.split(","))
        wanted = [c for c in wanted if c.op.name in names or c.name in names]
    if args.kinds:
        kinds = set(args.kinds.split(","))
        wanted = [c for c in wanted if c.name.partition(":")[2] in kinds]
    done: set[str] = set()
    if args.out and Path(args.out).exists():
        done = {json.loads(line)["case"] for line in Path(args.out).read_text().splitlines() if line.strip()}
    return [c for c in wanted if c.name not in done][:: args.every]


def main() -> None:
    """Command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", help="JSON lines; continued when it exists")
    p.add_argument("--backend", default="inductile")
    p.add_argument("--shard", default="0/1", metavar="K/N")
    p.add_argument("--ops", help="names of ops or cases, comma-separated")
    p.add_argument("--kinds", help="float32, float32:dynamic, float32:gradient, int64, ...; comma-separated")
    p.add_argument("--every", type=int, default=1, help="take each n-th case")
    p.add_argument("--limit", type=int, help="samples a case; by default all for float32, two otherwise")
    p.add_argument("--timeout", type=int, default=240, help="seconds for one case")
    p.add_argument("--report", nargs="+", metavar="FILE", help="print the coverage page of result files instead")
    p.add_argument("--baseline", nargs="*", default=[], metavar="FILE", help="results of aot_eager, for the report")
    args = p.parse_args()
    if args.report:
        print(coverage_page(args.report, args.baseline))
        return
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    failures = 0
    with open(args.out, "a") if args.out else contextlib.nullcontext(sys.stdout) as out:
        for case in chosen_cases(args):
            limit = args.limit or (None if case.dtype == "float32" and not case.dynamic and not case.gradient else 2)
            if args.out:  # if the process dies here, the next run knows the culprit
                Path(f"{args.out}.running").write_text(case.name)
            result = run_case(case, args.backend, limit, args.timeout)
            failures += result["status"] != "pass"
            out.write(json.dumps(result) + "\n")
            out.flush()
    print(f"{failures} cases differ", file=sys.stderr)


if __name__ == "__main__":
    main()
