"""Patterns on a GPU, all backends in one process: `python benchmarks/gpu_patterns.py --out results.jsonl`.

Rounds of all backends are interleaved and medians taken. `--jobs N` spreads the patterns over N processes, which
compile side by side and then measure one after the other, the rest asleep. What the file holds is not run again.

Device milliseconds are the sum of the kernel times that the profiler saw, a call, the L2 cache flushed before each.
`fraction` is the time that a copy, measured in the same process, takes for the bytes that have to move, over the device
time: forward every input and output once; backward, where what has to be kept is a matter of choice, the least that a
compiler's program moves. `moved` tells bytes from inductile's IR, of its kernels and of its ATen calls, and from
Inductor's own count. `error` is relative to eager in float32 (backward: float64), to be held against eager's own.

With `--backward` only the backward kernels are measured: the forward passes have run before, a graph for each call.
Gradients of all floating inputs are taken but of running statistics. `--step` measures both passes, and what
forward saves for backward.
`--device cpu` is for trying the command.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import made
from gpu import Profiler, copy_bandwidth, make_importable, read_results, relative_error, tensors, wrong_results
from processes import MeasurementError
from turns import in_turns, wait_for_turn

HERE = Path(__file__).resolve().parent
BACKENDS = ("eager", "inductor", "inductile")
#: inputs of a pattern that have no gradient, by position: running statistics
WITHOUT_GRADIENT = {"batch_norm": (1, 2)}
ROUNDS = 3

# in the process that measures


class Forward:
    """One pattern: the calls of its backends and what is compared."""

    def __init__(self, name: str, rows: int, device: str, dtype: Any) -> None:
        import more_patterns
        import patterns

        self.name, self.device = name, device
        module = more_patterns if name in more_patterns.CASES else patterns
        self.function, self.inputs = module.build(name, rows, dtype, device)
        self.runs: dict[str, Callable[..., Any]] = {}
        self.made: dict[str, made.Made] = {}
        self.first: dict[str, float] = {}

    def compiled(self, backend: str) -> Callable[..., Any]:
        """The pattern's function under a backend, not called yet."""
        import torch

        if backend == "eager":
            return self.function
        if backend == "handwritten":
            import gpu_handwritten

            return gpu_handwritten.fastest(self.name, self.inputs)
        return torch.compile(self.function, backend=_registered(backend))

    def prepare(self, backends: Sequence[str]) -> None:
        """Compile under all backends; nothing is reset in between, which would drop what another one made."""
        import torch

        for backend in backends:
            start = time.perf_counter()
            with made.watched(backend, self.kinds()) as self.made[backend]:
                self.runs[backend] = self.compiled(backend)
                self.calls(backend, 2)
            _synchronize(torch, self.device)
            self.first[backend] = time.perf_counter() - start

    def settle(self) -> None:
        """On a machine that is quiet: choose the parameters of a kernel written by hand again."""
        if "handwritten" in self.runs:
            self.runs["handwritten"] = self.compiled("handwritten")

    def kinds(self) -> tuple[str, ...]:
        """Kinds of graphs that count."""
        return ("forward", "inference")

    def calls(self, backend: str, count: int) -> None:
        """So many calls, as warm-up."""
        for _ in range(count):
            self.measured(backend, 1)()

    def measured(self, backend: str, count: int) -> Callable[[], Any]:
        """What is measured, `count` times at most."""
        import torch

        run = self.runs[backend]

        def call() -> Any:
            with torch.no_grad():
                return run(*self.inputs)

        return call

    def exact(self) -> Any:
        """What eager gives in a wider type."""
        import torch

        with torch.no_grad():
            return self.function(*(x.float() if x.is_floating_point() else x for x in self.inputs))

    def touched(self) -> int:
        """Bytes that have to move."""
        got = self.measured("eager", 1)()
        return sum(t.nbytes for t in {id(t): t for t in [*tensors(self.inputs), *tensors(got)]}.values())


