"""Memory over time: what is alive behind each op of a host program, and at its peak, from the IR alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ...dialects import host
from ...dialects.aten.types import TensorType, type_of
from ...machines import in_host_memory
from ...records import dataclass
from .caching_allocator import Block, CachingAllocator
from .kept import is_kept_value
from .lifetimes import Lifetimes, is_tensor
from .sizes import Sizes


@dataclass(frozen=True)
class Live:
    """A tensor that is alive: its bytes, and whether the program returns it or a view of it."""

    value: SSAValue
    bytes: int
    is_result: bool


@dataclass(frozen=True)
class Moment:
    """An op that changes what is alive, the bytes that are behind it, and those of the allocator's blocks."""

    op: Operation
    alive: int
    blocks: int


@dataclass
class MemoryProfile:
    """The moments of a program, in order, and the tensors that are alive at the one with most bytes, largest first.

    given:       bytes of the arguments that the caller gave up, alive at the start
    peak_blocks: the most bytes in blocks of torch's allocator; 0 for a program without tensors on a GPU
    """

    name: str
    given: int = 0
    moments: list[Moment] = field(default_factory=list)
    peak: int = 0
    peak_blocks: int = 0
    at_peak: Operation | None = None
    alive_at_peak: list[Live] = field(default_factory=list)

    @property
    def results_at_peak(self) -> int:
        """Bytes of what is alive at the peak and returned."""
        return sum(live.bytes for live in self.alive_at_peak if live.is_result)


def memory_profiles(
    module: ModuleOp, values: Mapping[str, int] | None = None, is_held: Callable[[str], bool] | None = None
) -> list[MemoryProfile]:
    """The profile of each host function of a module behind `host-free`, for values of its symbols, else their hints.

    is_held: whether the caller keeps the argument of a name; by default those that the program is not given. They do
             not count; others, what a forward graph saved for a backward graph say, are alive from the start until they
             are freed.
    """
    return [_Walk(op, values or {}, is_held).run() for op in module.ops if isinstance(op, host.FuncOp)]


class _Walk:
    """Walks a host function with its tensors in hand."""

    def __init__(self, function: host.FuncOp, values: Mapping[str, int], is_held: Callable[[str], bool] | None) -> None:
        self.block = function.body.block
        self.sizes = Sizes.of_function(function, values)
        self.lifetimes = Lifetimes(self.block)
        given = set(function.given_arguments)
        self.given = [a for a in self.block.args if (a in given if is_held is None else not is_held(a.name_hint or ""))]
        self.alive: dict[SSAValue, tuple[int, Block | None]] = {}
        self.bytes = 0
        self.outside = 0
        """Bytes that no allocator of a GPU cuts into blocks."""
        self.at_peak: list[tuple[SSAValue, int]] = []
        self.allocator = CachingAllocator()
        self.profile = MemoryProfile(function.sym_name.data)

    def run(self) -> MemoryProfile:
        for argument in filter(is_tensor, self.given):
            self._make(argument)
        self.profile.given = self.bytes
        for op in self.block.ops:
            if isinstance(op, host.FreeOp):
                for value in op.values:
                    self._free(value)
                self._note(op)
            elif made := [result for result in op.results if self._is_memory(result)]:
                for value in made:
                    self._make(value)
                self._note(op)
        live = [Live(value, size, self.lifetimes.escapes(value)) for value, size in self.at_peak]
        self.profile.alive_at_peak = sorted(live, key=lambda each: -each.bytes)
        return self.profile

    def _is_memory(self, value: SSAValue) -> bool:
        return is_tensor(value) and not is_kept_value(value) and self.lifetimes.roots(value) == {value}

    def _make(self, value: SSAValue) -> None:
        kind = type_of(value)
        size = self.sizes.bytes(kind)
        block = self.allocator.take(size) if size and not in_host_memory(kind.device) else None
        self.alive[value] = size, block
        self.bytes += size
        self.outside += size if block is None else 0

    def _free(self, value: SSAValue) -> None:
        if _is_kept(value) or value not in self.alive:
            return
        size, block = self.alive.pop(value)
        self.bytes -= size
        if block is None:
            self.outside -= size
        else:
            self.allocator.give(block)

    def _note(self, op: Operation) -> None:
        profile, blocks = self.profile, self.outside + self.allocator.allocated if self.allocator.reserved else 0
        profile.moments.append(Moment(op, self.bytes, blocks))
        profile.peak_blocks = max(profile.peak_blocks, blocks)
        if self.bytes > profile.peak:
            profile.peak, profile.at_peak = self.bytes, op
            self.at_peak = [(value, size) for value, (size, _) in self.alive.items()]


def _is_kept(value: SSAValue) -> bool:
    """Whether a tensor is a pool that stays between calls."""
    owner = value.owner
    return isinstance(owner, host.EmptyOp) and owner.kept is not None


def type_text(value: SSAValue) -> str:
    """Sizes and element type of a tensor for people: `50257x768xf32`."""
    kind = value.type
    assert isinstance(kind, TensorType)
    return "x".join([*(str(size) for size in kind.shape), str(kind.element)])
