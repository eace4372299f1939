"""Tests that need a CUDA device: `pytest tests/gpu`; all are skipped where there is none."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Every test compiles anew. After an error that the device does not recover from, the process ends: each later
    test would fail. Under pytest-xdist another one takes its place."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    if not torch.cuda.is_available():
        return
    try:
        torch.cuda.synchronize()
    except Exception as error:
        if "PYTEST_XDIST_WORKER" in os.environ:
            os._exit(70)
        pytest.exit(f"the device is lost: {error}", 70)
