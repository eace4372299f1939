"""Attention of one query over caches whose keys heads share, on a GPU: `python benchmarks/one_query.py --out r.jsonl`.

Microseconds of a call in a CUDA graph of calls with different caches, ours and torch's choice of a library.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import torch
from gpu import make_importable
from skinny_products import recorded
from torch.nn.functional import scaled_dot_product_attention

#: batch and keys of a cache
CASES = tuple(itertools.product((1, 16), (256, 1024, 4096)))
HEADS, SHARED, WIDTH = 32, 4, 64


def attention(query: Any, key: Any, value: Any, mask: Any) -> Any:
    """Of one query a head."""
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)


def measure(batch: int, keys: int, device: str, count: int) -> dict[str, Any]:
    """A row."""
    options = {"device": device, "dtype": torch.bfloat16}
    query = torch.randn(batch, HEADS, 1, WIDTH, **options)
    caches = [[torch.randn(batch, SHARED, keys, WIDTH, **options) for _ in range(2)] for _ in range(count)]
    mask = (torch.arange(keys, device=device) < keys - 50)[None, None, None]
    row: dict[str, Any] = {"attention": [batch, HEADS, SHARED, keys, WIDTH]}
    exact = attention(query.float(), caches[0][0].float(), caches[0][1].float(), mask)
    for name in ("library", "inductile"):
        torch._dynamo.reset()
        run = attention if name == "library" else torch.compile(attention, backend="inductile", dynamic=False)
        for key, value in caches[:3]:
            run(query, key, value, mask)
        found = run(query, caches[0][0], caches[0][1], mask)
        row |= {f"{name} error": float((found.float() - exact).norm() / exact.norm())}
        if device == "cuda":
            row[name] = round(recorded(lambda: [run(query, key, value, mask) for key, value in caches]) / count, 2)  # noqa: B023
    return row


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--count", type=int, default=12)
    args = parser.parse_args()
    make_importable()
    with torch.no_grad(), args.out.open("a") as out:
        for batch, keys in CASES:
            try:
                row = measure(batch, keys, args.device, args.count)
            except Exception as error:
                row = {"attention": [batch, keys], "failed": f"{type(error).__name__} {error}"[-300:]}
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(row, flush=True)


if __name__ == "__main__":
    main()
