"""Recorded graphs replay what eager computes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from inductile.backends.compiled import REPORTS

pytestmark = pytest.mark.gpu


def compiled(function: Any, **options: Any) -> Any:
    torch.compiler.reset()
    return torch.compile(function, backend="inductile", options={"triton.cudagraphs": True, **options})


@pytest.fixture(autouse=True)
def _or_error() -> Any:
    yield
    torch.compiler.reset()


def test_inference_with_changed_inputs_and_parameters() -> None:
    model: Any = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64)).cuda()
    run = compiled(model, **{"triton.cudagraph_or_error": True})
    with torch.no_grad():
        for step in range(6):
            x = torch.randn(8, 64, device="cuda")
            torch.testing.assert_close(run(x).clone(), model(x), rtol=1e-4, atol=1e-5)
            model[0].weight.mul_(1.0 + step / 10)


def test_training_steps_follow_eager() -> None:
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).cuda()
    other = copy.deepcopy(model)
    run = compiled(other, **{"triton.cudagraph_or_error": True})
    pairs = [(model, model), (other, run)]
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9) for m, _ in pairs]
    for _ in range(8):
        x, y = torch.randn(16, 32, device="cuda"), torch.randn(16, 8, device="cuda")
        losses = []
        for (_, call), optimizer in zip(pairs, optimizers, strict=True):
            torch.compiler.cudagraph_mark_step_begin()
            loss = nn.functional.mse_loss(call(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_dropout_advances_and_follows_the_seed() -> None:
    run = compiled(lambda x: nn.functional.dropout(x, 0.5, True), **{"triton.cudagraph_or_error": True})
    x = torch.ones(1024, device="cuda")
    for _ in range(3):
        run(x)
    torch.manual_seed(7)
    first, second = run(x).clone(), run(x).clone()
    torch.manual_seed(7)
    assert not torch.equal(first, second) and torch.equal(run(x), first)


class Cached(nn.Module):
    cache: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(16, 8))

    def forward(self, place: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        self.cache.index_copy_(0, place, x)
        return self.cache.sum(0)


def test_a_cache_is_written_in_place() -> None:
    model: Any = Cached().cuda()
    other: Any = Cached().cuda()
    run = compiled(other, **{"triton.cudagraph_or_error": True})
    address = other.cache.data_ptr()
    with torch.no_grad():
        for k in range(8):
            place, x = torch.tensor([k], device="cuda"), torch.randn(1, 8, device="cuda")
            torch.testing.assert_close(run(place, x).clone(), model(place, x))
    assert other.cache.data_ptr() == address
    torch.testing.assert_close(other.cache, model.cache)


def test_each_size_has_a_graph() -> None:
    torch.compiler.reset()
    run = torch.compile(lambda x: (x * 2).sum(1), backend="inductile", dynamic=True, mode="reduce-overhead")
    for size in (3, 5, 3, 7, 5, 3):
        x = torch.randn(size, 17, device="cuda")
        torch.testing.assert_close(run(x).clone(), (x * 2).sum(1))


def test_a_number_of_the_cpu_is_read_anew() -> None:
    run = compiled(lambda x, n: x * n)
    x = torch.ones(4, device="cuda")
    for k in range(5):
        assert run(x, torch.tensor(float(k))).tolist() == [float(k)] * 4


def test_an_empty_tensor_of_the_cpu_is_recorded() -> None:
    run = compiled(lambda x: (x @ x, torch.tensor([])), **{"triton.cudagraph_or_error": True})
    for _ in range(4):
        x = torch.randn(4, 4, device="cuda")
        product, empty = run(x)
        torch.testing.assert_close(product.clone(), x @ x, rtol=1e-4, atol=1e-5)
        assert empty.shape == (0,) and empty.device.type == "cpu"


def test_views_of_weights_and_of_recorded_results_keep_their_memory() -> None:
    """What a graph returns of a weight lies there, and a second graph's view of a result in that result."""
    linear: Any = nn.Linear(16, 16).cuda()
    first = compiled(lambda x: (linear.weight.T @ x, linear.weight.T, linear.weight[0:4]))
    second = torch.compile(lambda x: x[2:], backend="inductile", options={"triton.cudagraphs": True})
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        x = torch.randn(16, 16, device="cuda", requires_grad=True)
        product, *views = first(x)
        part = second(product)
        assert {v.untyped_storage().data_ptr() for v in views} == {linear.weight.untyped_storage().data_ptr()}
        assert part.untyped_storage().data_ptr() == product.untyped_storage().data_ptr()
        torch.testing.assert_close(part.detach().clone(), (linear.weight.T @ x)[2:].detach(), rtol=1e-4, atol=1e-5)
        part.sum().backward()
        expected = torch.zeros(16, 16, device="cuda").index_fill_(0, torch.arange(2, 16, device="cuda"), 1.0)
        torch.testing.assert_close(x.grad, linear.weight.detach() @ expected, rtol=1e-4, atol=1e-5)
        linear.weight.grad = x.grad = None  # the next step records over them


