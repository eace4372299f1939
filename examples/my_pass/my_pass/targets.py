"""A GPU that inductile does not know, Intel's Arc B580: a family, for what torch and Triton call it, and a description.

Figures are the maker's. What is not said of the library behind ATen is not assumed. And the CPU as a target of a code
generator of our own, `my_pass/generator.py`.
"""

from dataclasses import replace
from typing import Any

from inductile.machines import Family, GpuTarget, TritonNeeds, target_named


def _architecture(text: str) -> dict[str, Any]:
    """What Triton's backend for XPU wants for an architecture: the properties of the device, which only torch knows."""
    import torch

    return {"architecture": text, **torch.xpu.get_device_capability()}


def _name(properties: Any) -> str | None:
    return "bmg" if "B580" in properties.name else None


XPU = Family("xpu", "xpu", "triton", "bmg|pvc", triton=TritonNeeds("xpu", _architecture, _name))

READABLE = replace(target_named("c"), name="my-c", family=Family("my-c", "cpu", "my-c"), model="a CPU, to read code")

TARGETS = (
    READABLE,
    GpuTarget(
        "xpu:bmg",
        XPU,
        "Arc B580",
        bandwidth=456,
        rates={32: 13_700},
        warp=32,
        processors=20,
        warps=32,
        threads=2048,
        cache_bytes=18 << 20,
    ),
)
