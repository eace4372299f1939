"""Tokens of a Llama-like model with weights of 32 to 4 bits: `python benchmarks/decoding.py --size 0.3b`.

A step of one token at position 200 of a static cache of 256. Weights are random, made as they are stored, so that no
float model is ever in memory. Each line: the least milliseconds of a step (CPU time with `--cpu-time`), backends in
turns, and the fraction of the memory's bandwidth that reading the weights once in that time takes. `--memory` runs one
kind in a process that has nothing else, and prints the peak of its memory beyond imports, in sizes of the model.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from lanes import alone
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    """layers x (heads of `head`, `keys` of them for keys and values; inner), and a vocabulary."""

    layers: int
    heads: int
    keys: int
    head: int
    inner: int
    vocabulary: int = 32000

    @property
    def width(self) -> int:
        """Elements of a hidden state."""
        return self.heads * self.head


SHAPES = {
    "1.1b": Shape(22, 32, 4, 64, 5632),
    "0.3b": Shape(24, 16, 4, 64, 2816),
    "small": Shape(2, 4, 2, 32, 256, 512),
}
GROUP = 128
CACHE, POSITION = 256, 200
#: the incumbent with its setting for constants
FROZEN = "inductor:freezing"


class Float16Linear(nn.Module):
    """Weights of 16 bits."""

    weight: Tensor

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randn(rows, columns, dtype=torch.bfloat16) / columns**0.5)

    def forward(self, x: Tensor) -> Tensor:
        """x @ weight.T"""
        return nn.functional.linear(x, self.weight)


class Int8Linear(nn.Module):
    """Weights of 8 bits with a scale a row, as gpt-fast and torchao's Int8WeightOnlyConfig multiply them."""

    weight: Tensor
    scales: Tensor

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (rows, columns), dtype=torch.int8))
        self.register_buffer("scales", torch.full((rows,), 1 / (73 * columns**0.5), dtype=torch.bfloat16))

    def forward(self, x: Tensor) -> Tensor:
        """x @ (weight * scales).T"""
        return nn.functional.linear(x, self.weight.to(x.dtype)) * self.scales


