"""Whatever decides about the code of a graph is in its key: what follows is one function, and what is different."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters
from torch._inductor.custom_graph_pass import CustomGraphPass

from .harness import outcomes, run

X = torch.arange(12.0).reshape(3, 4) / 7 - 0.5


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDUCTILE_GRAPH_CACHE", "1")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs of other tests are not found; kernels are."""
    from inductile.backends.graph_cache import front
    from inductile.backends.graph_cache.store import Store

    monkeypatch.setattr(front, "own_store", lambda: Store(tmp_path))


def double(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


def product(x: torch.Tensor) -> torch.Tensor:
    return x @ x.t()


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    yield
    torch.set_num_threads(before)


@contextmanager
def _deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def test_what_is_different_is_compiled() -> None:
    assert run(double, X) == "miss"
    assert run(double, X) == "hit"
    assert run(lambda x: torch.relu(x) * 2.0, X) == "miss"
    assert run(double, X.double()) == "miss"
    assert run(double, X.t()) == "miss"
    assert run(double, X, emulate_precision_casts=True) == "miss"
    with torch.no_grad():
        assert run(double, X) == "miss"
    with torch.autocast("cpu", torch.bfloat16):
        assert run(double, X) == "miss"
    with torch.autocast("cpu", torch.float16):
        assert run(double, X) == "miss"
    with _threads(1 if torch.get_num_threads() > 1 else 2):
        assert run(double, X) == "miss"
    with _deterministic():
        assert run(double, X) == "miss"
    assert run(double, X, emulate_precision_casts=True) == "hit"
    assert run(double, X) == "hit"


class _Named(CustomGraphPass):
    """A pass that says what it is, and does nothing."""

    def __init__(self, name: str | None) -> None:
        self.name = name

    def __call__(self, graph: torch.fx.Graph) -> None:
        """Nothing."""

    def uuid(self) -> str | None:
        """What it says it is."""
        return self.name


def test_a_pass_with_a_name_is_part_of_the_key() -> None:
    assert run(double, X) == "miss"
    one = _Named("one")
    assert run(double, X, post_grad_custom_pre_pass=one) == "miss"
    assert run(double, X, post_grad_custom_pre_pass=_Named("one")) == "hit"
    assert run(double, X, joint_custom_pre_pass=one) == "miss"
    assert run(double, X, post_grad_custom_pre_pass=_Named("two")) == "miss"
    assert run(double, X, post_grad_custom_pre_pass=[one, _Named("two")]) == "miss"
    assert run(double, X, post_grad_custom_pre_pass=_Named(None)) == "bypass"
    assert run(double, X, post_grad_custom_pre_pass=[one, _Named(None)]) == "bypass"
    assert run(double, X, post_grad_custom_pre_pass=lambda graph: None) == "bypass"


def test_signs_of_zero_are_different() -> None:
    assert run(lambda x: x * 0.0, X) == "miss"
    assert run(lambda x: x * -0.0, X) == "miss"


def test_inductor_has_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A product is a call of a library there, too: no time goes into its code."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    assert run(product, X) == "miss"
    for expected in ("autograd_cache_miss", "autograd_cache_hit"):
        torch.compiler.reset()
        counters.clear()
        torch.testing.assert_close(torch.compile(product, backend="inductor")(X), product(X))
        assert counters["aot_autograd"][expected] == 1 and not outcomes()
        assert run(product, X) == "hit"


def test_forward_and_backward() -> None:
    x = X.clone().requires_grad_()
    assert run(double, X) == "miss"
    assert run(double, x) == "miss"
    assert run(double, x) == "hit"


def test_a_graph_that_is_kept_has_what_it_saved() -> None:
    x = X.clone().requires_grad_()
    assert run(double_sigmoid, x) == "miss"
    torch.compiler.reset()
    total = torch.compile(double_sigmoid, backend="inductile", options={"cache_graphs": True})(x).sum()
    assert outcomes() == ["miss", "hit"]
    for _ in range(2):  # the first process kept nothing, so its backward graph writes to what is saved
        x.grad = None
        total.backward(retain_graph=True)
        (expected,) = torch.autograd.grad(double_sigmoid(x).sum(), x)
        torch.testing.assert_close(x.grad, expected)


def double_sigmoid(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(torch.tanh(x) * x.exp()) * 2


def test_captured_tensors_are_inputs() -> None:
    for number, expected in ((1.0, "miss"), (2.0, "hit")):
        captured = torch.full((4,), number)
        assert run(lambda x, captured=captured: x + captured, X) == expected


def test_constants_of_a_graph_are_kept() -> None:
    def literal(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor([1.0, 2.0, 3.0, 4.5])

    assert run(literal, X) == "miss"
    assert run(literal, X) == "hit"
    assert run(lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0]), X) == "miss"


def write_and_read(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    return y * 2


def test_which_inputs_share_memory_is_different() -> None:
    memory = torch.arange(12.0)
    assert run(write_and_read, memory[:6].clone(), memory[6:].clone()) == "miss"
    assert run(write_and_read, memory[:6], memory[3:9]) == "miss"
    assert run(write_and_read, memory[:6].clone(), memory[6:].clone()) == "hit"


def test_conjugates_are_different() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j])
    assert run(lambda z: z * 2, z.conj()) == "miss"
    assert run(lambda z: z * 2, z) == "miss"
    assert run(lambda z: z * 2, z.conj()) == "hit"


