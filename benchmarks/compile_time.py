"""Where the time of a first call goes: `python benchmarks/compile_time.py [--models bert gpt2] [--layers 12 48]`.

Each model is compiled in fresh processes, first with an empty kernel cache, then with a full one; the C++ compiler's
share is the difference of the two. `--layers` compiles one narrow GPT-2 at several depths, and with `aot_eager`, to
see how the time grows. Beside what a first call takes beyond `aot_eager`, the difference of two large noisy numbers,
stands what our own timers say: passes, verification and emission, with g++ apart. With `--cpu` stages are seconds of
the processor and minima: what the machine does besides makes them longer, but by far less.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

from processes import MeasurementError, in_fresh_process

HERE = Path(__file__).parent


def deep_gpt2(layers: int) -> tuple[Any, tuple[Any, ...]]:
    """A GPT-2 of width 64 and some depth, and its tokens."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=layers, n_embd=64, n_head=4, vocab_size=500, use_cache=False)
    model = GPT2LMHeadModel(config).eval()

    def forward(ids: Any) -> Any:
        return model(ids).logits

    forward.module = model  # pyright: ignore[reportFunctionMemberAccess]
    return forward, (torch.randint(0, 500, (1, 32)),)


def count_processor_time() -> None:
    """Let the stages of a compile be seconds of the processor, without those of compilers that are waited for."""
    from inductile.backends import compile_graph, run_passes
    from inductile.passes import manager

    for module in (compile_graph, run_passes, manager):
        vars(module)["time"] = SimpleNamespace(perf_counter=time.thread_time)


def first_call(case: str, backend: str) -> dict[str, Any]:
    """Seconds of one first call by stage, in this process; torch, the model and the backend are loaded before."""
    import torch
    import worker

    from inductile.backends import compile_graph
    from inductile.backends.compiled import REPORTS
    from inductile.backends.torch_compile import inductile

    if case.isdigit():
        function, inputs = deep_gpt2(int(case))
    else:
        function, inputs = worker.models.build(case, torch.float32, False)
    inside = 0.0
    aten_ops = 0
    import_graph = compile_graph.import_graph

    def counted(graph: Any, example: Any) -> Any:
        nonlocal aten_ops
        aten_ops += sum(isinstance(node.target, torch._ops.OpOverload) for node in graph.graph.nodes)
        return import_graph(graph, example)

    compile_graph.import_graph = counted

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
    return {"total": total, "backend": inside, "run": run, "stages": stages, "aten_ops": aten_ops}


def in_new_process(case: str, backend: str, cache: str) -> dict[str, Any]:
    """`first_call` in a fresh process with the given caches."""
    os.environ["INDUCTILE_GRAPH_CACHE"] = "0"  # a graph that is loaded has no stages
    try:
        return in_fresh_process(__file__, ["--case", case, "--backend", backend], cache)
    except MeasurementError as error:
        raise SystemExit(f"{case}: " + "\n".join(error.lines)[-2000:]) from error


_CPU = "COMPILE_TIME_CPU"
EMISSION = "emit and compile"
#: once in a process, whatever its graphs: no part of the share
LOADING = "load code"
PER_OP = "our Python share, an ATen op"


def breakdown(case: str, repeat: int) -> list[tuple[str, float]]:
    """(stage, seconds) of one model, medians of `repeat` runs, in the order of time."""
    cold: list[dict[str, Any]] = []
    warm: list[dict[str, Any]] = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(in_new_process(case, "inductile", cache))
            warm.append(in_new_process(case, "inductile", cache))
    names = [name for name in warm[0]["stages"] if name not in (EMISSION, LOADING)]
    middle = min if os.environ.get(_CPU) else median
    passes = [(name, middle(r["stages"].get(name, 0.0) for r in warm)) for name in names]
    emitted = middle(r["stages"][EMISSION] for r in warm)
    ours = sum(seconds for _, seconds in passes) + emitted
    aot = median(r["backend"] - sum(r["stages"].values()) for r in warm)
    dynamo = median(r["total"] - r["backend"] - r["run"] for r in warm)
    compiler = median(r["stages"][EMISSION] for r in cold) - emitted
    rows = [("Dynamo and guards", dynamo), ("AOTAutograd and the rest of the backend", aot), *passes]
    rows += [("emission", emitted), ("g++ (empty cache)", compiler), ("our Python share", ours)]
    rows += [(PER_OP, ours / warm[0]["aten_ops"])]
    rows += [("loading code, once a process", middle(r["stages"][LOADING] for r in warm))]
    rows += [("first call, empty cache", median(r["total"] for r in cold))]
    return [*rows, ("first call, full cache", median(r["total"] for r in warm))]


