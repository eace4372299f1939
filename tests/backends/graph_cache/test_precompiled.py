"""`torch._dynamo.config.caching_precompile`: a second process neither traces nor compiles, graph breaks or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from torch._dynamo import config as dynamo_config

SCRIPT = """
import sys, torch
from torch._dynamo.utils import counters
torch._dynamo.config.caching_precompile = True
x = torch.arange(12.0).reshape(3, 4) / 7 - 0.5
def inner(x):
    y = torch.relu(x) * 2
    torch._dynamo.graph_break()
    return y.sin()
def outer(x):
    y = inner(x) + x
    torch._dynamo.graph_break()
    return y.cos() * 3
compiled = torch.compile(outer, backend="inductile")
def right(x):
    a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
    result, expected = compiled(a), outer(b)
    torch.testing.assert_close(result, expected)
    result.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(a.grad, b.grad)
    print(dict(counters["dynamo_cache"]), counters["frames"]["total"], "xdsl" in sys.modules)
right(x)
right(x)
if sys.argv[1] == "first":
    assert torch.compiler.save_cache_artifacts() is not None
"""


@pytest.mark.skipif(not hasattr(dynamo_config, "caching_precompile"), reason="torch has no such switch")
def test_graph_breaks_are_precompiled(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)

    def lines(which: str) -> list[str]:
        own = {"INDUCTILE_CACHE_DIR": str(tmp_path / which), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "shared")}
        command = [sys.executable, "-W", "ignore", str(tmp_path / "script.py"), which]
        done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    first, second = lines("first"), lines("second")
    assert first[0].startswith("{'dynamo_cache_miss': 1}") and first[0].endswith("True")
    assert second == ["{'dynamo_cache_hit': 1} 0 False"] * 2
