"""timm: a training loop with its optimizer, schedule and average of weights, the model compiled by inductile.

    python examples/integrations/timm_training.py
    python examples/integrations/timm_training.py --model resnet18 --size 64 --amp

Needs `pip install timm`. timm's own script takes any backend: `train.py --torchcompile inductile`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import timm
import torch
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3

from inductile.backends.compiled import REPORTS

#: a vision transformer small enough for a test
TINY = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 1, "num_heads": 2}


def losses(name: str, steps: int, size: int, amp: bool, compiled: bool) -> tuple[list[float], float]:
    """The loss of each step, and a sum of the averaged weights."""
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    extra = TINY if name == "vit_tiny_patch16_224" else {}
    model = timm.create_model(name, pretrained=False, num_classes=4, **extra).to(device)
    average = ModelEmaV3(model, decay=0.9)
    step = torch.compile(model, backend="inductile") if compiled else model
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    schedule = CosineLRScheduler(optimizer, t_initial=steps, warmup_t=1)
    loss_of = LabelSmoothingCrossEntropy(0.1)
    told: list[float] = []
    for number in range(steps):
        images, classes = torch.randn(4, 3, size, size, device=device), torch.randint(4, (4,), device=device)
        with torch.autocast(device, torch.bfloat16, enabled=amp):
            loss = loss_of(step(images), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
        schedule.step(number + 1)
        told.append(loss.item())
    return told, sum(p.double().abs().sum().item() for p in average.module.parameters())


def main(argv: Sequence[str] | None = None) -> int:
    """Train twice; 1 where the losses differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="vit_tiny_patch16_224")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--amp", action="store_true", help="bfloat16 autocast")
    given = parser.parse_args(argv)
    expected, weights = losses(given.model, given.steps, given.size, given.amp, False)
    before = len(REPORTS)
    got, average = losses(given.model, given.steps, given.size, given.amp, True)
    print("eager:   ", expected)
    print("compiled:", got)
    for report in list(REPORTS)[before:]:
        print(report)
    noise = 0.05 if given.amp else 1e-3
    close = all(abs(a - b) <= noise * max(abs(a), 0.1) for a, b in zip(expected, got, strict=True))
    return 0 if close and abs(weights - average) <= 1e-3 * weights and len(REPORTS) > before else 1


if __name__ == "__main__":
    sys.exit(main())
