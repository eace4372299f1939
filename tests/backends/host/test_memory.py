"""Memory of programs on the CPU: what is kept between calls, by whom, and how much is alive at once."""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from inductile.backends.host.arena import Arena, shared_arena
from inductile.dialects.context import new_context
from inductile.dialects.reading import Reader
from inductile.passes.analysis.program_costs import ProgramCost, program_costs


def two_softmaxes(x: torch.Tensor) -> torch.Tensor:
    """Its intermediate value cannot be fused away: it is reduced along rows, then along columns."""
    return torch.softmax(torch.softmax(x, 1).t(), 1).sum()


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, backend="inductile", options=options)


def cost(folder: Path) -> ProgramCost:
    (file,) = folder.glob("*/*-host-free.mlir")
    return program_costs(Reader(new_context(), file.read_text()).parse_module())[0]


def faults_per_call(function: Callable[..., Any], x: torch.Tensor, calls: int = 5) -> float:
    function(x)
    function(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(calls):
        function(x)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / calls


def test_large_intermediates_fault_their_pages_once() -> None:
    x = torch.randn(4096, 4096)  # 64 MiB: more than the C library ever keeps
    with_pool = faults_per_call(compiled(two_softmaxes), x)
    without = faults_per_call(compiled(two_softmaxes, memory_pool=False), x)
    pages = 4096 * 4096 * 4 // resource.getpagesize()
    assert with_pool < pages / 20
    assert without > pages / 20  # pages may be huge ones


@pytest.mark.parametrize("pool", [True, False])
def test_what_is_kept_is_told(pool: bool, tmp_path: Path) -> None:
    run = compiled(two_softmaxes, memory_pool=pool, trace=str(tmp_path))
    run(torch.randn(256, 256))
    found = cost(tmp_path)
    assert (found.kept >= 256 * 256 * 4) is pool
    assert found.peak < 2.1 * 256 * 256 * 4  # no more with a pool than without


def test_calls_that_overlap_share_nothing() -> None:
    run = compiled(two_softmaxes)
    inputs = [torch.randn(300, 300) + k for k in range(4)]
    run(inputs[0])
    wrong: list[int] = []

    def work(number: int) -> None:
        expected = two_softmaxes(inputs[number])
        for _ in range(20):
            if not torch.allclose(run(inputs[number]), expected):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arena_lends_to_one_at_a_time() -> None:
    arena = Arena()
    first, second = arena.take(100), arena.take(50)
    assert first.data_ptr() != second.data_ptr()
    arena.give(second)
    arena.give(first)
    assert arena.bytes == 100
    assert arena.take(80).data_ptr() == first.data_ptr()
    assert arena.bytes == 0


def test_programs_share_an_arena() -> None:
    arena = shared_arena()
    assert arena is shared_arena()


def activated(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.conv1d(x, weight) * 2 + 1)


@pytest.mark.parametrize("reuse", [True, False])
def test_kernels_write_over_what_dies(reuse: bool, tmp_path: Path) -> None:
    x, weight = torch.randn(2, 8, 64), torch.randn(8, 8, 1)
    run = compiled(
        activated, trace=str(tmp_path), memory_pool=False, debug_counter="" if reuse else "host-reuse-count=0"
    )
    with torch.no_grad():
        torch.testing.assert_close(run(x, weight), activated(x, weight))
    assert cost(tmp_path).peak == (1 if reuse else 2) * x.numel() * 4


def matrices(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The kernel between the products sees the first one in another shape."""
    return torch.tanh((x @ w).view(2, -1, w.shape[1])).flatten(0, 1) @ w.t()


@pytest.mark.parametrize("dynamic", [False, True])
def test_kernels_write_over_inputs_of_another_shape(dynamic: bool, tmp_path: Path) -> None:
    torch._dynamo.reset()
    run = torch.compile(matrices, backend="inductile", dynamic=dynamic, options={"trace": str(tmp_path)})
    x, w = torch.randn(64, 8), torch.randn(8, 512)
    torch.testing.assert_close(run(x, w), matrices(x, w), rtol=1e-4, atol=1e-4)
    if not dynamic:
        assert cost(tmp_path).peak < 1.5 * 64 * 512 * 4


def mixed(x: torch.Tensor, first: torch.Tensor, second: torch.Tensor, third: torch.Tensor) -> torch.Tensor:
    hidden = torch.relu(x @ first) @ second
    return hidden.float().sin() @ third


def test_dead_memory_of_another_type_goes_to_a_matrix_product() -> None:
    """The bytes of a bfloat16 result hold float32 numbers next, which ATen is given."""
    x, first, second = (torch.randn(size, dtype=torch.bfloat16) for size in ((16, 64), (64, 128), (128, 64)))
    third = torch.randn(64, 64)
    got = compiled(mixed, memory_pool=False)(x, first, second, third)
    torch.testing.assert_close(got, mixed(x, first, second, third), rtol=1e-2, atol=1e-1)


def test_arena_is_cleared() -> None:
    arena = Arena()
    lent, kept = arena.take(100), arena.take(50)
    arena.give(kept)
    arena.clear()
    assert arena.bytes == 0
    arena.give(lent)  # what was lent is none of its business
    assert arena.bytes == 100


FREED = """
import ctypes
import resource
from inductile.backends.host.arena import keep_freed_memory
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [libc.malloc(10 << 20) for _ in range(5)]
    for block in blocks:
        ctypes.memset(block, 1, 10 << 20)
    for block in blocks:
        libc.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
before = faults()
keep_freed_memory()
faults()
print(before, faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's heap")
def test_what_is_freed_faults_its_pages_once() -> None:
    ran = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    before, behind = map(int, ran.stdout.split())
    pages = 5 * (10 << 20) // resource.getpagesize()
    assert before > pages / 2
    assert behind < pages / 20
