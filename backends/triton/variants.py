"""What one kernel is compiled to: variants for the alignment of its buffers and for its integers."""

from __future__ import annotations

from typing import Any

from ...records import dataclass
from .kernel import BOXES, TritonKernel
from .loading import file_of
from .request import ALIGNED, Request, index_constant
from .targets import TritonTarget


@dataclass(frozen=True)
class Variant:
    """What the code of a kernel may rely on.

    wide:      offsets into its buffers take 64 bits, where the kernel leaves that open
    unaligned: buffers, by position, whose address is no multiple of 16 bytes
    integers:  for each symbol, whether it is a multiple of 16, and whether 32 bits hold it
    """

    wide: bool = False
    unaligned: frozenset[int] = frozenset()
    integers: tuple[tuple[bool, bool], ...] = ()

    @property
    def traits(self) -> int:
        """All but the alignment of buffers as bits, in the order in which a run of launches computes them."""
        bits = [self.wide, *(bit for pair in self.integers for bit in pair)]
        return sum(bit << position for position, bit in enumerate(bits))


def variant_of(wide: bool, pointers: tuple[int, ...], integers: tuple[int, ...]) -> Variant:
    """The variant for a launch with these addresses and integers."""
    unaligned = frozenset(k for k, pointer in enumerate(pointers) if pointer % ALIGNED)
    return Variant(wide, unaligned, tuple(map(traits_of, integers)))


def traits_of(integer: int) -> tuple[bool, bool]:
    """What code is compiled for: whether an integer is a multiple of 16, and whether 32 bits hold it."""
    return integer % ALIGNED == 0, -(1 << 31) <= integer < 1 << 31


def likely_variant(kernel: TritonKernel) -> Variant:
    """Aligned buffers, short enough for 32-bit offsets; integers like their hints, else what is known of them."""
    integers = (kernel.hints.get(name, kernel.divisors.get(name, 1)) for name in kernel.symbols)
    return Variant(integers=tuple((integer % ALIGNED == 0, True) for integer in integers))


def short_variants(kernel: TritonKernel) -> list[Variant]:
    """The likely variant first; then those of integers that are all multiples of 16, and that none is known to be."""
    known = [kernel.divisors.get(name, 1) % ALIGNED == 0 for name in kernel.symbols]
    others = [Variant(integers=tuple((divides, True) for divides in each)) for each in ([True] * len(known), known)]
    return list(dict.fromkeys([likely_variant(kernel), *others]))


def constants_of(kernel: TritonKernel, wide: bool) -> dict[str, Any]:
    """The constant arguments of a kernel, in order."""
    return {**_constants(kernel, aligned=True), **index_constant(_index_bits(kernel, wide))}


def _constants(kernel: TritonKernel, aligned: bool) -> dict[str, int]:
    """All but the width of indices. A copy engine wants aligned buffers."""
    return {**kernel.constexprs, **({BOXES: aligned} if kernel.descriptor_bytes else {})}


def _index_bits(kernel: TritonKernel, wide: bool) -> int:
    return (64 if wide else 32) if kernel.chooses_index else 0


def compile_options(kernel: TritonKernel, target: TritonTarget) -> dict[str, Any]:
    """Options of Triton's compiler for a kernel."""
    return {"num_warps": kernel.num_warps, "num_stages": kernel.num_stages, **target.options}


def signature_of(kernel: TritonKernel, variant: Variant) -> dict[str, str]:
    """Argument -> type in a variant."""
    signature = dict(kernel.signature)
    names = list(signature)[kernel.buffers :]
    for name, (_, short) in zip(names, variant.integers, strict=False):
        signature[name] = "i32" if short else "i64"
    return signature


def divisible_arguments(kernel: TritonKernel, variant: Variant) -> list[int]:
    """Positions of the arguments that are multiples of 16."""
    buffers = [k for k in range(kernel.buffers) if k not in variant.unaligned]
    return buffers + [kernel.buffers + k for k, (divisible, _) in enumerate(variant.integers) if divisible]


def request_of(kernel: TritonKernel, target: TritonTarget, variant: Variant) -> Request:
    """The compile of a variant, for any process on this machine."""
    return Request(
        name=kernel.name,
        path=file_of(kernel),
        signature=signature_of(kernel, variant),
        constants=_constants(kernel, not variant.unaligned),
        index_bits=_index_bits(kernel, variant.wide),
        divisible=tuple(divisible_arguments(kernel, variant)),
        options=compile_options(kernel, target),
        backend=target.backend,
        arch=target.arch,
        warp_size=target.warp_size,
    )


def compile_variant(kernel: TritonKernel, function: Any, target: TritonTarget, variant: Variant) -> Any:
    """Triton's compiled kernel; `function` is the `triton.JITFunction` of its source. Needs no GPU."""
    return request_of(kernel, target, variant).compile(function)
