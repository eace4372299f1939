"""Data parallel training in two processes, over gloo, against the same training in one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

_WORKER = Path(__file__).with_name("distributed_worker.py")


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_two_processes(mode: str, tmp_path: Path) -> None:
    file = tmp_path / "rendezvous"
    workers = [
        subprocess.Popen(
            [sys.executable, str(_WORKER), mode, str(rank), str(file)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        outputs = [worker.communicate(timeout=300)[0] for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    for rank, (worker, output) in enumerate(zip(workers, outputs, strict=True)):
        assert worker.returncode == 0, output[-3000:]
        assert f"rank {rank} agrees" in output
