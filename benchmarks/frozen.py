"""Models on the CPU beside eager and Inductor, weights frozen or not: `python benchmarks/frozen.py --json FILE`.

All ways to run a model are compiled in one process and timed in turns: the least CPU time of a call on one thread, so
that others may use the machine. Each model has a process of its own, and FILE gets its row at once. Ways that FILE has
are not measured again, unless `--again`: rows of the incumbent are recorded once, and ours join them. A way is compared
by its time over eager's of the same process, since the speed of a machine drifts from row to row. With `--lock LOCK`
calls are timed while that file is locked, for those who share a machine.

`--one` measures one model in its own process, so that `lanes.py` can run many at once, a core each. `--limit` bounds
the compilation of one way, and what is not compiled by `--until` is left out; the row says so. With `--quiet CORES`
all wait until then, and each is timed on a core of these that no other takes. `--libraries` adds what one call of each
way spends in oneDNN, by kind and implementation, and in MKL, the pages that it touches first, and the milliseconds of
the kernel of the operating system; `--kernels` adds the longest events of a call, for which the incumbent compiles its
kernels with marks of their names. `--table` prints what FILE holds, and by how much ours is behind the fastest way of
the incumbent's: the median, over the rounds, of its time over the other's of the same round.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lanes import PREPARED, a_core, alone, cores_of
from spent import Run, by_name, in_libraries, in_system

#: what `torch.compile` gets: with options of its own, each way has an entry of its own in Dynamo's cache
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "inductile": ("inductile", {}),
    "inductile frozen": ("inductile", {"freezing": True}),
    "inductile tuned": ("inductile", {"freezing": True, "max_autotune": True}),
    "inductile all": ("inductile", {"freezing": True, "patterns": "all"}),
    "Inductor": ("inductor", {}),
    "Inductor frozen": ("inductor", {"freezing": True}),
    "Inductor tuned": ("inductor", {"freezing": True, "max_autotune": True}),
}
#: settings of the incumbent that all ways take
MARKED: dict[str, Any] = {}


def built(name: str, dtype: torch.dtype) -> tuple[Callable[..., Any], tuple[torch.Tensor, ...]]:
    """(callable, inputs) of a model of either list; one image where it reads images."""
    import models
    from more_models import MORE

    models.MODELS.update(MORE)
    function, inputs = models.build(name, dtype)
    return function, tuple(x[:1] if x.dim() == 4 else x for x in inputs)


def compiled(function: Callable[..., Any], inputs: tuple[torch.Tensor, ...], way: str) -> Run:
    """The model compiled in a way, and warm."""
    from torch._inductor import config

    backend, options = WAYS[way]
    started = time.perf_counter()
    settings = options | MARKED if backend == "inductor" else {}  # as an option alone it does not freeze
    with config.patch(settings):
        call = torch.compile(function, backend=backend, options=options or None)
        call(*inputs)
        call(*inputs)
    print(f"  {way}: {time.perf_counter() - started:.1f} s to compile", file=sys.stderr, flush=True)
    return lambda: call(*inputs)


def rounds_of(calls: dict[str, Run], seconds: float, most: float = 50) -> dict[str, list[float]]:
    """CPU milliseconds of each, in turns: five rounds or more, about `seconds` of CPU time, `most` in all."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    begun, since, rounds = time.process_time(), time.monotonic(), 0
    while (rounds < 5 or time.process_time() - begun < seconds) and time.monotonic() - since < most:
        rounds += 1
        for name, call in reversed(calls.items()) if rounds % 2 else calls.items():  # each behind either neighbour
            started = time.thread_time()
            call()
            found[name].append(1e3 * (time.thread_time() - started))
    return found


def least(calls: dict[str, Run], seconds: float, most: float = 50) -> dict[str, float]:
    """The least of these."""
    return {name: min(times) for name, times in rounds_of(calls, seconds, most).items()}


class LateError(BaseException):
    """Time is up; no `except Exception` of a compiler keeps it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raises LateError in what takes longer; nothing starts that has no time."""

    def ring(*_: Any) -> None:
        raise LateError

    if seconds <= 0:
        raise LateError
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, min(seconds, 1e6))  # it takes no infinity
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def measure(name: str, given: argparse.Namespace) -> dict[str, Any]:
    """Figures of one model in this process."""
    torch.set_num_threads(1)
    torch._dynamo.config.allow_rnn = True  # else Dynamo leaves LSTM and GRU to eager, whatever the backend is
    function, inputs = built(name, getattr(torch, given.dtype))
    with torch.no_grad():
        expected = function(*inputs)
        calls: dict[str, Run] = {"eager": lambda: function(*inputs)}
        problems, took = {}, {}
        for way in given.ways:
            started = time.time()
            limit = min(given.limit, given.until - started)
            try:
                with within(limit):
                    calls[way] = compiled(function, inputs, way)
            except LateError:
                problems[way] = f"not compiled in {limit:.0f} s"
            except Exception as error:  # a way that fails is a row without it
                problems[way] = f"{type(error).__name__}: {error}"[:300]
            took[way] = round(time.time() - started, 1)
        errors = {way: float((call() - expected).norm() / expected.norm()) for way, call in calls.items()}
        row: dict[str, Any] = {"from eager": errors, "problems": problems, "first s": took}
        if not given.quiet:
            with alone(given.lock):
                return row | timed(calls, given)
        print(PREPARED, flush=True)
        time.sleep(max(given.until - time.time(), 0))
        with a_core(given.quiet):
            return row | timed(calls, given)