class Backward(Forward):
    """The gradients of one pattern; forward passes are no part of what is measured."""

    def __init__(self, name: str, rows: int, device: str, dtype: Any) -> None:
        import torch

        super().__init__(name, rows, device, dtype)
        fixed = WITHOUT_GRADIENT.get(name, ())
        self.inputs = tuple(
            x.requires_grad_(x.is_floating_point() and k not in fixed) for k, x in enumerate(self.inputs)
        )
        generator = torch.Generator(device=device).manual_seed(2)
        with torch.no_grad():
            outputs = _differentiable(self.function(*self.inputs))
        self.cotangents = [
            torch.randn(o.shape, generator=generator, device=device, dtype=torch.float32).to(o.dtype) for o in outputs
        ]

    def kinds(self) -> tuple[str, ...]:
        """Kinds of graphs that count."""
        return ("backward",)

    def measured(self, backend: str, count: int) -> Callable[[], Any]:
        """One backward pass a call, of graphs made here; none is kept, so that a pass may give memory back."""
        graphs = [tensors(self.runs[backend](*self.inputs)) for _ in range(count)]
        return lambda: _gradients(graphs.pop(), self.inputs, self.cotangents)

    def prepare(self, backends: Sequence[str]) -> None:
        """Compile; Inductor's count of bytes is that of its backward programs."""
        from torch._inductor import metrics

        super().prepare([b for b in backends if b != "inductor"])
        if "inductor" in backends:
            start = time.perf_counter()
            self.runs["inductor"] = self.compiled("inductor")
            outputs, before = tensors(self.runs["inductor"](*self.inputs)), metrics.num_bytes_accessed
            _gradients(outputs, self.inputs, self.cotangents)
            self.made["inductor"] = made.Made(all_bytes=(metrics.num_bytes_accessed - before) or None)
            self.first["inductor"] = time.perf_counter() - start
            self.calls("inductor", 1)

    def exact(self) -> Any:
        """Gradients in float64."""
        wide = [
            x.detach().double().requires_grad_(x.requires_grad) if x.is_floating_point() else x for x in self.inputs
        ]
        outputs = _differentiable(self.function(*wide))
        return _gradients(outputs, wide, [c.to(o.dtype) for c, o in zip(self.cotangents, outputs, strict=True)])

    def touched(self) -> int:
        """The least that a compiled program moves."""
        known = [m.all_bytes for m in self.made.values() if m.all_bytes]
        return min(known, default=0)


class Step(Backward):
    """Both passes of one pattern."""

    def kinds(self) -> tuple[str, ...]:
        """Kinds of graphs that count."""
        return ("forward", "backward")

    def measured(self, backend: str, count: int) -> Callable[[], Any]:
        """A step a call."""
        return lambda: _gradients(tensors(self.runs[backend](*self.inputs)), self.inputs, self.cotangents)

    def saved(self, backend: str) -> int:
        """Bytes that forward keeps for backward, beside its inputs."""
        from training import saved_bytes

        return saved_bytes(lambda: self.runs[backend](*self.inputs), self.inputs)


def _gradients(outputs: Sequence[Any], inputs: Sequence[Any], cotangents: Sequence[Any]) -> Any:
    import torch

    outputs = _differentiable(outputs)
    return torch.autograd.grad(outputs, [x for x in inputs if x.requires_grad], cotangents)


def _differentiable(outputs: Any) -> list[Any]:
    """The tensors among them that a gradient can come from: places and counts are integers."""
    return [x for x in tensors(outputs) if x.is_floating_point()]


def _registered(backend: str) -> Any:
    if backend != "inductile":
        return backend
    import inductile.backends.torch_compile as module

    return module.inductile


