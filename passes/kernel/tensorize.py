"""The pass `kernel-tensorize`."""

from __future__ import annotations

from ...dialects import kernel
from ...dialects.access import string_attr
from ...dialects.sym import Expr
from ...records import dataclass
from ..analysis.loops import loops_around, loops_in
from ..analysis.nests import element_bytes, is_unit
from ..counters import counter
from .byte_dots import byte_dots
from .digit_dots import digit_dots
from .kernel_pass import KernelFacts, KernelPass
from .pinned import is_pinned
from .read_back import is_plain
from .scheduled import tiled_for_cpu

#: bytes of the elements that the intrinsic turns
_TURNED = (1, 2, 4, 8)


class KernelTensorize(KernelPass, kernels=tiled_for_cpu):
    """Mark loops that an intrinsic of the target does as a whole (tensorization).

    Level: kernel.

    Precondition: kernels for a CPU, with the loops that are to stay (`kernel-unroll-quotients`); others are left alone.
    Guarantee: two loops that do nothing but copy a block with its axes swapped are `intrinsic transpose`: what turns
    small tiles in registers, so that memory is read and written along its lines. They mean what they say. So do two
    that sum products of bfloat16 and numbers of 4 bits, two a byte, with a scale for each group, `dot_digits`: that
    multiplies pairs of bfloat16, adds up a group, and scales it once, as many bytes at once as 512 bits hold
    numbers of 16. Scales count as finite. A row of bfloat16 times one of bytes is `dot_bytes`.

        kernel.for i0 in 0 to s0 { kernel.for i1 in 0 to s1 {
          %v = kernel.load %x[s1*i0 + i1]  kernel.store %v, %y[s0*i1 + i0] } }
    becomes
        kernel.for i0 in 0 to s0 intrinsic transpose { ... }

    A row of 4096 numbers in groups of 128 by 4096 columns, one core of an EPYC: 2.17 ms as loops, 0.52 so;
    of bytes 1.64 and 0.75.
    """

    name = "kernel-tensorize"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Mark loops of every kernel for a CPU."""
        known = facts.target.intrinsics
        for loop in loops_in(function.body.block):
            if isinstance(loop, kernel.ReduceOp):
                name = _sum_of(loop)
                if name in known and _runs_alone(loop) and counter(self.name):
                    loop.properties["intrinsic"] = string_attr(name)
                continue
            copies = (
                "transpose" in known
                and isinstance(loop, kernel.ForOp)
                and not is_pinned(loop)
                and _runs_alone(loop)
                and transposed_copy(loop) is not None
            )
            if copies and counter(self.name):
                loop.properties["intrinsic"] = string_attr("transpose")


def _sum_of(op: kernel.ReduceOp) -> str:
    """The intrinsic that computes a sum; empty where none does."""
    if digit_dots(op) is not None:
        return "dot_digits"
    return "dot_bytes" if byte_dots(op) is not None else ""


def _runs_alone(op: kernel.ForOp | kernel.ReduceOp) -> bool:
    """Whether a loop is run by one thread, for one iteration of those around it and not for lanes of them."""
    in_lanes = any(around.mapping.data == "vector" for around in loops_around(op))
    return op.mapping.data not in ("parallel", "grid") and not in_lanes


@dataclass(frozen=True)
class TransposedCopy:
    """`store.buffer[... + row + out_stride*column] = load.buffer[... + in_stride*row + column]` for two loops."""

    rows: kernel.ForOp
    columns: kernel.ForOp
    load: kernel.LoadOp
    store: kernel.StoreOp
    in_stride: Expr
    out_stride: Expr


def transposed_copy(op: kernel.ForOp) -> TransposedCopy | None:
    """The copy that a loop and the one loop inside do, when they do nothing else."""
    inner = _only(op)
    if inner is None:
        return None
    load, store, *rest = inner.body.block.ops
    if not isinstance(load, kernel.LoadOp) or not isinstance(store, kernel.StoreOp) or len(rest) != 1:
        return None
    if (
        store.value is not load.value
        or load.mask is not None
        or load.dynamic
        or not is_plain(store)
        or store.atomic is not None
    ):
        return None
    row, column = op.axis.data, inner.axis.data
    if row in inner.lo.data.free_symbols | inner.hi.data.free_symbols:
        return None
    read, written = load.map.data[0], store.map.data[0]
    in_stride, out_stride = read.coefficient(row), written.coefficient(column)
    if not is_unit(read.coefficient(column)) or not is_unit(written.coefficient(row)):
        return None
    if in_stride is None or out_stride is None or is_unit(in_stride) or is_unit(out_stride):
        return None
    if not {row, column}.isdisjoint(in_stride.free_symbols | out_stride.free_symbols):
        return None
    source, target = load.buffer.type, store.buffer.type
    assert isinstance(source, kernel.BufferType)
    assert isinstance(target, kernel.BufferType)
    if source.element != target.element or load.buffer is store.buffer or element_bytes(source) not in _TURNED:
        return None
    return TransposedCopy(op, inner, load, store, in_stride, out_stride)


def _only(op: kernel.ForOp) -> kernel.ForOp | None:
    """The loop inside of a loop, when that holds nothing else and itself just two ops."""
    ops = list(op.body.block.ops)
    inner = ops[0]
    if len(ops) != 2 or not isinstance(inner, kernel.ForOp) or inner.mapping.data in ("parallel", "grid"):
        return None
    return inner if len(list(inner.body.block.ops)) == 3 else None
