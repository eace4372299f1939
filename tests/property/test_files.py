"""A few hundred mutated files through the tools; `fuzz_files.py` runs thousands, also through C++."""

from __future__ import annotations

import pytest

from . import fuzz_files


@pytest.mark.parametrize("block", range(6))
def test_no_file_crashes_a_tool(block: int) -> None:
    for seed in range(50 * block, 50 * (block + 1)):
        _, fault = fuzz_files.check(fuzz_files.mutation(seed, cpp=False), cpp=False)
        assert fault is None, f"seed {seed}: {fault}"
