"""Training steps of eager, Inductor and inductile on the CPU: `python benchmarks/training.py [--models bert gpt2]`.

A step is forward, the mean square of the outputs as loss, and backward. The first step is taken in a fresh process
with empty caches; medians of later steps in one process, interleaved. `saved` is what forward keeps for backward
beside parameters and inputs; gradients are compared with float64. Modules are in eval mode, so that there is no
dropout.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from processes import MeasurementError, in_fresh_process

HERE = Path(__file__).parent
MODELS = ("bert", "gpt2", "llama", "resnet50", "vit")
BACKENDS = ("aot_eager", "inductor", "inductile")
COMPARED = ("eager", "inductor", "inductile")


class Training:
    """One model with a function that computes its outputs; `autocast` is the dtype in which forward may compute."""

    def __init__(self, name: str, small: bool, dtype: Any = None, device: str = "cpu", autocast: Any = None) -> None:
        import models
        import torch

        self.function, self.inputs = models.build(name, dtype or torch.float32, small, device)
        self.module: Any = getattr(self.function, "module", self.function)
        self.autocast = functools.partial(torch.autocast, device, dtype=autocast, enabled=autocast is not None)

    def forward(self, call: Callable[..., Any]) -> Any:
        """The loss."""
        with self.autocast():
            outputs = call(*self.inputs)
        return outputs.float().square().mean() if outputs.itemsize < 4 else outputs.square().mean()

    def step(self, call: Callable[..., Any]) -> None:
        """Forward and backward; gradients are made anew."""
        self.module.zero_grad(set_to_none=True)
        self.forward(call).backward()

    def gradients(self) -> list[Any]:
        """Gradients of the last step."""
        return [p.grad.detach().double() for p in self.module.parameters() if p.grad is not None]

    def error(self, exact: list[Any]) -> float:
        """Relative L2 error of the last step's gradients."""
        got = self.gradients()
        wrong = sum(float((g - e).square().sum()) for g, e in zip(got, exact, strict=True))
        return (wrong / sum(float(e.square().sum()) for e in exact)) ** 0.5

    def saved_bytes(self, call: Callable[..., Any]) -> int:
        """Bytes that forward saves, each storage once."""
        return saved_bytes(lambda: self.forward(call), (*self.module.state_dict().values(), *self.inputs))


def saved_bytes(forward: Callable[[], Any], given: Iterable[Any]) -> int:
    """Bytes that a forward pass saves beside what it was given, each storage once."""
    import torch

    own = {t.untyped_storage().data_ptr() for t in given}
    saved: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        results = forward()
    del results
    return sum(saved.values())


def first_step(name: str, backend: str, small: bool) -> dict[str, float]:
    """Seconds of the first step in this process."""
    import worker

    import inductile.backends.torch_compile  # noqa: F401

    training = Training(name, small)
    call = worker.compiled(training.function, backend, False)
    start = time.perf_counter()
    training.step(call)
    return {"seconds": time.perf_counter() - start}


def compare(name: str, small: bool, seconds: float) -> dict[str, Any]:
    """Milliseconds, peak and saved MiB and gradient errors of all, in one process."""
    import torch
    import worker

    training = Training(name, small)
    exact = Training(name, small, torch.float64)
    exact.step(exact.function)
    reference = exact.gradients()
    calls: dict[str, Callable[..., Any]] = {"eager": training.function}
    for backend in COMPARED[1:]:
        torch._dynamo.reset()
        calls[backend] = worker.compiled(training.function, backend, False)
    result: dict[str, Any] = {"ms": {}, "peak": {}, "saved": {}, "error": {}}
    for backend, call in calls.items():
        training.step(call)
        result["error"][backend] = training.error(reference)
    times: dict[str, list[float]] = {backend: [] for backend in calls}
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(times["eager"]) < (5 if seconds else 1):
        for backend, call in calls.items():
            start = time.perf_counter()
            training.step(call)
            times[backend].append((time.perf_counter() - start) * 1e3)
    for backend, call in calls.items():
        result["ms"][backend] = median(times[backend])
        training.module.zero_grad(set_to_none=True)
        result["peak"][backend] = worker.peak_bytes(lambda call=call: training.step(call)) / 2**20
        result["saved"][backend] = training.saved_bytes(call) / 2**20
    return result


def in_new_process(arguments: list[str], cache: str) -> dict[str, Any]:
    """What this script prints for these arguments, in a fresh process."""
    try:
        return in_fresh_process(__file__, arguments, cache)
    except MeasurementError as error:
        raise SystemExit(f"{' '.join(arguments)}: " + "\n".join(error.lines)[-2000:]) from error


def row(name: str, figures: dict[str, Any], first: dict[str, float]) -> str:
    """One line of the table."""

    def cell(key: str, form: str) -> str:
        return " / ".join(format(figures[key][b], form) for b in COMPARED)

    cold = " / ".join(f"{first[b]:.1f}" for b in BACKENDS) if first else "-"
    own = " / ".join(f"{first[b] - first['aot_eager']:.1f}" for b in BACKENDS[1:]) if first else "-"
    cells = (cold, own, cell("ms", ".1f"), cell("saved", ".1f"), cell("peak", ".1f"), cell("error", ".1e"))
    return f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    """Command line."""
    sys.path.insert(0, str(HERE))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", nargs="*", default=list(MODELS))
    p.add_argument("--small", action="store_true", help="models cut down, to try the command")
    p.add_argument("--no-cold", action="store_true", help="no first steps")
    p.add_argument("--seconds", type=float, default=10.0, help="of interleaved steps; 0: one step each, for peaks")
    p.add_argument("--first", nargs=2, metavar=("MODEL", "BACKEND"), help=argparse.SUPPRESS)
    p.add_argument("--compare", metavar="MODEL", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.first:
        name, backend = args.first
        return print(json.dumps(first_step(name, backend, args.small)))
    if args.compare:
        return print(json.dumps(compare(args.compare, args.small, args.seconds)))
    rest = ["--seconds", str(args.seconds), *(["--small"] if args.small else [])]
    print(
        "| model | first step s: aot_eager / Inductor / inductile | own share s: Inductor / inductile "
        "| ms: eager / Inductor / inductile | saved MiB | peak MiB | gradient error |\n|---|---|---|---|---|---|---|"
    )
    ratios: list[float] = []
    for name in args.models:
        first: dict[str, float] = {}
        for backend in () if args.no_cold else BACKENDS:
            with tempfile.TemporaryDirectory() as cache:
                first[backend] = in_new_process(["--first", name, backend, *rest], cache)["seconds"]
        with tempfile.TemporaryDirectory() as cache:
            figures = in_new_process(["--compare", name, *rest], cache)
        ratios.append(figures["ms"]["inductor"] / figures["ms"]["inductile"])
        print(row(name, figures, first), flush=True)
    print(f"\ngeometric mean of the time of a step, Inductor / inductile: {geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
