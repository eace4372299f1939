"""Run torch's operator database through a backend: resumable, sharded.

    until python tests/opinfo/run.py --out ours.jsonl --count 200; do :; done
    python tests/opinfo/run.py --out aot_eager.jsonl --backend aot_eager --failures-of ours.jsonl
    python tests/opinfo/run.py --report ours.jsonl --baseline aot_eager.jsonl > docs/coverage.md
    python tests/opinfo/run.py --layout channels_last --kinds float32 --limit 2 --out channels_last.jsonl
    python tests/opinfo/run.py --device cuda --kinds float32,bfloat16 --limit 2 --jobs 12 --out cuda.jsonl

One JSON line a case: name, status (pass, fail, error), faults, launches and ATen calls. Cases that the file
has are skipped, so an interrupted run goes on where it stopped; a case that kills the process is marked as such.
With `--count` a process ends early, with status 75 while cases are left: loaded kernels are never unloaded, and a
process may map only so many. On a GPU it ends as well after a case that broke the device: every later one would fail.
Several files may be given to `--report`; of a case that several have, the last counts.

With `--jobs N` that many processes share the cases, each started again while cases of its share are left; what does not
pass runs under aot_eager on the same device too; the last line sums up, and the exit status is 0 if all that is owed
passes. Their files are those of `--out` with a number behind.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import logging
import os
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

import cases
import eager_compare
import torch
from report import coverage_page, load
from shards import MORE, run_all


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


def quick_dynamo() -> None:
    """Switch off what Dynamo does beside compiling: measuring guards (it flushes the caches of the processor, a tenth
    of a run) and telling of graph breaks. Garbage of the imports is never looked at again."""
    from torch._dynamo import guards

    if hasattr(guards, "profile_guard_manager"):
        setattr(guards, "profile_guard_manager", lambda *_: 0.0)  # noqa: B010 - a private name
    logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def lowered_operators() -> int:
    """How many ATen operators, counted without overloads, have a lowering."""
    from inductile.lowering.aten_to_loop import lower, rules

    assert lower.families  # fills the table
    return len({name.split(".")[1] for name in rules.RULES})


def run_case(case: cases.Case, backend: str, limit: int | None, seconds: int) -> dict[str, Any]:
    """Compare all samples of a case; the first few faults are kept."""
    faults: list[str] = []
    status, count = "pass", 0
    made = Counter[str]()
    start = time.perf_counter()
    try:
        with time_limit(seconds):
            for sample in cases.samples(case, limit):
                count += 1
                graph_reports().clear()
                faults += compare_sample(case, sample, backend)
                made += what_was_made()
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
        "graphs": made.pop("graphs", 0),
        "kernels": made.pop("kernels", 0),
        "aten": dict(made),
        "seconds": round(time.perf_counter() - start, 2),
    }


def broken_device(result: dict[str, Any]) -> bool:
    """Whether the GPU answers no more in this process. Then the last case is to blame, whatever it gave: where eager
    and the compiled function both fail, they seem to agree."""
    if cases.DEVICE == "cpu":
        return False
    try:
        torch.cuda.synchronize()
        torch.ones(1, device=cases.DEVICE).item()
    except Exception as error:
        result |= {"status": "error", "faults": [f"the device is lost: {str(error).splitlines()[0][:200]}"]}
        return True
    return False


def what_was_made() -> Counter[str]:
    """The graphs compiled since the reports were cleared, their launches, and ATen calls by op."""
    made = Counter[str]()
    for report in graph_reports():
        made["graphs"] += 1
        made["kernels"] += sum(report.kernels.values())
        made.update(report.aten_calls)
    return made


def compare_sample(case: cases.Case, sample: cases.Sample, backend: str) -> list[str]:
    """Faults of one sample."""
    wide = cases.widened(case)

    def in_wide_type(*args: torch.Tensor) -> Any:
        wider = [a.to(wide) if a.is_floating_point() else a for a in args]
        before = [w._version for w in wider]
        result = sample.function(*wider)
        for a, w, version in zip(args, wider, before, strict=True):
            if w is not a and w._version != version:
                a.detach().copy_(w)
        return result

    return eager_compare.compare(
        sample.function,
        sample.tensors,
        backend,
        values=not case.is_random,
        dynamic=True if case.dynamic else None,
        options={"compile_threads": 1} if backend == "inductile" else None,
        reference=in_wide_type if wide is not None else None,
        around=sample.around,
    )


def chosen_cases(args: argparse.Namespace) -> list[cases.Case]:
    """The cases of this shard that the output file lacks."""
    number, total = (int(x) for x in args.shard.split("/"))
    wanted = [c for k, c in enumerate(cases.all_cases()) if k % total == number]
    if args.ops is not None:
        names = set(args.ops.split(","))
        wanted = [c for c in wanted if c.op.name in names or c.name in names]
    if args.kinds:
        kinds = set(args.kinds.split(","))
        wanted = [c for c in wanted if c.name.partition(":")[2].partition("@")[0] in kinds]
    if args.failures_of:
        wrong = {name for name, result in load(args.failures_of).items() if result["status"] != "pass"}
        wanted = [c for c in wanted if c.name in wrong]
    done = set(load([args.out])) if args.out and not args.jobs and Path(args.out).exists() else set()
    return [c for c in wanted if c.name not in done][:: args.every]


def note_culprit(path: str) -> None:
    """Give the case that killed the last process its line."""
    running = Path(f"{path}.running")
    name = running.read_text() if running.exists() else ""
    if name and name not in (load([path]) if Path(path).exists() else ()):
        nothing = {"samples": 0, "graphs": 0, "kernels": 0, "aten": {}}
        line = {"case": name, "status": "error", **nothing, "faults": ["the process died"]}
        with open(path, "a") as out:
            out.write(json.dumps(line) + "\n")


def main() -> None:
    """Command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", help="JSON lines; continued when it exists")
    p.add_argument("--backend", default="inductile")
    p.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where the samples live")
    p.add_argument(
        "--layout", default="", choices=tuple(cases.LAYOUTS), help="how the tensors of samples lie in memory"
    )
    p.add_argument("--shard", default="0/1", metavar="K/N")
    p.add_argument("--ops", help="names of ops or cases, comma-separated")
    p.add_argument("--kinds", help="float32, float32:dynamic, float32:gradient, int64, ...; comma-separated")
    p.add_argument("--failures-of", nargs="+", metavar="FILE", help="only cases that do not pass in these results")
    p.add_argument("--every", type=int, default=1, help="take each n-th case")
    p.add_argument("--limit", type=int, help="samples a case; by default all for float32, two otherwise")
    p.add_argument("--count", type=int, help="end after so many cases")
    p.add_argument("--until", type=float, help="end at this time, in seconds since 1970")
    p.add_argument("--jobs", type=int, default=0, help="so many processes share the cases")
    p.add_argument("--seconds", type=float, default=0, help="with --jobs: stop after that; 0: never")
    p.add_argument("--timeout", type=int, default=240, help="seconds for one case")
    p.add_argument("--report", nargs="+", metavar="FILE", help="print the coverage page of result files instead")
    p.add_argument("--note", default="", help="a sentence for the page on how the results came about")
    p.add_argument("--baseline", nargs="*", default=[], metavar="FILE", help="results of aot_eager, for the report")
    args = p.parse_args()
    if args.report:
        known = [case.name for case in cases.all_cases()]
        results, baseline = load(args.report), load(args.baseline)
        print(coverage_page(results, baseline, known, lowered_operators(), f"torch {torch.__version__}. {args.note}"))
        return
    cases.DEVICE, cases.LAYOUT = args.device, args.layout
    if args.jobs:
        if not args.out:
            p.error("--jobs needs --out")
        arguments = [*sys.argv[1:], "--jobs", "0"]
        wanted = len(chosen_cases(args))
        sys.exit(run_all(arguments, args.out, args.jobs, args.timeout, args.seconds, wanted))
    sys.exit(run_here(args))


def run_here(args: argparse.Namespace) -> int:
    """Run the chosen cases in this process; the exit status."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    quick_dynamo()
    if args.out:
        note_culprit(args.out)
    chosen = chosen_cases(args)
    failures = done = 0
    full_precision = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)  # else algorithms differ too much
    with full_precision, open(args.out, "a") if args.out else contextlib.nullcontext(sys.stdout) as out:
        for case in chosen[: args.count]:
            if args.until and time.time() > args.until:
                break
            limit = args.limit or (None if case.dtype == "float32" and not case.dynamic and not case.gradient else 2)
            if args.out:  # if the process dies here, the next run knows the culprit
                Path(f"{args.out}.running").write_text(case.name)
            result = run_case(case, args.backend, limit, args.timeout)
            lost = broken_device(result)
            done += 1
            failures += result["status"] != "pass"
            out.write(json.dumps(result) + "\n")
            out.flush()
            if lost:
                break
    if args.out:
        Path(f"{args.out}.running").unlink(missing_ok=True)
    print(f"{failures} cases differ", file=sys.stderr)
    return MORE if done < len(chosen) else 0


if __name__ == "__main__":
    main()
