"""Milliseconds of a token of the 1.1B Llama of `decoding.py` on a GPU, recorded, compiled in several ways.

`python benchmarks/decode_steps.py --out r.jsonl`: a process for each way compiles; then they measure one by one.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import itertools
import json
import multiprocessing
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import torch
from decoding import KINDS, SHAPES, Llama, inputs
from gpu import make_importable

Options = dict[str, str]
_WAIT = {"kernel-overlap-launches": "overlap-launches=true"}
_AHEAD = _WAIT | {"kernel-load-ahead": "overlap-launches=true"}
_ROWS = dict.fromkeys(("kernel-tile", "kernel-choose-warps"), "overlap-launches=true")
_OVERLAP = _AHEAD | _ROWS
_APART = {"loop-repeat-rows": "repeat-rows=false"}
#: way -> options of passes; nothing for a pass that is left out. `auto` is what users get
WAYS: dict[str, Options] = {
    "inductor": {},
    "eager": {},
    "auto": {},
    "default": {},
    "overlap": _OVERLAP,
    "apart": _APART,
    "apart, overlap": _APART | _OVERLAP,
    "turned apart": {"kernel-inline-launches": ""},
    "wait first": _WAIT,
    "wait first, rows": _WAIT | _ROWS,
    "weights ahead": _AHEAD,
    "overlap, released at once": _OVERLAP | {"kernel-overlap-launches": "overlap-launches=true late-release=false"},
}


def pipeline(options: Options) -> str:
    """The default pipeline with options of passes."""
    from inductile.lowering.pipeline import pipeline_string

    names = pipeline_string().split(",")
    kept = [name for name in names if options.get(name) != ""]
    return ",".join(f"{name}{{{options[name]}}}" if name in options else name for name in kept)


def measure(kind: str, name: str, options: Options, size: str, device: str, out: str, ready: Any) -> None:
    """Write a row, once all processes are `ready`."""
    row: dict[str, Any] = {"decode": kind, "name": name}
    try:
        make_importable()
        torch.manual_seed(0)
        with torch.no_grad():
            with torch.device(device):
                model, given = Llama(SHAPES[size], KINDS[kind]).eval(), inputs(device)
            exact = model(*given).float()
            began = time.time()
            mode: dict[str, Any] = {"pipeline": pipeline(options), "overlap_launches": False}
            if name == "auto":
                mode = {}
            if device == "cuda":
                mode["triton.cudagraphs"] = True
            if name == "eager":
                run = model
            elif name == "inductor":
                run = torch.compile(model, mode="reduce-overhead", dynamic=False)
            else:
                run = torch.compile(model, backend="inductile", options=mode, dynamic=False)
            for _ in range(5):
                run(*given)
            found = run(*given)
            row |= {"first_s": time.time() - began, "error": float((found.float() - exact).norm() / exact.norm())}
            if device == "cuda":
                torch.cuda.synchronize()
            wait(ready)
            with open("/tmp/decode_steps.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if device == "cuda":
                    row |= timed(run, given, 4 if name == "eager" else 40)
    except Exception as error:
        row["failed"] = f"{type(error).__name__} {error}"[-600:]
        if "first_s" not in row:
            wait(ready)
    with open(out, "a") as file:
        file.write(json.dumps(row) + "\n")


def wait(ready: Any) -> None:
    """Wait for the other processes, unless one of them takes too long."""
    with contextlib.suppress(threading.BrokenBarrierError):
        ready.wait()


def timed(run: Any, given: Any, calls: int) -> dict[str, Any]:
    """The least milliseconds of so many calls in a row, and what a profile says of one."""
    least = float("inf")
    for _ in range(6):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(calls):
            run(*given)
        torch.cuda.synchronize()
        least = min(least, (time.perf_counter() - began) / calls)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        run(*given)
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = [e for e in json.loads(path.read_text())["traceEvents"] if e.get("cat") == "kernel"]
    events.sort(key=lambda event: event["ts"])
    return {"ms": 1e3 * least, "launches": len(events)} | summary(events)


def summary(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What launches of a token take: each kernel with programs, threads, registers, count and mean microseconds.

    And the sum of all launches, and of the gaps between one and the next.
    """
    kernels: dict[tuple[str, str, str, int], list[float]] = {}
    for each in events:
        about = each["args"]
        grid, block = ("x".join(map(str, about[key])) for key in ("grid", "block"))
        key = each["name"][:40], grid, block, about["registers per thread"]
        kernels.setdefault(key, []).append(each["dur"])
    gaps = [after["ts"] - before["ts"] - before["dur"] for before, after in itertools.pairwise(events)]
    rows = [[*key, len(us), round(sum(us) / len(us), 2)] for key, us in kernels.items()]
    rows.sort(key=lambda row: -row[4] * row[5])
    total = {"kernels_us": round(sum(map(sum, kernels.values())), 1), "gaps_us": round(sum(gaps), 1)}
    some = [[e["name"][:24], round(e["ts"] - events[20]["ts"], 2), round(e["dur"], 2)] for e in events[20:32]]
    return total | {"kernels": rows[:40], "some": some}


def main() -> None:
    """Measure all schedules."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--size", default="1.1b")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--kinds", nargs="+", default=["bf16", "int8", "int4"])
    parser.add_argument("--ways", nargs="+", default=WAYS)
    parser.add_argument("--only", nargs="+", default=[], help="KIND/WAY instead of all")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--ready", type=float, default=60, help="seconds that a process waits for the others")
    args = parser.parse_args()
    processes = []
    spawn = multiprocessing.get_context("spawn")
    wanted = [pair.split("/") for pair in args.only] or itertools.product(args.kinds, args.ways)
    wanted = list(wanted)
    ready = spawn.Barrier(len(wanted), timeout=args.ready)
    for kind, name in wanted:
        given = (kind, name, WAYS[name], args.size, args.device, str(args.out), ready)
        processes.append(spawn.Process(target=measure, args=given))
    end = time.time() + args.seconds
    for each in processes:
        each.start()
    for each in processes:
        each.join(max(end - time.time(), 0.1))
        if each.is_alive():
            each.kill()


if __name__ == "__main__":
    main()
