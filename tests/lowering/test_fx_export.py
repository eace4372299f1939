"""Import, text, parse, export: the graph computes what it did, bit for bit, with the passes of the aten level too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from inductile.errors import UnsupportedError
from inductile.lowering.fx_export import export_graph
from inductile.lowering.fx_targets import resolve

from .fx_graphs import RoundTrip, compiled, data_dependent_graphs, parse

PASSES = ["", "graph-canonicalize,graph-cse,graph-dce"]


def check(function: Callable[..., Any], inputs: tuple[Any, ...], passes: str, dynamic: bool = False) -> None:
    """Results, strides, written inputs and the random stream are those of eager."""
    expected_inputs = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    torch.manual_seed(0)
    expected = function(*expected_inputs)
    round_trip = RoundTrip(passes)
    run = compiled(function, round_trip, dynamic)
    torch.manual_seed(0)
    actual = run(*inputs)
    assert round_trip.graphs
    for a, b in ((actual, expected), (list(inputs), expected_inputs)):
        torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True, check_stride=True)


def views(x: torch.Tensor, n: int) -> tuple[Any, ...]:
    a, b = x.split(x.shape[1] // 2, dim=1)
    return x.t().reshape(-1), a + b, x[:, ::2] * n, x.unfold(0, 2, 1).sum(-1), x.shape[0] * n, x.t()


def numbers(x: torch.Tensor, n: torch.Tensor) -> tuple[Any, ...]:
    rows = x.nonzero()
    return torch.zeros(int(n.item()), 2), rows + 1, x * x.mean().item(), x * int(x.shape[0] ** 0.5), rows.shape[0] * 2


def mutation(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    old = x.exp()
    x.mul_(y)
    y[1:] = x[:-1]
    return old + x


def random(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.rand_like(x) + torch.rand_like(x), torch.dropout(y, 0.5, True), torch.randperm(5)


def branches(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > y.sum(), lambda a, b: a @ b, lambda a, b: a - b, (x, y))


def attention(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A higher-order operator that insists on tuples, and gets numbers, graphs and a dictionary."""
    q = (x @ y).reshape(1, 1, 4, 4)
    return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score + i - j)  # pyright: ignore


def custom(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = x.clone()
    increment(z, 3)
    return z + y


@torch.library.custom_op("inductile_tests::increment", mutates_args=("x",))
def increment(x: torch.Tensor, n: int) -> None:
    x.add_(n)


def special(x: torch.Tensor, y: torch.Tensor) -> tuple[Any, ...]:
    i = torch.tensor([1, 0])
    return (
        x + float("inf"),
        y * -0.0,
        x.masked_fill(x > 0, float("nan")),
        x[:, i],
        torch.full_like(x, 1e-12),
        x.to(torch.bfloat16).float(),
    )


SQUARES = (torch.arange(16.0).reshape(4, 4) - 7, torch.ones(4, 4))


@pytest.mark.rotates(2, each="function")
@pytest.mark.parametrize("passes", PASSES, ids=["plain", "passes"])
@pytest.mark.parametrize(
    ("function", "inputs", "dynamic"),
    [
        (views, (torch.arange(24.0).reshape(4, 6), 3), False),
        (views, (torch.arange(24.0).reshape(4, 6), 3), True),
        (numbers, (torch.arange(6.0).reshape(2, 3), torch.tensor(4)), True),
        (mutation, (torch.arange(4.0), torch.ones(4)), False),
        (random, SQUARES, False),
        (branches, SQUARES, False),
        (attention, SQUARES, False),
        (custom, SQUARES, False),
        (special, SQUARES, False),
    ],
    ids=["views", "views-dynamic", "numbers", "mutation", "random", "branches", "attention", "custom", "special"],
)
def test_programs(function: Callable[..., Any], inputs: tuple[Any, ...], dynamic: bool, passes: str) -> None:
    fresh = tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in inputs)
    with data_dependent_graphs():
        check(function, fresh, passes, dynamic)


def test_gradients() -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Dropout(0.5))
    x = torch.randn(5, 6)

    def gradients(function: Callable[..., Any]) -> list[torch.Tensor]:
        layer.zero_grad()
        torch.manual_seed(0)
        function(x).square().sum().backward()
        return [p.grad.clone() for p in layer.parameters() if p.grad is not None]

    expected = gradients(layer)
    round_trip = RoundTrip(PASSES[1])
    actual = gradients(compiled(layer, round_trip, dynamic=True))
    assert round_trip.graphs == 2
    torch.testing.assert_close(actual, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.rotates(2)
@pytest.mark.parametrize("passes", PASSES, ids=["plain", "passes"])
def test_language_model(passes: str) -> None:
    transformers = pytest.importorskip("transformers")
    shape = {"n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 64, "bos_token_id": 0, "eos_token_id": 0}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape)).eval()
    with torch.no_grad():
        check(lambda ids: model(ids, use_cache=False).logits, (torch.randint(0, 64, (2, 9)),), passes, dynamic=True)


def test_convolutional_model() -> None:
    timm = pytest.importorskip("timm")
    model = timm.create_model("resnet18").eval()
    with torch.no_grad():
        check(model, (torch.randn(2, 3, 32, 32),), PASSES[1])


def test_text_of_unknown_operators_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no operator mylib::nothing"):
        export_graph(parse('func.func @f() { aten.call "mylib::nothing"() func.return }'))
    for name in ("operator::attrgetter", "builtins::eval", "math::exp", "torch::load"):
        with pytest.raises(UnsupportedError):
            resolve(name)


def test_ops_of_other_levels_are_refused() -> None:
    text = "func.func @f() { %0 = arith.constant 1.0 : f32 func.return }"
    with pytest.raises(UnsupportedError, match=r"arith\.constant has no counterpart"):
        export_graph(parse(text))


def test_missing_references_are_named() -> None:
    text = 'func.func @f(%p: !aten.tensor<i1>) { aten.call "higher_order::cond"(%p, @a, @b, []) func.return }'
    module = parse(text)
    with pytest.raises(UnsupportedError, match="nothing is given for the reference @a"):
        export_graph(module)
