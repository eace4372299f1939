"""Random functions compute the same after all passes of the level; of the later hundred, half at each commit."""

from __future__ import annotations

import pytest

from ...rotation import part
from .conftest import Check, loop_phase
from .random_programs import Program

#: Options that make small examples take the paths of large ones. Down to kernels: tensor by tensor, a kernel that
#: overwrites what it still reads would not show.
PASSES = (
    loop_phase("loop-split-reductions{min-length=4 parts=2}", "loop-fuse{min-parallel=1}") + ",lower-loop-to-kernel"
)


@pytest.mark.parametrize("seed", range(12))
def test_random_functions(seed: int, check_same: Check) -> None:
    check_same(Program(seed).text(12 + seed), PASSES, {"s0": 3 + seed % 3}, tolerance=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", part(range(100, 200), 2))
def test_more_random_functions(seed: int, check_same: Check) -> None:
    check_same(Program(seed).text(6 + seed % 15), PASSES, {"s0": 3 + seed % 3}, tolerance=1e-4)
