"""Sums and variances of columns, and other kinds at small sizes: `python benchmarks/columns.py --out rows.jsonl`.

Eager, Inductor and inductile in one process, which measures in turns with others that `--jobs` starts: all compile
first, then one at a time runs. Forward microseconds are between events around a call, behind a queue of work, so that
launches don't count; those of a step are the sum of its kernels, as `gpu_patterns.py` takes them. The L2 cache is
flushed before each call. `error` is relative to float64, to be held against eager's own.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

from gpu import Profiler, make_importable, relative_error, tensors

BACKENDS = ("eager", "inductor", "inductile")
SIZES = (
    "2048x1024", "12544x512", "4096x16384", "32768x768", "8192x4096", "200704x64", "512x4096", "1024x1024", "1000x333",
    "65536x256",
)  # fmt: skip
#: of columns; `gradients` are those of a norm's weight and bias
COLUMNS: dict[str, Callable[..., Any]] = {
    "var": lambda x: x.var(0),
    "sum": lambda x: x.sum(0),
    "var_mean": lambda x: (x.var(0), x.mean(0)),
    "gradients": lambda x, y: (x.sum(0), (x * y).sum(0)),
    "amax": lambda x: x.amax(0),
}
#: kinds that have gradients, and sizes that are published for smaller models
OTHERS = (
    "cosine", "cumulative_mean", "gated_cumulative_mean", "divergence", "distillation", "mse", "row_products",
    "row_distances", "row_polynomials", "gate", "scattered_gate", "column_standard", "layer_norm", "batch_norm", "adam",
)  # fmt: skip
ROWS_SIZES = {"gate": ("2048x64", "8192x64"), "scattered_gate": ("2048x64",), "adam": ("768x768", "1x768")}
REPEATS, WARM = 40, 3
FLUSH_BYTES = 1 << 29


@dataclass(frozen=True)
class Task:
    """One function of one size."""

    kind: str
    size: str
    dtype: str
    step: bool = False

    def build(self, device: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The function and its inputs."""
        import torch
        import torch.nn.functional as F
        from more_patterns import CASES

        rows, width = map(int, self.size.split("x"))
        generator = torch.Generator(device).manual_seed(0)
        dtype = getattr(torch, self.dtype)

        def made(*shape: int) -> Any:
            return torch.randn(shape, generator=generator, device=device).to(dtype)

        if self.kind in COLUMNS:
            return COLUMNS[self.kind], tuple(made(rows, width) for _ in range(1 + (self.kind == "gradients")))
        if self.kind in ("layer_norm", "batch_norm"):
            x, w, b = made(rows, width), made(width), made(width)
            if self.kind == "layer_norm":
                return lambda x, w, b: F.layer_norm(x, (width,), w, b), (x, w, b)
            return lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (x, w, b)
        function = CASES[self.kind][0]
        if self.kind == "adam":
            return function, tuple(made(rows, width).float() for _ in range(4))
        two = self.kind in (
            "cosine", "gated_cumulative_mean", "divergence", "distillation", "mse", "row_products", "row_distances"
        )  # fmt: skip
        return function, tuple(made(rows, width) for _ in range(1 + two))


class Case:
    """A task with its compiled functions."""

    def __init__(self, task: Task, device: str, backends: tuple[str, ...]) -> None:
        import torch

        self.task, self.device = task, device
        function, self.inputs = task.build(device)
        # Dynamo keeps what it compiles by code, and takes a second size of the same code for a dynamic one
        code = function.__code__.replace(co_name=f"{task.kind}_{task.size}_{task.dtype}_{task.step}")
        self.function = FunctionType(code, function.__globals__, code.co_name, None, function.__closure__)
        if task.step:
            self.inputs = tuple(x.requires_grad_() for x in self.inputs)
        self.runs = {b: self.function if b == "eager" else self._compiled(b) for b in backends}
        outputs = self._outputs(self.function(*self.inputs))
        generator = torch.Generator(device).manual_seed(1)
        self.cotangents = [torch.randn(o.shape, generator=generator, device=device).to(o.dtype) for o in outputs]
        for backend in backends:
            for _ in range(WARM):
                self.call(backend)

    def _compiled(self, backend: str) -> Callable[..., Any]:
        import torch

        import inductile.backends.torch_compile as module

        return torch.compile(
            self.function, backend=module.inductile if backend == "inductile" else backend, dynamic=False
        )

    def _outputs(self, got: Any) -> list[Any]:
        return [x for x in tensors(got) if x.is_floating_point()]

    def call(self, backend: str) -> Any:
        """One call, or one step."""
        import torch

        if not self.task.step:
            with torch.no_grad():
                return self.runs[backend](*self.inputs)
        return torch.autograd.grad(self._outputs(self.runs[backend](*self.inputs)), self.inputs, self.cotangents)

    def exact(self) -> Any:
        """What it should give, in float64."""
        import torch

        wide = [x.detach().double().requires_grad_(self.task.step) for x in self.inputs]
        outputs = self.function(*wide)
        if not self.task.step:
            return outputs
        outputs = self._outputs(outputs)
        return torch.autograd.grad(
            outputs, wide, [c.to(o.dtype) for c, o in zip(self.cotangents, outputs, strict=True)]
        )


