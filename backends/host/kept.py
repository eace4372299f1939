"""Results of a kept function from call to call: what is looked at, and what is computed again.

They belong to the weights that they were made of, which a call recognises by their addresses, and they hold as long as
no weight's version has changed, which every write by an operator counts up, but for those of fused optimizers: behind a
step `_count_step` does. Programs that several modules share (equal layers, a copy of a model) have results for each.
What a version does not see, `p.data.add_(1)`, is not seen here; a new `p.data = t` is, because the old storage goes, or
the address is another. Sizes and strides need no look: Dynamo guards them, and the program relies on them anyway. Of
weights that may be discarded only the tensors themselves are looked at.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch
from torch._dynamo.utils import counters
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from ...records import dataclass
from .discarded import Discards
from .gpu import gpu, is_gpu

if TYPE_CHECKING:
    from .executable import HostProgram

log = logging.getLogger(__name__)

_MOST = 1024
"""Sets of weights that one program keeps results for."""
_TELL_AFTER = 8
"""Changes of weights after which a program says that they do not stay."""

_version: Callable[[torch.Tensor], int] = torch.Tensor._version.__get__  # pyright: ignore[reportAttributeAccessIssue]
_address: Callable[[torch.Tensor], int] = torch.Tensor.data_ptr
Key = tuple[int, ...]


@dataclass
class _Entry:
    """Results with the versions of the weights that they were made of.

    watches: weak references to the storages of the weights; each lets the entry go when a storage does, so that
             another one at the same address is not taken for it
    """

    versions: Key
    results: list[Any]
    watches: Sequence[Any] = ()


class KeptResults:
    """Stands for a kept function: takes one list of weights, returns a list of results that nobody may write.

    program:  what runs, where it is one of ours
    in_place: whether new results are written where old ones of the same weights lie, for recordings that read them
    discards: which weights are released once results are there; None where none is
    """

    def __init__(self, name: str, run: Callable[[list[Any]], list[Any]], program: HostProgram | None = None) -> None:
        self.name = name
        self.program = program
        self.in_place = False
        self.discards: Discards | None = None
        self.runs = 0
        """How often the function ran."""
        self._run = run
        self._entries: dict[Key, _Entry] = {}
        self._lock = threading.Lock()

    def __call__(self, args: list[Any]) -> list[Any]:
        """The results for some weights; the list is cleared where they are computed."""
        if self.discards is not None:
            return self._of_discarded(args, self.discards)
        addresses = tuple(map(_address, args))
        entry = self._entries.get(addresses)
        if entry is not None and entry.versions == _versions(args):
            return entry.results
        with self._lock:
            entry = self._entries.get(addresses)
            if entry is not None and entry.versions == _versions(args):
                return entry.results
            return self._compute(args, addresses, entry)

    def _of_discarded(self, args: list[Any], discards: Discards) -> list[Any]:
        """The same where weights may be discarded: which tensors these are is all that is seen of them."""
        key = discards.key(args)
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.versions == _versions(discards.others(args)):
                return entry.results
            discards.check(args)
            taken = list(args)
            results = self._compute(args, key, entry)
            if key in self._entries:  # else they are computed in each call
                freed = discards.apply(taken)
                log.info("%s: %d bytes of weights were discarded", self.name, freed)
        return results

    @property
    def bytes_kept(self) -> int:
        """Bytes of all results that are kept now."""
        entries = list(self._entries.values())
        return sum(_bytes(each) for entry in entries for each in entry.results)

    def _compute(self, args: list[Any], addresses: Key, old: _Entry | None) -> list[Any]:
        _watch_optimizers()
        versions = self._versions_of(args)  # before anything is read: a write meanwhile counts up from these
        device = next((each.device for each in args if is_gpu(each.device.type)), None)
        capturing = device is not None and _is_capturing(device)
        watches = [] if versions is None or capturing else self._watch(args, addresses)
        with torch.inference_mode(False), torch.no_grad():
            results = self._run(args)
            self.runs += 1
            if capturing:  # a capture runs nothing; what it records makes its own results in each replay
                return results
            if old is not None and self.in_place:
                for before, now in zip(old.results, results, strict=True):
                    before.copy_(now)
                results = old.results
        if device is not None:  # other streams read them without waiting for this one
            gpu(device.type).module.synchronize(device)
        self._tell(old is not None, versions is not None)
        if versions is not None:
            self._entries[addresses] = _Entry(versions, results, watches)
            while len(self._entries) > _MOST:
                self._entries.pop(next(iter(self._entries)), None)
        return results

    def _versions_of(self, args: Sequence[torch.Tensor]) -> Key | None:
        """What has to stay: the versions of the weights, but of those that are about to be discarded."""
        found = _versions(args)
        return found if found is None or self.discards is None else _versions(self.discards.others(args))

    def _watch(self, args: Sequence[torch.Tensor], addresses: Key) -> Sequence[Any]:
        forget = partial(_forget, ref(self), addresses)
        own: list[Any] = [] if self.discards is None else [ref(each, forget) for each in self.discards.of(args)]
        others = args if self.discards is None else self.discards.others(args)
        watches = [ref(each.untyped_storage(), forget) for each in others]
        if all(watch() is not None for watch in watches):
            return own + watches
        # of a torch whose storages do not keep their Python object
        return own + [each.untyped_storage() for each in others]

    def _tell(self, changed: bool, has_versions: bool) -> None:
        if not has_versions:
            counters["inductile"]["kept results of weights without versions"] += 1
            if self.runs == 1:
                log.warning(
                    "%s runs in each call: weights made under torch.inference_mode() do not say when they change",
                    self.name,
                )
        elif changed:
            counters["inductile"]["kept results computed again"] += 1
            if counters["inductile"]["kept results computed again"] == _TELL_AFTER:
                log.warning("%s ran again because weights changed; option freezing is for weights that stay", self.name)


@cache
def _watch_optimizers() -> None:
    register_optimizer_step_post_hook(_count_step)  # pyright: ignore[reportArgumentType] - `disable` hides the type


@torch.compiler.disable
def _count_step(optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Count up the versions of what an optimizer has written: torch's own ops of fused ones leave them as they are."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    torch.autograd.graph.increment_version([each for each in parameters if each.grad is not None])


def _versions(args: Sequence[torch.Tensor]) -> Key | None:
    """The version of each weight; None where one has none."""
    try:
        return tuple(map(_version, args))
    except RuntimeError:  # inference tensors have none
        return None


def _bytes(tensor: torch.Tensor) -> int:
    if tensor.is_mkldnn:  # a weight in oneDNN's layout, whose storage nobody sees
        return tensor.numel() * tensor.element_size()
    return tensor.untyped_storage().nbytes()


def _is_capturing(device: torch.device) -> bool:
    module = gpu(device.type).module
    return bool(getattr(module, "is_current_stream_capturing", lambda: False)())


def _forget(owner: ref[KeptResults], addresses: Key, _: ref[Any]) -> None:
    """Let results go because the storage of a weight did."""
    kept = owner()
    if kept is not None:
        kept._entries.pop(addresses, None)