def test_what_cannot_be_recorded_runs_between_parts() -> None:
    weight = torch.randn(64, 64, device="cuda")

    def step(x: torch.Tensor) -> Any:
        for _ in range(3):
            x = torch.tanh(x @ weight) + 1
        number = x.sum().cpu() * 2
        for _ in range(3):
            x = torch.sin(x @ weight) * 2
        return x + number.cuda(), number

    run = compiled(step)
    for _ in range(5):
        x = torch.randn(64, 64, device="cuda")
        got, expected = run(x), step(x)
        torch.testing.assert_close(got[0].clone(), expected[0], rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(got[1], expected[1], rtol=1e-3, atol=1e-3)
    assert any("recorded" in name or "_part_" in name for name in REPORTS[-1].sources)


def test_a_profile_shows_regions_and_kernels() -> None:
    for recorded in (False, True):
        run = compiled(lambda x: torch.softmax(x * 2, -1).sum(0)) if recorded else None
        if run is None:
            torch.compiler.reset()
            run = torch.compile(lambda x: torch.softmax(x * 2, -1).sum(0), backend="inductile")
        x = torch.randn(512, 512, device="cuda")
        for _ in range(4):
            run(x)
        torch.cuda.synchronize()
        with torch.profiler.profile() as found:
            run(x)
            torch.cuda.synchronize()
        names = [event.key for event in found.key_averages()]
        assert any(name.startswith("inductile inference") for name in names)
        assert any("softmax" in name or "sum" in name for name in names if not name.startswith("inductile"))


def test_training_in_parts_follows_eager() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
            self.two = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.one(x)
            return self.two(x.cpu().sin().cuda() + x)

    model = Model().cuda()
    other = copy.deepcopy(model)
    run = compiled(other)
    pairs = [(model, model), (other, run)]
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.05) for m, _ in pairs]
    for _ in range(8):
        x, y = torch.randn(16, 32, device="cuda"), torch.randn(16, 8, device="cuda")
        losses = []
        for (_, call), optimizer in zip(pairs, optimizers, strict=True):
            torch.compiler.cudagraph_mark_step_begin()
            loss = nn.functional.mse_loss(call(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_inputs_whose_elements_share_memory() -> None:
    """Windows that overlap, and rows that are one: torch copies the latter into a recording, and later the former."""
    run = compiled(lambda x, y: (x * 2 + y).sum(1))
    for _ in range(4):
        x, y = torch.randn(23, device="cuda").unfold(0, 4, 1), torch.randn(1, 4, device="cuda").expand(20, 4)
        torch.testing.assert_close(run(x, y).clone(), (x * 2 + y).sum(1))


@pytest.mark.parametrize("trees", [True, False])
def test_random_numbers_are_those_of_eager(trees: bool) -> None:
    """Preparing a recording draws none, so that each call has the numbers of the same call in eager."""
    run = compiled(lambda x: torch.rand_like(x) + x, **{"triton.cudagraph_trees": trees, "fallback_random": True})
    x = torch.zeros(1024, device="cuda")
    results: list[list[torch.Tensor]] = []
    for function in (lambda x: torch.rand_like(x) + x, run):
        torch.manual_seed(5)
        results.append([function(x).clone() for _ in range(5)])
    torch.testing.assert_close(results[1], results[0])


def test_what_writes_to_its_inputs_is_left_where_options_say_so() -> None:
    before = torch.compile(lambda x: x + 1, backend="inductile", options={"triton.cudagraphs": True})
    run = compiled(lambda x: x.add_(2).sum(), **{"triton.cudagraph_support_input_mutation": False})
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        x = torch.randn(64, device="cuda")
        y = before(x)
        expected = x + 3
        torch.testing.assert_close(run(y).clone(), expected.sum())
        torch.testing.assert_close(y.clone(), expected)


@pytest.mark.parametrize("recorded", [False, True])
def test_it_runs_on_the_stream_of_the_caller(recorded: bool) -> None:
    """What the stream still has to do is done before, and nothing else waits."""
    torch.compiler.reset()
    run = torch.compile(lambda x: (x * 2).softmax(-1), backend="inductile", options={"triton.cudagraphs": recorded})
    stream, x = torch.cuda.Stream(), torch.zeros(256, 256, device="cuda")
    for step in range(5):
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            x.copy_(torch.randn(256, 256, device="cuda") + step)
            got = run(x)
            torch.testing.assert_close(got.clone(), (x * 2).softmax(-1))


@pytest.mark.parametrize("records", [False, True])
def test_launches_that_overlap_read_what_was_written_in_front(records: bool) -> None:
    """Weights that are written between calls, a state that each call writes, and what one kernel hands to the next."""
    weights = [(torch.randn(n, k, device="cuda") / k**0.5).bfloat16() for n, k in ((3072, 1024), (1024, 3072)) * 3]
    states = [torch.zeros(1, 1024, device="cuda", dtype=torch.bfloat16) for _ in range(2)]

    def run(x: torch.Tensor, state: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        for wide, back in zip(weights[::2], weights[1::2], strict=True):
            y = torch.nn.functional.rms_norm(x + state, (1024,))
            x = x + torch.nn.functional.linear(torch.nn.functional.silu(torch.nn.functional.linear(y, wide)), back)
            state.copy_(x)
        return x

    calls = []
    for overlap in (False, True):
        options: dict[str, Any] = {"overlap_launches": overlap, "triton.cudagraphs": records}
        calls.append(torch.compile(run, backend="inductile", options=options))
    with torch.no_grad():
        for step in range(60):
            x = torch.randn(1, 1024, device="cuda").bfloat16()
            found = []
            for call, state in zip(calls, states, strict=True):
                found.append(call(x, state, *weights).clone())
            for got, right in (found, states):  # programs of other sizes add up in another order
                assert (got - right).float().norm() <= 2e-2 * right.float().norm(), step
            states[0].copy_(states[1])
            weights[step % 6].mul_(-1)
