"""transformers' Trainer with inductile: compile the model in place, and leave `torch_compile` alone.

    python examples/integrations/transformers_trainer.py
    python examples/integrations/transformers_trainer.py --steps 100

Needs `pip install transformers accelerate`. `TrainingArguments(torch_compile_backend=...)` takes names of a closed list
(Accelerate's `DynamoBackend`) which third parties cannot extend. `model.compile(backend="inductile")` needs none of it:
the module stays what it was, so that checkpoints have the usual names.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from inductile.backends.compiled import REPORTS


class Parity(Dataset[dict[str, torch.Tensor]]):
    """Sequences of tokens; the class is whether the first one is odd."""

    def __init__(self, size: int) -> None:
        self.tokens = torch.randint(64, (size, 12), generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[index], "labels": self.tokens[index, 0] % 2}


def losses(steps: int, compiled: bool, folder: Path) -> list[float]:
    """The loss of each step; dropout is off so that both runs see the same numbers."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    if compiled:
        model.compile(backend="inductile")
    arguments = TrainingArguments(
        output_dir=str(folder), max_steps=steps, per_device_train_batch_size=8, learning_rate=1e-3, logging_steps=1,
        report_to=[], save_strategy="no", disable_tqdm=True, seed=0, use_cpu=not torch.cuda.is_available(),
    )  # fmt: skip
    trainer = Trainer(model, arguments, train_dataset=Parity(8 * steps))
    trainer.train()
    trainer.save_model(str(folder / "saved"))
    BertForSequenceClassification.from_pretrained(folder / "saved")
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def main(argv: Sequence[str] | None = None) -> int:
    """Train twice; 1 where the losses differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=4)
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        expected = losses(given.steps, False, Path(folder))
        before = len(REPORTS)
        got = losses(given.steps, True, Path(folder))
    print("eager:   ", expected)
    print("compiled:", got)
    for report in list(REPORTS)[before:]:
        print(report)
    close = all(abs(a - b) <= 1e-3 * max(abs(a), 0.1) for a, b in zip(expected, got, strict=True))
    return 0 if close and len(REPORTS) > before else 1


if __name__ == "__main__":
    sys.exit(main())
