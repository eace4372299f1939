"""The best Triton kernels that we know for patterns which a GPU cannot run at the speed of a copy.

`KERNELS[name](*inputs)` computes what the pattern of that name computes in eager, at its accuracy: the same inputs, in
bfloat16, contiguous, of the sizes that `patterns.py` makes. `python benchmarks/gpu_handwritten.py` checks them against
eager and times each over its meta-parameters; `benchmarks/gpu_patterns.py --backends handwritten` takes the fastest of
these.
"""

# ruff: noqa: N803  # constants of kernels are written like this
# Triton's language only looks like Python: constants are declared by annotation, tensors have no type here.
# pyright: reportArgumentType=false, reportIndexIssue=false, reportRedeclaration=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false, reportCallIssue=false

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")

# functions; the interpreter has no instructions of GPUs


@triton.jit
def _exp2(x):
    if INTERPRETED:
        return tl.exp2(x)
    else:
        return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


@triton.jit
def _reciprocal(x):
    if INTERPRETED:
        return 1.0 / x
    else:
        return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


@triton.jit
def _exp(x):
    return _exp2(x * 1.4426950408889634)


@triton.jit
def _tanh(x):
    """tanh without a branch: an odd polynomial for small arguments, 1 - 2 / (exp(2 |x|) + 1) for others."""
    size = tl.abs(x)
    t = x * x
    p = tl.fma(tl.fma(tl.fma(t, -0.005905868, 0.020805385), t, -0.053786684), t, 0.13331958)
    small = tl.fma(tl.fma(p, t, -0.333333) * t, size, size)
    large = 1.0 - 2.0 * _reciprocal(_exp2(size * 2.8853900817779268) + 1.0)
    return libdevice.copysign(tl.where(size < 0.6, small, large), x)


@triton.jit
def _erf(x):
    """erf without a branch: an odd polynomial below 1, 1 - 2 ** q(|x|) with a polynomial q from there on."""
    size = tl.abs(x)
    t = x * x
    p = tl.fma(t, 7.853857548868648e-05, -0.0008010192378909298)
    p = tl.fma(tl.fma(p, t, 0.005188327528662869), t, -0.02685381184036746)
    p = tl.fma(tl.fma(p, t, 0.11283585145836116), t, -0.376126258238888)
    small = tl.fma(tl.fma(p, t, 0.12837916572659322), x, x)
    q = tl.fma(size, -2.2596143102590875e-05, 0.0005153528129745239)
    q = tl.fma(tl.fma(q, size, -0.005358644501224445), size, 0.03414165904445264)
    q = tl.fma(tl.fma(q, size, -0.15233313448882405), size, -0.9178991712799504)
    q = tl.fma(tl.fma(q, size, -1.6271325773968508), size, -0.0003275848294062725)
    return tl.where(size < 1.0, small, libdevice.copysign(1.0 - _exp2(q), x))


# sums