def microseconds(call: Callable[[], Any], flush: Any, repeat: int) -> list[float]:
    """Between events around each of some calls, behind a queue of work that fills the time of their launches."""
    import torch

    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeat)]
    for start, end in events:
        for _ in range(2):
            flush.zero_()
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return [1e3 * start.elapsed_time(end) for start, end in events]


def rows_of(case: Case, flush: Any, profiler: Profiler) -> dict[str, Any]:
    """The figures of one task: microseconds and errors of all backends."""
    task, exact = case.task, case.exact()
    errors = {b: relative_error(case.call(b), exact) for b in case.runs}
    times: dict[str, list[float]] = {b: [] for b in case.runs}
    launches: dict[str, int] = {}
    for _ in range(3):
        for backend in case.runs:
            if task.step:
                kernels = profiler.kernels(lambda b=backend: case.call(b), REPEATS // 4)
                times[backend].append(1e3 * sum(ms for ms, _ in kernels.values()))
                launches[backend] = sum(count for _, count in kernels.values())
            else:
                times[backend] += microseconds(lambda b=backend: case.call(b), flush, REPEATS // 2)
    found = {b: round(statistics.median(t), 2) for b, t in times.items()}
    row = {"kind": task.kind, "size": task.size, "dtype": task.dtype, "step": task.step, "us": found}
    return row | {"error": {b: float(f"{e:.2g}") for b, e in errors.items()}, "launches": launches}


def work(tasks: list[Task], args: argparse.Namespace, barrier: Any, turn: Any) -> None:
    """Compile all tasks, wait for the others, and measure in turns."""
    make_importable()
    import torch

    cases: list[Case] = []
    for task in tasks:
        try:
            cases.append(Case(task, "cuda", tuple(args.backends)))
        except Exception as error:
            print(f"{task}: {type(error).__name__}: {error}"[:600], flush=True)
    barrier.wait()
    with turn:
        flush = torch.empty(FLUSH_BYTES // 4, device="cuda")
        profiler = Profiler()
        for case in cases:
            row = rows_of(case, flush, profiler)
            text = json.dumps(row)
            with args.out.open("a") as file:
                file.write(text + "\n")
            print(text, flush=True)


def all_tasks(args: argparse.Namespace) -> list[Task]:
    """Those that were asked for."""
    columns = [Task(k, s, d) for k in COLUMNS if k in args.kinds for s in args.sizes for d in args.dtypes]
    others = [
        Task(kind, size, "bfloat16", step)
        for kind in OTHERS
        if kind in args.kinds
        for size in ROWS_SIZES.get(kind, args.other_sizes)
        for step in ((False, True) if args.steps else (False,))
    ]
    return columns + others


def table(rows: list[dict[str, Any]], backends: list[str]) -> str:
    """As Markdown."""
    lines = [f"| kind | size | type | us: {' / '.join(backends)} | error |", "|---|---|---|---|---|"]
    for row in rows:
        us = " / ".join(f"{row['us'][b]:.1f}" for b in backends)
        errors = " / ".join(f"{row['error'][b]:.1e}" for b in backends)
        name = f"{row['kind']}{', step' if row['step'] else ''}"
        lines.append(f"| {name} | {row['size']} | {row['dtype']} | {us} | {errors} |")
    return "\n".join(lines)


def main() -> int:
    """Command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, required=True, help="rows, one JSON object a line")
    p.add_argument("--kinds", nargs="*", default=[*COLUMNS, *OTHERS])
    p.add_argument("--sizes", nargs="*", default=list(SIZES))
    p.add_argument("--other-sizes", nargs="*", default=["2048x1024"], help="of kinds that are no columns")
    p.add_argument("--dtypes", nargs="*", default=["bfloat16", "float32"])
    p.add_argument("--steps", action="store_true", help="steps of the other kinds too")
    p.add_argument("--backends", nargs="*", default=list(BACKENDS))
    p.add_argument("--jobs", type=int, default=4)
    args = p.parse_args()
    start, tasks = time.perf_counter(), all_tasks(args)
    context = multiprocessing.get_context("spawn")
    jobs = min(args.jobs, len(tasks))
    barrier, turn = context.Barrier(jobs), context.Lock()
    processes = [context.Process(target=work, args=(tasks[k::jobs], args, barrier, turn)) for k in range(jobs)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    rows = [json.loads(line) for line in args.out.read_text().splitlines()]
    print(table(sorted(rows, key=lambda r: (r["kind"], r["step"], r["dtype"])), args.backends))
    print(f"{len(rows)} rows of {len(tasks)}, {time.perf_counter() - start:.0f} s")
    return int(len(rows) < len(tasks))


if __name__ == "__main__":
    sys.exit(main())
