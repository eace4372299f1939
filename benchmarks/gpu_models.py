"""Models on a GPU, eager, Inductor and inductile: `python benchmarks/gpu_models.py --out results.jsonl [--models ...]`.

A process takes one model under all backends. `--jobs N` of them build and compile side by side; then each in turn
measures while the others sleep. `--cold` measures first calls instead, each in a fresh process with empty caches, alone
on the machine. What the file of results holds is not run again; rows of both kinds make one table.

`wall` is the median of a call with the host included, backends interleaved; `running` the same of many calls in a row,
of which only the last is waited for, so that the host may be ahead of the device; `device` the sum of kernel times
that the profiler saw, in milliseconds; `cold` the first call in seconds, imports and the model on the GPU before;
`peak` the MiB that a call allocates at most beyond what is there before; `moved` the MiB that kernels and ATen calls
read and write, from inductile's IR and from Inductor's own count; `error` the relative L2 error against the model in
float64.

`inductile:dynamic` among the backends compiles with `dynamic=True`; `graphs` counts what is compiled for three lengths,
or batches of images. `--profile` adds where the device time of each backend goes, kernel by kernel, beside each other.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import made
from gpu import make_importable, read_results
from processes import MeasurementError, in_fresh_process
from turns import in_turns, wait_for_turn

BACKENDS = ("eager", "inductor", "inductile")
#: a backend with a mode behind a colon, "inductile:reduce-overhead", is measured too
MODES = ("reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "dynamic")
CHOICES = (*BACKENDS, *(f"{backend}:{mode}" for backend in BACKENDS[1:] for mode in MODES))
#: title, key and format of a column
Column: TypeAlias = tuple[str, str, str]
COLUMNS: tuple[Column, ...] = (
    ("wall ms", "wall", ".2f"), ("running ms", "running", ".2f"), ("device ms", "device", ".2f"),
    ("launches", "launches", ""), ("kernels", "kernels", ""), ("ATen calls", "aten_calls", ""),
    ("MiB moved", "moved", ".0f"),
    ("of these by kernels", "kernels_moved", ".0f"), ("by ATen", "aten_moved", ".0f"), ("first call s", "cold", ".1f"),
    ("peak MiB", "peak", ".1f"), ("graphs", "graphs", ""), ("error", "error", ".1e"),
)  # fmt: skip
ROUNDS = 3
"""How often calls in a row are measured."""
PROFILED = 24
"""Kernels that `--profile` shows of a backend; the others are one line."""

# in the process that measures


def first_call(name: str, backend: str, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds of the first call in this process."""
    import models
    import torch

    torch.set_grad_enabled(False)
    function, inputs = models.build(name, getattr(torch, args.dtype), args.small, args.device)
    if backend == "inductor":
        import torch._inductor.compile_fx
    elif backend == "inductile":
        import inductile.backends.torch_compile  # noqa: F401
    call = compiled(function, backend)
    synchronize(args.device)
    start = time.perf_counter()
    call(*inputs)
    synchronize(args.device)
    return _row(name, backend, args) | {"cold": time.perf_counter() - start}


def compiled(function: Callable[..., Any], backend: str) -> Callable[..., Any]:
    """A function under a backend, with the mode that stands behind a colon."""
    import torch

    name, _, mode = backend.partition(":")
    if mode == "dynamic":
        return torch.compile(function, backend=name, dynamic=True)
    return function if name == "eager" else torch.compile(function, backend=name, mode=mode or None)


