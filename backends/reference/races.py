"""Finding iterations of one loop that meet in one place of memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import torch
from xdsl.ir import Operation

from ...dialects import kernel
from ...records import dataclass
from .errors import RaceError, describe

Tensor = torch.Tensor

_NOBODY, _MANY = -1, -2


@dataclass(eq=False)
class Region:
    """A range of places that buffers address; buffers that overlap share one."""

    size: int
    device: torch.device


@dataclass
class _Places:
    """For each place: the iteration that wrote it, whether only atomically, and the iteration that read it."""

    writer: Tensor
    atomic: Tensor
    reader: Tensor

    @staticmethod
    def untouched(region: Region) -> _Places:
        nobody = torch.full((region.size,), _NOBODY, dtype=torch.int64, device=region.device)
        return _Places(nobody, torch.zeros_like(nobody, dtype=torch.bool), nobody.clone())

    def copy(self) -> _Places:
        return _Places(self.writer.clone(), self.atomic.clone(), self.reader.clone())


def _record(who: Tensor, places: Tensor, iterations: Tensor) -> None:
    """Enter iterations at places: many where a place has an entry of another one, or gets several."""
    before = who[places]
    entry = torch.where((before == _NOBODY) | (before == iterations), iterations, _MANY)
    who[places] = entry
    who[places[who[places] != entry]] = _MANY


@dataclass(eq=False)
class AccessLog:
    """What the iterations of one loop did to the regions that its body writes.

    Raises RaceError, with `log` set, as soon as two of them conflict.
    """

    loop: Operation
    regions: frozenset[Region]
    _places: dict[Region, _Places] = field(default_factory=dict)

    def saved(self) -> Mapping[Region, _Places]:
        """The state, for `restore`."""
        return {region: places.copy() for region, places in self._places.items()}

    def restore(self, state: Mapping[Region, _Places]) -> None:
        """Forget what came after `saved`."""
        self._places = {region: places.copy() for region, places in state.items()}

    def read(self, op: Operation, region: Region, places: Tensor, iterations: Tensor) -> None:
        """An op reads `places`, each in the iteration at the same position."""
        if region not in self.regions:
            return
        state = self._state(region)
        writer = state.writer[places]
        self._refuse(op, places, (writer != _NOBODY) & (writer != iterations), "reads", "another one writes")
        _record(state.reader, places, iterations)

    def write(self, op: Operation, region: Region, places: Tensor, iterations: Tensor, is_atomic: bool) -> None:
        """An op writes `places`, each in the iteration at the same position."""
        if region not in self.regions:
            return
        state = self._state(region)
        writer, reader = state.writer[places], state.reader[places]
        others = (writer != _NOBODY) & (writer != iterations)
        if is_atomic:
            others = others & ~state.atomic[places]
            fresh = places[writer == _NOBODY]
            state.atomic[fresh] = True
        else:
            state.atomic[places] = False
        self._refuse(op, places, others, "writes", "another one writes")
        self._refuse(op, places, (reader != _NOBODY) & (reader != iterations), "writes", "another one reads")
        _record(state.writer, places, iterations)
        if not is_atomic:
            self._refuse(op, places, state.writer[places] == _MANY, "writes", "another one writes")

    def _state(self, region: Region) -> _Places:
        if region not in self._places:
            self._places[region] = _Places.untouched(region)
        return self._places[region]

    def _refuse(self, op: Operation, places: Tensor, wrong: Tensor, does: str, other: str) -> None:
        if not bool(wrong.any()):
            return
        place = int(places[wrong][0])
        error = RaceError(
            f"{describe(op)}: one iteration {does} place {place}, which {other}, in {describe(self.loop)}"
        )
        error.log = self
        raise error


@dataclass(eq=False)
class PendingStores:
    """What threads stored since the last barrier: another thread of the program may not see it yet.

    Raises RaceError when it is read, unless at the index at which it was stored, which the same thread computes.
    """

    _stored: dict[Region, Tensor] = field(default_factory=dict)
    """For each place, the number of the index at which it was stored; 0 if it was not."""
    _numbers: dict[object, int] = field(default_factory=dict)

    def saved(self) -> Mapping[Region, Tensor]:
        """The state, for `restore`."""
        return {region: stored.clone() for region, stored in self._stored.items()}

    def restore(self, state: Mapping[Region, Tensor]) -> None:
        """Forget what came after `saved`."""
        self._stored = {region: stored.clone() for region, stored in state.items()}

    def clear(self) -> None:
        """All threads have met."""
        self._stored.clear()

    def store(self, op: kernel.StoreOp, region: Region, places: Tensor) -> None:
        """An op stores at places."""
        if region not in self._stored:
            self._stored[region] = torch.zeros(region.size, dtype=torch.int64, device=region.device)
        self._stored[region][places] = self._number(op)

    def load(self, op: kernel.LoadOp | kernel.StoreOp, region: Region, places: Tensor) -> None:
        """An op reads places, a store that combines with what is there included."""
        if region not in self._stored:
            return
        found = self._stored[region][places]
        wrong = (found != 0) & (found != self._number(op))
        if bool(wrong.any()):
            place = int(places[wrong][0])
            raise RaceError(
                f"{describe(op)}: reads place {place}, which another thread may have stored since the last "
                "kernel.barrier; there has to be one between the store and the load"
            )

    def _number(self, op: kernel.LoadOp | kernel.StoreOp) -> int:
        return self._numbers.setdefault(op if op.dynamic else op.map, len(self._numbers) + 1)