def test_operators_of_users_are_not_cached() -> None:
    library: Any = torch.library.Library("inductile_graph_cache", "FRAGMENT")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
    assert run(lambda x: torch.ops.inductile_graph_cache.twice(x) + 1, X) == "bypass"


class Tripled(torch.autograd.Function):
    """Has a gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return x * 3

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return g * 3


def _rows(step: float) -> Any:
    from torch._higher_order_ops import scan

    return lambda x: scan(lambda c, r: (c * step + r, c.sin()), torch.zeros(4), x)


def _rounds(factor: float) -> Any:
    from torch._higher_order_ops import while_loop

    def rounds(x: torch.Tensor) -> Any:
        return while_loop(lambda n, a: n < 3, lambda n, a: (n + 1, a * factor), (torch.tensor(0), x))

    return rounds


def _branches(factor: float) -> Any:
    return lambda x: torch.cond(x.sum() > 0, lambda a: a * factor, lambda a: a.cos(), (x,))


def _branches_inside(factor: float) -> Any:
    """The graphs of its backward graph call others."""
    return lambda x: torch.cond(x.sum() > 0, _branches(factor), lambda a: a.sin(), (x,))


@pytest.mark.parametrize("make", [_branches, _branches_inside, _rounds, _rows])
def test_bodies_of_operators_are_part_of_the_key(make: Any) -> None:
    """Torch's own cache takes none of them."""
    assert [run(make(0.5), X), run(make(0.5), X), run(make(0.25), X)] == ["miss", "hit", "miss"]
    if make is not _rounds:
        trained = X.clone().requires_grad_()
        assert [run(make(0.5), trained), run(make(0.5), trained), run(make(0.25), trained)] == ["miss", "hit", "miss"]


def test_functions_with_gradients_of_their_own() -> None:
    trained = X.clone().requires_grad_()
    function: Any = Tripled.apply
    assert [run(lambda x: function(x).sin(), trained) for _ in range(2)] == ["miss", "hit"]


def test_errors_of_kernels_are_eagers() -> None:
    rows = torch.tensor([2, 0])
    assert run(lambda x, rows: x[rows], X, rows) == "miss"
    assert run(lambda x, rows: x[rows], X, rows) == "hit"
    torch.compiler.reset()
    compiled = torch.compile(lambda x, rows: x[rows], backend="inductile", options={"cache_graphs": True})
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(X, torch.tensor([2, 99]))


def test_guards_of_sizes_hold() -> None:
    def branch(x: torch.Tensor) -> torch.Tensor:
        return x.cumsum(0) if x.shape[0] > 5 else x * 2

    wide = torch.arange(32.0).reshape(8, 4)
    assert run(branch, wide, dynamic=True) == "miss"
    assert run(branch, wide[:7], dynamic=True) == "hit"
    assert run(branch, X, dynamic=True) == "miss"
    assert run(branch, X[:2], dynamic=True) == "hit"
    compiled = torch.compile(branch, backend="inductile", dynamic=True, options={"cache_graphs": True})
    torch.compiler.reset()
    for rows in (8, 3, 6, 2):  # guards of entries hold in one process too
        torch.testing.assert_close(compiled(wide[:rows]), branch(wide[:rows]))


class Scaled(torch.nn.Module):
    """Owns numbers."""

    def __init__(self, gain: float) -> None:
        super().__init__()
        self.gain, self.eps = gain, 1e-5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * (self.gain / 2)


def test_numbers_that_modules_own_are_constants_of_a_graph_with_dynamic_sizes() -> None:
    module = Scaled(3.0)
    assert run(module, X, dynamic=True) == "miss"
    assert run(module, X[:2], dynamic=True) == "hit"
    assert run(Scaled(4.0), X, dynamic=True) == "miss"  # which compares with eager
    assert run(module, X, dynamic=True) == "hit"
    assert run(module, X, dynamic=True, disabled_passes="settle-numbers") == "bypass"
    compiled = torch.compile(module, backend="inductile", dynamic=True, options={"cache_graphs": True})
    for module.gain in (3.0, 5.0, 3.0, 7.0):
        torch.testing.assert_close(compiled(X), module(X))
    assert run(lambda x, factor: x * factor, X, 2.5, dynamic=True) == "bypass"
