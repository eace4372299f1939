"""Our share of a first compile on a shared machine: `python benchmarks/first_compiles.py [12 bert] [--forks 9]`.

A model is traced once. In front of our compiler the process forks, as often as `--forks` says; each fork compiles the
graph for the first time, with its kernels in the disk cache, and then once more. Seconds are those of the compiling
thread on the processor, and the least of the forks. Where other programs share caches and memory those grow too, so
that each fork also times work that never changes, the yardstick: what a compile takes over it moves less. A fork shares
the memory of its parent, and a first write to each page costs a copy: all pages are copied before the clock starts.
`--profile N` prints the N functions of one fork that take longest by themselves, and with what they call.
"""

from __future__ import annotations

import argparse
import cProfile
import ctypes
import gc
import json
import os
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: milliseconds of `yardstick` on the machine of benchmarks/RESULTS.md when nothing else runs there
LEAST = 4.45
_POPULATE_WRITE = 23
"""MADV_POPULATE_WRITE of Linux 5.14"""
sys.path.insert(0, str(HERE))

from compile_time import EMISSION, LOADING, count_processor_time, deep_gpt2  # noqa: E402


def in_fork(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a function finds in a fork of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            found = json.dumps(measure()).encode()
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(found)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if status or not text:
        raise SystemExit("a fork has failed; what it wrote stands above")
    return json.loads(text)


def own_all_memory() -> None:
    """Copy the pages that a fork shares with its parent now, and not one by one when they are first written to."""
    libc = ctypes.CDLL(None, use_errno=True)
    for line in Path("/proc/self/maps").read_text().splitlines():
        places, rights, *_ = line.split()
        first, last = (int(place, 16) for place in places.split("-"))
        if rights == "rw-p":
            libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), _POPULATE_WRITE)


class _Node:
    def __init__(self, number: int, inner: tuple[_Node, ...]) -> None:
        self.number = number
        self.inner = inner


def yardstick() -> float:
    """Processor seconds of work in Python that is always the same: objects, tuples as keys, walks."""
    started = time.thread_time()
    for _ in range(4):
        table: dict[tuple[int, str], _Node] = {}
        nodes: list[_Node] = []
        for number in range(1500):
            node = _Node(number, tuple(nodes[-3:]))
            nodes.append(node)
            table[number % 97, f"n{number % 89}"] = node
        sum(inner.number for node in nodes for inner in node.inner if isinstance(inner, _Node) and inner.number % 7)
    return time.thread_time() - started


def stages(compile_once: Callable[[], Any], calls: int, profile: int) -> dict[str, Any]:
    """Processor seconds by stage of each of some compiles, all of them together, and modules that they loaded."""
    from inductile.backends.compiled import REPORTS

    gc.collect()
    gc.disable()
    own_all_memory()
    rows: list[dict[str, float]] = []
    ruler = yardstick()
    for _ in range(calls):
        REPORTS.clear()
        modules, started = len(sys.modules), time.thread_time()
        profiler = cProfile.Profile(time.thread_time) if profile else None
        if profiler is None:
            compile_once()
        else:
            profiler.runcall(compile_once)
        whole = time.thread_time() - started
        seconds = {name: s for report in REPORTS for name, s in report.seconds.items()}
        share = sum(s for name, s in seconds.items() if name != LOADING)
        before, ruler = ruler, yardstick()
        sizes = {"share": share, "whole": whole, "modules": len(sys.modules) - modules}
        rows.append({**seconds, **sizes, "yardstick": (before + ruler) / 2})
        if profiler is not None:
            pstats.Stats(profiler).sort_stats("tottime").print_stats(profile)
            pstats.Stats(profiler).sort_stats("cumtime").print_stats(profile)
    return {"rows": rows}


def on_fake_gpu(function: Any, inputs: tuple[Any, ...], mode: Any) -> tuple[Any, ...]:
    """Put a model on a GPU that need not be there; its inputs there. Attention is the library's, as on a real one."""
    import torch

    from inductile.backends.triton import offline

    torch.nn.functional.scaled_dot_product_attention = _library_attention
    offline.on_fake_gpu(function.module, mode)
    with mode:
        return tuple(offline.fake_like(each) for each in inputs)


