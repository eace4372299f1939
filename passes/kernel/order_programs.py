"""The pass `kernel-order-programs`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeGuard

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.sym import as_expr
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.loops import loops_in
from ..analysis.nests import element_bytes
from ..analysis.sizes import Sizes
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .tiles import is_grid, tile_of
from .transforms import perfect_chain, range_of, set_mapping, set_range

#: how many times as many steps the first or last tile of rows has to have as the middle one
UNEQUAL = 1.5
#: the share of the cache that what programs read may take
_SHARE = 0.75


@dataclass(frozen=True)
class KernelOrderPrograms(KernelPass, kernels=all_for_gpu):
    """Let programs with the most steps of sums on matrix units begin first, of all heads that the cache has room for.

    Level: kernel.

    Precondition: `kernel-bound-steps`, which says how many steps a tile of rows has, and `kernel-peel-masked-steps`.
    Guarantee: the same programs in another order. Where steps depend on the tile of rows, as under a causal mask, tiles
    with many steps come first, from the last to the first (`descending`) where these are the later ones, and the tiles
    of all other grid axes for each of them: what is left over at the end is short. Where what all of these read again
    is more than a part of the cache, the next outer axis is taken in parts (`swizzle`). Loops that somebody pinned, or
    that run within loaded places, stay as they are. Graham, Bounds on multiprocessing timing anomalies, 1969.

        kernel.for i0 in 0 to 64 map grid { kernel.for i1 in 0 to 2048 map grid tile 128 { ...
          kernel.reduce softmax_sum i2 in 0 to 128*(i1 floordiv 128) + 128 map matrix tile 64 ... } }
    becomes
        kernel.for i1 in 0 to 2048 map grid tile 128 descending { kernel.for i0 in 0 to 64 map grid { ... } }
    """

    name = "kernel-order-programs"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Order the programs of a kernel."""
        for op in list(function.body.block.ops):
            if not isinstance(op, kernel.ForOp) or not is_grid(op) or op.pinned is not None:
                continue
            chain = [each for each in perfect_chain(op) if is_grid(each)]
            axes = {each.axis.data for each in chain}
            if any(axes & (each.lo.data.free_symbols | each.hi.data.free_symbols) for each in chain):
                continue
            sums = [each for each in loops_in(chain[-1].body.block) if _is_sum(each)]
            if not sums or len(chain) < 2 or any(each.within for each in sums):
                continue
            rows, target = chain[-1], facts.target
            first, middle, last = (_steps(sums, rows, facts.sizes, place) for place in (0, 1, 2))
            if max(first, last) < UNEQUAL * max(middle, 1) or not isinstance(target, GpuTarget):
                continue
            if counter(self.name):
                told = _order(chain, sums, last > first, facts.sizes, target)
                remark("passed", self.name, function, f"programs with most steps come first{told}")


def _is_sum(op: object) -> TypeGuard[kernel.ReduceOp]:
    return isinstance(op, kernel.ReduceOp) and op.mapping.data == "matrix" and isinstance(op.parent_op(), kernel.ForOp)


def _steps(sums: Sequence[kernel.ReduceOp], rows: kernel.ForOp, sizes: Sizes, half: int) -> int:
    """How many steps a tile of rows has: the first, the middle or the last one (0, 1, 2)."""
    place = half * (sizes.trips(rows) - 1) // 2 // tile_of(rows) * tile_of(rows)
    at = {rows.axis.data: as_expr(place)}
    return sum(-(-sizes.of((op.hi.data - op.lo.data).subs(at)) // tile_of(op)) for op in sums)


def _order(
    chain: Sequence[kernel.ForOp], sums: Sequence[kernel.ReduceOp], descends: bool, sizes: Sizes, target: GpuTarget
) -> str:
    """Order the programs of a chain of loops, the last of which is that of the rows; what to tell beside."""
    rows, batch = chain[-1], chain[:-1]
    heads = int(_SHARE * target.cache_bytes) // max(_read_again(sums, rows, batch, sizes), 1)
    if descends:
        rows.properties["descending"] = UnitAttr()
    if heads >= prod(map(sizes.trips, batch)):
        loops = [(range_of(each), each.tile, each.properties.get("descending")) for each in (rows, *batch)]
        for each, (axis, tile, order) in zip(chain, loops, strict=True):
            set_range(each, axis)
            set_mapping(each, "grid", None if tile is None else tile.value.data)
            each.properties.pop("descending", None)
            if order is not None:
                each.properties["descending"] = order
        return ""
    count = sizes.trips(batch[-1])
    part = -(-count // -(-count // max(min(heads, count), 1)))  # parts of about one size
    if part > 1 and batch[-1].swizzle is None:
        batch[-1].properties["swizzle"] = IntegerAttr(part, i64)
    return f", of {part} of {batch[-1].axis.data} at a time"


def _read_again(
    sums: Sequence[kernel.ReduceOp], rows: kernel.ForOp, batch: Sequence[kernel.ForOp], sizes: Sizes
) -> int:
    """Bytes that all programs of one point of the batch axes read: what does not vary along the rows."""
    outer = {each.axis.data for each in batch}
    end = {rows.axis.data: as_expr(sizes.trips(rows) - 1)}
    lengths = {each.axis.data: sizes.of(each.hi.data.subs(end)) for each in loops_in(rows.body.block)}
    found: dict[SSAValue, int] = {}
    for op in (each for total in sums for each in total.walk()):
        if not isinstance(op, kernel.LoadOp):
            continue
        axes = op.map.data[0].free_symbols - outer
        if rows.axis.data not in axes:
            count = prod(lengths.get(axis, 1) for axis in axes)
            assert isinstance(op.buffer.type, kernel.BufferType)
            found[op.buffer] = max(found.get(op.buffer, 0), count * element_bytes(op.buffer.type.element))
    return sum(found.values())
