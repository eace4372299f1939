"""Curves of the loss, eager and compiled, of a small GPT: `python benchmarks/curves.py [--variants plain dropout]`.

Both start from one seed, and every rounding that differs is amplified by the steps behind it, so what counts as float
noise is measured: the same training in float64, and in eager with each weight moved by one unit in the last place at
the start. Where the optimizer is compiled, torch traces its bias corrections in float32 instead of Python's numbers;
there the same under `aot_eager`, which only traces, is a yardstick too.

`diff` is the largest difference of two curves over all steps. A variant agrees where compiled differs from eager by at
most `--factor` times what eager differs from the worst of these. Without `fallback_random` compiled draws other numbers
than eager; then means over the last fifth of the steps are compared, and the yardstick is how they spread over seeds of
dropout in eager. Exits with 1 when a variant does not agree.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

HERE = Path(__file__).parent
WORLD = 2
"""Processes of the variant `ddp`."""

#: what each variant sets of the example's Settings
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dropout": {"dropout": 0.1, "fallback_random": True},
    "dropout, own masks": {"dropout": 0.1},
    "bf16 autocast": {"autocast": True},
    "accumulation": {"accumulation": 4, "batch": 8},
    "checkpointing": {"checkpointing": True},
    "checkpointing, dropout": {"checkpointing": True, "dropout": 0.1, "fallback_random": True},
    "compiled optimizer": {"compile_optimizer": True},
    "ddp": {},
}
#: kinds of runs in eager that say what float noise is
PERTURBED = ("up", "down", "mixed")
SEEDS = (1, 2, 3)

Curves = dict[str, list[float]]


def moved(direction: str, model: nn.Module) -> nn.Module:
    """The model with each weight one unit in the last place up, down, or either way at random."""
    import torch

    generator = torch.Generator().manual_seed(len(direction))
    with torch.no_grad():
        for p in model.parameters():
            ups = torch.rand(p.shape, generator=generator) < 0.5
            to = {"up": torch.ones_like(ups), "down": torch.zeros_like(ups), "mixed": ups}[direction]
            p.copy_(torch.nextafter(p, torch.where(to, float("inf"), float("-inf"))))
    return model


def measure(name: str, steps: int, layers: int, rank: int = 0) -> Curves:
    """The curves of a variant by kind of run: eager, compiled, and the yardsticks."""
    from torch import nn

    train_gpt: Any = importlib.import_module("train_gpt")  # of the examples
    settings = train_gpt.Settings(steps=steps, layers=layers, **VARIANTS[name])

    def curve(
        compiled: bool = False, prepare: Callable[[nn.Module], nn.Module] = lambda model: model, **changes: Any
    ) -> list[float]:
        def whole(model: nn.Module) -> nn.Module:
            model = prepare(model)
            return nn.parallel.DistributedDataParallel(model) if name == "ddp" else model

        return train_gpt.train(dataclasses.replace(settings, **changes), compiled, whole, rank)

    curves = {"eager": curve(), "compiled": curve(compiled=True)}
    if draws_other_numbers(name):
        return curves | {f"seed {seed}": curve(seed=seed) for seed in SEEDS}
    for direction in PERTURBED:
        curves[direction] = curve(prepare=lambda model, direction=direction: moved(direction, model))
    curves["float64"] = curve(prepare=lambda model: model.double())
    if settings.compile_optimizer:
        curves["aot_eager"] = curve(compiled=True, backend="aot_eager")
    return curves


def draws_other_numbers(name: str) -> bool:
    """Whether the numbers that a variant draws when it is compiled are not eager's."""
    return "dropout" in VARIANTS[name] and "fallback_random" not in VARIANTS[name]


