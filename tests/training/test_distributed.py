"""Two processes over gloo: data parallel training against the same training in one, and functional collectives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

_AVAILABLE = torch.distributed.is_available()
_NEEDS = pytest.mark.skipif(not _AVAILABLE, reason="this torch has no torch.distributed")


def _in_two_processes(worker: str, *arguments: str) -> list[str]:
    """What two processes print; both have to end well."""
    path = Path(__file__).with_name(worker)
    workers = [
        subprocess.Popen(
            [sys.executable, str(path), *(argument.format(rank=rank) for argument in arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        outputs = [each.communicate(timeout=300)[0] for each in workers]
    finally:
        for each in workers:
            each.kill()
    for each, output in zip(workers, outputs, strict=True):
        assert each.returncode == 0, output[-3000:]
    return outputs


@pytest.mark.slow
@_NEEDS
@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_two_processes(mode: str, tmp_path: Path) -> None:
    outputs = _in_two_processes("distributed_worker.py", mode, "{rank}", str(tmp_path / "rendezvous"))
    assert all(f"rank {rank} agrees" in output for rank, output in enumerate(outputs))


@pytest.mark.slow
@_NEEDS
def test_functional_collectives(tmp_path: Path) -> None:
    outputs = _in_two_processes("collectives_worker.py", "{rank}", str(tmp_path / "rendezvous"))
    assert all(output.count(f"rank {rank} agrees on") == 7 for rank, output in enumerate(outputs))