@triton.jit
def _square_sum(x, parts, PART: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    program = tl.program_id(0)
    total = tl.full([BLOCK], 0.0, tl.float32)
    for start in tl.range(0, PART, BLOCK, num_stages=STAGES):
        v = tl.load(x + (program * PART + start + tl.arange(0, BLOCK)), eviction_policy="evict_first").to(tl.float32)
        total += v * v
    tl.store(parts + program, tl.sum(total, 0))


@triton.jit
def _sum_all(parts, result, COUNT: tl.constexpr):
    tl.store(result, tl.sum(tl.load(parts + tl.arange(0, COUNT)), 0).to(result.dtype.element_ty))


def square_sum(x: torch.Tensor, *, programs: int, block: int, warps: int, stages: int) -> torch.Tensor:
    """(x * x).sum(); the size is a multiple of programs * block."""
    if x.numel() % (programs * block):
        raise ValueError(f"{x.numel()} elements do not suit {programs} programs in blocks of {block}")
    parts = torch.empty(programs, device=x.device, dtype=torch.float32)
    result = torch.empty((), device=x.device, dtype=x.dtype)
    _square_sum[(programs,)](x, parts, x.numel() // programs, block, stages, num_warps=warps)
    _sum_all[(1,)](parts, result, programs, num_warps=max(programs // 256, 1))
    return result


@triton.jit
def _column_parts(x, parts, COLUMNS: tl.constexpr, ROWS: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    column = tl.program_id(0) * C + tl.arange(0, C)
    first = tl.program_id(1) * ROWS
    total = tl.full([R, C], 0.0, tl.float32)
    for start in range(0, ROWS, R):
        row = first + start + tl.arange(0, R)
        v = tl.load(x + (row[:, None] * COLUMNS + column[None, :]), eviction_policy="evict_first").to(tl.float32)
        total += _tanh(v)
    tl.store(parts + (tl.program_id(1) * COLUMNS + column), tl.sum(total, 0))


@triton.jit
def _column_total(parts, result, COLUMNS: tl.constexpr, SPLITS: tl.constexpr, C: tl.constexpr):
    column = tl.program_id(0) * C + tl.arange(0, C)
    part = tl.load(parts + (tl.arange(0, SPLITS)[:, None] * COLUMNS + column[None, :]))
    tl.store(result + column, tl.sum(part, 0).to(result.dtype.element_ty))


def column_sum(x: torch.Tensor, *, splits: int, r: int, c: int, warps: int) -> torch.Tensor:
    """tanh(x).sum(0); the rows are a multiple of splits * r, the columns of c and 32."""
    rows, columns = x.shape
    if rows % (splits * r) or columns % c or columns % 32:
        raise ValueError(f"{rows} rows of {columns} do not suit {splits} splits in blocks of {r} by {c}")
    parts = torch.empty(splits, columns, device=x.device, dtype=torch.float32)
    result = torch.empty(columns, device=x.device, dtype=x.dtype)
    _column_parts[(columns // c, splits)](x, parts, columns, rows // splits, r, c, num_warps=warps)
    _column_total[(columns // 32,)](parts, result, columns, splits, 32, num_warps=4)
    return result


# rows


@triton.jit
def _softmax(x, y, rows, WIDTH: tl.constexpr, PROGRAMS: tl.constexpr):
    lane = tl.arange(0, WIDTH)
    for row in range(tl.program_id(0), rows, PROGRAMS):
        v = tl.load(x + (row * WIDTH + lane), eviction_policy="evict_first").to(tl.float32)
        e = _exp(v - tl.max(v, 0))
        share = 1.0 / tl.sum(e, 0)
        tl.store(y + (row * WIDTH + lane), (e * share).to(y.dtype.element_ty))


def softmax(x: torch.Tensor, *, warps: int, programs: int) -> torch.Tensor:
    """Softmax of rows whose width is a power of two; `programs` 0: one a row."""
    y = torch.empty_like(x)
    rows, width = x.shape
    programs = min(programs or rows, rows)
    _softmax[(programs,)](x, y, rows, width, programs, num_warps=warps)
    return y


@triton.jit
def _row_losses(
    x, target, losses, counts, WIDTH: tl.constexpr, BLOCK: tl.constexpr, FOLD: tl.constexpr, STAGES: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    highest = tl.full([BLOCK // FOLD], -float("inf"), tl.float32)
    total = tl.full([BLOCK // FOLD], 0.0, tl.float32)
    for start in tl.range(0, WIDTH, BLOCK, num_stages=STAGES):
        column = start + tl.arange(0, BLOCK // FOLD)[:, None] * FOLD + tl.arange(0, FOLD)[None, :]
        v = tl.load(
            x + (row * WIDTH + column), mask=column < WIDTH, other=-float("inf"), eviction_policy="evict_first"
        ).to(tl.float32)
        grown = tl.maximum(highest, tl.max(v, 1))
        base = tl.where(grown == -float("inf"), 0.0, grown)
        total = total * _exp(highest - base) + tl.sum(_exp(v - base[:, None]), 1)
        highest = grown
    peak = tl.max(highest, 0)
    base = tl.where(peak == -float("inf"), 0.0, peak)
    total = tl.sum(total * _exp(highest - base), 0)
    wanted = tl.load(target + row)
    counted = wanted != -100
    chosen = tl.load(x + (row * WIDTH + wanted), mask=counted, other=0.0).to(tl.float32)
    tl.store(losses + row, tl.where(counted, libdevice.log(total) + (peak - chosen), 0.0))
    tl.store(counts + row, counted.to(tl.float32))


@triton.jit
def _mean(losses, counts, result, COUNT: tl.constexpr):
    lane = tl.arange(0, COUNT)
    tl.store(result, tl.sum(tl.load(losses + lane), 0) / tl.sum(tl.load(counts + lane), 0))


def cross_entropy(
    x: torch.Tensor, target: torch.Tensor, *, block: int, fold: int, warps: int, stages: int
) -> torch.Tensor:
    """cross_entropy(x.float(), target); the number of rows is a power of two."""
    rows, width = x.shape
    losses, counts = torch.empty(2, rows, device=x.device, dtype=torch.float32)
    result = torch.empty((), device=x.device, dtype=torch.float32)
    _row_losses[(rows,)](x, target, losses, counts, width, block, fold, stages, num_warps=warps)
    _mean[(1,)](losses, counts, result, rows, num_warps=max(min(rows // 256, 16), 1))
    return result


@triton.jit
def _normalised(v, scale, shift, mean, rstd, y, place):
    n = (v.to(tl.float32) - mean) * rstd * scale + shift
    tl.store(y + place, (n * _reciprocal(1.0 + _exp(n * -1.0))).to(y.dtype.element_ty), eviction_policy="evict_first")


@triton.jit
def _group_norm(
    x, w, b, y, rows, GROUPS: tl.constexpr, CHANNELS: tl.constexpr, AREA: tl.constexpr,
    PROGRAMS: tl.constexpr, UNROLL: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    lane = tl.arange(0, AREA)
    size: tl.constexpr = CHANNELS * AREA
    for row in range(tl.program_id(0), rows, PROGRAMS):
        first = row * size
        total = tl.full([AREA], 0.0, tl.float32)
        for start in tl.range(0, CHANNELS, UNROLL):
            for k in tl.static_range(UNROLL):
                place = x + (first + (start + k) * AREA + lane)
                total += tl.load(place, eviction_policy="evict_last" if KEEP else "").to(tl.float32)
        mean = tl.sum(total, 0) / size
        squares = tl.full([AREA], 0.0, tl.float32)
        for start in tl.range(0, CHANNELS, UNROLL):
            for k in tl.static_range(UNROLL):
                d = tl.load(x + (first + (start + k) * AREA + lane)).to(tl.float32) - mean
                squares += d * d
        rstd = libdevice.rsqrt(tl.sum(squares, 0) / size + 1e-5)
        channel = (row % GROUPS) * CHANNELS
        for start in tl.range(0, CHANNELS, UNROLL):
            for k in tl.static_range(UNROLL):
                place = first + (start + k) * AREA + lane
                v = tl.load(x + place, eviction_policy="evict_first" if KEEP else "")
                scale = tl.load(w + (channel + start + k)).to(tl.float32)
                _normalised(v, scale, tl.load(b + (channel + start + k)).to(tl.float32), mean, rstd, y, place)


def group_norm(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, *, programs: int, warps: int, unroll: int, keep: bool
) -> torch.Tensor:
    """silu(group_norm(x, 32, w, b)) on contiguous images whose area is a power of two; `programs` 0: one a group."""
    batch, channels, height, width = x.shape
    rows, area = batch * 32, height * width
    programs = min(programs or rows, rows)
    y = torch.empty_like(x)
    sizes = (rows, 32, channels // 32, area, programs)
    _group_norm[(programs,)](x, w, b, y, *sizes, unroll, keep, num_warps=warps)
    return y


# elementwise


@triton.jit
def _bias_gelu(x, b, r, y, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    residual = tl.load(r + place, eviction_policy="evict_first").to(tl.float32)
    v = tl.load(x + place, eviction_policy="evict_first").to(tl.float32)
    v += tl.load(b + place % WIDTH, eviction_policy="evict_last").to(tl.float32)
    g = v * 0.5 * (1.0 + _erf(v * 0.7071067811865476))
    tl.store(y + place, (residual + g).to(y.dtype.element_ty))


def bias_gelu(x: torch.Tensor, b: torch.Tensor, r: torch.Tensor, *, block: int, warps: int) -> torch.Tensor:
    """r + gelu(x + b); the size is a multiple of the block."""
    y = torch.empty_like(x)
    _bias_gelu[(x.numel() // block,)](x, b, r, y, x.shape[-1], block, num_warps=warps)
    return y


# meta-parameters


@dataclass(frozen=True)
class Handwritten:
    """A kernel and its meta-parameters: name -> values to try, the first of each being the default."""

    run: Callable[..., torch.Tensor]
    space: Mapping[str, Sequence[Any]]
    fits: Callable[..., bool] = lambda **_: True

    def choices(self) -> list[dict[str, Any]]:
        """All combinations that make sense, the default first."""
        found = (dict(zip(self.space, values, strict=True)) for values in itertools.product(*self.space.values()))
        return [choice for choice in found if self.fits(**choice)]

    def __call__(self, *inputs: torch.Tensor) -> torch.Tensor:
        """With the default parameters."""
        return self.run(*inputs, **self.choices()[0])


def _fits_threads(block: int, warps: int, least: int = 8, most: int = 64) -> bool:
    return least <= block // (32 * warps) <= most


KERNELS: dict[str, Handwritten] = {
    "square_sum": Handwritten(
        square_sum,
        {"programs": (2048, 1024), "block": (8192, 16384), "warps": (8, 16), "stages": (1,)},
        lambda block, warps, **_: _fits_threads(block, warps, 16),
    ),
    "column_sum": Handwritten(
        column_sum,
        {"splits": (128, 64), "r": (32, 64), "c": (64,), "warps": (4, 8)},
        lambda r, c, warps, **_: _fits_threads(r * c, warps, 8, 32),
    ),
    "softmax": Handwritten(softmax, {"warps": (2, 4, 8), "programs": (0,)}),
    "cross_entropy": Handwritten(
        cross_entropy,
        {"block": (4096, 2048, 8192), "fold": (8, 16), "warps": (4, 8), "stages": (1,)},
        lambda block, warps, **_: _fits_threads(block, warps, 8, 32),
    ),
    "group_norm": Handwritten(
        group_norm,
        {"programs": (264, 0), "warps": (16, 8), "unroll": (2, 10), "keep": (True,)},
    ),
    "bias_gelu": Handwritten(
        bias_gelu,
        {"block": (1024, 2048), "warps": (4, 2, 8)},
        lambda block, warps, **_: _fits_threads(block, warps, 8, 32),
    ),
}


# timing


def milliseconds(call: Callable[[], Any], flush: torch.Tensor, repeat: int = 10) -> float:
    """The fastest of some calls between two events, with `flush` written over before each so that L2 holds it."""
    call()
    best = float("inf")
    for _ in range(repeat):
        flush.add_(1.0)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end))
    return best


def timings(name: str, inputs: Sequence[torch.Tensor], flush: torch.Tensor) -> list[tuple[float, dict[str, Any]]]:
    """(milliseconds, parameters) of all choices, fastest first."""
    kernel = KERNELS[name]
    found = [(milliseconds(partial(kernel.run, *inputs, **c), flush), c) for c in kernel.choices()]
    return sorted(found, key=lambda pair: pair[0])


def fastest(name: str, inputs: Sequence[torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A kernel with the parameters that are fastest on this GPU and these inputs."""
    flush = torch.zeros(64 << 20, dtype=torch.float64, device=inputs[0].device)
    return partial(KERNELS[name].run, **timings(name, inputs, flush)[0][1])


def check(name: str, rows: int, device: str) -> float:
    """The error relative to float32 over that of eager, of the default parameters."""
    import patterns
    from gpu import relative_error

    function, inputs = patterns.build(name, rows, torch.bfloat16, device)
    exact = function(*(x.float() if x.dtype == torch.bfloat16 else x for x in inputs))
    got = KERNELS[name](*inputs)
    if not torch.equal(got.isnan(), exact.isnan()):
        raise ValueError(f"{name}: NaN where eager has none, or the other way round")
    return relative_error(got, exact) / max(relative_error(function(*inputs), exact), 1e-7)


def main() -> None:
    """Command line."""
    import patterns

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--patterns", nargs="*", default=list(KERNELS), choices=list(KERNELS))
    p.add_argument("--rows", type=int, default=8192)
    p.add_argument("--device", default="cuda")
    p.add_argument("--check", action="store_true", help="time nothing")
    args = p.parse_args()
    for name in args.patterns:
        print(f"{name}: error over eager's {check(name, args.rows, args.device):.2f}", flush=True)
        if args.check:
            continue
        flush = torch.zeros(64 << 20, dtype=torch.float64, device=args.device)
        for spent, choice in timings(name, patterns.build(name, args.rows, torch.bfloat16, args.device)[1], flush)[:5]:
            print(f"  {spent:.4f} ms  {choice}", flush=True)


if __name__ == "__main__":
    main()
