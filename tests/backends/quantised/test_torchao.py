"""Runs `torchao_models.py` in a process of its own: torchao changes torch's configuration when it is imported."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import pytest

from ...warm.python import python

FOLDER = Path(__file__).parent


@pytest.mark.skipif(importlib.util.find_spec("torchao") is None, reason="`pip install torchao` runs these")
def test_models_of_torchao() -> None:
    command = [python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "python_files=torchao_models.py"]
    done = subprocess.run([*command, str(FOLDER)], capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
