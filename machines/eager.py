"""How eager computes on a type of device. This is what a program means, not what a machine is good at.

PyTorch has one set of kernels for each type of device, and they differ in places that a result shows: in which type
something is summed, whether a zero divisor is an error. What we make for a tensor computes as eager's kernel of the
same device would. Each difference that has been found is one field here, so that no lowering has to know the names of
devices. The one other thing that a device's name decides by itself is whether a tensor lies in the host's memory.
"""

from __future__ import annotations

from ..records import dataclass

#: torch's name of the host, whose memory the program around the kernels reads too
HOST = "cpu"


@dataclass(frozen=True, eq=False)
class EagerKernels:
    """How eager's kernels for a type of device compute, where devices differ. There are few, compared as objects.

    variances_in_double:      var and std sum floats in float64
    ranges_in_double:         elements of a range of floats are computed in float64
    checks_divisors:          an integer divided by zero is an error; elsewhere the quotient is some number
    adds_missing_bias:        a normalization without bias adds zeros, which turns -0.0 into 0.0
    powers_of_float16_roots:  a power of 0.5 or -0.5 of float16 is the general power, not a root
    converts_exactly:         operands of 16 bits in a kernel that promotes them keep their digits
    divides_by_numbers:       a float divided by a number is their quotient; elsewhere it is multiplied with the
                              reciprocal, which is rounded before
    single_is_number:         a divisor of one element counts as a number, of any rank
    weighs_what_is_outside:   grid_sampler_2d multiplies the zeros around an image with their weights, NaN included
    reflects_its_own_way:     grid_sampler_2d reflects far places by another formula than the decomposition
    shuffles_keep_format:     channel_shuffle gives channels last for channels last
    refuses_float16_margins:  multi_margin_loss and multilabel_margin_loss take no float16
    own_layouts:              results of normalization, pooling and the like have layouts of this device's kernels
    aligned_bytes:            what the allocator aligns tensors to, and what we align them to in memory that they share
    """

    variances_in_double: bool = False
    ranges_in_double: bool = False
    checks_divisors: bool = False
    adds_missing_bias: bool = False
    powers_of_float16_roots: bool = False
    converts_exactly: bool = False
    divides_by_numbers: bool = False
    single_is_number: bool = False
    weighs_what_is_outside: bool = False
    reflects_its_own_way: bool = False
    shuffles_keep_format: bool = False
    refuses_float16_margins: bool = False
    own_layouts: bool = False
    aligned_bytes: int = 512


#: the kernels for CPUs
ON_HOST = EagerKernels(
    variances_in_double=True,
    ranges_in_double=True,
    checks_divisors=True,
    adds_missing_bias=True,
    powers_of_float16_roots=True,
    converts_exactly=True,
    divides_by_numbers=True,
    single_is_number=True,
    weighs_what_is_outside=True,
    reflects_its_own_way=True,
    shuffles_keep_format=True,
    refuses_float16_margins=True,
    own_layouts=True,
    aligned_bytes=64,
)
#: the kernels for CUDA, which HIP compiles too and those for XPU are ports of
ON_GPU = EagerKernels()

_BY_TYPE = {HOST: ON_HOST}


def eager(device: str) -> EagerKernels:
    """How eager computes on a device, "cuda:0", or on a type of device."""
    return _BY_TYPE.get(device.partition(":")[0], ON_GPU)


def in_host_memory(device: str) -> bool:
    """Whether a tensor on a device, "cuda:0", lies in the memory that the host program reads and writes itself."""
    return device == HOST
