"""What the host takes for a call of a model on a GPU: `python benchmarks/gpu_host.py --out host.jsonl [--models ...]`.

For static sizes, for dynamic ones, and for dynamic ones with `torch._dynamo.config.specialize_float`, one beside the
other in one process, in microseconds: `wall` with the device waited for, `call` until a call returns that finds the
device idle, `graph` the part of it that our compiled graph takes, and `guards` the rest: Dynamo's guards and what
AOTAutograd puts around a graph. `--text` keeps the host programs too.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from gpu import make_importable

MODELS = ("t5_8x512", "gpt2_8x512", "bert_16x512")
#: kind of sizes -> `dynamic` of torch.compile, and whether floats of modules are constants
KINDS = {"static": (False, False), "dynamic": (True, False), "floats fixed": (True, True)}


class Named:
    """The backend under a name of its own: Dynamo finds what was compiled for it by the backend."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, graph: Any, inputs: Any, **more: Any) -> Any:
        """As the backend."""
        from inductile.backends.torch_compile import BACKEND

        return BACKEND(graph, inputs, **more)


@contextmanager
def graphs_that_run() -> Iterator[list[tuple[Any, list[Any]]]]:
    """The compiled graphs that run inside, each with its arguments."""
    from inductile.backends.runnable import RunnableGraph

    seen: list[tuple[Any, list[Any]]] = []
    original = RunnableGraph.__call__

    def call(self: Any, args: list[Any]) -> Any:
        seen.append((self, list(args)))
        return original(self, args)

    setattr(RunnableGraph, "__call__", call)  # noqa: B010
    try:
        yield seen
    finally:
        setattr(RunnableGraph, "__call__", original)  # noqa: B010


def timed(calls: dict[str, Callable[[], Any]], rounds: int, waits: bool) -> dict[str, float]:
    """The median time of each call in microseconds, one after the other in turns."""
    import torch

    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            torch.cuda.synchronize()
            started = time.perf_counter()
            call()
            if waits:
                torch.cuda.synchronize()
            times[name].append((time.perf_counter() - started) * 1e6)
    torch.cuda.synchronize()
    return {name: sorted(each)[len(each) // 2] for name, each in times.items()}


def measure(name: str, args: argparse.Namespace) -> dict[str, Any]:
    """The row of a model."""
    import models
    import torch

    function, inputs = models.build(name, torch.bfloat16, False, "cuda")
    calls: dict[str, Callable[[], Any]] = {}
    graphs: dict[str, Callable[[], Any]] = {}
    texts: dict[str, str] = {}
    for mode, (dynamic, fixed) in KINDS.items():
        compiled = torch.compile(function, backend=Named(mode), dynamic=dynamic, fullgraph=True)
        with torch._dynamo.config.patch(specialize_float=fixed):
            for _ in range(3):
                compiled(*inputs)
        with graphs_that_run() as seen:
            compiled(*inputs)
        ((graph, given),) = seen
        calls[mode] = partial(compiled, *inputs)
        graphs[mode] = lambda graph=graph, given=given: graph(list(given))
        texts[mode] = graph.program.source
    assert texts["static"] != texts["dynamic"]
    wall, call = (timed(calls, args.rounds, waits) for waits in (True, False))
    inner = timed(graphs, args.rounds, False)
    row: dict[str, Any] = {"host": name}
    for mode in calls:
        row[mode] = {
            "wall": round(wall[mode], 1), "call": round(call[mode], 1), "graph": round(inner[mode], 1),
            "guards": round(call[mode] - inner[mode], 1),
        }  # fmt: skip
    return row | ({"text": texts} if args.text else {})


def main() -> None:
    """Command line."""
    make_importable()
    import torch

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", default="gpu-host.jsonl", help="file of rows, added to")
    p.add_argument("--models", nargs="*", default=list(MODELS))
    p.add_argument("--rounds", type=int, default=60)
    p.add_argument("--text", action="store_true", help="keep the host programs in the rows")
    args = p.parse_args()
    torch.set_grad_enabled(False)
    for name in args.models:
        row = measure(name, args)
        with open(args.out, "a") as out:
            out.write(json.dumps(row) + "\n")
        print({key: value for key, value in row.items() if key != "text"}, flush=True)


if __name__ == "__main__":
    main()
