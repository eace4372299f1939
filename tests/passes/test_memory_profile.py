"""Memory over time, and the blocks into which torch's allocator cuts it."""

from __future__ import annotations

import random
from itertools import pairwise

from xdsl.parser import Parser

from inductile.dialects.context import new_context
from inductile.passes.analysis.caching_allocator import GRAIN, SMALL, Block, CachingAllocator
from inductile.passes.analysis.memory_profile import MemoryProfile, memory_profiles

MIB = 1 << 20


def test_a_large_block_is_cut_only_where_more_than_a_mebibyte_is_left() -> None:
    allocator = CachingAllocator()
    first, second = allocator.take(3 * MIB), allocator.take(3 * MIB)
    assert allocator.allocated == 6 * MIB and allocator.reserved == 20 * MIB
    allocator.give(first)
    tight = allocator.take(2 * MIB + 1)
    assert tight.offset == first.offset and tight.size == 3 * MIB
    allocator.give(tight)
    loose = allocator.take(2 * MIB - GRAIN)
    assert loose.size == 2 * MIB - GRAIN
    allocator.give(second)
    assert allocator.take(125 * MIB).size == 126 * MIB
    assert allocator.take(100).size == GRAIN


def test_blocks_never_overlap_and_join_again() -> None:
    draw, allocator = random.Random(0), CachingAllocator()
    taken: list[Block] = []
    for _ in range(4000):
        if taken and draw.random() < 0.5:
            allocator.give(taken.pop(draw.randrange(len(taken))))
        else:
            taken.append(allocator.take(draw.randrange(1, draw.choice([SMALL, 12 * SMALL]))))
    places = sorted((b.segment, b.offset, b.offset + b.size) for b in taken)
    assert all(a[0] != b[0] or a[2] <= b[1] for a, b in pairwise(places))
    assert allocator.allocated == sum(b.size for b in taken)
    for block in taken:
        allocator.give(block)
    free = [block for blocks in allocator._free.values() for block in blocks]
    assert allocator.allocated == 0 and sum(b.size for b in free) == allocator.reserved
    assert all(b.before is None and b.behind is None for b in free)


PROGRAM = """
host.func @f(%w: !aten.tensor<512x512xf32, device = "cuda:0">, %saved: !aten.tensor<512x1024xf32, device = "cuda:0">)
    -> (!aten.tensor<512x512xf32, device = "cuda:0">) {
  %a = host.empty : !aten.tensor<512x1024xf32, device = "cuda:0">
  host.launch @k(%saved, %a)
  host.free %saved
  %v = host.view %a offset 0 : !aten.tensor<1024x512xf32, device = "cuda:0">
  %r = aten.mm(%w, %w) : !aten.tensor<512x512xf32, device = "cuda:0">
  host.free %v, %a
  host.return %r
}
"""


def profile(*held: str) -> MemoryProfile:
    module = Parser(new_context(), PROGRAM).parse_module()
    (found,) = memory_profiles(module, is_held=lambda name: name in held)
    return found


def test_what_is_given_counts_until_it_is_freed_and_views_never() -> None:
    found = profile("w")
    assert [moment.alive / MIB for moment in found.moments] == [4, 2, 3, 1]
    assert (found.given, found.peak) == (2 * MIB, 4 * MIB)
    assert {live.value.name_hint for live in found.alive_at_peak} == {"saved", "a"}
    assert found.at_peak is not None and found.at_peak.results[0].name_hint == "a"
    found = profile("w", "saved")
    assert [moment.alive / MIB for moment in found.moments] == [2, 2, 3, 1]
    assert found.results_at_peak == MIB