def in_processes(name: str, steps: int, layers: int) -> Curves:
    """The curves of a variant in two processes over gloo, those of the first one."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--steps", str(steps), "--layers", str(layers), "--variants", name]
        workers = [
            subprocess.Popen(
                [*command, "--rank", str(rank), "--meet", f"{folder}/rendezvous"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for rank in range(WORLD)
        ]  # fmt: skip
        try:
            outputs = [worker.communicate() for worker in workers]
        finally:
            for worker in workers:
                worker.kill()
    for worker, (_, errors) in zip(workers, outputs, strict=True):
        if worker.returncode:
            raise SystemExit(f"{name}: {errors[-2000:]}")
    return json.loads(outputs[0][0].splitlines()[-1])


def one_process(name: str, steps: int, layers: int, rank: int, meet: str) -> None:
    """Be one of the processes; prints the curves as JSON."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=WORLD)
    curves = measure(name, steps, layers, rank)
    dist.destroy_process_group()
    print(json.dumps(curves))


def apart(first: Sequence[float], second: Sequence[float]) -> float:
    """The largest difference of two curves."""
    return max(abs(a - b) for a, b in zip(first, second, strict=True))


def late(curve: Sequence[float]) -> float:
    """The mean over the last fifth of the steps."""
    return fmean(curve[-max(len(curve) // 5, 1) :])


@dataclasses.dataclass
class Result:
    """What the curves of a variant say: `difference` of compiled from eager, and the yardsticks by name."""

    name: str
    curves: Curves
    difference: float
    noise: dict[str, float]

    @staticmethod
    def of(name: str, curves: Curves) -> Result:
        """Compare the curves of a variant."""
        eager, compiled = curves["eager"], curves["compiled"]
        others = {kind: curve for kind, curve in curves.items() if kind not in ("eager", "compiled")}
        if draws_other_numbers(name):
            means = {kind: late(curve) for kind, curve in others.items()} | {"eager": late(eager)}
            spread = max(means.values()) - min(means.values())
            return Result(name, curves, abs(late(compiled) - fmean(means.values())), {"seeds": spread})
        noise = {"1 ulp": max(apart(eager, others.pop(kind)) for kind in PERTURBED)}
        noise |= {kind: apart(eager, curve) for kind, curve in others.items()}
        return Result(name, curves, apart(eager, compiled), noise)

    @property
    def ratio(self) -> float:
        """The difference over the largest yardstick, which is no less than one rounding of the loss."""
        rounding = max(self.curves["eager"]) * 2.0**-23
        return self.difference / max(*self.noise.values(), rounding)

    def row(self) -> str:
        """A line of the table."""
        eager, compiled = self.curves["eager"], self.curves["compiled"]
        noise = "; ".join(f"{kind} {value:.1e}" for kind, value in self.noise.items())
        exact = self.curves.get("float64")
        distance = f"{apart(compiled, exact):.1e}" if exact else "-"
        return (
            f"| {self.name} | {eager[0]:.4f} | {eager[-1]:.6f} / {compiled[-1]:.6f} | {self.difference:.1e} | {noise} "
            f"| {self.ratio:.2f} | {distance} |"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Command line."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    sys.path.insert(0, str(HERE.parent / "examples"))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=list(VARIANTS), metavar="NAME")
    p.add_argument("--steps", type=int, default=200)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--factor", type=float, default=4.0, help="times float noise that is still agreement")
    p.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    p.add_argument("--meet", help=argparse.SUPPRESS)
    args = p.parse_args(argv)
    if args.rank is not None:
        one_process(args.variants[0], args.steps, args.layers, args.rank, args.meet)
        return 0
    print(
        "| variant | first loss | last loss: eager / compiled | diff of compiled from eager | diff of eager from "
        "| diff / noise | diff of compiled from float64 |\n|---|---|---|---|---|---|---|"
    )
    agree = True
    for name in args.variants:
        curves = (in_processes if name == "ddp" else measure)(name, args.steps, args.layers)
        result = Result.of(name, curves)
        agree = agree and result.ratio <= args.factor
        print(result.row(), flush=True)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