def timed(calls: dict[str, Run], given: argparse.Namespace) -> dict[str, Any]:
    """What is measured of calls that are compiled."""
    times = rounds_of(calls, given.seconds, given.most)
    row: dict[str, Any] = {"ms": {way: min(each) for way, each in times.items()}}
    row["rounds"] = {way: [round(ms, 3) for ms in each] for way, each in times.items()}
    if given.libraries:
        row["system"] = {way: in_system(call) for way, call in calls.items()}
        row["libraries"] = {way: in_libraries(call) for way, call in calls.items()}
    if given.kernels:
        row["kernels"] = {way: by_name(call) for way, call in calls.items() if way != "eager"}
    return row


def keep(path: str, name: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row joined with what a file has of it, and written there."""
    if not path:
        return row
    with open(path, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # several processes may measure at once
        file.seek(0)
        rows = json.loads(file.read() or "{}")
        rows[name] = joined(rows.get(name, {}), row)
        file.seek(0)
        file.truncate()
        file.write(json.dumps(rows, indent=1))
    return rows[name]


def joined(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A row with ways that were measured in another process: their times go with eager's time in this one."""
    drift = new["ms"]["eager"] / old["ms"]["eager"] if old else 1.0
    kept = {way: ms * drift for way, ms in old.get("ms", {}).items() if way not in new["ms"]}
    parts = {part: old.get(part, {}) | new[part] for part in new if part != "problems"}
    return old | parts | {"ms": kept | new["ms"], "problems": new["problems"]}


def behind(rounds: dict[str, list[float]], ours: str) -> dict[str, float]:
    """A way of ours over each way of the incumbent: the median over rounds of one process."""
    others = [way for way in rounds if way.startswith("Inductor") and len(rounds[way]) == len(rounds.get(ours, ()))]
    return {w: statistics.median(x / y for x, y in zip(rounds[ours], rounds[w], strict=True)) for w in others}


def table(rows: dict[str, Any]) -> str:
    """The rows as Markdown; behind the times how ours, frozen, compares with the fastest of the incumbent's."""
    names = ["eager", *WAYS]
    lines = ["| model | " + " | ".join(names) + " | ours / fastest |", "|" + "---|" * (len(names) + 2)]
    for row, figures in rows.items():
        ms = figures["ms"]
        ratios = behind(figures.get("rounds", {}), "inductile frozen").values()
        cells = [f"{ms[n]:.1f}" if n in ms else "-" for n in names] + [f"{max(ratios):.3f}" if ratios else "-"]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is asked for, or one model where a process of our own asks."""
    from models import MODELS
    from more_models import MORE

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="+", default=[*MODELS, *MORE])
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument(
        "--ways", nargs="+", choices=WAYS, default=[w for w in WAYS if w.split()[-1] not in ("tuned", "all")]
    )
    parser.add_argument("--seconds", type=float, default=15, help="of CPU time for a model's calls")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--json", default="", help="where figures are kept")
    parser.add_argument("--lock", default="", help="a file to hold locked while calls are timed, 50 s at most")
    parser.add_argument("--again", action="store_true", help="measure what is in the file once more")
    parser.add_argument("--one", action="store_true", help="one model, in this process")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds to compile one way")
    parser.add_argument("--until", type=float, default=float("inf"), help="time since 1970 to stop compiling")
    parser.add_argument("--most", type=float, default=50, help="of wall seconds for a model's calls")
    parser.add_argument("--quiet", type=cores_of, default=[], help="cores to measure on, one at a time each, from then")
    parser.add_argument("--libraries", action="store_true", help="what a call spends in oneDNN")
    parser.add_argument("--kernels", action="store_true", help="the longest events of a call")
    parser.add_argument("--table", action="store_true", help="print the file, measure nothing")
    given = parser.parse_args()
    if given.kernels:
        MARKED["cpp.enable_kernel_profile"] = True
    if given.table:
        print(table(json.loads(Path(given.json).read_text())))
    elif given.one:
        row = f"{given.models[0]} {given.dtype}"
        print(table({row: keep(given.json, row, measure(given.models[0], given))}).splitlines()[-1], flush=True)
        if given.quiet:
            os._exit(0)  # what Python does at its end takes seconds of a core on which the next one measures
    else:
        measure_all(given)


def measure_all(given: argparse.Namespace) -> None:
    """Each model in a process of its own, one behind another."""
    kept = Path(given.json) if given.json else None
    for model in given.models:
        row = f"{model} {given.dtype}"
        rows: dict[str, Any] = json.loads(kept.read_text()) if kept and kept.exists() else {}
        ways = [way for way in given.ways if given.again or way not in rows.get(row, {}).get("ms", {})]
        if not ways:
            continue
        command = [sys.executable, __file__, "--one", "--models", model, "--dtype", given.dtype, "--json", given.json]
        command += ["--seconds", str(given.seconds), "--lock", given.lock, "--ways", *ways]
        command += ["--limit", str(given.limit), *(["--libraries"] if given.libraries else [])]
        print(row, file=sys.stderr, flush=True)
        try:
            subprocess.run(command, timeout=given.timeout, check=True)
        except subprocess.SubprocessError as error:
            print(f"  {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
