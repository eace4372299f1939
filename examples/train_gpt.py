"""Train a small GPT twice from the same seed, in eager and compiled, and compare the curves of the loss.

    python examples/train_gpt.py --steps 200
    python examples/train_gpt.py --steps 30 --checkpointing --accumulation 2 --autocast

The task: a sequence of random digits, then the same digits sorted; the model learns the second half. It is learned
within 200 steps, so a gradient that is wrong, rather than rounded, shows. Exits with 1 when the curves part.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

DIGITS, LENGTH = 10, 8


@dataclass(frozen=True)
class Settings:
    """What is trained, and how. `seed` is that of dropout; under `fallback_random` eager's masks are drawn."""

    steps: int = 200
    batch: int = 32
    layers: int = 2
    width: int = 48
    heads: int = 3
    dropout: float = 0.0
    autocast: bool = False
    accumulation: int = 1
    checkpointing: bool = False
    compile_optimizer: bool = False
    fallback_random: bool = False
    seed: int = 0
    backend: str = "inductile"


class Block(nn.Module):
    """Attention and a feed-forward network, each around a residual."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        width = settings.width
        self.heads, self.dropout = settings.heads, settings.dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, dim=-1)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mixed = self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        x = x + F.dropout(mixed, self.dropout, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout, self.training)


class GPT(nn.Module):
    """A decoder of digits."""

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.checkpointing = settings.checkpointing
        self.tokens = nn.Embedding(DIGITS, settings.width)
        self.positions = nn.Embedding(2 * LENGTH, settings.width)
        self.blocks = nn.ModuleList(Block(settings) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(settings.width)
        self.head = nn.Linear(settings.width, DIGITS, bias=False)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The mean loss over the second half; both int64, (batch, 2 * LENGTH - 1)."""
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        logits = self.head(self.norm(x))[:, LENGTH - 1 :]
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return F.cross_entropy(wide.flatten(0, 1), targets[:, LENGTH - 1 :].flatten())


def batch_of(settings: Settings, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens and the tokens that follow them."""
    digits = torch.randint(DIGITS, (settings.batch, LENGTH), generator=generator)
    whole = torch.cat([digits, digits.sort(dim=1).values], dim=1)
    return whole[:, :-1], whole[:, 1:]


def train(
    settings: Settings, compiled: bool, prepare: Callable[[nn.Module], nn.Module] | None = None, rank: int = 0
) -> list[float]:
    """The loss of each step.

    prepare: changes or wraps the model before it is compiled
    rank:    which part of the data this process trains on
    """
    torch.manual_seed(0)
    torch._dynamo.reset()
    model: nn.Module = GPT(settings)
    if prepare is not None:
        model = prepare(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    options: dict[str, Any] | None = {"fallback_random": True} if settings.fallback_random else None
    run = torch.compile(model, backend=settings.backend, options=options) if compiled else model
    step = optimizer.step
    if compiled and settings.compile_optimizer:
        step = torch.compile(optimizer.step, backend=settings.backend)
    generator = torch.Generator().manual_seed(1 + rank)
    losses: list[float] = []
    for number in range(settings.steps):
        torch.manual_seed(settings.seed * settings.steps + number)
        optimizer.zero_grad()
        total = 0.0
        for _ in range(settings.accumulation):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=settings.autocast):
                loss = run(*batch_of(settings, generator)) / settings.accumulation
            loss.backward()
            total += loss.item()
        step()
        losses.append(total)
    return losses


def difference(settings: Settings, expected: Sequence[float], got: Sequence[float]) -> tuple[float, float]:
    """The largest difference of the two curves relative to the loss, and how much is float noise.

    The noise grows as training amplifies rounding; with dropout both draw their own numbers, so only the mean of the
    last steps is compared.
    """
    if settings.dropout and not settings.fallback_random:
        last = max(len(expected) // 5, 1)
        means = [sum(curve[-last:]) / last for curve in (expected, got)]
        return abs(means[0] - means[1]) / max(means[0], 0.1), 0.25
    parts = [abs(a - b) / max(a, 0.1) for a, b in zip(expected, got, strict=True)]
    return max(parts), 0.1 if settings.autocast else 1e-4 * (1 + len(parts) / 10)


def main(argv: Sequence[str] | None = None) -> int:
    """Train both, print the curves, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, default in vars(Settings()).items():
        option = "--" + name.replace("_", "-")
        if isinstance(default, bool):
            parser.add_argument(option, action="store_true")
        else:
            parser.add_argument(option, type=type(default), default=default)
    settings = Settings(**vars(parser.parse_args(argv)))
    curves: list[list[float]] = []
    for compiled in (False, True):
        start = time.perf_counter()
        curves.append(train(settings, compiled))
        print(f"{'compiled' if compiled else 'eager':>8}: {time.perf_counter() - start:.1f} s")
    for number in sorted({*range(0, settings.steps, max(settings.steps // 10, 1)), settings.steps - 1}):
        print(f"step {number:4}: eager {curves[0][number]:.6f}   compiled {curves[1][number]:.6f}")
    found, noise = difference(settings, *curves)
    print(f"largest relative difference {found:.2e}, float noise is up to {noise:.0e}")
    return 0 if found <= noise and curves[1][-1] < curves[1][0] else 1


if __name__ == "__main__":
    sys.exit(main())
