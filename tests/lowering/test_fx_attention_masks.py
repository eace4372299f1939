"""What is proved of the masks of attention before anything runs, and that answers stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


def causal_least(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(8, 8).masked_fill(~causal(x)[0, 0], torch.finfo(torch.float32).min)


def window(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return (columns <= rows) & (rows - columns < 3)


def packed(x: torch.Tensor) -> torch.Tensor:
    """As a library makes it: the positions are one document where each is the one before plus 1."""
    batch, _, length, _ = x.shape
    ids = torch.arange(length, device=x.device)[None].expand(batch, -1)
    document = (torch.diff(ids, prepend=ids[:, :1] - 1, dim=-1) != 1).cumsum(-1)
    b, q = torch.arange(batch)[:, None, None, None], torch.arange(length)[None, None, :, None]
    k = torch.arange(length)[None, None, None, :]
    seen = q.new_ones((), dtype=torch.bool) & (ids[b, k] <= ids[b, q])
    return (seen & (document[b, q] == document[b, k])).expand(batch, -1, length, length)


def triangle(x: torch.Tensor) -> torch.Tensor:
    return torch.ones(x.shape[2], x.shape[2], dtype=torch.bool, device=x.device).tril()


def one_less(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return (columns < rows) | (rows == 0)


def two_documents(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return (columns <= rows) & ((columns >= 4) == (rows >= 4))


def every_other(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return ((rows & 1) == (columns & 1)) & (columns <= rows)


def of_few_bits(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return columns.to(torch.int8) <= rows.to(torch.int8)


def of_an_input(x: torch.Tensor) -> torch.Tensor:
    return causal(x) & (x[:, :, :, :1] > -99)


def written(x: torch.Tensor) -> torch.Tensor:
    mask = torch.ones(8, 8, dtype=torch.bool)
    mask[0].logical_not_()
    mask[:, 0] = True
    return mask


def first_five(x: torch.Tensor) -> torch.Tensor:
    return (positions(x)[1] < 5).expand(2, 1, 8, 8)


def first_five_floats(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(8, 8).masked_fill(positions(x)[1] >= 5, -torch.inf)


def prefix(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return (columns <= rows) | (columns < 3)


def around(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return (rows - columns).abs() <= 2


def whole_documents(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return rows // 4 == columns // 4


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


@pytest.mark.parametrize("mask", [causal, causal_floats, causal_least, packed, triangle])
def test_a_causal_mask_becomes_a_parameter(mask: Mask) -> None:
    (call,), _ = calls(mask)
    assert call.kwargs["attn_mask"] is None and call.kwargs["is_causal"] is True


@pytest.mark.parametrize("mask", [first_five, first_five_floats])
def test_padding_by_length_is_not_read(mask: Mask) -> None:
    (call,), remarks = calls(mask)
    assert call.kwargs["attn_mask"] is None and call.kwargs["key"].meta["example_value"].shape[2] == 5
    assert "the first 5 of 8 keys are seen" in "".join(remarks)


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        (window, "a window of 3 positions"), (of_an_input, "depends on"), (written, "is written in place"),
        (prefix, "behind a prefix of 3 positions"), (around, "a window of 2 positions to both sides"),
        (whole_documents, "2 documents of 4 positions"), (two_documents, "2 causal documents of 4 positions"),
        (every_other, "no mask of a known kind"),
    ],
)  # fmt: skip
def test_other_masks_stay(mask: Mask, reason: str) -> None:
    (call,), remarks = calls(mask)
    assert (call.kwargs.get("attn_mask") or call.args[3]) is not None
    assert reason in "".join(remarks)


def dynamic_calls(mask: Mask, sizes: Sequence[int]) -> tuple[list[dict[str, Any]], str]:
    """The arguments of attention under sizes that are symbols, and the remarks; answers are compared with eager."""
    found: list[dict[str, Any]] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        prove_attention_masks(graph, inputs)
        graph.graph.lint()
        graph.recompile()
        names = ("query", "key", "value", "attn_mask")
        for node in graph.graph.nodes:
            if node.target is F.scaled_dot_product_attention:
                found.append(dict(zip(names, node.args, strict=False)) | node.kwargs)
        return graph

    def attention(x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x, mask(x))

    run = torch.compile(attention, backend=backend, dynamic=True)
    with collecting() as remarks:
        for size in sizes:
            x = torch.randn(2, 2, size, 16, generator=torch.Generator().manual_seed(0))
            torch.testing.assert_close(run(x), attention(x))
    return found, "".join(each.reason for each in remarks if each.pass_name == "prove-attention-masks")


def square_subsequent(x: torch.Tensor) -> torch.Tensor:
    """As `torch.nn.Transformer` makes it."""
    return torch.triu(torch.full((x.shape[2], x.shape[2]), -torch.inf), diagonal=1)


def filled_floats(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return torch.zeros(x.shape[2], x.shape[2]).masked_fill(columns > rows, -torch.inf)[None, None].expand(2, 1, -1, -1)


def chosen_floats(x: torch.Tensor) -> torch.Tensor:
    return torch.where(causal(x), 0.0, torch.finfo(torch.float32).min).contiguous()


def twice_filled(x: torch.Tensor) -> torch.Tensor:
    rows, columns = positions(x)
    return filled_floats(x).masked_fill(columns > rows + 1, torch.finfo(torch.float32).min)


def no_bias(x: torch.Tensor) -> torch.Tensor:
    """As T5 makes it for the states of its encoder."""
    return torch.zeros((1, 2, x.shape[2], x.shape[2])).contiguous()


def flattened(x: torch.Tensor) -> torch.Tensor:
    """Rows of what was another matrix."""
    rows, columns = positions(x)
    return (columns <= rows).repeat_interleave(2, 0)[: x.shape[2]].view(x.shape[2], x.shape[2])


def below_floats(x: torch.Tensor) -> torch.Tensor:
    return torch.triu(torch.full((x.shape[2], x.shape[2]), -torch.inf), diagonal=2)


def small_floats(x: torch.Tensor) -> torch.Tensor:
    return torch.where(causal(x), 0.0, -3.0)


def biased_floats(x: torch.Tensor) -> torch.Tensor:
    return torch.where(causal(x), x.mean(), -torch.inf)


def viewed(x: torch.Tensor) -> torch.Tensor:
    """As T5 makes it."""
    rows, columns = positions(x)
    return (rows >= columns).view(1, 1, x.shape[2], x.shape[2])


def reshaped_floats(x: torch.Tensor) -> torch.Tensor:
    return filled_floats(x)[:1].reshape(-1, x.shape[2])


FLOATS = [square_subsequent, filled_floats, chosen_floats, twice_filled, viewed, reshaped_floats]


@pytest.mark.parametrize("mask", [causal, packed, triangle, *FLOATS])
def test_a_causal_mask_of_any_size_becomes_a_parameter(mask: Mask) -> None:
    (call,), _ = dynamic_calls(mask, (5, 8, 200))
    assert call["attn_mask"] is None and call["is_causal"] is True


@pytest.mark.parametrize(
    "mask", [lambda x: positions(x)[0] >= -positions(x)[1], lambda x: ~(positions(x)[0] < 0), no_bias]
)
def test_a_mask_of_any_size_that_hides_nothing_goes_away(mask: Mask) -> None:
    (call,), _ = dynamic_calls(mask, (5, 8))
    assert call["attn_mask"] is None and call["is_causal"] is False


@pytest.mark.parametrize(
    ("mask", "reason"),
    [
        (window, "it means"), (one_less, "one of several"), (two_documents, ""), (every_other, ""),
        (of_few_bits, "int8"), (of_an_input, "depends on"), (visible, "it means"), (below_floats, "it means"),
        (flattened, ""), (small_floats, "other numbers than 0"), (biased_floats, "depends on"),
    ],
)  # fmt: skip
def test_other_masks_of_any_size_stay(mask: Mask, reason: str) -> None:
    (call,), remarks = dynamic_calls(mask, (5, 8, 200))
    assert call["attn_mask"] is not None
    assert reason in remarks


def test_operators_that_are_called_as_methods() -> None:
    """Dynamo of some versions calls `__le__` and its like on tensors by their names."""
    from torch.fx import Graph, GraphModule

    from inductile.lowering.fx_attention_masks import judge_mask, written_values

    graph = Graph()
    x = graph.placeholder("x")
    place = graph.call_function(torch.arange, (8,))
    rows, columns = (graph.call_method("unsqueeze", (place, dim)) for dim in (1, 0))
    mask = graph.call_method(
        "__and__", (graph.call_method("__le__", (columns, rows)), graph.call_method("__eq__", (rows, rows)))
    )
    graph.output((mask, x))
    for node, value in {
        place: torch.arange(8), rows: torch.zeros(8, 1), columns: torch.zeros(1, 8), mask: torch.ones(8, 8).bool()
    }.items():  # fmt: skip
        node.meta["example_value"] = value
    module = GraphModule(torch.nn.Module(), graph)
    assert judge_mask(mask, written_values(module))[0] == "causal"
    with graph.inserting_before(mask):
        graph.call_method("__iadd__", (place, 1))
    assert judge_mask(mask, written_values(module)) == (None, "arange is written in place")
