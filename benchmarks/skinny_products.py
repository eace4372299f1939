"""Products of few rows with weights of 16, 8 and 4 bits on a GPU: `python benchmarks/skinny_products.py --out r.jsonl`.

What torch.compile makes of them by default, beside the library with a weight of 16 bits, ATen's kernel for 4 bits, and
the schedules of `CANDIDATES`. Device microseconds of a call are those of a CUDA graph of calls with different weights,
which no cache holds, and a row says what part of the bandwidth they are, the starts of kernels included. Kernels are
compiled by several processes first. What the file of results holds is not run again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpu import make_importable

#: bytes a nanosecond that an H200's memory moves, as the maker says
BANDWIDTH = 4800
#: columns and depth
SHAPES = ((4096, 4096), (11008, 4096), (2048, 5632), (32000, 2048))
#: MiB of weights with a depth of `DEPTH`, for `--sizes`
SIZES, DEPTH = (8, 16, 64, 128), 4096
#: of weights of more bytes the first columns are checked
MOST_CHECKED, CHECKED = 64 << 20, 4096
ROWS = (1, 2, 4, 8, 16)
KINDS = {"bf16": 16, "int8": 8, "int8 scaled": 8, "int4 32": 4, "int4 128": 4, "int4 halves": 4}
#: name -> rows, kinds, and options of passes
CANDIDATES: dict[str, tuple[tuple[int, ...], tuple[str, ...], dict[str, str]]] = {
    **{
        f"{size} bytes": ((1,), ("bf16", "int8", "int8 scaled"), {"kernel-tile": f"program-bytes={size}"})
        for size in (1024, 16384, 32768, 65536)
    },
    "2 rows": ((1,), ("int8", "int4 128", "int4 halves"), {"kernel-tile": "elements=4096"}),
    "2 rows, 4 warps": (
        (1,), ("int8", "int4 128", "int4 halves"), {"kernel-tile": "elements=4096", "kernel-choose-warps": "warps=4"}
    ),
    "4 rows, 4 warps": ((1,), ("int4 128",), {"kernel-tile": "elements=8192", "kernel-choose-warps": "warps=4"}),
    "1 warp": ((1,), ("int4 128", "int4 halves"), {"kernel-choose-warps": "warps=1"}),
    "4 warps": ((1,), ("int4 128", "int4 halves"), {"kernel-choose-warps": "warps=4"}),
    "8 warps": ((1,), ("int4 128", "int4 halves"), {"kernel-choose-warps": "warps=8"}),
    **{
        f"16x{columns}x{depth}x{warps}x{stages}": (
            (4, 16), ("int8",),
            {"kernel-map-products": f"tile-columns={columns} tile-depth={depth} warps={warps} stages={stages}"},
        )
        for columns, depth, warps, stages in (
            (16, 256, 2, 4), (16, 256, 4, 5), (32, 256, 2, 5), (32, 128, 2, 6), (64, 128, 4, 5), (16, 512, 4, 4),
            (32, 256, 4, 4),
        )
    },
}  # fmt: skip


def weight_of(kind: str, columns: int, depth: int, device: str, pool: Any = None) -> tuple[Any, ...]:
    """A weight as it is stored, and its scales."""
    import torch

    bits, _, group = kind.partition(" ")
    size = columns * depth * KINDS[kind] // 8
    raw = torch.empty(size, dtype=torch.uint8, device=device) if pool is None else pool[:size]
    if bits == "bf16":
        return (raw.view(torch.bfloat16).view(columns, depth),)
    if bits == "int8":
        scales = torch.rand(columns, device=device).to(torch.bfloat16) / 64
        return raw.view(torch.int8).view(columns, depth), scales
    groups = depth // (int(group) if group.isdigit() else 128)
    return raw.view(columns, depth // 2), torch.rand(columns, groups, device=device).to(torch.bfloat16) / 16


def function_of(kind: str) -> Callable[..., Any]:
    """The product, dequantised by ordinary operators."""
    import torch
    from torch.nn.functional import linear

    def cast(x: Any, w: Any, scales: Any) -> Any:
        return linear(x, w.to(x.dtype)) * scales

    def scaled(x: Any, w: Any, scales: Any) -> Any:
        return linear(x, w.to(x.dtype) * scales[:, None])

    def packed(x: Any, w: Any, scales: Any) -> Any:
        join = torch.cat if kind.endswith("halves") else torch.stack
        numbers = join([w & 15, w >> 4], -1).view(*scales.shape, -1)
        return linear(x, ((numbers.to(x.dtype) - 8) * scales[:, :, None]).view(w.shape[0], -1))

    return {"bf16": linear, "int8": cast, "int8 scaled": scaled}.get(kind, packed)


def sized_cases() -> Iterator[dict[str, Any]]:
    """Weights of so many MiB each, and the sum that reads as much, which is the yardstick."""
    for size in SIZES:
        yield {"columns": (size << 20) // 4 // DEPTH, "depth": DEPTH, "rows": 0, "kind": "read", "who": "sum"}
    all_cases = itertools.product(SIZES, ROWS, ("bf16", "int8", "int4 128"))
    for size, rows, kind in sorted(all_cases, key=lambda each: (each[1] in (2, 8), each[0] in (16, 128))):
        columns = (size << 23) // KINDS[kind] // DEPTH
        yield {"columns": columns, "depth": DEPTH, "rows": rows, "kind": kind, "who": "inductile"}


def cases() -> Iterator[dict[str, Any]]:
    """What is measured."""
    for (columns, depth), rows, kind in itertools.product(SHAPES, ROWS, KINDS):
        if (rows in (2, 8) and columns != 4096) or (kind == "int8 scaled" and rows not in (1, 4)):
            continue
        base = {"columns": columns, "depth": depth, "rows": rows, "kind": kind}
        yield base | {"who": "inductile"}
        if kind == "bf16":
            yield base | {"who": "library"}
        if kind == "int4 128" and columns % 64 == 0 and depth % 1024 == 0:
            yield base | {"who": "int4pack"}
        for name, (of_rows, kinds, _) in CANDIDATES.items():
            if rows in of_rows and kind in kinds and (columns != 2048 or "bytes" in name):
                yield base | {"who": name}


def call_of(case: dict[str, Any]) -> Callable[..., Any]:
    """What a case calls."""
    import torch

    if case["who"] == "library":
        return torch.nn.functional.linear
    if case["who"] == "sum":
        from read_words import add_up

        return add_up
    if case["who"] == "int4pack":
        return lambda x, w, scales: torch.ops.aten._weight_int4pack_mm(x, w, 128, scales)
    options: dict[str, Any] = {}
    if case["who"] != "inductile":
        from inductile.lowering.pipeline import pipeline_string

        passes = CANDIDATES[case["who"]][2]
        names = pipeline_string().split(",")
        options["pipeline"] = ",".join(f"{name}{{{passes[name]}}}" if name in passes else name for name in names)
    torch._dynamo.reset()
    return torch.compile(function_of(case["kind"]), backend="inductile", options=options, dynamic=False)


def prepare(case: dict[str, Any]) -> str:
    """Compile a case in this process, for the cache."""
    import torch

    try:
        make_importable()
        if case["who"] == "sum":
            return ""
        x = torch.randn(case["rows"], case["depth"], device="cuda").to(torch.bfloat16)
        with torch.no_grad():
            call_of(case)(x, *weight_of(case["kind"], case["columns"], case["depth"], "cuda"))
    except Exception as error:
        return f"{type(error).__name__} {error}"[-300:]
    return ""


def measure(case: dict[str, Any], pool: Any) -> dict[str, Any]:
    """A row."""
    import torch

    columns, depth, kind = case["columns"], case["depth"], case["kind"]
    if case["who"] == "sum":
        return read(case, pool)
    size = columns * depth * KINDS[kind] // 8
    count = max(2, min(24, 300_000_000 // size))
    x = torch.randn(case["rows"], depth, device="cuda").to(torch.bfloat16)
    weights = [weight_of(kind, columns, depth, "cuda", pool[size * k :]) for k in range(count)]
    function = function_of(kind)
    weights_of_one = weights[0] if size <= MOST_CHECKED else tuple(each[:CHECKED] for each in weights[0])
    exact = function(x.float(), *(each if each.dtype != torch.bfloat16 else each.float() for each in weights_of_one))
    run = call_of(case)
    if case["who"] == "int4pack":
        scales = torch.rand(depth // 128, columns, 2, device="cuda").to(torch.bfloat16)
        weights = [(torch.ops.aten._convert_weight_to_int4pack(w, 8), scales) for w, _ in weights]
    found = run(x, *weights[0])
    error = (
        float((found[:, : exact.shape[1]].float() - exact).norm() / exact.norm()) if case["who"] != "int4pack" else 0.0
    )
    for each in weights:
        run(x, *each)
    least = recorded(lambda: [run(x, *each) for each in weights]) / count
    share = size / least / 1000 / BANDWIDTH
    return case | {"us": round(least, 2), "share": round(share, 3), "error": error}


def recorded(calls: Callable[[], Any]) -> float:
    """Microseconds of a CUDA graph."""
    import torch

    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        calls()
    least = float("inf")
    for _ in range(4):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        least = min(least, 1000 * start.elapsed_time(end))
    return least


def read(case: dict[str, Any], pool: Any) -> dict[str, Any]:
    """A row of the yardstick: the best of several schedules of a kernel that adds up words."""
    run = call_of(case)
    size = case["columns"] * case["depth"] * 4
    count = max(2, min(24, 600_000_000 // size))
    parts = [pool[size * k : size * (k + 1)] for k in range(min(count, len(pool) // size))]
    best = float("inf")
    for words, warps in ((2048, 4), (4096, 4), (4096, 8), (8192, 8)):
        run(parts[0], words, warps)
        best = min(best, recorded(lambda: [run(p, words, warps) for p in parts]) / len(parts))  # noqa: B023
    return case | {"us": round(best, 2), "share": round(size / best / 1000 / BANDWIDTH, 3), "error": 0.0}


def main() -> None:
    """Measure everything, within the seconds given."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--prepare", type=float, default=60, help="seconds for compiling beforehand")
    parser.add_argument("--seconds", type=float, default=60, help="seconds for measuring")
    parser.add_argument(
        "--who", nargs="+", help="what to measure: inductile, library, int4pack, or a schedule; else all"
    )
    parser.add_argument("--rows", nargs="+", type=int, help="of how many rows; else of all")
    parser.add_argument("--sizes", action="store_true", help="weights of 8 to 128 MiB of each kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    lines = args.out.read_text().splitlines() if args.out.exists() else []
    keys = ("columns", "depth", "rows", "kind", "who")
    done = {tuple(json.loads(line).get(key) for key in keys) for line in lines}
    wanted = [case for case in (sized_cases if args.sizes else cases)() if tuple(case[key] for key in keys) not in done]
    wanted = [case for case in wanted if not args.who or case["who"] in args.who]
    wanted = [case for case in wanted if not args.rows or case["rows"] in args.rows]
    begun = time.time()
    with multiprocessing.get_context("spawn").Pool(args.jobs) as pool:
        results = pool.imap_unordered(prepare, wanted)
        failed: list[str] = []
        try:
            for _ in wanted:
                failed += filter(None, [results.next(timeout=max(args.prepare - time.time() + begun, 0.01))])
        except multiprocessing.TimeoutError:
            print("not all was prepared")
        pool.terminate()
    print(f"{len(wanted)} cases, prepared in {time.time() - begun:.0f} s, failures: {failed[:3]}", flush=True)
    import torch

    make_importable()
    begun = time.time()
    pool = torch.randint(0, 256, (820_000_000,), dtype=torch.uint8, device="cuda")
    pool.view(torch.int16).bitwise_and_(-16385)  # no infinity and no NaN of 16 bits
    with torch.no_grad(), args.out.open("a") as out:
        for case in wanted:
            if time.time() - begun > args.seconds:
                break
            try:
                row = measure(case, pool)
            except Exception as error:
                row = case | {"failed": f"{type(error).__name__} {error}"[-300:]}
            out.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
