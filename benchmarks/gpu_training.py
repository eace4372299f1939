"""Training steps on a GPU, eager, Inductor and inductile: `python benchmarks/gpu_training.py --out results.jsonl`.

A step is forward, the mean square of the outputs as loss, and backward; with `--dtype bfloat16` forward runs under
autocast. A process takes one model under all backends; `--jobs N` of them compile side by side, then each in turn
measures while the others sleep. `wall`, `running`, `device` and `peak` are those of `gpu_models.py`; `saved` is what
forward keeps for backward beside parameters and inputs; `error` that of the gradients, relative to float64. What the
file of results holds is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu import make_importable, read_results
from gpu_models import (
    BACKENDS,
    CHOICES,
    ROUNDS,
    Column,
    compiled,
    device_time,
    interleaved,
    peak_mib,
    summary,
    synchronize,
    table,
    warm_rows,
)
from turns import wait_for_turn

MODELS = ("bert", "gpt2", "llama", "resnet50", "vit")
COLUMNS: tuple[Column, ...] = (
    ("wall ms", "wall", ".2f"), ("running ms", "running", ".2f"), ("device ms", "device", ".2f"),
    ("launches", "launches", ""), ("first step s", "first", ".1f"), ("saved MiB", "saved", ".1f"),
    ("peak MiB", "peak", ".1f"), ("gradient error", "error", ".1e"),
)  # fmt: skip


def measure(name: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Compile a model under all backends, wait for this process's turn, and measure; a row a backend."""
    import torch
    import training

    autocast = torch.bfloat16 if args.dtype == "bfloat16" else None
    model = training.Training(name, args.small, torch.float32, args.device, autocast)
    exact = training.Training(name, args.small, torch.float64, args.device)
    exact.step(exact.function)
    reference = exact.gradients()
    del exact
    card = torch.cuda.get_device_name() if args.device != "cpu" else "cpu"
    rows: dict[str, dict[str, Any]] = {}
    calls: dict[str, Callable[[], Any]] = {}
    forwards: dict[str, Callable[..., Any]] = {}
    for backend in args.backends:
        torch._dynamo.reset()
        run = compiled(model.function, backend)
        rows[backend] = {"model": name, "backend": backend, "dtype": args.dtype, "card": card}
        try:
            start = time.perf_counter()
            model.step(run)
            synchronize(args.device)
            rows[backend]["first"] = time.perf_counter() - start
            for _ in range(3):  # with graphs: prepare, record, replay
                model.step(run)
            rows[backend]["error"] = model.error(reference)
        except Exception as error:
            rows[backend]["problem"] = f"{type(error).__name__}: {error}"[-600:]
            continue
        forwards[backend], calls[backend] = run, lambda run=run: model.step(run)
    wait_for_turn()
    for backend, spent in interleaved(calls, args.repeat, args.device).items():
        rows[backend]["wall"] = spent
    for backend, spent in interleaved(calls, ROUNDS, args.device, args.repeat).items():
        rows[backend]["running"] = spent
    for backend, call in calls.items():
        rows[backend]["saved"] = model.saved_bytes(forwards[backend]) / 2**20
        if args.device != "cpu":
            rows[backend]["peak"] = peak_mib(call, model.module.zero_grad)
            rows[backend]["device"], rows[backend]["launches"], _ = device_time(call)
    return list(rows.values())


def main() -> None:
    """Measure what the file of results lacks; print everything."""
    make_importable()
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", default="gpu-training.jsonl", help="file of results, read and added to")
    p.add_argument("--models", nargs="*", default=list(MODELS))
    p.add_argument("--backends", nargs="*", default=list(BACKENDS), choices=CHOICES, metavar="BACKEND[:MODE]")
    p.add_argument("--dtype", default="float32", choices=("bfloat16", "float32"), help="bfloat16: under autocast")
    p.add_argument("--jobs", type=int, default=1, help="processes that compile side by side")
    p.add_argument("--repeat", type=int, default=20, help="timed steps of each backend")
    p.add_argument("--timeout", type=float, default=120, help="seconds for the timings of a model")
    p.add_argument("--deadline", type=float, default=0, help="start nothing after so many seconds; 0: no limit")
    p.add_argument("--small", action="store_true", help="models cut down, to try the command")
    p.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    p.add_argument("--worker", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.worker:
        return print(json.dumps(measure(args.worker, args)))
    started, out = time.monotonic(), Path(args.out)
    rows = [r for r in read_results(out) if r["dtype"] == args.dtype]
    reached = {r["model"] for r in rows}
    deadline = started + args.deadline if args.deadline else float("inf")
    with out.open("a") as file:
        for found in warm_rows([name for name in args.models if name not in reached], args, deadline, __file__):
            rows += found
            file.write("".join(json.dumps(row) + "\n" for row in found))
            file.flush()
            print(f"{found[0]['model']} at {time.monotonic() - started:.0f} s", flush=True)
    print(table(rows, args.backends, COLUMNS))
    print(summary(rows, args.backends))


if __name__ == "__main__":
    main()
