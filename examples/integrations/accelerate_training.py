"""Accelerate: a training loop whose model inductile compiles, whole or block by block.

    python examples/integrations/accelerate_training.py
    python examples/integrations/accelerate_training.py --regions --precision bf16

Needs `pip install accelerate`. `TorchDynamoPlugin(backend=...)` and `accelerate config` take names of a closed list,
which has no place for the backends of other packages. What the plugin does, `prepare` leaves to you where the model
comes compiled: `model.compile(backend="inductile")`, or, to compile each kind of block once, Accelerate's own
`compile_regions(model, backend="inductile")`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import compile_regions
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from inductile.backends.compiled import REPORTS


class Block(nn.Module):
    """A feed-forward network around a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    """Blocks, then one number a row."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x).squeeze(-1)


def losses(steps: int, how: str, precision: str) -> list[float]:
    """The loss of each step; `how` is 'eager', 'whole' or 'regions'."""
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=not torch.cuda.is_available(), mixed_precision=precision)
    model: nn.Module = Model(16, 2)
    if how == "whole":
        model.compile(backend="inductile")
    elif how == "regions":
        model = compile_regions(model, backend="inductile")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    x = torch.randn(8 * steps, 16)
    data = DataLoader(TensorDataset(x, x.sum(-1)), batch_size=8)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    told: list[float] = []
    for rows, wanted in data:
        with accelerator.accumulate(model):
            loss = F.mse_loss(model(rows), wanted)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        told.append(loss.item())
    return told


def main(argv: Sequence[str] | None = None) -> int:
    """Train twice; 1 where the losses differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--regions", action="store_true", help="compile each kind of block once")
    parser.add_argument("--precision", choices=["no", "bf16", "fp16"], default="no")
    given = parser.parse_args(argv)
    expected = losses(given.steps, "eager", given.precision)
    before = len(REPORTS)
    got = losses(given.steps, "regions" if given.regions else "whole", given.precision)
    print("eager:   ", expected)
    print("compiled:", got)
    for report in list(REPORTS)[before:]:
        print(report)
    noise = 1e-4 if given.precision == "no" else 0.05
    close = all(abs(a - b) <= noise * max(abs(a), 0.1) for a, b in zip(expected, got, strict=True))
    return 0 if close and len(REPORTS) > before else 1


if __name__ == "__main__":
    sys.exit(main())
