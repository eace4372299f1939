"""Let measurements choose among the backends of torch.compile: `inductile.autotune_backends`.

    python examples/integrations/choose_backend.py
    python examples/integrations/choose_backend.py --width 512 --batch 64 --backward

Needs nothing but inductile. A backend is compared with eager before it is timed, and one that fails is not chosen.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch
from torch import nn

import inductile


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, and use what was chosen."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--backends", nargs="+", default=["eager", "inductor", "inductile"])
    parser.add_argument("--seconds", type=float, default=0.2)
    given = parser.parse_args(argv)
    torch.manual_seed(0)
    width = given.width
    model = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.LayerNorm(4 * width), nn.Linear(4 * width, width))
    x = torch.randn(given.batch, width)
    choice = inductile.autotune_backends(model, (x,), given.backends, backward=given.backward, seconds=given.seconds)
    print(choice)
    print(f"chosen: {choice.best}")
    torch.testing.assert_close(choice.function(x), model(x))
    return 0


if __name__ == "__main__":
    sys.exit(main())
