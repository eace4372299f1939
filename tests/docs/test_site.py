"""The site builds without a warning, and its reference knows every pass and op."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from inductile.lowering.registry import available_passes

ROOT = Path(__file__).parents[2]


def test_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    passes = (tmp_path / "reference" / "passes" / "index.html").read_text()
    # plugins that other tests have loaded into this process are not ours
    own = [name for name, load in available_passes().items() if load().__module__.startswith("inductile.")]
    assert [name for name in own if f'id="{name}"' not in passes] == []
    dialects = (tmp_path / "reference" / "dialects" / "index.html").read_text()
    assert "loop.generate" in dialects
    assert "A tensor given by a scalar body for each index" in dialects
