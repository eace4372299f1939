"""Windows, resampling and moved pieces on the CPU: `python benchmarks/windows.py [NAME ...] [--inductor]`.

Depthwise and grouped convolutions with their gradients, interpolation, pools, and what only moves elements (roll, flip,
pad, cat, shuffles); with `--operators` what is in operators.py, with `--idioms` what is in idioms.py. Each case is
measured in one process, eager and compiled in turns. Times are those of the processor, so that what else the machine
does counts little; a thread that waits takes none where `OMP_WAIT_POLICY=passive`. The table has the least time and the
median, and the ratio of the least ones. A name selects the cases that have it as a part.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import idioms
import operators
import torch
import torch.nn.functional as F

Tensor = torch.Tensor
Case = tuple[Callable[..., Any], tuple[Tensor, ...], bool]

#: name: (batch, channels, points.., kernel, stride, groups) of convolutions in published models
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], int, int, int]] = {
    "conformer_k31": ((4, 256, 512), 31, 1, 256),
    "conv1d_k7": ((4, 256, 2048), 7, 1, 256),
    "conv1d_k3": ((4, 256, 2048), 3, 1, 256),
    "conv1d_k5_s2": ((4, 256, 2048), 5, 2, 256),
    "wav2vec_k128_g16": ((1, 768, 249), 128, 1, 16),
    "mobilenet_k3_112": ((2, 16, 112, 112), 3, 1, 16),
    "mobilenet_k3_s2_112": ((2, 64, 112, 112), 3, 2, 64),
    "mobilenet_k5_s2_56": ((2, 72, 56, 56), 5, 2, 72),
    "mobilenet_k5_28": ((2, 120, 28, 28), 5, 1, 120),
    "mobilenet_k3_14": ((2, 480, 14, 14), 3, 1, 480),
    "mobilenet_k5_7": ((2, 960, 7, 7), 5, 1, 960),
    "efficientnet_k3_56": ((2, 144, 56, 56), 3, 1, 144),
    "efficientnet_k5_14": ((2, 672, 14, 14), 5, 1, 672),
    "convnext_k7_56": ((2, 96, 56, 56), 7, 1, 96),
    "convnext_k7_14": ((2, 384, 14, 14), 7, 1, 384),
    "resnext_g32_56": ((2, 128, 56, 56), 3, 1, 32),
    "resnext_g32_14": ((2, 512, 14, 14), 3, 1, 32),
}


def _convolutions() -> Iterator[tuple[str, Case]]:
    for name, (shape, kernel, stride, groups) in CONVOLUTIONS.items():
        dims, channels = len(shape) - 2, shape[1]
        layouts = ("", "_last") if dims == 2 else ("",)
        for layout in layouts:
            for part in ("forward", "input", "weight", "bias", "step"):
                yield f"{name}{layout}_{part}", _convolution(shape, kernel, stride, groups, channels, layout, part)


def _convolution(
    shape: Sequence[int], kernel: int, stride: int, groups: int, channels: int, layout: str, part: str
) -> Case:
    dims = len(shape) - 2
    x = torch.randn(*shape)
    w, b = torch.randn(channels, channels // groups, *[kernel] * dims), torch.randn(channels)
    if layout:
        x, w = (t.contiguous(memory_format=torch.channels_last) for t in (x, w))
    padding = kernel // 2
    settings = [[stride] * dims, [padding] * dims, [1] * dims, False, [0] * dims, groups]
    call = torch.ops.aten.convolution.default
    if part == "forward":
        return lambda x, w, b: F.relu(call(x, w, b, *settings)), (x, w, b), False
    if part == "step":
        return lambda x, w, b: F.relu(call(x, w, b, *settings)), (x, w, b), True
    g = torch.randn_like(call(x, w, b, *settings))
    mask = [part == "input", part == "weight", part == "bias"]
    place = mask.index(True)

    def gradient(g: Tensor, x: Tensor, w: Tensor) -> Tensor:
        return torch.ops.aten.convolution_backward.default(g, x, w, [channels], *settings, mask)[place]

    return gradient, (g, x, w), False


def _resampling() -> Iterator[tuple[str, Case]]:
    modes: dict[str, dict[str, Any]] = {
        "nearest": {"mode": "nearest"},
        "bilinear": {"mode": "bilinear"},
        "bilinear_corners": {"mode": "bilinear", "align_corners": True},
        "bicubic": {"mode": "bicubic"},
        "bilinear_smooth": {"mode": "bilinear", "antialias": True},
    }
    for name, options in modes.items():
        for size in ((128, 128), (75, 101), (32, 32)):
            for dtype, last in ((torch.float32, False), (torch.bfloat16, False), (torch.float32, True)):
                x = torch.randn(2, 64, 64, 64, dtype=dtype)
                x = x.contiguous(memory_format=torch.channels_last) if last else x
                label = f"{name}_{size[0]}{'_bf16' if dtype is torch.bfloat16 else ''}{'_last' if last else ''}"
                yield label, (lambda x, o=options, s=size: F.interpolate(x, s, **o), (x,), False)
    x, gate = torch.randn(2, 64, 64, 64), torch.randn(2, 64, 128, 128)
    yield (
        "bilinear_gated",
        (
            lambda x, y: torch.sigmoid(F.interpolate(x, scale_factor=2, mode="bilinear")) * y,
            (x, gate),
            False,
        ),
    )
    yield "bilinear_step", (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (x,), True)
    yield "nearest_step", (lambda x: F.interpolate(x, scale_factor=2), (x,), True)
    grid = torch.rand(2, 64, 64, 2) * 2 - 1
    yield "grid_sample", (lambda x, g: F.grid_sample(x, g, align_corners=False), (x, grid), False)
    yield "grid_sample_step", (lambda x, g: F.grid_sample(x, g, align_corners=False), (x, grid), True)


def _pieces() -> Iterator[tuple[str, Case]]:
    rows, images = torch.randn(1024, 4096), torch.randn(4, 64, 64, 64)
    functions: dict[str, tuple[Callable[..., Any], Tensor]] = {
        "roll": (lambda x: x.roll(64, -1), rows),
        "roll_add": (lambda x: x.roll(64, -1) + x, rows),
        "roll_odd": (lambda x: x.roll(3, -1) * 2, rows),
        "roll_rows": (lambda x: x.roll(5, 0) * 2, rows),
        "roll_images": (lambda x: x.roll((3, 3), (-2, -1)) * 2, images),
        "roll_swin": (lambda x: x.view(4, 64, 64, 64).roll((-3, -3), (1, 2)) * 2, images),
        "flip": (lambda x: x.flip(-1), rows),
        "flip_add": (lambda x: x.flip(-1) + x, rows),
        "flip_images": (lambda x: x.flip(-2, -1), images),
        "pad": (lambda x: F.pad(x, (1, 1, 1, 1)), images),
        "pad_reflect": (lambda x: F.pad(x, (3, 3, 3, 3), "reflect"), images),
        "pad_replicate": (lambda x: F.pad(x, (1, 1, 1, 1), "replicate"), images),
        "pad_circular": (lambda x: F.pad(x, (1, 1, 1, 1), "circular"), images),
        "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), images),
        "pixel_unshuffle": (lambda x: F.pixel_unshuffle(x, 2), images),
        "channel_shuffle": (lambda x: F.channel_shuffle(x, 4), images),
        "cat_last": (lambda x: torch.cat((x, x * 2), -1), rows),
        "cat_odd": (lambda x: torch.cat((x[:, :1001], x * 2, x[:, 5:]), -1), rows),
        "cat_images": (lambda x: torch.cat((x, F.relu(x)), 1), images),
        "unfold": (lambda x: F.unfold(x, 3, padding=1), images[:, :16].contiguous()),
        "repeat": (lambda x: x.repeat(1, 1, 2, 2), images),
        "repeat_interleave": (lambda x: x.repeat_interleave(2, -1), images),
        "stack": (lambda x: torch.stack((x, x * 2), -1), rows),
    }
    for name, (function, x) in functions.items():
        yield name, (function, (x,), False)


def _pools() -> Iterator[tuple[str, Case]]:
    functions: dict[str, Callable[..., Any]] = {
        "max_pool_3_s2": lambda x: F.max_pool2d(x, 3, 2, 1),
        "max_pool_2": lambda x: F.max_pool2d(x, 2),
        "max_pool_5_s1": lambda x: F.max_pool2d(x, 5, 1, 2),
        "avg_pool_2": lambda x: F.avg_pool2d(x, 2),
        "avg_pool_3_s1": lambda x: F.avg_pool2d(x, 3, 1, 1),
        "adaptive_avg_1": lambda x: F.adaptive_avg_pool2d(x, 1),
        "adaptive_avg_7": lambda x: F.adaptive_avg_pool2d(x, 7),
        "adaptive_avg_6": lambda x: F.adaptive_avg_pool2d(x, 6),
        "adaptive_max_7": lambda x: F.adaptive_max_pool2d(x, 7),
    }
    for name, function in functions.items():
        for last in (False, True):
            x = torch.randn(4, 64, 56, 56)
            x = x.contiguous(memory_format=torch.channels_last) if last else x
            yield f"{name}{'_last' if last else ''}", (function, (x,), False)
            yield f"{name}{'_last' if last else ''}_step", (function, (x,), True)
    rows = torch.randn(4, 256, 2048)
    yield "max_pool1d", (lambda x: F.max_pool1d(x, 3, 2, 1), (rows,), False)
    yield "avg_pool1d", (lambda x: F.avg_pool1d(x, 2), (rows,), False)


def cases() -> Iterator[tuple[str, Case]]:
    """(name, (function, inputs, whether with the backward pass)) of everything."""
    for kind in (_convolutions, _resampling, _pieces, _pools):
        yield from kind()


def _runner(function: Callable[..., Any], inputs: tuple[Tensor, ...], backward: bool) -> Callable[[], Any]:
    if not backward:

        def call() -> Any:
            with torch.no_grad():
                return function(*inputs)

        return call
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    with torch.no_grad():
        gradient = torch.empty_like(result := function(*inputs)).copy_(_spread(result.numel()).view(result.shape))
    return lambda: torch.autograd.grad(function(*leaves), leaves, gradient)


def _spread(count: int) -> Tensor:
    return torch.arange(count).mul(0.37).cos()


def _compare(got: Any, want: Any) -> str:
    """Whether the values are eager's, but for the order of sums."""
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    far = max(float((g.double() - w.double()).norm() / w.double().norm().clamp_min(1e-30)) for g, w in pairs)
    return "" if far < 2e-2 and (far < 1e-5 or got[0].dtype is torch.bfloat16) else f" DIFFERS {far:.1e}"


