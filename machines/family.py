"""What all targets of one compiler have in common: what torch and Triton call them, and the libraries behind ATen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any

from ..records import dataclass


@dataclass(frozen=True)
class Library:
    """What the kernels that ATen calls on a device are good at. What nobody has measured for a device is left as it is.

    aligned_bytes:        rows of matrices that begin at multiples of so many bytes reach the fast kernels; 0: not known
    activates_products:   applies relu or gelu to a product while it stores it (`aten._addmm_activation`)
    adds_bias_apart:      adds the bias of a product of float32 matrices, and of a convolution, by a kernel of its own,
                          or is no faster for doing it at once
    has_onednn:           may call oneDNN for products of float32 matrices instead of the BLAS
    fuses_attention:      attention that is written op by op is called as one op, in a graph that is lowered
    keeps_nan:            its fused attention of 16 bits keeps NaN, so that what a program writes out may call it
    groups_heads:         its fused attention lets a group of heads read one head of keys, but nothing else broadcasts
    reads_mask_rows:      its fused attention wants the rows of a mask to have elements side by side
    is_slow_in_groups:    convolves small windows of groups slower than nests do (`passes/common/convolution_times.py`)
    copies_weights:       gives a convolution's weight the layout of the images in every call
    rounds_channels_last: convolves float32 images with channels last in TF32 where others are exact
    trains_channels_last: gradients of convolutions are faster with channels last, too
    """

    aligned_bytes: int = 0
    activates_products: bool = False
    adds_bias_apart: bool = False
    has_onednn: bool = False
    fuses_attention: bool = False
    keeps_nan: bool = False
    groups_heads: bool = False
    reads_mask_rows: bool = False
    is_slow_in_groups: bool = False
    copies_weights: bool = False
    rounds_channels_last: bool = False
    trains_channels_last: bool = False


@dataclass(frozen=True, eq=False)
class TritonNeeds:
    """What Triton has to be told of a family.

    backend:    Triton's backend
    arch:       Triton's architecture from what stands behind the colon
    arch_of:    what stands there, from torch's properties of a device; None for a device of another family
    launcher:   the word in the names of torch's launchers for it, "Cuda" in `torch._C._StaticCudaLauncher`, if any
    options:    options of Triton's compiler. No fused multiply-add across the program's operations, and no flushing of
                denormal numbers to zero in math functions: both change results
    inline_ptx: whether kernels may call `backends/triton/nvidia.py`, whose functions are PTX
    hints_cache: whether loads and stores may say what the cache keeps
    """

    backend: str
    arch: Callable[[str], Any]
    arch_of: Callable[[Any], str | None]
    launcher: str | None = None
    options: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    inline_ptx: bool = False
    hints_cache: bool = False


@dataclass(frozen=True, eq=False)
class Family:
    """Targets that one compiler serves: what stands before the colon of their names.

    name:      "cuda" in "cuda:90"
    device:    torch's type of device, which two families may share
    generator: which code generator writes their kernels, "cpp", "c" or "triton" (`backends/generators.py`)
    architectures: pattern of what may stand behind the colon. One that is not described is made for as the described
               one that is most like it
    library:   what ATen's kernels there are good at
    triton:    what Triton needs, where it compiles for them
    records:   whether torch can record launches and replay them (CUDA graphs)
    """

    name: str
    device: str
    generator: str
    architectures: str = ""
    library: Library = Library()
    triton: TritonNeeds | None = None
    records: bool = False


def _capability(properties: Any) -> str | None:
    return None if _gcn(properties) else f"{10 * properties.major + properties.minor}"


def _gcn(properties: Any) -> str | None:
    name = getattr(properties, "gcnArchName", "").partition(":")[0]
    return name if name.startswith("gfx") else None


_OF_CPUS = Library(has_onednn=True, fuses_attention=True, is_slow_in_groups=True, copies_weights=True)
CPP = Family("cpp", "cpu", "cpp", library=_OF_CPUS)
#: plain C, for one thread
C = Family("c", "cpu", "c", library=_OF_CPUS)
#: cuBLAS and cuDNN, hipBLAS and MIOpen
_OF_GPUS = Library(
    aligned_bytes=16,
    activates_products=True,
    adds_bias_apart=True,
    keeps_nan=True,
    groups_heads=True,
    reads_mask_rows=True,
    rounds_channels_last=True,
    trains_channels_last=True,
)
CUDA = Family(
    "cuda",
    "cuda",
    "triton",
    r"\d+",
    _OF_GPUS,
    TritonNeeds(
        "cuda",
        int,
        _capability,
        "Cuda",
        MappingProxyType({"enable_fp_fusion": False, "enable_reflect_ftz": False}),
        inline_ptx=True,
        hints_cache=True,
    ),
    records=True,
)
HIP = Family(
    "hip",
    "cuda",
    "triton",
    r"gfx[0-9a-f]+",
    _OF_GPUS,
    TritonNeeds("hip", str, _gcn, "Cuda", MappingProxyType({"enable_fp_fusion": False})),
    records=True,
)
