"""Rates of matrix products on a GPU, by how rows lie in memory: `python benchmarks/products.py`.

Gives the numbers of `passes/analysis/product_times.py` for the card that it runs on. Each line is a product: median
device milliseconds by CUDA events, the operations a nanosecond, and the error against float32. `out`, `left`, `right`
and `depth` say what lies in unaligned rows: the result, the first operand, the second, or both through the depth.
`turns` is the product with an unaligned result as the marked op runs it, `strides` one into rows that are padded.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import torch
from gpu import make_importable

ROWS, DEPTH, COLUMNS = 8192, 768, 30528


def milliseconds(call: Callable[[], object], repeats: int = 10) -> float:
    """Median device time of a call."""
    for _ in range(3):
        call()
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def show(what: str, call: Callable[[], torch.Tensor], exact: torch.Tensor, depth: int) -> None:
    """Print a line."""
    result = call()
    error = float((result.float() - exact).norm() / exact.norm())
    took = milliseconds(call)
    rate = 2.0 * exact.numel() * depth / took / 1e6
    print(f"{what:44s} {took:8.3f} ms {rate:9.0f} operations/ns   error {error:.1e}", flush=True)


def measure(dtype: torch.dtype, off: int) -> None:
    """Products that are `off` elements short of aligned ones, in each place."""
    from inductile.backends.host.products import mm_in_turns

    size = torch.empty((), dtype=dtype).element_size()
    title = f"{str(dtype)[6:]} rows at multiples of {(off & -off) * size if off else 16} bytes"
    columns, depth = COLUMNS - off, DEPTH - off
    x = torch.randn(ROWS, DEPTH, device="cuda").to(dtype)
    w = torch.randn(columns, DEPTH, device="cuda").to(dtype)
    exact = x.float() @ w.float().t()
    show(f"{title}: out", lambda: x @ w.t(), exact, DEPTH)
    padded = torch.empty(ROWS, COLUMNS, device="cuda", dtype=dtype)[:, :columns]
    show(f"{title}: strides", lambda: torch.mm(x, w.t(), out=padded), exact, DEPTH)
    if off:
        show(f"{title}: turns", lambda: mm_in_turns(x, w.t()), exact, DEPTH)
    a = torch.randn(ROWS, columns, device="cuda").to(dtype)
    b = torch.randn(columns, DEPTH, device="cuda").to(dtype)
    show(f"{title}: left (long depth)", lambda: a @ b, a.float() @ b.float(), columns)
    show(f"{title}: left turned", lambda: a.t() @ x, a.float().t() @ x.float(), ROWS)
    wide = torch.zeros(ROWS, COLUMNS, device="cuda", dtype=dtype)
    wide[:, :columns] = a
    view = wide[:, :columns]
    show(f"{title}: left in padded strides", lambda: view @ b, a.float() @ b.float(), columns)
    c, d = (torch.randn(n, depth, device="cuda").to(dtype) for n in (ROWS, COLUMNS))
    show(f"{title}: depth", lambda: c @ d.t(), c.float() @ d.float().t(), depth)
    e = torch.randn(depth, columns, device="cuda").to(dtype)
    show(f"{title}: right by columns, out", lambda: c @ e, c.float() @ e.float(), depth)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float16", "float32", "tf32"])
    args = parser.parse_args()
    make_importable()
    torch.manual_seed(0)
    print(torch.cuda.get_device_name(), torch.__version__, torch.version.cuda)
    for name in args.dtypes:
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        print(name)
        for off in (0, 4, 2, 1) if name not in ("float32", "tf32") else (0, 2, 1):
            measure(torch.float32 if name == "tf32" else getattr(torch, name), off)


if __name__ == "__main__":
    main()
