"""How compiled functions are called on a GPU: streams, alignment, numbers, late errors, capture in a CUDA graph."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from inductile.backends.compiled import REPORTS
from inductile.backends.triton import runs

pytestmark = pytest.mark.gpu


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return torch.compile(function, backend="inductile", **options)


def test_unaligned_inputs() -> None:
    """A kernel that was specialised for aligned addresses is not used for others."""
    base, y = torch.randn(1001, device="cuda"), torch.randn(1000, device="cuda")
    run = compiled(lambda x, y: (x * 2 + y).sin())
    for x in (base[:1000], base[1:], base[:1000]):
        torch.testing.assert_close(run(x, y), (x * 2 + y).sin())


def test_dynamic_shapes() -> None:
    run = compiled(lambda x: F.softmax(x * 2, -1), dynamic=True)
    for n in (5, 16, 33, 64, 100, 1500):
        x = torch.randn(n, n + 3, device="cuda")
        torch.testing.assert_close(run(x), F.softmax(x * 2, -1))


def test_numbers_on_the_host() -> None:
    """0-d tensors of the CPU beside those of the GPU."""
    run = compiled(lambda x, s: x * s + 1)
    x = torch.randn(77, device="cuda")
    for value in (3.0, -0.5):
        number = torch.tensor(value)
        torch.testing.assert_close(run(x, number), x * number + 1)


def test_a_wrong_index_raises_late() -> None:
    """The device is not waited for: the error comes with a later call, as an IndexError, and the device works on."""
    run = compiled(lambda w, i: w[i] * 2)
    w, good = torch.randn(10, 4, device="cuda"), torch.tensor([1, 3], device="cuda")
    torch.testing.assert_close(run(w, good), w[good] * 2)
    with pytest.raises(IndexError, match="out of bounds"):
        for _ in range(3):
            run(w, torch.tensor([1, 30], device="cuda"))
            torch.cuda.synchronize()
    torch.testing.assert_close(run(w, good), w[good] * 2)


def test_deterministic_scatter() -> None:
    index, values = torch.randint(0, 50, (10_000,), device="cuda"), torch.randn(10_000, device="cuda")
    torch.use_deterministic_algorithms(True)
    try:
        run = compiled(lambda i, v: torch.zeros(50, device="cuda").index_add(0, i, v))
        results = [run(index, values) for _ in range(5)]
        want = torch.zeros(50, device="cuda").index_add(0, index, values)
    finally:
        torch.use_deterministic_algorithms(False)
    torch.testing.assert_close(results[0], want, rtol=1e-4, atol=1e-4)
    assert all(torch.equal(results[0], other) for other in results)


def test_the_current_stream() -> None:
    """Kernels go where the caller's stream is, after what is in it and before what follows."""
    run = compiled(lambda x: (x * 2).sum(0))
    x = torch.ones(4096, 512, device="cuda")
    run(x)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = torch.zeros_like(x)
        for _ in range(20):
            y = y + 1
        got = run(y)
    side.synchronize()
    torch.testing.assert_close(got, torch.full((512,), 40.0 * 4096, device="cuda"))


