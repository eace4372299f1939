"""`flex_attention` written out: values as eager's, on the CPU, where the ops are products and a softmax."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from inductile.lowering.fx_flex_attention import write_out_flex_attention
from inductile.passes.remarks import collecting

Tensor = torch.Tensor
HEADS, LENGTH = 4, 48
SLOPES = torch.linspace(0.5, 2, HEADS)
TABLE = torch.randn(HEADS, 2 * LENGTH, generator=torch.Generator().manual_seed(2))
DOCUMENTS = torch.arange(LENGTH) // 20


class NothingToRunError(Exception):
    """What was compiled is called, and only the graph was asked for."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def tensors(dtype: torch.dtype = torch.float32, heads: int = HEADS, batch: int = 2, keys: int = LENGTH) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = (2, HEADS, LENGTH), (batch, heads, keys), (batch, heads, keys)
    return [torch.randn(*shape, 16, generator=generator).to(dtype) for shape in shapes]


def mask_of(mask: Callable[..., Any], keys: int = LENGTH, batch: int | None = None) -> Any:
    return create_block_mask(mask, batch, None, LENGTH, keys, device="cpu", BLOCK_SIZE=16)


def is_past(b: Any, h: Any, i: Any, j: Any) -> Any:
    return j <= i


def check(function: Callable[..., Any], given: list[Tensor], dynamic: bool = False) -> None:
    """As eager, within what rounding does; no call of the operator is left."""
    expected = function(*given)
    torch._dynamo.reset()

    def passes(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        write_out_flex_attention(graph, inputs)
        assert not any(node.target is torch.ops.higher_order.flex_attention for node in graph.graph.nodes)
        return graph

    torch.compile(function, backend=passes, dynamic=dynamic)(*given)
    torch._dynamo.reset()
    found = torch.compile(function, backend="inductile", dynamic=dynamic)(*given)
    pairs = zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True)
    for mine, theirs in pairs:
        tolerance = 1e-5 if theirs.dtype == torch.float32 else 1e-2
        torch.testing.assert_close(mine, theirs, rtol=tolerance, atol=tolerance)


SCORES: dict[str, Callable[..., Any]] = {
    "distance": lambda s, b, h, i, j: s + SLOPES[h] * (i - j),
    "capped": lambda s, b, h, i, j: torch.tanh(s / 3) * 3,
    "table": lambda s, b, h, i, j: s + TABLE[h, j - i + LENGTH],
    "rows of a table": lambda s, b, h, i, j: s * TABLE[h][i] + TABLE[h][:8].sum(),
    "batch": lambda s, b, h, i, j: torch.where(b == 0, s, s * 0.5),
    "one element": lambda s, b, h, i, j: s + TABLE[0, 1],
}


@pytest.mark.parametrize("name", list(SCORES))
def test_scores(name: str) -> None:
    check(lambda q, k, v: flex_attention(q, k, v, score_mod=SCORES[name]), tensors())  # pyright: ignore


MASKS: dict[str, Callable[..., Any]] = {
    "causal": is_past,
    "documents": lambda b, h, i, j: (DOCUMENTS[i] == DOCUMENTS[j]) & (j <= i),
    "hidden rows": lambda b, h, i, j: j < i - 4,
    "all of a batch": lambda b, h, i, j: (b == 1) & (h < 3),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", list(MASKS))
def test_masks(name: str, dtype: torch.dtype) -> None:
    mask = mask_of(MASKS[name], batch=2)
    check(lambda q, k, v: flex_attention(q, k, v, block_mask=mask), tensors(dtype))  # pyright: ignore


@pytest.mark.parametrize("dynamic", [False, True])
def test_statistics_and_a_number(dynamic: bool) -> None:
    mask = mask_of(is_past)

    def function(q: Tensor, k: Tensor, v: Tensor) -> Any:
        return flex_attention(q, k, v, SCORES["distance"], mask, scale=0.3, return_lse=True)

    check(function, tensors(), dynamic)


def test_grouped_heads() -> None:
    check(lambda q, k, v: flex_attention(q, k, v, enable_gqa=True), tensors(heads=2))  # pyright: ignore


def test_one_batch_of_fewer_keys() -> None:
    mask = mask_of(is_past, keys=32, batch=2)
    check(lambda q, k, v: flex_attention(q, k, v, block_mask=mask), tensors(batch=1, keys=32))  # pyright: ignore


def test_lengths_are_symbols() -> None:
    function = torch.compile(
        lambda q, k, v: flex_attention(q, k, v, SCORES["distance"]),  # pyright: ignore
        backend="inductile", dynamic=True,
    )  # fmt: skip
    for length in (48, 33, 17):
        given = [x[:, :, :length].contiguous() for x in tensors()]
        expected = flex_attention(*given, SCORES["distance"])  # pyright: ignore
        torch.testing.assert_close(function(*given), expected, rtol=1e-5, atol=1e-5)


def test_strides_of_the_result() -> None:
    """Heads that lie inside of rows."""
    given = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in tensors()]

    def function(q: Tensor, k: Tensor, v: Tensor) -> Any:
        return flex_attention(q, k, v)

    check(function, given)
    assert torch.compile(function, backend="inductile")(*given).stride() == given[0].stride()


def test_autocast() -> None:
    """The operator computes in the type that autocast asks for."""

    def function(q: Tensor, k: Tensor, v: Tensor) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return flex_attention(q, k, v, SCORES["distance"])

    found = torch.compile(function, backend="inductile")(*tensors())
    expected = flex_attention(*tensors(torch.bfloat16), SCORES["distance"])  # pyright: ignore
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)


def test_what_asks_for_a_gradient_stays() -> None:
    slopes = SLOPES.clone().requires_grad_()
    counts: list[int] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        with collecting() as said:
            write_out_flex_attention(graph, inputs)
        assert any("a gradient is asked of what its functions read" in str(each) for each in said)
        counts.append(sum(node.target is torch.ops.higher_order.flex_attention for node in graph.graph.nodes))

        def nothing(*args: Any) -> Any:
            raise NothingToRunError

        return nothing

    def function(q: Tensor, k: Tensor, v: Tensor) -> Any:
        return flex_attention(q, k, v, lambda s, b, h, i, j: s + slopes[h])

    with pytest.raises(NothingToRunError):
        torch.compile(function, backend=backend)(*tensors())
    assert counts == [1]


def test_other_options_are_told_of() -> None:
    said: list[str] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        with collecting() as found:
            write_out_flex_attention(graph, inputs)
        said.extend(map(str, found))
        return graph

    options: Any = {"BLOCK_M": 64}
    torch.compile(lambda q, k, v: flex_attention(q, k, v, kernel_options=options), backend=backend)(*tensors())
    assert any("BLOCK_M" in each for each in said)
