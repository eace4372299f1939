"""Two processes over gloo: data parallel training against the same training in one, and functional collectives."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from .processes import in_two_processes

_AVAILABLE = torch.distributed.is_available()
_NEEDS = pytest.mark.skipif(not _AVAILABLE, reason="this torch has no torch.distributed")


@pytest.mark.slow
@_NEEDS
@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_two_processes(mode: str, tmp_path: Path) -> None:
    outputs = in_two_processes("distributed_worker.py", mode, "{rank}", str(tmp_path / "rendezvous"))
    assert all(f"rank {rank} agrees" in output for rank, output in enumerate(outputs))


@pytest.mark.slow
@_NEEDS
def test_functional_collectives(tmp_path: Path) -> None:
    outputs = in_two_processes("collectives_worker.py", "{rank}", str(tmp_path / "rendezvous"))
    assert all(output.count(f"rank {rank} agrees on") == 7 for rank, output in enumerate(outputs))
