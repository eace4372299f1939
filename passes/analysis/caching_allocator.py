"""How torch's allocator for GPUs cuts memory into blocks: what a tensor takes is a little more than it asks for.

The rules and figures are those of `c10/cuda/CUDACachingAllocator.cpp` with its default settings.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from ...machines import ON_GPU
from ...records import dataclass

#: sizes are multiples of it
GRAIN = ON_GPU.aligned_bytes
#: up to here tensors lie in segments of their own kind
SMALL = 1 << 20
SMALL_SEGMENT = 2 << 20
#: from here on a segment is made for one tensor, in whole `ROUND`
LARGE = 10 << 20
LARGE_SEGMENT = 20 << 20
ROUND = 2 << 20


@dataclass(eq=False)
class Block:
    """A stretch of a segment, free or taken, between its neighbours."""

    segment: int
    offset: int
    size: int
    is_small: bool
    is_free: bool = True
    before: Block | None = None
    behind: Block | None = None

    @property
    def order(self) -> tuple[int, int, int]:
        """Free blocks are tried from the smallest that is large enough, then by address."""
        return self.size, self.segment, self.offset


class CachingAllocator:
    """Blocks of one device. `allocated` are the bytes of taken blocks, which `torch.cuda.memory_allocated` reports.

    A free block is cut where enough is left: the rest of a large block, up to `SMALL`, otherwise belongs to the tensor
    that takes it.
    """

    def __init__(self) -> None:
        self.allocated = 0
        self.reserved = 0
        self._segments = 0
        self._free: dict[bool, list[Block]] = {True: [], False: []}

    def take(self, asked: int) -> Block:
        """The block for a tensor of so many bytes."""
        size = max(-(-asked // GRAIN) * GRAIN, GRAIN)
        free = self._free[size <= SMALL]
        place = bisect_left(free, (size, 0, 0), key=lambda block: block.order)
        block = free.pop(place) if place < len(free) else self._new_segment(size)
        left = block.size - size
        if left >= GRAIN if block.is_small else left > SMALL:
            self._cut(block, size)
        block.is_free = False
        self.allocated += block.size
        return block

    def give(self, block: Block) -> None:
        """Give a block back; it becomes one with free neighbours."""
        self.allocated -= block.size
        block.is_free = True
        for first, second in ((block, block.behind), (block.before, block)):
            if first is None or second is None or not (first.is_free and second.is_free):
                continue
            for each in (first, second):
                if each is not block:
                    self._free[each.is_small].remove(each)
            first.size += second.size
            first.behind = second.behind
            if second.behind is not None:
                second.behind.before = first
            block = first
        insort(self._free[block.is_small], block, key=lambda each: each.order)

    def _new_segment(self, size: int) -> Block:
        is_small = size <= SMALL
        whole = SMALL_SEGMENT if is_small else LARGE_SEGMENT if size < LARGE else -(-size // ROUND) * ROUND
        self._segments += 1
        self.reserved += whole
        return Block(self._segments, 0, whole, is_small)

    def _cut(self, block: Block, size: int) -> None:
        rest = Block(block.segment, block.offset + size, block.size - size, block.is_small, True, block, block.behind)
        if rest.behind is not None:
            rest.behind.before = rest
        block.behind, block.size = rest, size
        insort(self._free[rest.is_small], rest, key=lambda each: each.order)
