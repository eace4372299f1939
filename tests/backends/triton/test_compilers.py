"""The process that compiles kernels for this one, and what happens without it."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inductile.backends.triton import bound as bound_module
from inductile.backends.triton import prepare as prepare_module
from inductile.backends.triton.bound import BoundKernel, warm_up
from inductile.backends.triton.compilers import CompileServer
from inductile.backends.triton.native import argument_types
from inductile.backends.triton.request import Binary, Request
from inductile.backends.triton.targets import TritonTarget, triton_target
from inductile.backends.triton.variants import likely_variant, request_of

from .support import kernel_of

TARGET = triton_target("cuda:90")


def _kernel(name: str) -> Any:
    return kernel_of(f"""kernel.func @{name}(%x: !kernel.buffer<f32, 4*s0>, %y: !kernel.buffer<f32, 4*s0>) symbols (s0)
    target "cuda:90" {{
  kernel.for i0 in 0 to 4*s0 map grid tile 64 {{
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}""")


def _request(name: str) -> Request:
    source = _kernel(name)
    return request_of(source, TARGET, likely_variant(source))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CompileServer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", os.fspath(tmp_path_factory.mktemp("triton")))
        running = CompileServer()
        running.start(TARGET)
        yield running
        running.stop()


def _files(binary: Binary | None) -> set[str]:
    assert binary is not None
    assert all(os.path.exists(path) for path in binary.metadata_group.values())
    return {name.rpartition(".")[2] for name in binary.metadata_group}


def test_what_comes_back_is_what_a_launcher_needs(server: CompileServer) -> None:
    (binary,) = server.compile([_request("one")])
    assert _files(binary) >= {"cubin", "json"}
    assert binary is not None and binary.metadata.name == "one" and binary.metadata.num_warps >= 1
    assert argument_types(binary) == "OOi"


def test_more_than_are_compiled_at_once_or_sent_ahead(server: CompileServer) -> None:
    requests = [_request("one"), _request("two")] * 40
    names = [binary.metadata.name for binary in server.compile(requests, jobs=2) if binary is not None]
    assert names == ["one", "two"] * 40


def test_one_that_fails_is_left_to_this_process(server: CompileServer) -> None:
    wrong = dataclasses.replace(_request("one"), name="none")
    made = server.compile([wrong, _request("two")])
    assert made[0] is None and _files(made[1])


def test_a_server_that_died_compiles_nothing_and_can_be_started_again(server: CompileServer) -> None:
    process = server._process
    assert process is not None
    server.start(TARGET)
    assert server._process is process  # one is enough
    os.kill(process.pid, signal.SIGKILL)
    assert server.compile([_request("one")]) == [None]
    server.start(TARGET)
    assert _files(server.compile([_request("one")])[0])


def test_a_fork_has_no_server(server: CompileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert server.is_running
    parent = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: parent + 1)
        assert server.compile([_request("one")]) == [None]
    assert server.is_running


def test_a_server_loads_no_torch_and_has_one_thread() -> None:
    """It forks: a thread could hold what a fork then waits for."""
    code = """import os, sys
from inductile.backends.triton import compile_server
compile_server._warm_up(("cuda", 90, 32))
print(len(os.listdir("/proc/self/task")), *(m for m in ("torch", "xdsl", "sympy") if m in sys.modules))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the machine had a GPU, and torch a launcher for it."""
    monkeypatch.setattr(TritonTarget, "is_here", property(lambda target: True))
    monkeypatch.setattr(torch._C, "_StaticCudaLauncher", object(), raising=False)


@pytest.mark.usefixtures("here")
def test_kernels_take_what_the_server_made(server: CompileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    here: list[str] = []
    monkeypatch.setattr(bound_module, "SERVER", server)
    monkeypatch.setattr(bound_module, "compile_variant", lambda source, *_: here.append(source.name) or "compiled here")
    kernels = [BoundKernel(_kernel(name), TARGET) for name in ("one", "two")]
    warm_up(kernels)
    assert not here
    assert all(isinstance(each.compiled(likely_variant(each.source)), Binary) for each in kernels)
    monkeypatch.setattr(bound_module, "SERVER", CompileServer())  # none that runs
    kernels = [BoundKernel(_kernel(name), TARGET) for name in ("one", "two")]
    warm_up(kernels)
    assert sorted(here) == ["one", "two"]
    assert kernels[0].compiled(likely_variant(kernels[0].source)) == "compiled here"


@pytest.mark.usefixtures("here")
def test_a_graph_with_inputs_on_a_gpu_starts_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[TritonTarget] = []
    monkeypatch.setattr(prepare_module, "SERVER", SimpleNamespace(start=started.append))
    with torch._subclasses.FakeTensorMode():
        on_gpu = torch.empty(2, device="cuda:0")
    prepare_module.prepare([3, torch.ones(1), on_gpu])
    assert started == [TARGET]
