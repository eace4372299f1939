"""Measurements in processes of their own: scripts that print a line of JSON last."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

#: variable of a compiler's cache -> its folder in the cache of a measurement
CACHES = {"INDUCTILE_CACHE_DIR": "inductile", "TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}


class MeasurementError(Exception):
    """A process that gave no result; `lines` is what it wrote to standard error, without empty lines."""

    def __init__(self, problem: str, lines: Sequence[str] = ()) -> None:
        super().__init__(problem)
        self.lines = list(lines)


def in_fresh_process(script: str, arguments: Sequence[str], cache: str, timeout: float | None = None) -> dict[str, Any]:
    """Run a script with its caches in a folder; the last line of its output, as JSON.

    timeout: seconds. Raises MeasurementError for a process that takes longer or fails.
    """
    environment = os.environ | {name: f"{cache}/{folder}" for name, folder in CACHES.items()}
    environment |= {"OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, script, *arguments]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise MeasurementError(f"no answer after {timeout:.0f} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise MeasurementError(lines[-1][:300] if lines else f"exit code {done.returncode}", lines)
    return json.loads(done.stdout.splitlines()[-1])
