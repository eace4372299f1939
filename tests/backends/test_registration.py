"""The backend in torch's registry: entered by an import, from several threads, in either order of imports."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torch._dynamo.backends import registry

from inductile.backends import registration

_THREADS = """
import inductile  # in front of torch, whose registry is then waited for
import threading
import torch

start, faults = threading.Barrier(4), []

def compile_one(number):
    def function(x):
        return torch.relu(x * number).sum(0) + number
    try:
        x = torch.randn(4 + number, 5)
        start.wait()
        compiled = torch.compile(function, backend="inductile", dynamic=False)
        torch.testing.assert_close(compiled(x), function(x))
    except BaseException as error:
        faults.append(repr(error))

threads = [threading.Thread(target=compile_one, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(faults)
"""


def test_threads_compile_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "INDUCTILE_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", _THREADS], env=environment, capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stdout + done.stderr


@pytest.fixture
def backends(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What torch's registry holds, for this test alone."""
    copies: dict[str, dict[str, object]] = {}
    for name in ("_COMPILER_FNS", "_BACKENDS", "_BACKEND_TAGS"):
        copies[name] = dict(getattr(registry, name, {}))
        copies[name].pop("inductile", None)
        monkeypatch.setattr(registry, name, copies[name], raising=False)
    return copies["_COMPILER_FNS"]


def test_a_registry_that_is_there_already(backends: dict[str, object]) -> None:
    registration.register()
    assert registry.lookup_backend("inductile") is registration.REGISTERED
    registration.register()  # a second time: nothing
    assert backends["inductile"] is registration.REGISTERED


def test_torch_loads_the_entry_point(backends: dict[str, object]) -> None:
    """Which imports this package, and enters what the entry point names."""
    registry._discover_entrypoint_backends.__wrapped__()
    registration.register()
    entry = registry._BACKENDS["inductile"]
    assert entry is not None
    registry.register_backend(entry.load(), name="inductile")
    assert backends["inductile"] is not registration.REGISTERED
    registration.withdraw()  # what torch entered stays
    assert "inductile" in backends


def test_a_registry_that_forgets_entry_points(backends: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """As torch 2.11's: what is entered has no entry point there any more."""
    registry._discover_entrypoint_backends.__wrapped__()
    entry, enter = registry._BACKENDS["inductile"], registry.register_backend
    assert entry is not None

    def forgetting(compiler_fn: Any, name: str) -> None:
        enter(compiler_fn, name=name)
        registry._BACKENDS[name] = None

    monkeypatch.setattr(registry, "register_backend", forgetting)
    registration.register()  # as the import by the entry point does
    registration.withdraw()
    forgetting(entry.load(), name="inductile")
    assert backends["inductile"] is not registration.REGISTERED
