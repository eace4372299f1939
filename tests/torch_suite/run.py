"""Inductor's own tests with inductile in Inductor's place; the tests come from a checkout of torch.

    python tests/torch_suite/run.py --checkout ~/pytorch --out suite.jsonl --jobs 8
    python tests/torch_suite/run.py --checkout ~/pytorch --out suite.jsonl --backend aot_eager --failures
    python tests/torch_suite/run.py --out suite.jsonl --report
    python tests/torch_suite/run.py --file ~/pytorch/test/inductor/test_cudagraph_trees.py --fresh --out trees.jsonl

Names that the tests import and the installed torch lacks skip the tests that use them. One JSON line a test and
backend; a test that the file has is not run again, and one that kills its process is a failure. A failure is not owed
where the test asks for Inductor's insides (`not_owed.py` has the rules), or where `aot_eager` fails too (`--failures`
runs what failed, with that backend), or Inductor (`--backend inductor --failures`: the file is of another version). The
tests of recorded graphs need a GPU. Exits with 1 when a failure is owed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import workers

Result = dict[str, Any]
#: what a process of tests has changed in torch, for as long as it lives
STAYS = contextlib.ExitStack()


def read(paths: list[Path], backend: str) -> dict[str, Result]:
    """Test -> its last result with a backend."""
    found: dict[str, Result] = {}
    for path in paths:
        for line in path.read_text().splitlines() if path.exists() else ():
            result = json.loads(line)
            if result["backend"] == backend:
                found[result["test"]] = result
    return found


def files(out: Path) -> list[Path]:
    """A file of results and those of the processes that share the work."""
    return [out, *sorted(p for p in out.parent.glob(f"{out.name}.*") if p.suffix[1:].isdigit())]


def start(args: argparse.Namespace) -> dict[str, Callable[[], Result]]:
    """The tests of this process, by name."""
    import torch

    log = os.open(f"{args.out}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    torch.set_num_threads(args.threads)
    import harness

    STAYS.enter_context(harness.in_place_of_inductor(args.backend))
    STAYS.enter_context(harness.symbolic_sizes(args.dynamic))
    harness.log_to_current_stderr()
    module = harness.load(Path(args.file) if args.file else Path(args.checkout) / args.path)
    tests = harness.tests_of(module, args.classes, args.only)
    return {name: partial(harness.run_test, name, test, args.device, args.limit) for name, test in tests.items()}


def wanted(args: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """The tests that have no result yet; with `--failures`, of those that failed."""
    done = read(files(Path(args.out)), args.backend)
    left = [name for name in names if name not in done]
    if not args.failures:
        return left
    ours = read(files(Path(args.out)), "inductile")
    return [name for name in left if ours.get(name, {}).get("status") == "fail"]


def report(out: Path) -> tuple[str, int]:
    """A table of counts and the failures, and how many are owed."""
    results = read(files(out), "inductile")
    for other in ("aot_eager", "inductor"):
        shared = read(files(out), other)
        for name, result in results.items():
            if result["status"] == "fail" and shared.get(name, {}).get("status") in ("fail", "not owed"):
                result |= {"status": "not owed", "problem": f"{other} fails too ({result['problem']})"}
    counts = Counter(r["status"] for r in results.values())
    reasons = Counter(r["problem"].partition(" (")[0] for r in results.values() if r["status"] == "not owed")
    lines = ["| result | tests |", "|---|---|"]
    lines += [f"| {status} | {counts[status]} |" for status in ("pass", "fail", "not owed", "skipped")]
    idle = sum(r["status"] == "pass" and not r.get("graphs", 1) for r in results.values())
    lines += [f"| of those that pass, compile no graph | {idle} |"]
    lines += ["", "| not owed because it | tests |", "|---|---|", *(f"| {w} | {n} |" for w, n in reasons.most_common())]
    wrong = [f"- {n}: {r['problem'][:200]}" for n, r in sorted(results.items()) if r["status"] == "fail"]
    return "\n".join([*lines, "", *wrong]), len(wrong)


def main() -> int:
    """Command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--checkout", help="folder of a checkout of torch, of about the installed version")
    p.add_argument("--path", default="test/inductor/test_torchinductor.py", help="the test module in it")
    p.add_argument("--file", help="a test module anywhere, instead")
    p.add_argument("--out", default="torch-suite.jsonl", help="file of results, read and added to")
    p.add_argument("--classes", default="", help="pattern of names of test classes")
    p.add_argument("--only", default="", help="pattern of names of tests")
    p.add_argument("--device", default="cpu", help="suffix of the names of tests")
    p.add_argument("--backend", default="inductile")
    p.add_argument("--dynamic", action="store_true", help="symbolic sizes from the first call on")
    p.add_argument("--failures", action="store_true", help="only what failed with inductile")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--threads", type=int, default=1, help="threads of torch in each process")
    p.add_argument("--limit", type=int, default=120, help="seconds for a test")
    p.add_argument("--fresh", action="store_true", help="what fails behind a failure runs again in a fresh process")
    p.add_argument("--count", type=int, default=200, help="tests of a process before a fresh one takes over")
    p.add_argument("--seconds", type=float, default=0, help="stop after that; 0: never")
    p.add_argument("--report", action="store_true", help="print the counts, run nothing")
    p.add_argument("--worker", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.worker:
        workers.serve(partial(start, args), *map(int, args.worker.split(",")))
    if not args.report:
        module = Path(args.file) if args.file else Path(args.checkout or ".") / args.path
        if not module.is_file():
            p.error(f"there is no {module}: give --checkout the folder of a checkout of torch")
        run_all(args)
    if not any(path.exists() for path in files(Path(args.out))):
        print(f"no test was run; {args.out}.log says why", file=sys.stderr)
        return 1
    text, wrong = report(Path(args.out))
    print(text)
    return 1 if wrong else 0


def run_all(args: argparse.Namespace) -> None:
    """Run the tests in processes."""

    def keep(result: Result) -> None:
        with open(args.out, "a") as out:
            out.write(json.dumps(result | {"backend": args.backend}) + "\n")

    workers.warm_up()
    pool = workers.Workers(
        partial(start, args), partial(wanted, args), keep, args.jobs, args.limit + 15, args.count, args.fresh
    )
    pool.run(time.time() + (args.seconds or 10**8))


if __name__ == "__main__":
    sys.exit(main())