def _library_attention(query: Any, key: Any, value: Any, attn_mask: Any = None, **options: Any) -> Any:
    """What torch calls for float32 on a GPU; without one it takes attention apart."""
    import torch

    causal, scale = options.get("is_causal", False), options.get("scale")
    attention = torch.ops.aten._scaled_dot_product_efficient_attention
    return attention(query, key, value, attn_mask, False, 0.0, causal, scale=scale)[0]


def traced(
    case: str, measure: Callable[[Callable[[], Any]], dict[str, Any]], args: argparse.Namespace
) -> tuple[int, list[Any]]:
    """ATen ops of a model's graph, and what each fork finds."""
    import torch
    import worker
    from torch._subclasses import FakeTensorMode

    from inductile.backends import compile_graph
    from inductile.backends.torch_compile import inductile

    function, inputs = deep_gpt2(int(case)) if case.isdigit() else worker.models.build(case, torch.float32, False)
    original, found, ops = compile_graph.compile_graph, [], 0
    mode = FakeTensorMode(allow_non_fake_inputs=True) if args.target else nullcontext()
    if args.target:
        inputs = on_fake_gpu(function, inputs, mode)

    def forked(graph: Any, examples: Any, config: Any, kind: str, *rest: Any) -> Any:
        nonlocal ops
        ops += sum(isinstance(node.target, torch._ops.OpOverload) for node in graph.graph.nodes)

        def once() -> Any:
            return original(graph, examples, config, kind, *rest, target=args.target)

        in_fork(lambda: stages(once, 1, 0))  # kernels get into the cache
        found.extend(in_fork(lambda: measure(once)) for _ in range(args.forks))
        return compile_graph.eager_callable(graph, examples)

    compile_graph.compile_graph = forked
    with torch.no_grad(), mode:
        torch.compile(function, backend=inductile, dynamic=args.dynamic)(*inputs)
    return ops, found


def main() -> None:
    """Command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cases", nargs="*", default=["12"], help="models of compile_time.py, or layers of a narrow GPT-2")
    p.add_argument("--forks", type=int, default=9)
    p.add_argument("--least", type=float, default=1.5, help="milliseconds; shorter stages are not shown")
    p.add_argument("--profile", type=int, default=0)
    p.add_argument("--dynamic", action="store_true", default=None, help="all sizes are symbols")
    p.add_argument("--target", help="of a GPU that need not be there, such as cuda:90")
    args = p.parse_args()
    os.environ["INDUCTILE_GRAPH_CACHE"] = "0"
    with tempfile.TemporaryDirectory() as cache:
        os.environ["INDUCTILE_CACHE_DIR"] = cache
        import torch  # noqa: F401

        count_processor_time()
        for case in args.cases:
            show(case, *traced(case, lambda once: stages(once, 2, args.profile), args), args.least)


def show(case: str, ops: int, found: list[Any], least: float) -> None:
    """Milliseconds by stage, of a first and of a second compile."""
    first, second = ([f["rows"][n] for f in found] for n in (0, 1))

    def minimum(rows: list[dict[str, float]], name: str) -> float:
        return min(r.get(name, 0.0) for r in rows) * 1e3

    print(f"\n{case}: {ops} ATen ops, least of {len(found)} forks\n\n| ms | first compile | second |\n|---|---:|---:|")
    for name in first[0]:
        label = {
            EMISSION: "emission",
            LOADING: "loading code, once a process",
            "share": "our share, without loading code",
            "whole": "all",
        }.get(name, name)
        if name != "modules" and minimum(first, name) >= least:
            print(f"| {label} | {minimum(first, name):.1f} | {minimum(second, name):.1f} |")
    share = [minimum(rows, "share") / ops for rows in (first, second)]
    quiet = [min(r["share"] / r["yardstick"] for r in rows) * LEAST / ops for rows in (first, second)]
    loads = [min(r[LOADING] / r["yardstick"] for r in rows) * LEAST for rows in (first, second)]
    print(f"| our share, an ATen op | {share[0]:.3f} | {share[1]:.3f} |")
    print(f"| the same where the yardstick takes {LEAST} ms | {quiet[0]:.3f} | {quiet[1]:.3f} |")
    print(f"| loading code there, ms | {loads[0]:.1f} | {loads[1]:.1f} |")
    print(f"| modules loaded | {first[0]['modules']} | {second[0]['modules']} |", flush=True)


if __name__ == "__main__":
    main()
