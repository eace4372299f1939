"""Times of programs that compute the same, on the device that they are for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from statistics import median
from typing import Any

import torch

from ..host.gpu import is_gpu

Run = Callable[[], Any]

#: seconds for all programs of a question on a CPU, and rounds at least and at most
_SECONDS, _LEAST, _MOST = 0.4, 3, 50
#: what takes so many times as long as the fastest in the first rounds is not looked at again
_HOPELESS = 2.0
#: what a flush takes a fast card at least, and the longest that a host is waited for: what takes it longer waits itself
_FLUSH_SECONDS, _LONGEST_HOST = 5e-5, 2e-3
#: calls on a GPU, each behind a flush of the cache
_CALLS = 20
_FLUSH_BYTES = 256 << 20
#: more than a core's own caches hold, and than its part of the shared one
_CORE_BYTES = 32 << 20


def microseconds(runs: Mapping[str, Run], device: str) -> dict[str, float]:
    """Microseconds of a call of each, in turns. All have run once before."""
    return _on_gpu(runs, device) if is_gpu(torch.device(device).type) else _on_cpu(runs)


def _on_cpu(runs: Mapping[str, Run]) -> dict[str, float]:
    """The least of several: others on the machine only add.

    Before each call the caches of a core are filled with other things, as the rest of a model does: a nest of one row
    is the faster one for a matrix that lies there, and the slower one where it comes from memory.
    """
    flush = torch.empty(_CORE_BYTES // 4, dtype=torch.float32)

    def seconds(run: Run) -> float:
        flush.zero_()
        return _seconds(run)

    found = {name: min(seconds(run) for _ in range(_LEAST)) for name, run in runs.items()}
    least = min(found.values(), default=0.0)
    left = [name for name, took in found.items() if took < _HOPELESS * least]
    begin = time.perf_counter()
    for number in range(_MOST):
        if number >= _LEAST and time.perf_counter() - begin > _SECONDS:
            break
        for name in left:
            found[name] = min(found[name], seconds(runs[name]))
    return {name: took * 1e6 for name, took in found.items()}


def _seconds(run: Run) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _on_gpu(runs: Mapping[str, Run], device: str) -> dict[str, float]:
    """The median between events, the cache flushed before each call.

    Flushes are many enough to keep the device busy until the host has enqueued the call: else the host's time would be
    taken for the device's.
    """
    module = torch.get_device_module(device)
    flush = torch.empty(_FLUSH_BYTES // 4, dtype=torch.float32, device=device)
    flushes = {name: 1 + ceil(2 * _enqueued(run, module) / _FLUSH_SECONDS) for name, run in runs.items()}
    pairs: dict[str, list[Sequence[Any]]] = {name: [] for name in runs}
    for _ in range(_CALLS):
        for name, run in runs.items():
            pair = module.Event(enable_timing=True), module.Event(enable_timing=True)
            for _ in range(flushes[name]):
                flush.zero_()
            pair[0].record()
            run()
            pair[1].record()
            pairs[name].append(pair)
    module.synchronize()
    return {name: 1000 * median(first.elapsed_time(last) for first, last in each) for name, each in pairs.items()}


def _enqueued(run: Run, module: Any) -> float:
    """Seconds in which the host enqueues a call, while the device has nothing to do; at most `_LONGEST_HOST`."""
    took: list[float] = []
    for _ in range(_LEAST):
        module.synchronize()
        took.append(_seconds(run))
    return min(*took, _LONGEST_HOST)
