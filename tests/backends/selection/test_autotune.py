"""`inductile.autotune_backends`: right results are a condition, time decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import nn

import inductile
from inductile.errors import UserError

Tensor = torch.Tensor
Backend = Callable[[torch.fx.GraphModule, Sequence[Any]], Callable[..., Any]]


def slow(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        time.sleep(0.01)
        return graph.forward(*args)

    return run


def wrong(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    return lambda *args: tuple(each + 0.1 if isinstance(each, Tensor) else each for each in graph.forward(*args))


def wrong_later(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    calls: list[None] = []

    def run(*args: Any) -> Any:
        calls.append(None)
        return (wrong(graph, inputs) if len(calls) == 3 else graph.forward)(*args)

    return run


def failing(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    raise RuntimeError("no such device\nand more")


def rows(**backends: Backend) -> dict[str, dict[str, Any]]:
    return {"eager": {"backend": "eager"}, **{name: {"backend": each} for name, each in backends.items()}}


def faults(choice: Any) -> dict[str, str | None]:
    return {each.backend: each.fault for each in choice.trials}


def test_table_and_choice() -> None:
    def f(x: Tensor) -> Tensor:
        return x.sin() + 1

    x = torch.randn(64)
    choice = inductile.autotune_backends(
        f, (x,), rows(slow=slow, wrong=wrong, later=wrong_later, failing=failing), seconds=0.01
    )
    told = faults(choice)
    assert choice.best == "eager" and told["eager"] is None and told["slow"] is None
    assert "result: Mismatched elements: 64 / 64" in str(told["wrong"])
    assert "Mismatched" in str(told["later"])
    assert "no such device" in str(told["failing"]) and "and more" not in str(told["failing"])
    times = {each.backend: each.microseconds for each in choice.trials}
    assert (times["slow"] or 0) > 10_000 and times["wrong"] is None and times["failing"] is None
    lines = str(choice).splitlines()
    assert lines[0].split() == ["backend", "first", "call", "a", "call", "speed-up", "results"]
    assert lines[1].startswith("*  eager") and lines[1].endswith("as eager's")
    torch.testing.assert_close(choice.function(x), f(x))


def test_the_faster_is_chosen_and_compiled() -> None:
    def f(x: Tensor) -> Tensor:
        for _ in range(8):
            x = x.sin() * 2 + 1
        return x

    x = torch.randn(2048)
    choice = inductile.autotune_backends(f, [x], ["eager", "inductile"], seconds=0.02)
    assert faults(choice) == {"eager": None, "inductile": None}
    assert choice.best == "inductile", str(choice)
    torch.testing.assert_close(choice.function(x), f(x))


class Model(nn.Module):
    """A buffer that calls change, and dropout."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.inner, self.norm, self.dropout = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(dropout)

    def forward(self, x: Tensor, scale: float = 1.0) -> dict[str, Tensor]:
        return {"y": self.dropout(self.norm(self.inner(x))) * scale}


@pytest.mark.parametrize("method", [False, True])
def test_gradients_and_buffers(method: bool) -> None:
    model = Model()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    model.inner.weight.grad = kept = torch.ones(8, 8)
    x = torch.randn(4, 8, requires_grad=True)
    function = model.forward if method else model
    backends = rows(wrong=wrong) | {"inductile": {"backend": "inductile"}}
    choice = inductile.autotune_backends(function, (x,), backends, kwargs={"scale": 2.0}, backward=True, seconds=0.01)
    assert faults(choice)["inductile"] is None and faults(choice)["wrong"] is not None
    assert model.inner.weight.grad is kept and torch.equal(kept, torch.ones(8, 8)) and x.grad is None
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, state[name], rtol=0, atol=0)


def detached(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Right values, wrong gradients."""

    def run(*args: Any) -> Any:
        return tuple(each.detach() + 0 * each for each in graph.forward(*args))

    return run


def test_wrong_gradients_are_found() -> None:
    x = torch.randn(4, 8, requires_grad=True)
    choice = inductile.autotune_backends(
        lambda x: (x * 3).cos(), (x,), rows(detached=detached), backward=True, seconds=0.01
    )
    assert "gradient of input" in str(faults(choice)["detached"])
    without = inductile.autotune_backends(lambda x: (x * 3).cos(), (x,), rows(detached=detached), seconds=0.01)
    assert faults(without)["detached"] is None


def skips_writes(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    return lambda *args: graph.forward(*(each.clone() if isinstance(each, Tensor) else each for each in args))


def test_writes_to_inputs_are_compared_and_not_left() -> None:
    def f(x: Tensor, cache: dict[str, Tensor]) -> Tensor:
        cache["rows"][1] = x
        return cache["rows"].sum()

    x, cache = torch.randn(5), {"rows": torch.zeros(3, 5)}
    choice = inductile.autotune_backends(
        f, (x, cache), rows(skips=skips_writes) | {"i": {"backend": "inductile"}}, seconds=0.01
    )
    assert "input 1, afterwards," in str(faults(choice)["skips"]) and faults(choice)["i"] is None
    assert not cache["rows"].any()


def test_random_numbers_are_not_compared() -> None:
    model, x = Model(0.5), torch.randn(4, 8)
    state = torch.get_rng_state()
    choice = inductile.autotune_backends(model, (x,), ["eager", "inductile"], seconds=0.01)
    assert choice.random and faults(choice) == {"eager": None, "inductile": None}
    assert "random numbers" in str(choice)
    assert torch.equal(torch.get_rng_state(), state)


def rounded_less(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Halves, computed in float32."""
    return lambda *args: tuple(each.to(torch.bfloat16) for each in graph.forward(*(each.float() for each in args)))


def test_what_is_rounded_less_than_eager_is_right() -> None:
    def f(x: Tensor) -> Tensor:
        for _ in range(20):
            x = (x * 1.1 - x * 0.1).sin() * 2
        return x

    x = torch.randn(256, dtype=torch.bfloat16)
    choice = inductile.autotune_backends(f, (x,), rows(less=rounded_less), seconds=0.01)
    assert faults(choice)["less"] is None
    strict = inductile.autotune_backends(f, (x,), rows(less=rounded_less), rtol=1e-3, atol=1e-3, seconds=0.01)
    assert faults(strict)["less"] is not None


def test_what_is_asked_wrongly() -> None:
    x = torch.randn(3)
    with pytest.raises(UserError, match="knows no backend 'inductle'"):
        inductile.autotune_backends(torch.sin, (x,), ["inductle"])
    with pytest.raises(UserError, match="write a list of names"):
        inductile.autotune_backends(torch.sin, (x,), "inductile")
    with pytest.raises(UserError, match="give both"):
        inductile.autotune_backends(torch.sin, (x,), rtol=1.0)
    with pytest.raises(UserError, match="no backend gives what eager does: failing: "):
        inductile.autotune_backends(lambda x: x.sin(), (x,), {"failing": {"backend": failing}})
