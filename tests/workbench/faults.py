"""The classic faults of a compiler, each put into one of our passes, and a program in which each of them shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest import MonkeyPatch
from xdsl.dialects import arith

from inductile.dialects import host
from inductile.dialects.sym import MapAttr, SymAttr
from inductile.passes.analysis import aliasing, lifetimes, memory
from inductile.passes.common import numbering
from inductile.passes.graph import _rules
from inductile.passes.host import free, reuse
from inductile.passes.kernel import collapse, cpu_tiles, elide_casts, merge_loops
from inductile.passes.loop import _identities, _splice, dce, eliminate_views

MODEL = """\
func.func @model(
    %x: !aten.tensor<8x8xf32>, %w: !aten.tensor<8xf32>, %cache: !aten.tensor<8x8xf32>, %long: !aten.tensor<32771xf32>
) -> (!aten.tensor<8x10xf32>, !aten.tensor<8x8xf32>, !aten.tensor<8x8xf32>, !aten.tensor<8x8xf32>, !aten.tensor<f32>,
      !aten.tensor<8x8xf32>, !aten.tensor<8x8xf32>) {
  %t = aten.permute(%x, dims = [1, 0]) : !aten.tensor<8x8xf32, strides = [1, 8]>
  %s = aten.sub.Tensor(%t, %w, alpha = 1) : !aten.tensor<8x8xf32, strides = [1, 8]>
  %sc = aten.clone(%s, memory_format = torch.contiguous_format) : !aten.tensor<8x8xf32>
  %p = aten.constant_pad_nd(%sc, pad = [1, 1], value = 0.5) : !aten.tensor<8x10xf32>
  %r = aten.relu(%p) : !aten.tensor<8x10xf32>
  %h = aten._to_copy(%sc, dtype = torch.float16) : !aten.tensor<8x8xf16>
  %f = aten._to_copy(%h, dtype = torch.float32) : !aten.tensor<8x8xf32>
  %e = aten.exp(%f) : !aten.tensor<8x8xf32>
  %sum = aten.sum.dim_IntList(%e, dim = [1], keepdim = true) : !aten.tensor<8x1xf32>
  %soft = aten.div.Tensor(%e, %sum) : !aten.tensor<8x8xf32>
  %flip = aten.flip(%e, dims = [1]) : !aten.tensor<8x8xf32>
  %both = aten.mul.Tensor(%soft, %flip) : !aten.tensor<8x8xf32>
  %mm = aten.mm(%both, %x) : !aten.tensor<8x8xf32>
  %one = aten.add.Scalar(%mm, other = 1) : !aten.tensor<8x8xf32>
  %two = aten.add.Scalar(%mm, other = 2) : !aten.tensor<8x8xf32>
  %exp1 = aten.exp(%one) : !aten.tensor<8x8xf32>
  %sin2 = aten.exp(%two) : !aten.tensor<8x8xf32>
  %mm2 = aten.mm(%exp1, %sin2) : !aten.tensor<8x8xf32>
  %old = aten.mul.Scalar(%cache, other = 3) : !aten.tensor<8x8xf32>
  %new = aten.add.Tensor(%cache, %x) : !aten.tensor<8x8xf32>
  %written = aten.copy_(%cache, %new) : !aten.tensor<8x8xf32>
  %late = aten.add.Tensor(%old, %x) : !aten.tensor<8x8xf32>
  %total = aten.sum(%long) : !aten.tensor<f32>
  %copy = aten.clone(%x, memory_format = torch.contiguous_format) : !aten.tensor<8x8xf32>
  func.return %r, %both, %mm2, %late, %total, %copy, %mm : !aten.tensor<8x10xf32>, !aten.tensor<8x8xf32>,
      !aten.tensor<8x8xf32>, !aten.tensor<8x8xf32>, !aten.tensor<f32>, !aten.tensor<8x8xf32>, !aten.tensor<8x8xf32>
}
"""

#: two loops that may not be one: the second reads a row from its other end
KERNEL = """\
kernel.func @k(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>, %z: !kernel.buffer<f32, 64>) {
  kernel.for i0 in 0 to 8 {
    kernel.for i1 in 0 to 8 {
      %a = kernel.load %x[8*i0 + i1]
      %b = math.sin %a : f32
      kernel.store %b, %y[8*i0 + i1]
      kernel.yield
    }
    kernel.for i2 in 0 to 8 {
      %c = kernel.load %y[8*i0 - i2 + 7]
      %d = arith.addf %c, %c : f32
      kernel.store %d, %z[8*i0 + i2]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
host.func @f(%x: !aten.tensor<8x8xf32>) -> (!aten.tensor<8x8xf32>, !aten.tensor<8x8xf32>) {
  %y = host.empty : !aten.tensor<8x8xf32>
  %z = host.empty : !aten.tensor<8x8xf32>
  host.launch @k(%x, %y, %z)
  host.return %y, %z
}
"""

#: long enough both ways that it is copied block by block
TRANSPOSED = """\
func.func @f(%x: !aten.tensor<256x256xf32>, %w: !aten.tensor<256xf32>) -> !aten.tensor<256x256xf32> {
  %t = aten.permute(%x, dims = [1, 0]) : !aten.tensor<256x256xf32, strides = [1, 256]>
  %s = aten.sub.Tensor(%t, %w, alpha = 1) : !aten.tensor<256x256xf32, strides = [1, 256]>
  %e = aten.exp(%s) : !aten.tensor<256x256xf32, strides = [1, 256]>
  %c = aten.clone(%e, memory_format = torch.contiguous_format) : !aten.tensor<256x256xf32>
  func.return %c : !aten.tensor<256x256xf32>
}
"""


@dataclass(frozen=True)
class Fault:
    """A fault: how it gets into which pass, how the failure shows, and how small a program is enough to see it."""

    name: str
    pass_name: str
    seed: Callable[[MonkeyPatch], None]
    most_ops: int
    shows: str = "the answer changes"
    program: str = MODEL
    flags: tuple[str, ...] = ()


def _wrong_index_map(patch: MonkeyPatch) -> None:
    """The map of a view composed the wrong way round."""
    right = eliminate_views._Composer.compose

    def compose(self: Any, through: Any, index_map: MapAttr) -> MapAttr:
        return MapAttr.of(*reversed(right(self, through, index_map).data))

    patch.setattr(eliminate_views._Composer, "compose", compose)


def _dropped_mask(patch: MonkeyPatch) -> None:
    """A mask that is lost when a body moves."""
    right = _splice.set_access

    def set_access(load: Any, access: Any, index_map: MapAttr) -> None:
        right(load, access._replace(mask=None, other=None), index_map)

    patch.setattr(_splice, "set_access", set_access)


def _wrong_identity(patch: MonkeyPatch) -> None:
    """Sums that start at 1 in what fills up a last part."""
    patch.setitem(_identities.NUMBERS, "sum", (1,))


def _swapped_operands(patch: MonkeyPatch) -> None:
    """Operands swapped in what is spliced."""
    right = _splice.Splicer._take

    def take(self: Any, op: Any, body: Any) -> Any:
        taken = right(self, op, body)
        if isinstance(taken, arith.SubfOp):
            taken.operands = taken.operands[::-1]
        return taken

    patch.setattr(_splice.Splicer, "_take", take)


def _wrong_loop_bound(patch: MonkeyPatch) -> None:
    """A collapsed loop that misses its last iteration."""
    right = collapse._take_body

    def take_body(outer: Any, inner: Any) -> None:
        right(outer, inner)
        outer.properties["hi"] = SymAttr.of(outer.hi.data - 1)

    patch.setattr(collapse, "_take_body", take_body)


def _reuse_of_a_live_buffer(patch: MonkeyPatch) -> None:
    """A kernel that writes over an input which somebody still reads."""

    def dies_here(self: Any, launch: Any, read: int, written: int) -> bool:
        old, new = launch.buffers[read], launch.buffers[written]
        fresh = isinstance(new.owner, host.EmptyOp) and all(use.operation is not launch.prev_op for use in new.uses)
        return fresh and old.type == new.type and old is not new and reuse.reusable(old)

    patch.setattr(reuse._InPlace, "_dies_here", dies_here)


def _freed_too_early(patch: MonkeyPatch) -> None:
    """Memory freed in front of its last use, by a pass that does not check itself."""

    class ShortLived(lifetimes.Lifetimes):
        def __init__(self, block: Any) -> None:
            super().__init__(block)
            for value, last in self.last.items():
                if last < self.end:
                    self.last[value] = max(last - 1, 0)

    patch.setattr(free, "Lifetimes", ShortLived)
    patch.setattr(free, "verify_frees", lambda block: None)


def _lost_write(patch: MonkeyPatch) -> None:
    """A write to an input is removed because nobody uses its result."""
    right = dce.has_side_effect
    patch.setattr(dce, "has_side_effect", lambda op: op.name != "aten.copy_" and right(op))


def _different_constants_are_equal(patch: MonkeyPatch) -> None:
    """CSE that does not look at the value of float constants."""
    right = numbering.AttributeTokens.of

    def of(self: Any, attribute: Any) -> int:
        return -1 if type(attribute) is numbering.FloatAttr else right(self, attribute)

    patch.setattr(numbering.AttributeTokens, "of", of)


def _read_moved_past_a_write(patch: MonkeyPatch) -> None:
    """A read of an input that ends up behind the write to it."""
    patch.setattr(memory.Mutations, "moves_past_write", lambda self, values, source, target: False)


def _elided_cast(patch: MonkeyPatch) -> None:
    """A rounding that the program wrote, taken for one of ours."""
    patch.setattr(elide_casts, "_is_exact", lambda cast, widen: cast.source_element == widen.target_element)


def _gained_alias(patch: MonkeyPatch) -> None:
    """An output that shares the memory of an input."""
    patch.setattr(_rules.Rewriter, "may_share", lambda self, result, source: True)


def _ignored_dependence(patch: MonkeyPatch) -> None:
    """Loops merged although one reads what the other has not written yet."""
    patch.setattr(aliasing, "same_iterations", lambda *_: True)
    patch.setattr(merge_loops, "same_iterations", lambda *_: True)


def _off_by_one_tile(patch: MonkeyPatch) -> None:
    """Blocks of a loop that each lack their last iteration."""
    right = cpu_tiles.block_range

    def block_range(axis: Any, size: int, names: set[str]) -> Any:
        blocks, (name, lo, hi) = right(axis, size, names)
        return blocks, (name, lo, hi - 1)

    patch.setattr(cpu_tiles, "block_range", block_range)


def _crash(patch: MonkeyPatch) -> None:
    """A pass that stumbles over a case that it does not know."""

    def block_range(*_: object) -> None:
        raise KeyError("block")

    patch.setattr(cpu_tiles, "block_range", block_range)


FAULTS = (
    Fault("wrong index map", "loop-eliminate-views", _wrong_index_map, 9),
    Fault("dropped mask", "loop-inline", _dropped_mask, 16, shows="the module does not verify: loop.load: index"),
    Fault("wrong reduction identity", "loop-split-reductions", _wrong_identity, 8),
    Fault("swapped operands", "loop-inline", _swapped_operands, 12),
    Fault("wrong loop bound", "kernel-collapse", _wrong_loop_bound, 14),
    Fault("reuse of a live buffer", "host-reuse", _reuse_of_a_live_buffer, 24),
    Fault("freed too early", "host-free", _freed_too_early, 12, shows="the module does not verify: host."),
    Fault("lost write", "loop-dce", _lost_write, 8),
    Fault("different constants are equal", "loop-cse", _different_constants_are_equal, 13),
    Fault("read moved past a write", "loop-inline", _read_moved_past_a_write, 16),
    Fault("elided cast", "kernel-elide-casts", _elided_cast, 12),
    Fault("gained alias", "graph-canonicalize", _gained_alias, 4),
    Fault(
        "ignored dependence",
        "kernel-merge-loops",
        _ignored_dependence,
        16,
        program=KERNEL,
        flags=("--start-at", "kernel-deduplicate"),
    ),
    Fault("off-by-one tile", "kernel-tile", _off_by_one_tile, 14, program=TRANSPOSED),
    Fault("crash", "kernel-tile", _crash, 14, program=TRANSPOSED, shows="KeyError"),
)
