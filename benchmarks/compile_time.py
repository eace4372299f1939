"""Where the time of a first call goes: `python benchmarks/compile_time.py [--models bert gpt2] [--layers 12 48]`.

Each model is compiled in fresh processes, first with an empty kernel cache, then with a full one; the C++ compiler's
share is the difference of the two. `--layers` compiles one narrow GPT-2 at several depths, and with `aot_eager`, to
see how the time grows.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from processes import MeasurementError, in_fresh_process

HERE = Path(__file__).parent


def deep_gpt2(layers: int) -> tuple[Any, tuple[Any, ...]]:
    """A GPT-2 of width 64 and some depth, and its tokens."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=layers, n_embd=64, n_head=4, vocab_size=500, use_cache=False)
    model = GPT2LMHeadModel(config).eval()
    return lambda ids: model(ids).logits, (torch.randint(0, 500, (1, 32)),)


def first_call(case: str, backend: str) -> dict[str, Any]:
    """Seconds of one first call by stage, in this process; torch, the model and the backend are loaded before."""
    import torch
    import worker

    from inductile.backends.compiled import REPORTS
    from inductile.backends.torch_compile import inductile

    if case.isdigit():
        function, inputs = deep_gpt2(int(case))
    else:
        function, inputs = worker.models.build(case, torch.float32, False)
    inside = 0.0

    def timed(graph: Any, example: Any, **kwargs: Any) -> Any:
        nonlocal inside
        start = time.perf_counter()
        try:
            return inductile(graph, example, **kwargs)
        finally:
            inside += time.perf_counter() - start

    compiled = worker.compiled(function, timed if backend == "inductile" else backend, False)
    with torch.no_grad():
        start = time.perf_counter()
        compiled(*inputs)
        total = time.perf_counter() - start
        start = time.perf_counter()
        compiled(*inputs)
        run = time.perf_counter() - start
    stages: dict[str, float] = {}
    for report in REPORTS:
        for name, seconds in report.seconds.items():
            stages[name] = stages.get(name, 0.0) + seconds
    return {"total": total, "backend": inside, "run": run, "stages": stages}


def in_new_process(case: str, backend: str, cache: str) -> dict[str, Any]:
    """`first_call` in a fresh process with the given caches."""
    try:
        return in_fresh_process(__file__, ["--case", case, "--backend", backend], cache)
    except MeasurementError as error:
        raise SystemExit(f"{case}: " + "\n".join(error.lines)[-2000:]) from error


def breakdown(case: str, repeat: int) -> list[tuple[str, float]]:
    """(stage, seconds) of one model, medians of `repeat` runs, in the order of time."""
    cold: list[dict[str, Any]] = []
    warm: list[dict[str, Any]] = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(in_new_process(case, "inductile", cache))
            warm.append(in_new_process(case, "inductile", cache))
    emission = "emit and compile"
    names = [name for name in warm[0]["stages"] if name != emission]
    passes = [(name, median(r["stages"][name] for r in warm)) for name in names]
    emitted = median(r["stages"][emission] for r in warm)
    ours = sum(seconds for _, seconds in passes) + emitted
    aot = median(r["backend"] - sum(r["stages"].values()) for r in warm)
    dynamo = median(r["total"] - r["backend"] - r["run"] for r in warm)
    compiler = median(r["stages"][emission] for r in cold) - emitted
    rows = [("Dynamo and guards", dynamo), ("AOTAutograd and the rest of the backend", aot), *passes]
    rows += [("emission", emitted), ("g++ (empty cache)", compiler), ("our Python share", ours)]
    rows += [("first call, empty cache", median(r["total"] for r in cold))]
    return [*rows, ("first call, full cache", median(r["total"] for r in warm))]


def table(results: dict[str, list[tuple[str, float]]], least: float) -> str:
    """Milliseconds by stage, a column a model; stages below `least` milliseconds everywhere are one row."""
    order = list(dict.fromkeys(name for rows in results.values() for name, _ in rows))
    found = {case: dict(rows) for case, rows in results.items()}
    lines = ["| ms | " + " | ".join(results) + " |", "|---|" + "---:|" * len(results)]
    small = [n for n in order if all(found[c].get(n, 0.0) * 1e3 < least for c in results)]
    for name in order:
        if name == "emission" and small:
            sums = (sum(found[c].get(n, 0.0) for n in small) for c in results)
            lines.append(
                f"| {len(small)} stages below {least:g} | " + " | ".join(f"{s * 1e3:.1f}" for s in sums) + " |"
            )
        if name not in small:
            lines.append(f"| {name} | " + " | ".join(f"{found[c].get(name, 0.0) * 1e3:.1f}" for c in results) + " |")
    return "\n".join(lines)


def growth(layers: list[int]) -> str:
    """Cold first calls by depth, beyond what aot_eager takes."""
    lines = ["| layers | aot_eager s | inductile s | beyond |", "|---:|---:|---:|---:|"]
    for depth in layers:
        with tempfile.TemporaryDirectory() as cache:
            eager = in_new_process(str(depth), "aot_eager", cache)["total"]
            ours = in_new_process(str(depth), "inductile", cache)["total"]
        lines.append(f"| {depth} | {eager:.2f} | {ours:.2f} | {ours - eager:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    sys.path.insert(0, str(HERE))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", nargs="*", default=["gpt2", "bert"])
    p.add_argument("--layers", nargs="*", type=int, default=[12, 48])
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--least", type=float, default=2.0, help="milliseconds; shorter stages are summed up")
    p.add_argument("--case", help=argparse.SUPPRESS)
    p.add_argument("--backend", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.case:
        print(json.dumps(first_call(args.case, args.backend)))
        return
    if args.models:
        print(table({case: breakdown(case, args.repeat) for case in args.models}, args.least))
    if args.layers:
        print("\n" + growth(args.layers))


if __name__ == "__main__":
    main()