def measure(case: Case, backends: Sequence[str], seconds: float) -> tuple[dict[str, list[float]], str]:
    """Milliseconds of each call, by backend."""
    function, inputs, backward = case
    runners = {"eager": _runner(function, inputs, backward)}
    for backend in backends:
        torch._dynamo.reset()
        runners[backend] = _runner(torch.compile(function, backend=backend), inputs, backward)
        runners[backend]()
    note = _compare(runners[backends[0]](), runners["eager"]())
    times: dict[str, list[float]] = {name: [] for name in runners}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["eager"]) < 5:
        for name, runner in runners.items():
            for _ in range(2):
                start = time.process_time()
                runner()
                times[name].append((time.process_time() - start) * 1e3)
    return times, note


def main() -> None:
    """The command line."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("names", nargs="*", help="parts of names; default: all")
    p.add_argument("--inductor", action="store_true", help="also Inductor")
    p.add_argument("--operators", action="store_true", help="the cases of operators.py instead")
    p.add_argument("--idioms", action="store_true", help="the cases of idioms.py instead")
    p.add_argument("--seconds", type=float, default=1.5, help="of calls for a case")
    p.add_argument("--behind", type=float, default=0, help="only cases whose ratio is over this")
    args = p.parse_args()
    import inductile  # noqa: F401

    chosen = operators.cases() if args.operators else idioms.cases() if args.idioms else cases()
    backends = ["inductile", *(["inductor"] if args.inductor else [])]
    print("| case | eager ms: least, median |" + "".join(f" {b} | {b} / eager |" for b in backends))
    print("|" + "---|" * (2 + 2 * len(backends)))
    for name, case in chosen:
        if args.names and not any(part in name for part in args.names):
            continue
        try:
            times, note = measure(case, backends, args.seconds)
        except Exception as error:  # the table goes on, and shows what failed
            print(f"| {name} | {type(error).__name__}: {str(error)[:200]!r} |", flush=True)
            continue
        base = min(times["eager"])
        if min(times["inductile"]) / base < args.behind:
            continue
        cells = [f"{base:.3f}, {statistics.median(times['eager']):.3f}"]
        for backend in backends:
            own = times[backend]
            cells += [f"{min(own):.3f}, {statistics.median(own):.3f}", f"{min(own) / base:.2f}"]
        print(f"| {name} | " + " | ".join(cells) + f" |{note}", flush=True)


if __name__ == "__main__":
    main()
