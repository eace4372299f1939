"""A paged key-value cache, as servers of language models keep it: custom ops that write their arguments.

    python examples/integrations/paged_cache.py
    python examples/integrations/paged_cache.py --tokens 32

Needs nothing but inductile. Keys and values of each sequence lie in blocks of a common pool; a table says in which. Two
ops of `torch.library`, one with `mutates_args`, are called in the compiled step. The pool is written in place: the step
makes no copy of it, which the script checks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from inductile.backends.compiled import REPORTS

BLOCK, HEADS, SIZE = 4, 2, 8


@torch.library.custom_op("paged_example::store", mutates_args=("keys", "values"))
def store(k: torch.Tensor, v: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, slots: torch.Tensor) -> None:
    """Write each sequence's new row (heads, size) to its slot of the pools (blocks, BLOCK, heads, size)."""
    keys.view(-1, HEADS, SIZE)[slots] = k
    values.view(-1, HEADS, SIZE)[slots] = v


@torch.library.custom_op("paged_example::attend", mutates_args=())
def attend(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    """Attention of one query a sequence over the first `lengths` rows of its blocks."""
    k, v = (pool[table].flatten(1, 2).transpose(1, 2) for pool in (keys, values))
    seen = torch.arange(k.shape[2]) < lengths[:, None]
    return F.scaled_dot_product_attention(q[:, :, None], k, v, attn_mask=seen[:, None, None])[:, :, 0]


@attend.register_fake
def _(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    return torch.empty_like(q)


class Layer(nn.Module):
    """Attention and a feed-forward network for one token of each sequence."""

    def __init__(self) -> None:
        super().__init__()
        width = HEADS * SIZE
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(
        self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor
    ) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).view(-1, 3, HEADS, SIZE).unbind(1)
        slots = table.gather(1, (lengths // BLOCK)[:, None])[:, 0] * BLOCK + lengths % BLOCK
        store(k, v, keys, values, slots)
        x = x + self.out(attend(q, keys, values, table, lengths + 1).flatten(1))
        return x + self.down(F.silu(self.up(x)))


def decoded(layers: nn.ModuleList, tokens: int, compiled: bool) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """What comes out after some steps of three sequences, and the pools."""
    torch.manual_seed(1)
    sequences, blocks = 3, -(-tokens // BLOCK)
    table = torch.randperm(sequences * blocks).view(sequences, blocks)
    pools = [torch.zeros(sequences * blocks, BLOCK, HEADS, SIZE) for _ in range(2 * len(layers))]
    lengths = torch.zeros(sequences, dtype=torch.int64)

    def step(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        for number, layer in enumerate(layers):
            x = layer(x, pools[2 * number], pools[2 * number + 1], table, lengths)
        return x

    run = torch.compile(step, backend="inductile", fullgraph=True) if compiled else step
    x = torch.randn(sequences, HEADS * SIZE)
    for _ in range(tokens):
        x = run(x, lengths)
        lengths = lengths + 1
    return x, pools


def main(argv: Sequence[str] | None = None) -> int:
    """Decode in eager and compiled; 1 where they differ or the compiled step copies a pool."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=6)
    parser.add_argument("--layers", type=int, default=2)
    given = parser.parse_args(argv)
    torch.manual_seed(0)
    layers = nn.ModuleList(Layer() for _ in range(given.layers)).eval()
    with torch.no_grad():
        expected, pools = decoded(layers, given.tokens, False)
        got, written = decoded(layers, given.tokens, True)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(written, pools)
    report = REPORTS[-1]
    print(report)
    calls = {name: times for name, times in report.aten_calls.items() if "copy" in name or "clone" in name}
    print("copies:", calls or "none")
    in_place = not calls and report.aten_calls.get("paged_example::store") == given.layers
    return 0 if in_place else 1


if __name__ == "__main__":
    sys.exit(main())
