"""Which library multiplies large float32 matrices faster on this machine: measured once, and kept.

MKL and oneDNN change places from one processor to the next, so no list of processors would do.
"""

from __future__ import annotations

from functools import cache

import torch

from ...lowering.fx_private import without_modes
from ...passes.common.implementations import BLAS, ONEDNN
from ..host.products import has_onednn, mm_by_onednn
from .store import STORE, Answer, key_of
from .timing import microseconds

#: rows, depth and columns of the product that is timed: that of a feed-forward layer
_SIZES = (128, 768, 3072)
#: oneDNN has to take so much less, for it adds up in another order than eager
_AHEAD = 0.95


def faster_library(keep: bool = True) -> str:
    """oneDNN or the BLAS that torch was built with; the first process of a machine measures, for a tenth of a second.

    The BLAS where torch's switches say so: oneDNN is off, or eager may multiply in less than float32.

    keep: whether the answer may be read from the cache's folder, and is written there
    """
    wanted = torch.backends.mkldnn.enabled and torch.get_float32_matmul_precision() == "highest"
    if not wanted or not has_onednn() or not torch.backends.mkl.is_available():
        return BLAS
    times = _times(keep, torch.get_num_threads(), torch.backends.cpu.get_cpu_capability())
    return ONEDNN if times[ONEDNN] < _AHEAD * times[BLAS] else BLAS


@cache
def _times(keep: bool, threads: int, capability: str) -> dict[str, float]:
    """Microseconds of either library."""
    from ..c_like.processor import processor

    sizes = "x".join(map(str, _SIZES))
    key = key_of(["libraries", sizes, processor(), str(torch.__version__), str(threads), capability])
    known = STORE.get(key, keep)
    if known is None or {BLAS, ONEDNN} - known.times.keys():
        known = Answer(_measured())
        STORE.put(key, known, {"question": f"mm {sizes} float32", "torch": str(torch.__version__)}, keep)
    return dict(known.times)


def _measured() -> dict[str, float]:
    rows, depth, columns = _SIZES
    with without_modes(), torch.no_grad():
        left, right = torch.ones(rows, depth), torch.ones(columns, depth).t()
        runs = {BLAS: lambda: torch.mm(left, right), ONEDNN: lambda: mm_by_onednn(left, right)}
        for run in runs.values():
            run()
        return microseconds(runs, "cpu")
