"""Which quantised models are right, in how many kernels and calls, and what is dequantised into memory.

`python benchmarks/quantised_matrix.py --configs int8 float8 --models block`: each configuration of torchao, and PT2E,
on small models, compared with the quantised model in eager. A line: the error in the norm beside eager's, kernels,
calls of operators, and buffers of a call that hold as many floats as a weight has numbers. Needs `pip install torchao`.
"""

from __future__ import annotations

import argparse
import copy
import re
import traceback
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor

Make = Callable[[], torch.nn.Module]


class Block(torch.nn.Module):
    """A layer of a language model: attention with fewer keys than queries, and a gate."""

    def __init__(self, width: int = 128, heads: int = 4, inner: int = 352) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.q, self.o = (torch.nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (torch.nn.Linear(width, width // 2, bias=False) for _ in range(2))
        self.gate, self.up = (torch.nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = torch.nn.Linear(inner, width, bias=False)
        self.first, self.second = (torch.nn.RMSNorm(width, eps=1e-5) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, positions, width) -> the same."""
        y = self.first(x)
        q, k, v = (layer(y).unflatten(-1, (-1, self.size)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(attended.transpose(1, 2).flatten(-2))
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Images(torch.nn.Module):
    """A convolution with a norm, one in groups, one of points, a residual, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.n = torch.nn.Conv2d(3, 32, 3, padding=1, bias=False), torch.nn.BatchNorm2d(32)
        self.b, self.c = torch.nn.Conv2d(32, 32, 3, padding=1, groups=32), torch.nn.Conv2d(32, 32, 1)
        self.head = torch.nn.Linear(32, 64)

    def forward(self, x: Tensor) -> Tensor:
        """(images, 3, height, width) -> (images, 64)."""
        y = torch.relu(self.n(self.a(x)))
        y = torch.relu(self.b(y) + self.c(y))
        return self.head(F.adaptive_avg_pool2d(y, 1).flatten(1))


def layers(depth: int = 128, inner: int = 256) -> torch.nn.Module:
    """Two linear layers."""
    return torch.nn.Sequential(torch.nn.Linear(depth, inner), torch.nn.ReLU(), torch.nn.Linear(inner, depth))


#: model -> (what makes it, shape of its input)
MODELS: dict[str, tuple[Make, tuple[int, ...]]] = {
    "layers": (layers, (64, 128)),
    "layers, one row": (layers, (1, 128)),
    "layers, odd": (lambda: layers(100, 66), (7, 100)),
    "layers, wide": (lambda: layers(1024, 2048), (64, 1024)),
    "block": (Block, (2, 24, 128)),
    "block, one row": (Block, (1, 1, 128)),
    "images": (Images, (2, 3, 32, 32)),
}


def configs() -> dict[str, Callable[[], Any]]:
    """torchao's configurations."""
    import torchao.quantization as q
    from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig
    from torchao.quantization.granularity import PerGroup, PerRow, PerTensor

    int4: Any = torch.int4  # pyright: ignore[reportAttributeAccessIssue] - torch's stubs do not have it
    float8 = q.Float8DynamicActivationFloat8WeightConfig
    return {
        "int8": q.Int8WeightOnlyConfig,
        "int8, groups": lambda: q.Int8WeightOnlyConfig(granularity=PerGroup(32)),
        "int8, tensor": lambda: q.Int8WeightOnlyConfig(granularity=PerTensor()),
        "int8 dynamic": q.Int8DynamicActivationInt8WeightConfig,
        "int8 dynamic, asymmetric": lambda: q.Int8DynamicActivationInt8WeightConfig(
            act_mapping_type=q.MappingType.ASYMMETRIC
        ),
        **{f"int4 opaque, {size}": lambda size=size: PrototypeInt4WeightOnlyConfig(size) for size in (32, 64, 128)},
        "int4 in bytes, 32": lambda: q.IntxWeightOnlyConfig(weight_dtype=int4, granularity=PerGroup(32)),
        "int4 in bytes, rows": lambda: q.IntxWeightOnlyConfig(weight_dtype=int4),
        "int4, int8 dynamic": lambda: q.Int8DynamicActivationIntxWeightConfig(weight_dtype=int4),
        "float8": lambda: q.Float8WeightOnlyConfig(),
        "float8 of 5 bits": lambda: q.Float8WeightOnlyConfig(weight_dtype=torch.float8_e5m2),
        "float8 dynamic": lambda: float8(granularity=PerTensor()),
        "float8 dynamic, rows": lambda: float8(granularity=PerRow()),
    }


#: PT2E: how -> (arguments of the quantizer's configuration)
PT2E: dict[str, dict[str, bool]] = {
    "pt2e static": {},
    "pt2e static, 7 bits": {"reduce_range": True},
    "pt2e dynamic": {"is_dynamic": True},
    "pt2e qat": {"is_qat": True},
}


def by_pt2e(model: torch.nn.Module, x: Tensor, batch_is_dynamic: bool = False, **settings: bool) -> Any:
    """The model by PT2E's X86 quantizer, calibrated on one input."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config(**settings))
    sizes = ({0: torch.export.Dim("batch", min=1, max=64)},) if batch_is_dynamic else None
    exported = torch.export.export(model, (x,), dynamic_shapes=sizes, strict=True).module()
    prepared = (prepare_qat_pt2e if settings.get("is_qat") else prepare_pt2e)(exported, quantizer)
    for _ in range(2):
        prepared(x)
    return convert_pt2e(prepared)


def quantised(model: torch.nn.Module, x: Tensor, config: str) -> Any:
    """A copy of the model in a configuration."""
    copied = copy.deepcopy(model)
    if config in PT2E:
        return by_pt2e(copied, x, **PT2E[config])
    from torchao.quantization import quant_api, quantize_

    with mock.patch.object(quant_api, "_check_hardware_support", lambda _: None):  # which asks for a GPU
        quantize_(copied, configs()[config]())
    return copied


def weights(model: torch.nn.Module) -> set[int]:
    """How many numbers weights have."""
    return {each.numel() for each in model.parameters() if each.dim() > 1}


_TAKEN = re.compile(r"(?:in_pool\(\w+, \d+, |empty\w*\()(\([\d, ]*\))")


def wide_buffers(program: str, sizes: set[int]) -> int:
    """Buffers of a program that have as many elements as a weight."""
    found = 0
    for shape in _TAKEN.findall(program):
        count = 1
        for size in re.findall(r"\d+", shape):
            count *= int(size)
        found += len(re.findall(r"\d+", shape)) > 1 and count in sizes
    return found


def line(model: torch.nn.Module, x: Tensor, config: str, dtype: torch.dtype, **options: Any) -> str:
    """What is said of one model in one configuration."""
    from inductile.backends.compiled import REPORTS

    model, x = model.to(dtype), x.to(dtype)
    integer = quantised(model, x, config)
    torch._dynamo.reset()
    REPORTS.clear()
    dynamic = options.pop("dynamic", None)
    with torch.no_grad():
        exact, expected = model(x).float(), integer(x).float()
        got = torch.compile(integer, backend="inductile", dynamic=dynamic, options=options or None)(x).float()
    lost, eagers, apart = (
        float((a - b).norm() / b.norm()) for a, b in ((got, exact), (expected, exact), (got, expected))
    )
    kernels = sum(sum(report.kernels.values()) for report in REPORTS)
    calls = {name: count for report in REPORTS for name, count in report.aten_calls.items()}
    wide = sum(wide_buffers(str(report.sources.get("program.py", "")), weights(model)) for report in REPORTS)
    text = ", ".join(f"{name} x{count}" for name, count in calls.items()) or "-"
    return f"{apart:.1e} | {lost:.1e} / {eagers:.1e} | {kernels} | {wide} | {text}"


def main() -> None:
    """Print a line for each model and configuration that is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    known = [*configs(), *PT2E]
    parser.add_argument("--configs", nargs="+", choices=known, default=known)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--freezing", action="store_true")
    parser.add_argument("--dynamic", action="store_true", help="sizes are symbols from the start")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    more: dict[str, Any] = {"freezing": True} if given.freezing else {}
    more |= {"dynamic": True} if given.dynamic else {}
    print("configuration | model | type | from eager | lost / eager's | kernels | wide buffers | calls")
    for config in given.configs:
        for name in given.models:
            make, shape = MODELS[name]
            for dtype in given.dtypes:
                if config in PT2E and dtype != "float32":
                    continue
                torch.manual_seed(0)
                model, x = make().eval(), torch.randn(shape)
                try:
                    said = line(model, x, config, getattr(torch, dtype), **more)
                except Exception as error:
                    at = traceback.extract_tb(error.__traceback__)[-1]
                    said = (
                        f"FAILED {type(error).__name__} {str(error).strip()[:150]!r} at {at.filename[-40:]}:{at.lineno}"
                    )
                print(f"{config} | {name} | {dtype} | {said}", flush=True)


if __name__ == "__main__":
    main()