def table(results: dict[str, list[tuple[str, float]]], least: float) -> str:
    """Milliseconds by stage, a column a model; stages below `least` milliseconds everywhere are one row."""
    order = list(dict.fromkeys(name for rows in results.values() for name, _ in rows))
    found = {case: dict(rows) for case, rows in results.items()}
    lines = ["| ms | " + " | ".join(results) + " |", "|---|" + "---:|" * len(results)]
    small = [n for n in order if n != PER_OP and all(found[c].get(n, 0.0) * 1e3 < least for c in results)]
    for name in order:
        if name == "emission" and small:
            sums = (sum(found[c].get(n, 0.0) for n in small) for c in results)
            lines.append(
                f"| {len(small)} stages below {least:g} | " + " | ".join(f"{s * 1e3:.1f}" for s in sums) + " |"
            )
        if name not in small:
            digits = 3 if name == PER_OP else 1
            cells = (f"{found[c].get(name, 0.0) * 1e3:.{digits}f}" for c in results)
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def depth_figures(depth: int, repeat: int) -> dict[str, float]:
    """Seconds at one depth, medians of `repeat` fresh processes each: first calls, our Python, g++; and ATen ops."""
    runs: dict[str, list[dict[str, Any]]] = {"aot_eager": [], "cold": [], "warm": []}
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            runs["aot_eager"].append(in_new_process(str(depth), "aot_eager", cache))
            runs["cold"].append(in_new_process(str(depth), "inductile", cache))
            runs["warm"].append(in_new_process(str(depth), "inductile", cache))
    found = {name: median(r["total"] for r in results) for name, results in runs.items()}
    found["ours"] = median(sum(s for name, s in r["stages"].items() if name != LOADING) for r in runs["warm"])
    found["compiler"] = median(r["stages"][EMISSION] for r in runs["cold"]) - median(
        r["stages"][EMISSION] for r in runs["warm"]
    )
    return found | {"aten_ops": runs["warm"][0]["aten_ops"]}


def growth(layers: list[int], repeat: int) -> str:
    """First calls and our own share by depth, and each over that of the first depth."""
    lines = [
        "| layers | ATen ops | aot_eager s | inductile s: empty / full cache | beyond aot_eager s: empty / full "
        "| our Python ms | g++ ms | both, over the first | our Python, ms an ATen op |",
        "|" + "---:|" * 9,
    ]
    first = 0.0
    for depth in layers:
        f = depth_figures(depth, repeat)
        own = f["ours"] + f["compiler"]
        first = first or own
        beyond = f"{f['cold'] - f['aot_eager']:.2f} / {f['warm'] - f['aot_eager']:.2f}"
        lines.append(
            f"| {depth} | {f['aten_ops']} | {f['aot_eager']:.2f} | {f['cold']:.2f} / {f['warm']:.2f} | {beyond} "
            f"| {f['ours'] * 1e3:.0f} | {f['compiler'] * 1e3:.0f} | {own / first:.2f} "
            f"| {f['ours'] * 1e3 / f['aten_ops']:.3f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    sys.path.insert(0, str(HERE))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", nargs="*", default=["gpt2", "bert"])
    p.add_argument("--layers", nargs="*", type=int, default=[12, 48])
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--least", type=float, default=2.0, help="milliseconds; shorter stages are summed up")
    p.add_argument("--cpu", action="store_true", help="stages in processor time, for a machine that is shared")
    p.add_argument("--case", help=argparse.SUPPRESS)
    p.add_argument("--backend", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.cpu:
        os.environ[_CPU] = "1"
    if args.case:
        if os.environ.get(_CPU):
            count_processor_time()
        print(json.dumps(first_call(args.case, args.backend)))
        return
    if args.models:
        print(table({case: breakdown(case, args.repeat) for case in args.models}, args.least))
    if args.layers:
        print("\n" + growth(args.layers, args.repeat))


if __name__ == "__main__":
    main()
