"""Eager, Inductor and inductile on a GPU: `python benchmarks/gpu.py --out results.jsonl [--patterns ...]`.

Each (pattern, backend) runs in a process of its own with empty caches, and adds a line of JSON to the file; what the
file holds already is not run again, so a cut-off run goes on where it stopped. At the end a Markdown table of all is
printed. The root of this repository is the package `inductile`; it need not be installed.

Device milliseconds are the sum of kernel times that the profiler saw, a call, the L2 cache flushed before each call.
`fraction` is the time that reading and writing every tensor once would take at the copy bandwidth of the same card,
over the device time. `error` is the relative L2 error against eager in float32, over that of eager in bfloat16.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from processes import MeasurementError, in_fresh_process

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BACKENDS = ("eager", "inductor", "inductile")
FLUSH_BYTES = 512 << 20


def make_importable() -> None:
    """Let `import inductile` and `backend="inductile"` find this tree where it is not installed."""
    try:
        import inductile
    except ImportError:
        folder = Path(tempfile.mkdtemp(prefix="inductile-"))
        (folder / "inductile").symlink_to(ROOT)
        points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
        about = folder / "inductile-0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: inductile\nVersion: 0\n")
        lines = [f"{name} = {place}" for name, place in points["torch_dynamo_backends"].items()]
        (about / "entry_points.txt").write_text("\n".join(["[torch_dynamo_backends]", *lines, ""]))
        sys.path.insert(0, str(folder))
        import inductile  # noqa: F401


# in the process of one measurement


def compiled(function: Callable[..., Any], backend: str, trace: str) -> Callable[..., Any]:
    """The function under a backend; `trace` is a folder for inductile's IR and sources, or empty."""
    import torch

    if backend == "eager":
        return function
    if backend == "inductile":
        make_importable()
        import inductile.backends.torch_compile as backend_module

        options: dict[str, Any] | None = {"trace": trace} if trace else None
        return torch.compile(function, backend=backend_module.inductile, options=options)
    return torch.compile(function, backend=backend)


class Profiler:
    """Kernel times of a function on the GPU."""

    def __init__(self) -> None:
        import torch

        # float64, so that its kernels can be told from all others
        self.flush = torch.empty(FLUSH_BYTES // 8, dtype=torch.float64, device="cuda").normal_()

    def kernels(self, call: Callable[[], Any], repeat: int) -> dict[str, tuple[float, int]]:
        """Kernel name -> (milliseconds, launches), both for one call."""
        import torch
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            for _ in range(repeat):
                self.flush.add_(1.0)
                call()
            torch.cuda.synchronize()
        found: dict[str, tuple[float, int]] = {}
        for event in profiler.key_averages():
            spent = getattr(event, "self_device_time_total", None) or getattr(event, "self_cuda_time_total", 0.0)
            if spent and "double" not in event.key:
                found[event.key] = (spent / 1000 / repeat, round(event.count / repeat))
        return found


def wall_ms(call: Callable[[], Any], repeat: int) -> float:
    """Milliseconds of a call, launches and all, one after the other."""
    import torch

    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeat * 1000


def copy_bandwidth() -> float:
    """Bytes a second that a copy reads and writes."""
    import torch

    source = torch.empty(1 << 29, dtype=torch.bfloat16, device="cuda").normal_()
    target = torch.empty_like(source)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    best = float("inf")
    for _ in range(10):
        start.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end))
    return 2 * source.nbytes / (best / 1000)


def tensors(tree: Any) -> list[Any]:
    """The tensors of a nest of outputs or inputs."""
    import torch
    import torch.utils._pytree as pytree

    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def relative_error(got: Any, exact: Any) -> float:
    """Largest relative L2 error over the outputs; NaN where NaNs do not agree."""
    errors = [0.0]
    for one, other in zip(tensors(got), tensors(exact), strict=True):
        one, other = one.double(), other.double()
        errors.append(((one - other).norm() / other.norm().clamp_min(1e-30)).item())
    return float("nan") if any(e != e for e in errors) else max(errors)  # `max` may pass over a NaN


def measure(name: str, backend: str, rows: int, repeat: int, trace: str) -> dict[str, Any]:
    """All figures of one pattern under one backend."""
    import patterns
    import torch

    function, inputs = patterns.build(name, rows, torch.bfloat16, "cuda")
    wide = [x.float() if x.dtype == torch.bfloat16 else x for x in inputs]
    with torch.no_grad():
        exact, plain = function(*wide), function(*inputs)
        del wide
        run = compiled(function, backend, trace)
        start = time.perf_counter()
        got = run(*inputs)
        torch.cuda.synchronize()
        first = time.perf_counter() - start
        error, eager_error = relative_error(got, exact), relative_error(plain, exact)
        touched = sum(t.nbytes for t in {id(t): t for t in [*tensors(inputs), *tensors(got)]}.values())
        del exact, plain, got
        call = lambda: run(*inputs)  # noqa: E731
        for _ in range(5):
            call()
        kernels = Profiler().kernels(call, repeat)
        wall = wall_ms(call, repeat)
    device = sum(ms for ms, _ in kernels.values())
    return {
        "pattern": name, "backend": backend, "rows": rows, "device_ms": device, "wall_ms": wall, "first_s": first,
        "fraction": touched / copy_bandwidth() / (device / 1000), "error": error, "eager_error": eager_error,
        "launches": sum(count for _, count in kernels.values()),
        "kernels": {key[:80]: round(ms, 5) for key, (ms, _) in sorted(kernels.items(), key=lambda k: -k[1][0])},
        "card": torch.cuda.get_device_name(), "torch": torch.__version__,
    }  # fmt: skip


