"""Models on a GPU, eager, Inductor and inductile: `python benchmarks/gpu_models.py --out results.jsonl [--models ...]`.

Each (model, backend) runs in a process of its own with empty caches and adds a line of JSON; what the file holds is not
run again. `wall` is the median of a call with the host included, `device` the sum of kernel times that the profiler
saw, in milliseconds; `first` the first call in seconds; `peak` the allocator's peak in MiB; `error` the relative L2
error against the model in float64.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from gpu import BACKENDS, make_importable
from processes import MeasurementError, in_fresh_process


def measure(name: str, backend: str, dtype_name: str) -> dict[str, Any]:
    """One measurement, in this process."""
    import models
    import torch

    torch.set_grad_enabled(False)
    dtype = getattr(torch, dtype_name)
    function, inputs = models.build(name, dtype, device="cuda")
    call = function if backend == "eager" else torch.compile(function, backend=backend)
    start = time.perf_counter()
    result = call(*inputs)
    torch.cuda.synchronize()
    row: dict[str, Any] = {"model": name, "backend": backend, "dtype": dtype_name}
    row["first"] = time.perf_counter() - start
    torch.cuda.reset_peak_memory_stats()
    walls: list[float] = []
    for _ in range(20):
        start = time.perf_counter()
        call(*inputs)
        torch.cuda.synchronize()
        walls.append((time.perf_counter() - start) * 1e3)
    row["wall"] = statistics.median(walls)
    row["peak"] = torch.cuda.max_memory_allocated() / 2**20
    row["device"], row["launches"] = device_time(lambda: call(*inputs))
    exact_function, exact_inputs = models.build(name, torch.float64, device="cuda")
    exact = exact_function(*exact_inputs)
    row["error"] = float((result.double() - exact).norm() / exact.norm())
    if backend == "inductile":
        from inductile.backends.compiled import REPORTS

        row["kernels"] = sum(sum(r.kernels.values()) for r in REPORTS)
        row["aten_calls"] = sum(sum(r.aten_calls.values()) for r in REPORTS)
    return row


def device_time(call: Any, repeat: int = 5) -> tuple[float, int]:
    """(milliseconds of kernels, kernels) of one call."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(repeat):
            call()
        torch.cuda.synchronize()
    kernels = [e for e in profiler.events() or () if str(e.device_type).endswith("CUDA")]
    return sum(e.device_time for e in kernels) / 1e3 / repeat, len(kernels) // repeat


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown, a line a model."""
    head = "| model | wall ms: eager / Inductor / inductile | device ms | launches | first call s | peak MiB | error |"
    lines = [head, "|" + "---|" * 7]
    for name in dict.fromkeys(r["model"] for r in rows):
        of = {r["backend"]: r for r in rows if r["model"] == name}
        cells = [name]
        for key, form in (("wall", ".2f"), ("device", ".2f"), ("launches", ""), ("first", ".1f"), ("peak", ".0f")):
            cells.append(" / ".join(format(of[b][key], form) if key in of.get(b, {}) else "-" for b in BACKENDS))
        cells.append(" / ".join(f"{of[b]['error']:.1e}" if "error" in of.get(b, {}) else "-" for b in BACKENDS))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def run_one(name: str, backend: str, args: argparse.Namespace) -> dict[str, Any]:
    """One measurement in a fresh process with fresh caches; a failure becomes a row with a `problem`."""
    with tempfile.TemporaryDirectory() as cache:
        try:
            return in_fresh_process(__file__, ["--worker", name, backend, "--dtype", args.dtype], cache, args.timeout)
        except MeasurementError as error:
            return {"model": name, "backend": backend, "problem": str(error)}


def main() -> None:
    """Command line."""
    make_importable()
    import models

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", default="gpu-models.jsonl")
    p.add_argument("--models", nargs="*", default=list(models.MODELS))
    p.add_argument("--backends", nargs="*", default=list(BACKENDS), choices=BACKENDS)
    p.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    p.add_argument("--timeout", type=float, default=200)
    p.add_argument("--deadline", type=float, default=0, help="start nothing after so many seconds; 0: no limit")
    p.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.worker:
        if args.worker[1] == "inductile":
            import torch._dynamo

            import inductile.backends.torch_compile

            torch._dynamo.register_backend(inductile.backends.torch_compile.inductile, name="inductile")
        name, backend = args.worker
        print(json.dumps(measure(name, backend, args.dtype)))
        return
    out = Path(args.out)
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = {(r["model"], r["backend"]) for r in rows}
    started = time.monotonic()
    for name in args.models:
        for backend in args.backends:
            late = args.deadline and time.monotonic() - started > args.deadline
            if (name, backend) in done or late:
                continue
            rows.append(run_one(name, backend, args))
            with out.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(f"{name} {backend}: {rows[-1].get('wall', rows[-1].get('problem'))}", flush=True)
    print(table([r for r in rows if "wall" in r]))


if __name__ == "__main__":
    main()
