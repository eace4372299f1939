"""Lightning: a `LightningModule` whose network inductile compiles, run by its Trainer.

    python examples/integrations/lightning_training.py
    python examples/integrations/lightning_training.py --whole

Needs `pip install lightning`. Compile the network inside of the module in place: hooks, logging and checkpoints
stay as they are. `torch.compile(module)` in front of `Trainer.fit` works too (`--whole`); there Dynamo leaves the graph
wherever a step logs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import lightning
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from inductile.backends.compiled import REPORTS


class Classifier(lightning.LightningModule):
    """Two classes of points."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 2))
        self.told: list[float] = []

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        rows, wanted = batch
        loss = F.cross_entropy(self.network(rows), wanted)
        self.log("loss", loss)
        return loss

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.told.append(outputs["loss"].item())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def losses(steps: int, how: str) -> list[float]:
    """The loss of each step; `how` is 'eager', 'network' or 'whole'."""
    torch.manual_seed(0)
    module = Classifier()
    if how == "network":
        module.network.compile(backend="inductile")
    x = torch.randn(8 * steps, 16)
    data = DataLoader(TensorDataset(x, (x.sum(-1) > 0).long()), batch_size=8)
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="auto", devices=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(torch.compile(module, backend="inductile") if how == "whole" else module, data)
    return module.told


def main(argv: Sequence[str] | None = None) -> int:
    """Train twice; 1 where the losses differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--whole", action="store_true", help="compile the LightningModule")
    given = parser.parse_args(argv)
    expected = losses(given.steps, "eager")
    before = len(REPORTS)
    got = losses(given.steps, "whole" if given.whole else "network")
    print("eager:   ", expected)
    print("compiled:", got)
    for report in list(REPORTS)[before:]:
        print(report)
    close = all(abs(a - b) <= 1e-3 * max(abs(a), 0.1) for a, b in zip(expected, got, strict=True))
    return 0 if close and len(REPORTS) > before else 1


if __name__ == "__main__":
    sys.exit(main())
