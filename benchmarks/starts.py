"""First calls of a first and of a second process: `python benchmarks/starts.py [--models gpt2 bert] [--device cuda]`.

Each backend has caches of its own, which are empty in its first process; the second one finds them full. What is timed
begins with the import of the backend, torch, Dynamo and the model being there, and ends with the first result.
"backend s" is what the backend takes inside Dynamo (AOTAutograd included), its import apart; the backend `eager` traces
and compiles nothing: its first call is what Dynamo takes. With `--training` a call is a training step. CPU seconds
stand beside seconds, since other processes of a machine lengthen the latter.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from processes import MeasurementError, in_fresh_process

HERE = Path(__file__).parent
MODELS = ("gpt2", "bert", "resnet50", "llama")
BACKENDS = ("eager", "inductor", "inductile")
_MODULES = {"inductor": "torch._inductor.compile_fx", "inductile": "inductile.backends.torch_compile"}
_INSIDE = "OutputGraph.call_user_compiler"
"""Dynamo's timer around a backend."""


def first_call(args: argparse.Namespace) -> dict[str, float]:
    """Seconds of the first call in this process: all of it, of its CPU, importing the backend, inside of it."""
    import torch
    import torch._dynamo.convert_frame
    from torch._dynamo.utils import compilation_time_metrics
    from training import Training

    dtype = getattr(torch, args.dtype)
    model = Training(args.case, args.small, dtype, args.device)
    wait = torch.cuda.synchronize if args.device == "cuda" else lambda: None
    if args.device == "cuda":
        torch.dot(torch.zeros(1, device="cuda"), torch.zeros(1, device="cuda"))  # the context and cuBLAS are there
        wait()
    wall, cpu = time.perf_counter(), time.process_time()
    if args.backend in _MODULES:
        importlib.import_module(_MODULES[args.backend])
    imported = time.perf_counter()
    compiled = torch.compile(model.function, backend=args.backend)
    inside_cpu = processor_seconds_inside()
    with torch.set_grad_enabled(args.training):
        model.step(compiled) if args.training else compiled(*model.inputs)
    wait()
    end, used = time.perf_counter(), time.process_time() - cpu
    inside = sum(compilation_time_metrics.get(_INSIDE, ()))
    return {"wall": end - wall, "cpu": used, "import": imported - wall, "inside": inside, "inside_cpu": sum(inside_cpu)}


def processor_seconds_inside() -> list[float]:
    """CPU seconds of each call of a backend by Dynamo from now on; Dynamo's own timer has seconds."""
    from torch._dynamo.output_graph import OutputGraph

    taken: list[float] = []
    call: Any = OutputGraph.call_user_compiler

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.process_time()
        try:
            return call(*args, **kwargs)
        finally:
            taken.append(time.process_time() - start)

    OutputGraph.call_user_compiler = timed  # type: ignore[method-assign]
    return taken


def measured(model: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each backend and each process: medians of the second ones."""
    for backend in args.backends:
        with tempfile.TemporaryDirectory() as cache:
            command = ["--case", model, "--backend", backend, "--device", args.device, "--dtype", args.dtype]
            command += ["--training"] * args.training + ["--small"] * args.small
            row: dict[str, Any] = {"model": model, "backend": backend, "device": args.device, "training": args.training}
            try:
                runs = [in_fresh_process(__file__, command, cache, args.timeout) for _ in range(1 + args.repeat)]
            except MeasurementError as error:
                yield {**row, "process": "first", "problem": str(error)}
                continue
            yield {**row, "process": "first", **runs[0]}
            if args.repeat:
                yield {**row, "process": "second", **{name: median(run[name] for run in runs[1:]) for name in runs[0]}}


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = ["| model | backend | process | s | CPU s | import s | backend s | backend CPU s |"]
    lines.append("|---|---|---|---:|---:|---:|---:|---:|")
    for row in rows:
        if "problem" in row:
            lines.append(f"| {row['model']} | {row['backend']} | {row['process']} | {row['problem']} | | | | |")
            continue
        cells = " | ".join(f"{row[name]:.2f}" for name in ("wall", "cpu", "import", "inside", "inside_cpu"))
        lines.append(f"| {row['model']} | {row['backend']} | {row['process']} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    sys.path.insert(0, str(HERE))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", nargs="*", default=list(MODELS))
    p.add_argument("--backends", nargs="*", default=list(BACKENDS))
    p.add_argument("--device", default="cpu")
    p.add_argument("--dtype", default="float32")
    p.add_argument("--training", action="store_true", help="training steps")
    p.add_argument("--small", action="store_true", help="cut depth and width")
    p.add_argument("--repeat", type=int, default=3, help="second processes, of which medians are shown")
    p.add_argument("--timeout", type=float, default=300, help="seconds of a process")
    p.add_argument("--json", type=Path, help="also add each row as a line of JSON to this file")
    p.add_argument("--case", help=argparse.SUPPRESS)
    p.add_argument("--backend", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.case:
        print(json.dumps(first_call(args)))
        return
    rows: list[dict[str, Any]] = []
    for row in (row for model in args.models for row in measured(model, args)):
        rows.append(row)
        if args.json is not None:
            with args.json.open("a") as file:
                file.write(json.dumps(row) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