def resized(name: str, inputs: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Inputs of two other lengths, or batches: parts of the given ones, larger where those have few elements."""
    import models
    import torch

    for parts in (3, 2):
        found = list(inputs)
        for position, dim in (models.MODELS | models.PUBLISHED)[name].dynamic:
            size = found[position].shape[dim]
            wanted = size * parts // 4 if size >= 8 else size + parts
            places = torch.arange(wanted, device=found[position].device) % size
            found[position] = found[position].index_select(dim, places)
        yield tuple(found)


def graphs_of_lengths(name: str, run: Callable[..., Any], inputs: Sequence[Any]) -> int:
    """Graphs that are compiled for inputs and for those of two other lengths."""
    from torch._dynamo.utils import counters

    before = counters["stats"]["unique_graphs"]
    for given in (tuple(inputs), *resized(name, inputs)):
        run(*given)
    return counters["stats"]["unique_graphs"] - before


def synchronize(device: str) -> None:
    """Wait for the GPU."""
    import torch

    if device != "cpu":
        torch.cuda.synchronize()


def _row(name: str, backend: str, args: argparse.Namespace) -> dict[str, Any]:
    import torch

    card = torch.cuda.get_device_name() if args.device != "cpu" else "cpu"
    return {"model": name, "backend": backend, "dtype": args.dtype, "card": card, "torch": torch.__version__}


def measure(name: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Compile a model under all backends, wait for this process's turn, and measure; a row a backend."""
    import models
    import torch

    torch.set_grad_enabled(False)
    made.let_inductor_count()
    function, inputs = models.build(name, getattr(torch, args.dtype), args.small, args.device)
    calls: dict[str, Callable[[], Any]] = {}
    rows = {backend: _row(name, backend, args) for backend in args.backends}
    found: dict[str, made.Made] = {}
    for backend in args.backends:
        run = compiled(function, backend)
        try:
            with made.watched(backend.partition(":")[0]) as found[backend]:
                if backend.endswith(":dynamic"):
                    rows[backend]["graphs"] = graphs_of_lengths(name, run, inputs)
                run(*inputs)
            for _ in range(3):  # with graphs: prepare, record, replay
                run(*inputs)
            calls[backend] = lambda run=run: run(*inputs)
        except Exception as error:
            rows[backend]["problem"] = f"{type(error).__name__}: {error}"[-600:]
    synchronize(args.device)
    wait_for_turn()
    for backend, spent in interleaved(calls, args.repeat, args.device).items():
        rows[backend]["wall"] = spent
    for backend, spent in interleaved(calls, ROUNDS, args.device, args.repeat).items():
        rows[backend]["running"] = spent
    for backend, call in calls.items():
        row = rows[backend]
        if args.device != "cpu":
            row["peak"] = peak_mib(call)
            row["device"], row["launches"], generated = device_time(call)
            if backend.startswith("inductor"):
                found[backend].kernels, found[backend].calls = generated, row["launches"] - generated
        if args.profile:
            row["profile"] = kernel_times(call, args.device)
        if backend != "eager":
            row |= found[backend].row()
    exact_function, exact_inputs = models.build(name, torch.float64, args.small, args.device)
    exact = exact_function(*exact_inputs)
    for backend, call in calls.items():
        rows[backend]["error"] = float((call().double() - exact).norm() / exact.norm())
    return list(rows.values())


def interleaved(calls: dict[str, Callable[[], Any]], repeat: int, device: str, together: int = 1) -> dict[str, float]:
    """Median milliseconds of a call of each, host included; so many calls are made before the device is waited for."""
    times: dict[str, list[float]] = {backend: [] for backend in calls}
    for _ in range(repeat):
        for backend, call in calls.items():
            start = time.perf_counter()
            for _ in range(together):
                call()
            synchronize(device)
            times[backend].append((time.perf_counter() - start) * 1e3 / together)
    return {backend: statistics.median(spent) for backend, spent in times.items()}


def peak_mib(call: Callable[[], Any], reset: Callable[[], Any] = lambda: None) -> float:
    """MiB that a call allocates at most, beyond what was allocated before it; `reset` drops what calls leave behind.

    The allocator's free blocks are those of such calls: others leave blocks that fit worse, and are counted whole.
    """
    import torch

    reset()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    for _ in range(2):
        call()
        reset()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def device_time(call: Callable[[], Any], repeat: int = 5) -> tuple[float, int, int]:
    """(milliseconds of kernels, kernels, kernels that Inductor generated) of one call."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(repeat):
            call()
        torch.cuda.synchronize()
    kernels = [e for e in profiler.events() or () if str(e.device_type).endswith("CUDA")]
    generated = sum(e.name.startswith("triton_") for e in kernels)
    return sum(e.device_time for e in kernels) / 1e3 / repeat, len(kernels) // repeat, generated // repeat


def kernel_times(call: Callable[[], Any], device: str, repeat: int = 5) -> list[tuple[str, float, int]]:
    """(kernel, milliseconds, launches) of one call, slowest first; on the CPU, ATen ops and what runs between them."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU if device == "cpu" else ProfilerActivity.CUDA]) as profiler:
        for _ in range(repeat):
            call()
        synchronize(device)
    times: dict[str, tuple[float, int]] = {}
    for event in profiler.events() or ():
        if device != "cpu" and not str(event.device_type).endswith("CUDA"):
            continue
        spent, count = times.get(event.name, (0.0, 0))
        own = event.self_cpu_time_total if device == "cpu" else event.device_time
        times[event.name] = spent + own / 1e3, count + 1
    ordered = sorted(times.items(), key=lambda item: -item[1][0])
    return [(name, spent / repeat, count // repeat) for name, (spent, count) in ordered]


# in the process that collects


def profile_table(name: str, of: dict[str, dict[str, Any]], backends: Sequence[str]) -> str:
    """Markdown: the kernels of a model under each backend, slowest first, beside each other; '' without profiles."""
    shown = {b: of[b]["profile"] for b in backends if of.get(b, {}).get("profile")}
    if not shown:
        return ""
    columns = {b: [_kernel(*each) for each in kernels[:PROFILED]] for b, kernels in shown.items()}
    for b, kernels in shown.items():
        if rest := kernels[PROFILED:]:
            columns[b].append(_kernel("the others", sum(each[1] for each in rest), sum(each[2] for each in rest)))
    lines = [f"| {name}: {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for k in range(max(map(len, columns.values()))):
        lines.append(f"| {' | '.join(cells[k] if k < len(cells) else '' for cells in columns.values())} |")
    return "\n".join(lines)


def _kernel(name: str, milliseconds: float, launches: int) -> str:
    short = name.replace("void ", "").replace("at::native::", "").replace("|", "/")
    return f"{milliseconds:.3f} ms, {launches}: {short[:64]}"


def table(rows: Sequence[dict[str, Any]], backends: Sequence[str], columns: Sequence[Column] = COLUMNS) -> str:
    """Markdown, a line a model."""
    heads = [f"{title}: {' / '.join(backends)}" if k == 0 else title for k, (title, *_) in enumerate(columns)]
    lines = [f"| model | {' | '.join(heads)} |", "|" + "---|" * (len(heads) + 1)]
    for name, of in by_model(rows).items():
        cells = [
            " / ".join(format(of[b][key], form) if key in of.get(b, {}) else "-" for b in backends)
            for _, key, form in columns
        ]
        problems = "; ".join(f"{b}: {r['problem'][:160]}" for b, r in of.items() if "problem" in r)
        lines.append(f"| {name} | {' | '.join(cells)} |{' ' if problems else ''}{problems}")
    return "\n".join(lines)


def by_model(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Model -> backend -> its figures, those of first calls and of others together."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        of = found.setdefault(row["model"], {})
        of[row["backend"]] = of.get(row["backend"], {}) | row
    return found


def summary(rows: Sequence[dict[str, Any]], backends: Sequence[str]) -> str:
    """Geometric means of the figures of the others over ours, and the models where we are behind."""
    lines: list[str] = []
    models = by_model(rows)
    for other in (b for b in backends if b != "inductile"):
        for key in ("wall", "device", "cold", "peak"):
            ratios = {
                name: of[other][key] / of["inductile"][key]
                for name, of in models.items()
                if of.get(other, {}).get(key) and of.get("inductile", {}).get(key)
            }
            if ratios:
                behind = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items() if ratio < 0.98)
                mean = statistics.geometric_mean(ratios.values())
                lines.append(f"{key}, {other} / inductile, {len(ratios)} models: {mean:.2f}; behind: {behind or '-'}")
    return "\n".join(lines)


def warm_rows(
    names: Sequence[str], args: argparse.Namespace, deadline: float, script: str = __file__
) -> Iterator[list[dict[str, Any]]]:
    """Figures of models whose processes, of a script, take turns; what failed is a row with a `problem`."""
    given = ["--dtype", args.dtype, "--device", args.device, "--repeat", str(args.repeat), *(["--small"] * args.small)]
    given += ["--backends", *args.backends, *(["--profile"] * getattr(args, "profile", False))]
    commands = [[sys.executable, script, "--worker", name, *given] for name in names]
    prepare = getattr(args, "prepare", 240.0)
    with tempfile.TemporaryDirectory() as cache:
        for position, result in in_turns(commands, cache, args.jobs, prepare, args.timeout, deadline):
            if isinstance(result, MeasurementError):
                problem = f"{result}: " + " ".join(result.lines[-3:])[-600:]
                result = [{"model": names[position], "backend": "all", "dtype": args.dtype, "problem": problem}]
            yield result


def cold_rows(
    pairs: Sequence[tuple[str, str]], args: argparse.Namespace, deadline: float
) -> Iterator[list[dict[str, Any]]]:
    """First calls, one process after the other, each with caches of its own."""
    given = ["--dtype", args.dtype, "--device", args.device, *(["--small"] * args.small)]
    for name, backend in pairs:
        if time.monotonic() > deadline:
            return
        with tempfile.TemporaryDirectory() as cache:
            try:
                arguments = ["--cold", "--worker", name, backend, *given]
                yield [in_fresh_process(__file__, arguments, cache, args.timeout)]
            except MeasurementError as error:
                yield [{"model": name, "backend": backend, "dtype": args.dtype, "problem": f"first call: {error}"}]


def arguments(models: Sequence[str]) -> argparse.Namespace:
    """Command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", default="gpu-models.jsonl", help="file of results, read and added to")
    p.add_argument("--models", nargs="*", default=list(models))
    p.add_argument("--backends", nargs="*", default=list(BACKENDS), choices=CHOICES, metavar="BACKEND[:MODE]")
    p.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    p.add_argument("--jobs", type=int, default=1, help="processes that compile side by side")
    p.add_argument("--cold", action="store_true", help="first calls instead, one after the other")
    p.add_argument("--repeat", type=int, default=20, help="timed calls of each backend")
    p.add_argument("--timeout", type=float, default=120, help="seconds for the timings of a model, or for a first call")
    p.add_argument("--prepare", type=float, default=240, help="seconds for building and compiling a model")
    p.add_argument("--deadline", type=float, default=0, help="start nothing after so many seconds; 0: no limit")
    p.add_argument("--profile", action="store_true", help="show the kernels of each backend and their times")
    p.add_argument("--small", action="store_true", help="models cut down, to try the command")
    p.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    p.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    return p.parse_args()


def main() -> None:
    """Measure what the file of results lacks; print everything."""
    make_importable()
    import models

    args = arguments([*models.MODELS, *models.PUBLISHED])
    if args.worker and args.cold:
        name, backend = args.worker
        return print(json.dumps(first_call(name, backend, args)))
    if args.worker:
        return print(json.dumps(measure(args.worker[0], args)))
    started, out = time.monotonic(), Path(args.out)
    deadline = started + args.deadline if args.deadline else float("inf")
    rows = [r for r in read_results(out) if r["dtype"] == args.dtype]
    done = {(r["model"], r["backend"]) for r in rows if ("cold" in r) == args.cold}
    if args.cold:
        pairs = [(name, backend) for name in args.models for backend in args.backends]
        results = cold_rows([pair for pair in pairs if pair not in done], args, deadline)
    else:
        reached = {name for name, _ in done}
        results = warm_rows([name for name in args.models if name not in reached], args, deadline)
    with out.open("a") as file:
        for found in results:
            rows += found
            file.write("".join(json.dumps(row) + "\n" for row in found))
            file.flush()
            print(f"{found[0]['model']} {found[0]['backend']} at {time.monotonic() - started:.0f} s", flush=True)
    print(table(rows, args.backends))
    print(summary(rows, args.backends))
    for name, of in by_model(rows).items():
        if shown := profile_table(name, of, args.backends):
            print(shown)


if __name__ == "__main__":
    main()