def test_threads_with_streams_of_their_own() -> None:
    import threading

    run = compiled(lambda x: torch.tanh(x).sum(-1) + 1)
    given = [torch.randn(300, 700, device="cuda") for _ in range(4)]
    run(given[0])
    torch.cuda.synchronize()
    found: dict[int, torch.Tensor] = {}

    def work(number: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(20):
                found[number] = run(given[number])
            torch.cuda.current_stream().synchronize()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, x in enumerate(given):
        torch.testing.assert_close(found[number], torch.tanh(x).sum(-1) + 1, rtol=1e-4, atol=1e-4)


def test_capture_in_a_cuda_graph() -> None:
    """After a warm-up a compiled callable can be captured; a replay reads what its inputs hold by then."""
    weight = torch.randn(64, 64, device="cuda")
    run = compiled(lambda x: F.softmax(torch.relu(x @ weight) + x, -1))
    x = torch.randn(32, 64, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.cuda.stream(side):
        for _ in range(3):
            run(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        y = run(x)
    for _ in range(3):
        x.copy_(torch.randn_like(x))
        graph.replay()
        torch.testing.assert_close(y, F.softmax(torch.relu(x @ weight) + x, -1), rtol=1e-4, atol=1e-5)


def test_inputs_that_are_written_to() -> None:
    def update(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(2).add_(y)
        return x.sum()

    x, y = torch.randn(100, 33, device="cuda"), torch.randn(33, device="cuda")
    want = x.clone()
    total = update(want, y)
    torch.testing.assert_close(compiled(update)(x, y), total, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(x, want)


def test_convolutions_keep_eagers_strides() -> None:
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.Conv2d(16, 8, 1)
    )
    net = net.to("cuda", torch.bfloat16).eval()
    x = torch.randn(2, 3, 20, 20, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        want, got = net(x), compiled(net)(x)
    torch.testing.assert_close(got, want, rtol=5e-2, atol=5e-2)
    assert got.stride() == want.stride()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_relu_behind_a_linear_layer_runs_inside_the_product(dtype: torch.dtype) -> None:
    from inductile.backends.compiled import REPORTS

    x, weight, bias = (torch.randn(*s, device="cuda", dtype=dtype) for s in ((2, 3, 64), (32, 64), (32,)))
    REPORTS.clear()
    run = compiled(lambda x: F.relu(F.linear(x, weight, bias)), options={"patterns": "exact,addmm_relu"})
    with torch.no_grad():
        got, want = run(x), F.relu(F.linear(x, weight, bias))
    torch.testing.assert_close(got, want)
    assert not REPORTS[-1].kernels and list(REPORTS[-1].aten_calls.values()) == [1]


def chain(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Several launches that follow one another, and a product between them."""
    rows = torch.softmax(x, -1)
    columns = (rows * 3).cumsum(0).flip(0)
    y = rows @ weight
    return torch.softmax(y.sin(), -1), columns.sum(1), torch.softmax(y.t().contiguous() + 1, -1)


def test_launches_go_straight_to_the_driver() -> None:
    """One foreign call for launches that follow one another, in threads and for unaligned addresses too."""
    assert runs.is_possible()
    run = compiled(chain)
    weight = torch.randn(64, 64, device="cuda")
    inputs = [torch.randn(64, 64, device="cuda"), torch.randn(64 * 64 + 1, device="cuda")[1:].view(64, 64)]
    for x in [*inputs, *inputs]:
        for got, expected in zip(run(x, weight), chain(x, weight), strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3)
    assert "launch_run0(" in REPORTS[-1].sources["program.py"]
    with ThreadPoolExecutor(2) as pool:
        for results in pool.map(lambda x: run(x, weight), inputs * 3):
            torch.cuda.synchronize()
            assert all(bool(each.isfinite().all()) for each in results)


def test_a_launch_costs_little() -> None:
    """Host time of a program of 40 small launches, each beyond what the driver takes: printed, and bounded widely."""

    def many(x: torch.Tensor) -> torch.Tensor:
        for _ in range(40):
            x = torch.softmax(x, -1).cumsum(0)
        return x

    run, x = compiled(many), torch.randn(64, 64, device="cuda")
    with torch.no_grad():
        run(x)
        torch.cuda.synchronize()
        times = []
        for _ in range(50):
            start = time.perf_counter()
            run(x)
            times.append(time.perf_counter() - start)
            torch.cuda.synchronize()
    launches = sum(REPORTS[-1].kernels.values())
    cost = min(times) * 1e6 / launches
    print(f"{launches} launches, {cost:.2f} us of host time each, the driver included")
    assert cost < 20


def test_equal_kernels_on_the_cpu_and_on_a_gpu() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x @ x + 1
        there = y.cpu() + 1
        return y, there.to(x.device) @ there.to(x.device) + 1

    x = torch.randn(20, 20, device="cuda")
    for got, wanted in zip(torch.compile(model, backend="inductile")(x), model(x), strict=True):
        torch.testing.assert_close(got, wanted)