def _synchronize(torch: Any, device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def wall_ms(call: Callable[[], Any], repeat: int, device: str) -> float:
    """Milliseconds of a call, launches and all, one after the other."""
    import torch

    _synchronize(torch, device)
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    _synchronize(torch, device)
    return (time.perf_counter() - start) / repeat * 1000


def rows_of(case: Forward, profiler: Any, repeat: int, bandwidth: float) -> list[dict[str, Any]]:
    """The figures of one pattern, a row a backend."""
    import torch

    case.settle()
    exact = case.exact()
    errors = {backend: relative_error(case.measured(backend, 1)(), exact) for backend in case.runs}
    del exact
    profiles: dict[str, list[dict[str, tuple[float, int]]]] = {backend: [] for backend in case.runs}
    walls: dict[str, list[float]] = {backend: [] for backend in case.runs}
    for _ in range(ROUNDS):
        for backend in case.runs:
            profiles[backend].append(profiler.kernels(case.measured(backend, repeat), repeat))
            walls[backend].append(wall_ms(case.measured(backend, repeat), repeat, case.device))
    ideal = case.touched() / bandwidth * 1e3
    found: list[dict[str, Any]] = []
    for backend in case.runs:
        device = [sum(ms for ms, _ in p.values()) for p in profiles[backend]]
        kernels = profiles[backend][-1]
        row: dict[str, Any] = {
            "pattern": case.name, "backend": backend, "device_ms": statistics.median(device),
            "wall_ms": statistics.median(walls[backend]), "first_s": case.first[backend],
            "error": errors[backend], "eager_error": errors["eager"],
            "launches": sum(count for _, count in kernels.values()),
            "names": {key[:80]: round(ms, 5) for key, (ms, _) in sorted(kernels.items(), key=lambda k: -k[1][0])},
            "card": torch.cuda.get_device_name() if case.device != "cpu" else "cpu", "torch": torch.__version__,
        }  # fmt: skip
        if isinstance(case, Step):
            row["saved"] = case.saved(backend) / 2**20
        row["fraction"] = ideal / row["device_ms"] if row["device_ms"] else 0.0
        if backend == "inductor":
            case.made[backend].kernels = sum(n for k, (_, n) in kernels.items() if k.startswith("triton_"))
            case.made[backend].calls = row["launches"] - case.made[backend].kernels
        if backend in ("inductor", "inductile"):
            row |= case.made[backend].row()
        found.append(row)
    return found


class NoProfiler:
    """On the CPU, to try the command: the time of a call stands for that of its kernels."""

    def kernels(self, call: Callable[[], Any], repeat: int) -> dict[str, tuple[float, int]]:
        """One line for everything."""
        return {"call": (wall_ms(call, repeat, "cpu"), 1)}


def work(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Prepare all patterns of this process, wait, and measure them; what failed becomes a row with a `problem`."""
    import torch

    kind = Step if args.step else Backward if args.backward else Forward
    cases: list[Forward] = []
    found: list[dict[str, Any]] = []

    def failed(name: str, error: Exception) -> None:
        found.append({"pattern": name, "backend": "all", "problem": f"{type(error).__name__}: {error}"[-600:]})

    made.let_inductor_count()
    for name in args.worker:
        torch._dynamo.reset()
        try:
            cases.append(kind(name, args.rows, args.device, getattr(torch, args.dtype)))
            cases[-1].prepare(_backends_for(name, args.backends))
        except Exception as error:
            failed(name, error)
            del cases[-1:]
    wait_for_turn()
    profiler = NoProfiler() if args.device == "cpu" else Profiler()
    bandwidth = 1e10 if args.device == "cpu" else copy_bandwidth()
    for case in cases:
        try:
            found += rows_of(case, profiler, args.repeat, bandwidth)
        except Exception as error:
            failed(case.name, error)
    return found


def _backends_for(name: str, backends: Sequence[str]) -> list[str]:
    """The backends that have the pattern: few are written by hand."""
    if "handwritten" not in backends:
        return list(backends)
    from gpu_handwritten import KERNELS

    return [b for b in backends if b != "handwritten" or name in KERNELS]


# in the process that collects


def table(rows: Sequence[dict[str, Any]], backends: Sequence[str]) -> str:
    """The rows as Markdown, one line a pattern."""
    columns = (
        ("device ms", "device_ms", ".4f"), ("fraction", "fraction", ".2f"), ("launches", "launches", ".0f"),
        ("wall ms", "wall_ms", ".3f"), ("kernels", "kernels", ".0f"), ("ATen calls", "aten_calls", ".0f"),
        ("MiB moved", "moved", ".1f"), ("of these by kernels", "kernels_moved", ".1f"),
        ("by ATen", "aten_moved", ".1f"), ("saved MiB", "saved", ".1f"), ("error", "error", ".1e"),
    )  # fmt: skip
    heads = " | ".join(f"{title}: {' / '.join(backends)}" if k == 0 else title for k, (title, *_) in enumerate(columns))
    lines = [f"| pattern | {heads} |", "|" + "---|" * (len(columns) + 1)]
    for name in dict.fromkeys(r["pattern"] for r in rows):
        mine = {r["backend"]: r for r in rows if r["pattern"] == name}
        cells = [
            " / ".join(format(mine[b][key], form) if key in mine.get(b, {}) else "-" for b in backends)
            for _, key, form in columns
        ]
        problems = "; ".join(f"{b}: {r['problem'][:160]}" for b, r in mine.items() if "problem" in r)
        lines.append(f"| {name} | " + " | ".join(cells) + f" |{' ' if problems else ''}{problems}")
    return "\n".join(lines)


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """Geometric means of the times of the others over ours, where we are behind, and wrong results."""
    found = {(r["pattern"], r["backend"]): r for r in rows if "problem" not in r}
    lines: list[str] = []
    for other in dict.fromkeys(backend for _, backend in found if backend != "inductile"):
        for key in ("device_ms", "wall_ms"):
            ratios = {
                n: found[n, other][key] / r[key]
                for (n, b), r in found.items()
                if b == "inductile" and (n, other) in found and r[key]
            }
            if ratios:
                behind = ", ".join(f"{n} {ratio:.2f}" for n, ratio in ratios.items() if ratio < 0.98)
                mean = statistics.geometric_mean(ratios.values())
                lines.append(f"{key}, {other} / inductile, {len(ratios)} patterns: {mean:.2f}; behind: {behind or '-'}")
    return "\n".join(lines + wrong_results(found))


def main() -> None:
    """Command line."""
    sys.path.insert(0, str(HERE))
    make_importable()
    import more_patterns
    import patterns

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", default="gpu-patterns.jsonl", help="file of results, read and added to")
    groups = {"more": list(more_patterns.CASES), "behind": list(more_patterns.BEHIND)}
    p.add_argument("--patterns", nargs="*", default=list(patterns.PATTERNS), help="names, `more` or `behind`")
    p.add_argument("--backends", nargs="*", default=list(BACKENDS), choices=(*BACKENDS, "handwritten"))
    p.add_argument("--backward", action="store_true")
    p.add_argument("--step", action="store_true", help="forward and backward together")
    p.add_argument("--rows", type=int, default=8192)
    p.add_argument("--repeat", type=int, default=10, help="calls a round")
    p.add_argument("--dtype", default="bfloat16")
    p.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    p.add_argument("--jobs", type=int, default=1, help="processes that compile side by side")
    p.add_argument("--deadline", type=float, default=0, help="seconds after which nothing is begun; 0: no limit")
    p.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    args = p.parse_args()
    args.patterns = [name for given in args.patterns for name in groups.get(given, [given])]
    if args.worker:
        print(json.dumps(work(args)))
        return
    started, path = time.monotonic(), Path(args.out)
    rows = read_results(path)
    done = {r["pattern"] for r in rows}
    left = [name for name in args.patterns if name not in done]
    shares = [share for k in range(args.jobs) if (share := left[k :: args.jobs])]
    rest = [a for k, a in enumerate(sys.argv[1:]) if a != "--jobs" and sys.argv[k] != "--jobs"]
    commands = [[sys.executable, __file__, *rest, "--worker", *share] for share in shares]
    deadline = started + args.deadline if args.deadline else float("inf")
    with tempfile.TemporaryDirectory() as cache, path.open("a") as file:
        for position, result in in_turns(commands, cache, args.jobs, deadline=deadline):
            if isinstance(result, MeasurementError):
                problem = f"{result}: " + " ".join(result.lines[-3:])[-600:]
                result = [{"pattern": n, "backend": "all", "problem": problem} for n in shares[position]]
            rows += result
            file.write("".join(json.dumps(row) + "\n" for row in result))
            file.flush()
            print(f"{' '.join(shares[position])} at {time.monotonic() - started:.0f} s", flush=True)
    print(table(rows, args.backends))
    print(summary(rows))


if __name__ == "__main__":
    main()
