"""Models on the CPU beside eager and Inductor, weights frozen or not: `python benchmarks/frozen.py --json FILE`.

All ways to run a model are compiled in one process and timed in turns: the least CPU time of a call on one thread, so
that others may use the machine. Each model has a process of its own, and FILE gets its row at once. Ways that FILE has
are not measured again, unless `--again`: rows of the incumbent are recorded once, and ours join them. A way is compared
by its time over eager's of the same process, since the speed of a machine drifts from row to row. With `--lock LOCK`
calls are timed while that file is locked, for those who share a machine.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

Run = Callable[[], Any]

#: what `torch.compile` gets: with options of its own, each way has an entry of its own in Dynamo's cache
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "inductile": ("inductile", {}),
    "inductile frozen": ("inductile", {"freezing": True}),
    "inductile tuned": ("inductile", {"freezing": True, "max_autotune": True}),
    "Inductor": ("inductor", {}),
    "Inductor frozen": ("inductor", {"freezing": True}),
    "Inductor tuned": ("inductor", {"freezing": True, "max_autotune": True}),
}


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
    settings = options if backend == "inductor" else {}  # as an option alone it does not freeze
    with config.patch(settings):
        call = torch.compile(function, backend=backend, options=options or None)
        call(*inputs)
        call(*inputs)
    print(f"  {way}: {time.perf_counter() - started:.1f} s to compile", file=sys.stderr, flush=True)
    return lambda: call(*inputs)


@contextmanager
def alone(lock: str) -> Iterator[None]:
    """While nobody else holds a lock; at once where there is none."""
    if not lock:
        yield
        return
    with open(lock, "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def least(calls: dict[str, Run], seconds: float, most: float = 50) -> dict[str, float]:
    """Least CPU milliseconds of each, in turns: five rounds or more, about `seconds` of CPU time, `most` in all."""
    found = dict.fromkeys(calls, float("inf"))
    begun, since, rounds = time.process_time(), time.monotonic(), 0
    while (rounds < 5 or time.process_time() - begun < seconds) and time.monotonic() - since < most:
        rounds += 1
        for name, call in calls.items():
            started = time.thread_time()
            call()
            found[name] = min(found[name], 1e3 * (time.thread_time() - started))
    return found


def measure(name: str, dtype: torch.dtype, ways: list[str], seconds: float, lock: str) -> dict[str, Any]:
    """Figures of one model in this process."""
    torch.set_num_threads(1)
    torch._dynamo.config.allow_rnn = True  # else Dynamo leaves LSTM and GRU to eager, whatever the backend is
    function, inputs = built(name, dtype)
    with torch.no_grad():
        expected = function(*inputs)
        calls: dict[str, Run] = {"eager": lambda: function(*inputs)}
        problems = {}
        for way in ways:
            try:
                calls[way] = compiled(function, inputs, way)
            except Exception as error:  # a way that fails is a row without it
                problems[way] = f"{type(error).__name__}: {error}"[:300]
        errors = {way: float((call() - expected).norm() / expected.norm()) for way, call in calls.items()}
        with alone(lock):
            times = least(calls, seconds)
        return {"ms": times, "from eager": errors, "problems": problems}


def joined(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A row with ways that were measured in another process: their times go with eager's time in this one."""
    drift = new["ms"]["eager"] / old["ms"]["eager"] if old else 1.0
    kept = {way: ms * drift for way, ms in old.get("ms", {}).items() if way not in new["ms"]}
    return {
        "ms": kept | new["ms"],
        "from eager": old.get("from eager", {}) | new["from eager"],
        "problems": new["problems"],
    }


def table(rows: dict[str, Any]) -> str:
    """The rows as Markdown."""
    names = ["eager", *WAYS]
    lines = ["| model | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 1)]
    for row, figures in rows.items():
        ms = figures["ms"]
        lines.append(f"| {row} | " + " | ".join(f"{ms[n]:.1f}" if n in ms else "-" for n in names) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is asked for, or one model where a process of our own asks."""
    from models import MODELS
    from more_models import MORE

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="+", default=[*MODELS, *MORE])
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float16"))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=[w for w in WAYS if "tuned" not in w])
    parser.add_argument("--seconds", type=float, default=15, help="of CPU time for a model's calls")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--json", default="", help="where figures are kept")
    parser.add_argument("--lock", default="", help="a file to hold locked while calls are timed, 50 s at most")
    parser.add_argument("--again", action="store_true", help="measure what is in the file once more")
    parser.add_argument("--one", action="store_true", help="one model, in this process")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.models[0], getattr(torch, given.dtype), given.ways, given.seconds, given.lock)))
        return
    kept = Path(given.json) if given.json else None
    rows: dict[str, Any] = json.loads(kept.read_text()) if kept and kept.exists() else {}
    for model in given.models:
        row = f"{model} {given.dtype}"
        old = rows.get(row, {})
        ways = [way for way in given.ways if given.again or way not in old.get("ms", {})]
        if not ways:
            continue
        command = [sys.executable, __file__, "--one", "--models", model, "--dtype", given.dtype]
        command += ["--seconds", str(given.seconds), "--lock", given.lock, "--ways", *ways]
        print(row, file=sys.stderr, flush=True)
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=given.timeout, check=True)
        except subprocess.SubprocessError as error:
            print(f"  {error}", file=sys.stderr)
            continue
        rows[row] = joined(old, json.loads(done.stdout.splitlines()[-1]))
        print(table({row: rows[row]}).splitlines()[-1], flush=True)
        if kept:
            kept.write_text(json.dumps(rows, indent=1))
    print(table(rows))


if __name__ == "__main__":
    main()
