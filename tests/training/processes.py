"""Tests in two processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def in_two_processes(worker: str, *arguments: str) -> list[str]:
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