class Int4Linear(nn.Module):
    """Weights of 4 bits, two neighbours a byte, with scales of groups, dequantised by ordinary operators."""

    weight: Tensor
    scales: Tensor

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.randint(0, 256, (rows, columns // 2), dtype=torch.uint8))
        scales = torch.full((rows, columns // GROUP), 1 / (4.6 * columns**0.5), dtype=torch.bfloat16)
        self.register_buffer("scales", scales)

    def forward(self, x: Tensor) -> Tensor:
        """The two halves of a byte stand side by side."""
        rows = self.weight.shape[0]
        numbers = torch.stack([self.weight & 15, self.weight >> 4], -1).view(rows, -1, GROUP)
        weight = (numbers.to(x.dtype) - 8) * self.scales[:, :, None]
        return nn.functional.linear(x, weight.view(rows, -1))


class PackedInt4Linear(nn.Module):
    """Weights of 4 bits as ATen packs them for the CPU."""

    weight: Tensor
    scales: Tensor

    def __init__(self, columns: int, rows: int) -> None:
        super().__init__()
        weight = torch.empty(rows, columns // 2, dtype=torch.uint8)
        for part in weight.split(512):  # of random numbers of 32 bits few are in memory at once
            numbers = torch.randint(0, 16, (len(part), columns), dtype=torch.int32)
            part.copy_(torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 1))
        self.register_buffer("weight", weight)
        scales = torch.full((columns // GROUP, rows, 2), 1 / (4.6 * columns**0.5), dtype=torch.bfloat16)
        self.register_buffer("scales", scales)

    def forward(self, x: Tensor) -> Tensor:
        """ATen's kernel."""
        flat = x.reshape(-1, x.shape[-1])
        found = torch.ops.aten._weight_int4pack_mm_for_cpu(flat, self.weight, GROUP, self.scales)
        return found.view(*x.shape[:-1], -1)


KINDS: dict[str, type[nn.Module]] = {
    "f32": Float16Linear,  # of a model that is made float32 as a whole
    "bf16": Float16Linear,
    "int8": Int8Linear,
    "int4": Int4Linear,
    "int4pack": PackedInt4Linear,
}


class Norm(nn.Module):
    """The root of the mean of squares."""

    weight: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.ones(width, dtype=torch.bfloat16))

    def forward(self, x: Tensor) -> Tensor:
        """In float32, as Llama does."""
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight


class Layer(nn.Module):
    """Attention over a static cache, and a gated product."""

    key_cache: Tensor
    value_cache: Tensor

    def __init__(self, shape: Shape, linear: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        self.shape = shape
        kept = shape.keys * shape.head
        self.before, self.behind = Norm(shape.width), Norm(shape.width)
        self.qkv, self.out = linear(shape.width, shape.width + 2 * kept), linear(shape.width, shape.width)
        self.gates, self.down = linear(shape.width, 2 * shape.inner), linear(shape.inner, shape.width)
        for name in ("key_cache", "value_cache"):
            self.register_buffer(name, torch.zeros(1, shape.keys, CACHE, shape.head, dtype=torch.bfloat16))

    def forward(self, x: Tensor, position: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        """One token."""
        shape = self.shape
        kept = shape.keys * shape.head
        q, k, v = self.qkv(self.before(x)).split([shape.width, kept, kept], -1)
        q, k, v = (each.view(1, 1, -1, shape.head).transpose(1, 2) for each in (q, k, v))
        q, k = (turned(each, *turns) for each in (q, k))
        self.key_cache.index_copy_(2, position, k)
        self.value_cache.index_copy_(2, position, v)
        scores = (self.key_cache, self.value_cache)
        found = nn.functional.scaled_dot_product_attention(q, *scores, attn_mask=mask, enable_gqa=True)
        x = x + self.out(found.transpose(1, 2).reshape(1, 1, -1))
        gate, up = self.gates(self.behind(x)).chunk(2, -1)
        return x + self.down(nn.functional.silu(gate) * up)


def turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary positions."""
    left, right = x.chunk(2, -1)
    return x * cosine + torch.cat([-right, left], -1) * sine


class Llama(nn.Module):
    """A model whose products have weights of one kind."""

    tokens: Tensor

    def __init__(self, shape: Shape, linear: Callable[[int, int], nn.Module]) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("tokens", torch.randn(shape.vocabulary, shape.width, dtype=torch.bfloat16))
        self.layers = nn.ModuleList(Layer(shape, linear) for _ in range(shape.layers))
        self.norm, self.head = Norm(shape.width), linear(shape.width, shape.vocabulary)

    def forward(self, token: Tensor, position: Tensor) -> Tensor:
        """Logits of the next token."""
        head = self.shape.head
        rates = 10000 ** -(torch.arange(0, head, 2, device=token.device) / head)
        angles = (position[:, None] * rates).repeat(1, 2)
        turns = angles.cos().to(self.tokens.dtype), angles.sin().to(self.tokens.dtype)
        mask = (torch.arange(CACHE, device=token.device) <= position)[None, None, None]
        x = self.tokens[token]
        for layer in self.layers:
            x = layer(x, position, turns, mask)
        return self.head(self.norm(x))


def made(shape: Shape, kind: str, device: str = "cpu") -> Llama:
    """A model with weights of a kind; activations are bfloat16 unless all is float32."""
    model = Llama(shape, KINDS[kind]).eval()
    return (model.float() if kind == "f32" else model).to(device)


def size_of(model: nn.Module) -> int:
    """Bytes of all that a model holds."""
    return sum(each.nbytes for each in (*model.buffers(), *model.parameters()))


def weights_of(model: Llama) -> int:
    """Bytes that a token reads: all but the table of tokens."""
    return size_of(model) - model.tokens.nbytes


def inputs(device: str = "cpu") -> tuple[Tensor, Tensor]:
    """A token and its position."""
    return torch.tensor([[17]], device=device), torch.tensor([POSITION], device=device)


def compiled(model: nn.Module, backend: str) -> Callable[..., Tensor]:
    """A model under a backend; `inductile:freezing`, and `inductor:freezing`, whose setting that is."""
    name, _, option = backend.partition(":")
    if name == "eager":
        return model
    if backend == FROZEN:
        return torch.compile(model)  # as an option alone it does not freeze
    options: dict[str, Any] = {"options": {option: True}} if option == "freezing" else {}
    if option and option != "freezing":
        options["mode"] = option
    return torch.compile(model, backend=name, **options)


def in_memory(of: str) -> int:
    """Bytes of a line of /proc/self/status, such as VmHWM."""
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(f"{of}:"))


def warm_up(backend: str) -> None:
    """Compile something small, so that what is imported on the way is."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    compiled(model, backend)(torch.randn(2, 8))
    torch.compiler.reset()


def memory(shape: Shape, kind: str, backend: str) -> None:
    """Print the peak of this process's memory."""
    warm_up(backend)
    base = in_memory("VmRSS")
    model = made(shape, kind)
    size, beyond = size_of(model), in_memory("VmHWM") - base
    run = compiled(model, backend)
    started = time.perf_counter()
    run(*inputs())
    first = time.perf_counter() - started
    run(*inputs())
    peak, now = in_memory("VmHWM") - base, in_memory("VmRSS") - base
    mib = [round(each / 2**20) for each in (size, base, beyond, peak, now)]
    print(
        f"{kind} {backend}: model {mib[0]} MiB, imports {mib[1]}; beyond them {mib[2]} when it was made, "
        f"{mib[3]} at the peak ({peak / size:.2f}), {mib[4]} at the end; first call {first:.1f} s",
        flush=True,
    )


def bandwidth(clock: Callable[[], float], device: str) -> float:
    """Bytes in a second that a sum of 256 MiB reads."""
    many = torch.ones(2**26, device=device)
    return many.nbytes / least(lambda: many.sum(), 10, clock, device)


def least(call: Callable[[], Any], repeats: int, clock: Callable[[], float], device: str) -> float:
    """Seconds of the fastest call."""
    found = float("inf")
    for _ in range(repeats):
        started = clock()
        call()
        if device != "cpu":
            torch.cuda.synchronize()
        found = min(found, clock() - started)
    return found


def speed(shape: Shape, kinds: list[str], backends: list[str], args: argparse.Namespace) -> None:
    """Print a line for each kind of weights and backend."""
    import torch._inductor.config as settings

    clock = time.process_time if args.cpu_time else time.perf_counter
    for kind in kinds:
        torch.manual_seed(0)
        model = made(shape, kind, args.device)
        given = inputs(args.device)
        exact = model(*given).float()
        calls: dict[str, Callable[..., Tensor]] = {}
        for backend in backends:
            torch.compiler.reset()
            with settings.patch(freezing=backend == FROZEN):
                run = compiled(model, backend)
                for _ in range(3):
                    run(*given)
            calls[backend] = run
        times = dict.fromkeys(calls, float("inf"))
        with alone(args.lock):
            rate = bandwidth(clock, args.device)
            for _ in range(args.repeats):
                for backend, run in calls.items():
                    times[backend] = min(
                        times[backend], least(lambda run=run, given=given: run(*given), 3, clock, args.device)
                    )
        print(f"{rate / 1e9:.1f} GB/s by a sum of floats; {torch.get_num_threads()} threads", flush=True)
        for backend, run in calls.items():
            apart = float((run(*given).float() - exact).norm() / exact.norm())
            share = weights_of(model) / times[backend] / rate
            print(f"{kind:9s} {backend:22s} {1e3 * times[backend]:9.2f} ms  {1 / times[backend]:7.1f} tokens/s  "
                  f"{share:.2f} of the bandwidth  from eager {apart:.1e}", flush=True)  # fmt: skip


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", choices=SHAPES, default="0.3b")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--backends", nargs="+", default=["eager", "inductor", "inductile"])
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cpu-time", action="store_true", help="CPU time, for a machine that others use")
    parser.add_argument("--lock", default="", help="a file to hold locked while a kind of weights is timed")
    args = parser.parse_args()
    with torch.no_grad():
        if not args.memory:
            speed(SHAPES[args.size], args.kinds, args.backends, args)
        elif len(args.kinds) == len(args.backends) == 1:
            memory(SHAPES[args.size], args.kinds[0], args.backends[0])
        else:
            parser.error(f"--memory takes one kind and one backend; process {os.getpid()} measures itself")


if __name__ == "__main__":
    main()