# in the process that collects


def run_one(name: str, backend: str, args: argparse.Namespace) -> dict[str, Any]:
    """Measure in a fresh process with its own caches; a failure becomes a row with a `problem`."""
    trace = f"{args.trace}/{name}" if args.trace and backend == "inductile" else ""
    arguments = ["--worker", name, backend, "--rows", str(args.rows), "--repeat", str(args.repeat), "--trace", trace]
    with tempfile.TemporaryDirectory() as cache:
        try:
            return in_fresh_process(__file__, arguments, cache, args.timeout)
        except MeasurementError as error:
            problem = "\n".join(error.lines[-15:])[-1500:] or str(error)
            return {"pattern": name, "backend": backend, "problem": problem}


def read_results(path: Path) -> list[dict[str, Any]]:
    """Rows of an earlier run."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown, one line a pattern."""
    lines = [
        "| pattern | device ms: eager / Inductor / inductile | fraction | launches | wall ms | first call s | error |",
        "|" + "---|" * 7,
    ]
    found = {(r["pattern"], r["backend"]): r for r in rows}
    for name in dict.fromkeys(r["pattern"] for r in rows):
        mine = [found.get((name, backend), {}) for backend in BACKENDS]
        cells = [
            _cell(mine, key, digits)
            for key, digits in (
                ("device_ms", 4), ("fraction", 2), ("launches", 0), ("wall_ms", 3), ("first_s", 1), ("error", 5),
            )
        ]  # fmt: skip
        problems = [f"{r['backend']}: {r['problem'].splitlines()[-1][:160]}" for r in mine if "problem" in r]
        lines.append(f"| {name} | " + " | ".join(cells) + " |" + (f" {'; '.join(problems)}" if problems else ""))
    return "\n".join(lines)


def _cell(rows: Sequence[dict[str, Any]], key: str, digits: int) -> str:
    return " / ".join(f"{r[key]:.{digits}f}" if key in r else "-" for r in rows)


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """Geometric means of the device time of the others over ours, and the wrong results."""
    found = {(r["pattern"], r["backend"]): r for r in rows if "device_ms" in r}
    lines: list[str] = []
    for other in BACKENDS[:2]:
        ratios = [
            found[name, other]["device_ms"] / r["device_ms"]
            for (name, backend), r in found.items()
            if backend == "inductile" and (name, other) in found
        ]
        if ratios:
            product = 1.0
            for ratio in ratios:
                product *= ratio
            lines.append(f"device time, {other} / inductile, geometric mean: {product ** (1 / len(ratios)):.2f}")
    return "\n".join(lines + wrong_results(found))


def wrong_results(found: Mapping[tuple[str, str], dict[str, Any]]) -> list[str]:
    """A line for each (pattern, backend) whose error is more than twice eager's, or no number."""
    return [
        f"WRONG: {name} under {backend}: error {r['error']:.2e}, eager's {r['eager_error']:.2e}"
        for (name, backend), r in found.items()
        if not r["error"] <= 2 * r["eager_error"] + 1e-3
    ]


def main() -> None:
    """Command line."""
    sys.path.insert(0, str(HERE))
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--out", default="gpu-results.jsonl", help="file of results, read and added to")
    p.add_argument("--patterns", nargs="*", help="default: all")
    p.add_argument("--backends", nargs="*", default=list(BACKENDS), choices=BACKENDS)
    p.add_argument("--rows", type=int, default=8192)
    p.add_argument("--repeat", type=int, default=30)
    p.add_argument("--timeout", type=float, default=240, help="seconds for one measurement")
    p.add_argument("--deadline", type=float, default=0, help="start nothing after so many seconds; 0: no limit")
    p.add_argument("--again", action="store_true", help="measure again what failed before")
    p.add_argument("--trace", default="", help="folder for the IR and the kernels of each pattern")
    p.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.worker:
        pattern, backend = args.worker
        print(json.dumps(measure(pattern, backend, args.rows, args.repeat, args.trace)))
        return
    import patterns

    started, path = time.monotonic(), Path(args.out)
    rows = [r for r in read_results(path) if not (args.again and "problem" in r)]
    done = {(r["pattern"], r["backend"]) for r in rows}
    for name in args.patterns or patterns.PATTERNS:
        for backend in args.backends:
            late = args.deadline and time.monotonic() - started > args.deadline
            if (name, backend) in done or late:
                continue
            row = run_one(name, backend, args)
            rows.append(row)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{name} {backend}: {row.get('problem') or format(row['device_ms'], '.4f') + ' ms'}", flush=True)
    print(table(rows))
    print(summary(rows))


if __name__ == "__main__":
    main()
