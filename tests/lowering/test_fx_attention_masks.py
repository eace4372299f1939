"""What is proved of the masks of attention before anything runs, and that answers stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from inductile.lowering.fx_attention_masks import prove_attention_masks
from inductile.passes.remarks import collecting

Mask = Callable[[torch.Tensor], torch.Tensor]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield


def positions(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    place = torch.arange(x.shape[2], device=x.device)
    return place[:, None], place[None, :]


def visible(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return ((rows >= 0) & (columns < 99))[None, None].expand(2, 1, -1, -1)


def rows_alone(x: torch.Tensor) -> torch.Tensor:
    return (positions(x)[0] >= 0).expand(8, 8)


def causal(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return (columns <= rows)[None, None]


def causal_floats(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(8, 8).masked_fill(~causal(x)[0, 0], -torch.inf)


def window(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return (columns <= rows) & (rows - columns < 3)


def of_an_input(x: torch.Tensor) -> torch.Tensor:
    return causal(x) & (x[:, :, :, :1] > -99)


def written(x: torch.Tensor) -> torch.Tensor:
    mask = torch.ones(8, 8, dtype=torch.bool)
    mask[0].logical_not_()
    mask[:, 0] = True
    return mask


def calls(mask: Mask) -> tuple[list[Any], list[str]]:
    """The attention calls of a compiled function after the pass, and the remarks; answers are compared with eager."""
    found: list[Any] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        prove_attention_masks(graph, inputs)
        graph.graph.lint()
        graph.recompile()
        found.extend(n for n in graph.graph.nodes if n.target is F.scaled_dot_product_attention)
        return graph

    def attention(x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x, mask(x))

    x = torch.randn(2, 2, 8, 16, generator=torch.Generator().manual_seed(0))
    with collecting() as remarks:
        got = torch.compile(attention, backend=backend)(x)
    torch.testing.assert_close(got, attention(x))
    torch.testing.assert_close(torch.compile(attention, backend="inductile")(x), attention(x))
    return found, [each.reason for each in remarks if each.pass_name == "prove-attention-masks"]


@pytest.mark.parametrize("mask", [visible, rows_alone])
def test_a_mask_that_hides_nothing_goes_away(mask: Mask) -> None:
    (call,), _ = calls(mask)
    assert call.kwargs["attn_mask"] is None and call.kwargs["is_causal"] is False
    assert all(node.target is not torch.arange for node in call.graph.nodes)


@pytest.mark.parametrize("mask", [causal, causal_floats])
def test_a_causal_mask_becomes_a_parameter(mask: Mask) -> None:
    (call,), _ = calls(mask)
    assert call.kwargs["attn_mask"] is None and call.kwargs["is_causal"] is True


@pytest.mark.parametrize(
    ("mask", "reason"), [(window, ""), (of_an_input, "depends on"), (written, "is written in place")]
)
def test_other_masks_stay(mask: Mask, reason: str) -> None:
    (call,), remarks = calls(mask)
    assert (call.kwargs.get("attn_mask") or call.args[3]) is not None
    assert reason in "".join(remarks)


def test_a_size_that_changes_decides_no_mask() -> None:
    def attention(x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x, causal(x))

    compiled = torch.compile(attention, backend="inductile", dynamic=True)
    for length in (5, 8, 9):
        x = torch.randn(2, 2, length, 16)
        torch.testing.assert_close(compiled(x), attention(x))
