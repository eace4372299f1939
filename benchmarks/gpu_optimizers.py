"""A step of an optimizer with `foreach`, eager, Inductor and inductile: `python benchmarks/gpu_optimizers.py`.

Parameters have the shapes of a model's, values and gradients are random; the lines say which model and which optimizer.
`wall`, `device` and `launches` are those of `gpu_models.py`, of one step; `first` is the first step, compilation
included; `error` is how far three steps are from float64, relative to the change. All runs in one process.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from gpu import make_importable
from gpu_models import BACKENDS, Column, device_time, interleaved, summary, synchronize, table

OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9, "weight_decay": 0.01},
    "Adam": {"weight_decay": 0.01},
    "AdamW": {"weight_decay": 0.1},
}
COLUMNS: tuple[Column, ...] = (
    ("wall ms", "wall", ".3f"), ("device ms", "device", ".3f"), ("launches", "launches", ""),
    ("first step s", "first", ".1f"), ("error", "error", ".1e"),
)  # fmt: skip


class Case:
    """Parameters of a model's shapes with gradients, and an optimizer for them."""

    def __init__(self, model: str, optimizer: str, args: argparse.Namespace, dtype: Any = None) -> None:
        import models
        import torch

        function, _ = models.MODELS[model].make(args.small)
        module: Any = getattr(function, "module", function)
        generator = torch.Generator().manual_seed(0)
        self.parameters = [
            torch.nn.Parameter(torch.randn(p.shape, generator=generator).to(args.device, dtype or torch.float32))
            for p in module.parameters()
        ]
        for p in self.parameters:
            p.grad = torch.randn(p.shape, generator=generator).to(p.device, p.dtype)
        made = getattr(torch.optim, optimizer)
        self.optimizer = made(self.parameters, lr=1e-3, foreach=True, **OPTIMIZERS[optimizer])

    def changed(self, step: Callable[[], Any]) -> list[Any]:
        """What three steps change of each parameter, in float64 on the CPU."""
        before = [p.detach().double().cpu().clone() for p in self.parameters]
        for _ in range(3):
            step()
        return [p.detach().double().cpu() - old for p, old in zip(self.parameters, before, strict=True)]


def distance(got: list[Any], exact: list[Any]) -> float:
    """The largest relative L2 distance."""
    return max(float((a - b).norm() / b.norm().clamp_min(1e-30)) for a, b in zip(got, exact, strict=True))


def measure(model: str, optimizer: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """A row a backend."""
    import torch

    exact = Case(model, optimizer, args, torch.float64)
    reference = exact.changed(exact.optimizer.step)
    del exact
    rows: dict[str, dict[str, Any]] = {}
    calls: dict[str, Callable[[], Any]] = {}
    for backend in args.backends:
        torch._dynamo.reset()
        case = Case(model, optimizer, args)
        step = case.optimizer.step if backend == "eager" else torch.compile(case.optimizer.step, backend=backend)
        row = rows[backend] = {"model": f"{model} {optimizer}", "backend": backend}
        start = time.perf_counter()
        try:
            changes = case.changed(lambda step=step: (step(), synchronize(args.device)))
        except Exception as error:
            row["problem"] = f"{type(error).__name__}: {error}"[-600:]
            continue
        row["first"], row["error"] = time.perf_counter() - start, distance(changes, reference)
        calls[backend] = step
    for backend, spent in interleaved(calls, args.repeat, args.device).items():
        rows[backend]["wall"] = spent
    if args.device != "cpu":
        for backend, call in calls.items():
            rows[backend]["device"], rows[backend]["launches"], _ = device_time(call)
    return list(rows.values())


def main() -> None:
    """Measure, and print a table."""
    make_importable()
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", nargs="*", default=["resnet50", "gpt2"])
    p.add_argument("--optimizers", nargs="*", default=list(OPTIMIZERS), choices=OPTIMIZERS)
    p.add_argument("--backends", nargs="*", default=list(BACKENDS), choices=BACKENDS)
    p.add_argument("--repeat", type=int, default=50, help="timed steps of each backend")
    p.add_argument("--small", action="store_true", help="models cut down, to try the command")
    p.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    p.add_argument("--out", default="", help="file to which each row is added as a line of JSON")
    args = p.parse_args()
    rows: list[dict[str, Any]] = []
    for model in args.models:
        for optimizer in args.optimizers:
            rows += (found := measure(model, optimizer, args))
            if args.out:
                with open(args.out, "a") as file:
                    file.write("".join(json.dumps(row) + "\n" for row in found))
    print(table(rows, args.backends, COLUMNS))
    print(summary(rows, args.backends))


if __name__ == "__main__":
    main()
