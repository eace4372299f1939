"""Attention under masks and biases that are computed: one call, with the answers of what is written out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductile.lowering.fx_attention as fx_attention
from inductile.lowering.fx_attention import recognise_attention
from inductile.machines import Library
from inductile.passes.remarks import collecting

Attention = Callable[..., torch.Tensor]
BATCH, HEADS, LENGTH, WIDTH = 2, 3, 12, 16
LEAST = torch.finfo(torch.float32).min


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With torch's own composition, as the kernels of a GPU are not at hand."""
    monkeypatch.setattr(fx_attention, "library_of", lambda device: Library(keeps_nan=True))
    torch._dynamo.reset()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        yield


def padding() -> torch.Tensor:
    """Left padding in one sequence of the batch, right padding in the other."""
    place = torch.arange(LENGTH)
    return torch.stack([place >= 4, place < 9])


def places(q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    place = torch.arange(q.shape[-2], device=q.device)
    return place[:, None], place[None, :]


def window(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    rows, columns = places(q)
    far = (columns > rows) | (rows - columns > 3)
    return (q @ k.mT / 4).masked_fill(far, -torch.inf).softmax(-1) @ v


def prefix(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    rows, columns = places(q)
    return (q @ k.mT / 4).where((columns <= rows) | (columns < 4), -1e9).softmax(-1) @ v


def documents(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """Which document is an input's, but each position is in its own."""
    document = seen.long().cumsum(-1)
    other = document[:, None, :, None] != document[:, None, None, :]
    return (q @ k.mT / 4).masked_fill(other, -torch.inf).softmax(-1) @ v


def padded_rows(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """What is padding sees nothing, and gets the mean of all values."""
    both = seen[:, None, :, None] & seen[:, None, None, :]
    return (q @ k.mT / 4).masked_fill(~both, torch.finfo(q.dtype).min).softmax(-1) @ v


def undefined_rows(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    both = seen[:, None, :, None] & seen[:, None, None, :]
    return (q @ k.mT / 4).masked_fill(~both, -torch.inf).softmax(-1) @ v


def added(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """Left padding hides rows entirely together with the causal mask."""
    rows, columns = places(q)
    both = (columns <= rows) & seen[:, None, None, :]
    mask = torch.where(both, torch.zeros((), dtype=q.dtype), torch.finfo(q.dtype).min)
    return (q @ k.mT / 4 + mask).softmax(-1) @ v


def added_in_float32(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    mask = (1.0 - seen[:, None, None, :].float()) * LEAST
    return ((q @ k.mT / 4).float() + mask).softmax(-1).to(q.dtype) @ v


def by_two_masks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """As GPT-Neo has it: without a scale, in float32, causal by a buffer, and a mask that is added."""
    rows, columns = places(q)
    mask = torch.where(seen[:, None, None, :] & (columns <= rows), 0.0, max(torch.finfo(q.dtype).min, LEAST))
    scores = torch.matmul(q.to(torch.float32), k.to(torch.float32).transpose(-1, -2))
    buffer = (seen[0, :, None] | True) & (columns <= rows)
    least = torch.tensor(torch.finfo(scores.dtype).min, dtype=scores.dtype)
    scores = torch.where(buffer[None, None, :LENGTH, :LENGTH], scores, least) + mask.to(q.dtype)
    return F.softmax(scores, dim=-1).to(v.dtype) @ v


def disentangled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """As DeBERTa has it: heads and batch in one dimension, a scale that is a tensor, a bias from products."""
    q, k, v = (x.reshape(BATCH * HEADS, LENGTH, WIDTH) for x in (q, k, v))
    scale = torch.sqrt(torch.tensor(WIDTH, dtype=torch.float) * 2)
    scores = torch.bmm(q, k.transpose(-1, -2) / scale.to(dtype=q.dtype))
    scores = scores + torch.bmm(q, k.flip(1).mT) * 0.1
    scores = scores.view(-1, HEADS, LENGTH, LENGTH)
    both = seen[:, None, None, :] & seen[:, None, :, None]
    weights = F.softmax(scores.masked_fill(~both, torch.finfo(q.dtype).min), dim=-1)
    return torch.bmm(weights.view(-1, LENGTH, LENGTH), v).view(BATCH, HEADS, LENGTH, WIDTH)


def with_slopes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """As Bloom has it: a bias of keys that the product adds."""
    q, k, v = (x.reshape(BATCH * HEADS, LENGTH, WIDTH) for x in (q, k, v))
    slopes = torch.arange(1, BATCH * HEADS + 1)[:, None, None] / 8
    bias = (slopes * torch.arange(LENGTH)[None, None]).to(q.dtype)
    scores = bias.baddbmm(batch1=q, batch2=k.mT, beta=1.0, alpha=0.25).view(BATCH, HEADS, LENGTH, LENGTH)
    scores = scores.masked_fill(~seen[:, None, None, :], torch.finfo(scores.dtype).min)
    weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(v.dtype)
    return torch.bmm(weights.view(BATCH * HEADS, LENGTH, LENGTH), v).view(BATCH, HEADS, LENGTH, WIDTH)


def slopes_in_float32(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """As MPT has it: scores of 16 bits, and far away from the last position a bias of hundreds."""
    rows, columns = places(q)
    slopes = 2.0 ** torch.arange(5.0, 5.0 - HEADS, -1.0)[:, None, None]
    scores = q @ k.mT * 0.25 + slopes * (columns - q.shape[-2] + 1.37)
    least = torch.finfo(q.dtype).min
    weights = scores.masked_fill(columns > rows, least).masked_fill(~seen[:, None, None, :], least).float().softmax(-1)
    return weights.to(v.dtype) @ v


def small_slopes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """Many keys count, and scores in front of a large bias for all of them."""
    bias = torch.linspace(900, 903, q.shape[-2]) + torch.zeros(HEADS, 1, 1)
    return (q @ k.mT + bias).softmax(-1).to(q.dtype) @ v


def by_distance(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    rows, columns = places(q)
    table = torch.linspace(-2, 2, 2 * LENGTH, dtype=q.dtype)
    return (q @ k.mT / 4 + table[rows - columns + LENGTH]).softmax(-1) @ v


MASKED: list[Attention] = [
    window, prefix, documents, padded_rows, undefined_rows, added, added_in_float32, by_two_masks, disentangled,
    with_slopes, by_distance, slopes_in_float32, small_slopes,
]  # fmt: skip


def tensors(dtype: torch.dtype = torch.bfloat16) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(BATCH, HEADS, LENGTH, WIDTH).to(dtype) for _ in range(3)]


def compiled(function: Attention, given: list[torch.Tensor], dynamic: bool = False) -> tuple[Any, list[Any], str]:
    """The result, the attention calls with their arguments, and the remarks."""
    calls: list[Any] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        recognise_attention(graph, inputs)
        graph.graph.lint()
        graph.recompile()
        calls.extend(n for n in graph.graph.nodes if n.target is F.scaled_dot_product_attention)
        return graph

    for x in given[:3] if dynamic else ():
        torch._dynamo.mark_dynamic(x, 2)
    with collecting() as remarks:
        result = torch.compile(function, backend=backend)(*given)
    return result, calls, "".join(each.reason for each in remarks)


def error(got: torch.Tensor, exact: torch.Tensor) -> float:
    return float((got.detach().double() - exact.detach()).nan_to_num(0).norm())


def are_as_exact(got: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
    assert (got.dtype, got.shape, got.stride()) == (eager.dtype, eager.shape, eager.stride())
    assert torch.equal(got.isnan(), eager.isnan())
    assert error(got, exact) <= 1.5 * error(eager, exact)


@pytest.mark.parametrize("function", MASKED)
def test_one_call_with_a_mask(function: Attention) -> None:
    given, seen = tensors(), padding()
    got, calls, _ = compiled(function, [*given, seen])
    assert len(calls) == 1 and calls[0].kwargs["attn_mask"] is not None and not calls[0].kwargs["is_causal"]
    are_as_exact(got, function(*given, seen), function(*(x.double() for x in given), seen))


@pytest.mark.parametrize("function", [window, prefix])
def test_lengths_that_are_symbols(function: Attention) -> None:
    given = tensors()
    got, calls, _ = compiled(function, [*given, padding()], dynamic=True)
    assert len(calls) == 1
    # each row sees itself: nothing has to be computed about rows
    assert not any(node.target == "amax" for node in calls[0].graph.nodes)
    are_as_exact(got, function(*given, padding()), function(*(x.double() for x in given), padding()))


@pytest.mark.parametrize(
    "function",
    [
        window, prefix, documents, padded_rows, added, disentangled, with_slopes, by_distance, slopes_in_float32,
        small_slopes,
    ],
)  # fmt: skip
def test_gradients(function: Attention) -> None:
    results = []
    for run, dtype in ((compiled, torch.bfloat16), (None, torch.bfloat16), (None, torch.float64)):
        given = [x.to(dtype).requires_grad_() for x in tensors()]
        if run is None:
            result = function(*given, padding())
        else:
            result, calls, _ = run(function, [*given, padding()])
            assert len(calls) == 1
        weights = torch.linspace(0.5, 1.5, result.numel()).view(result.shape)
        results.append([result, *torch.autograd.grad((result.double() * weights).sum(), given)])
    for got, eager, exact in zip(*results, strict=True):
        assert error(got, exact) <= 1.5 * error(eager, exact)
        assert torch.equal(got.isnan(), eager.isnan())


@pytest.mark.parametrize(
    ("function", "reason"), [(undefined_rows, "other gradients"), (by_two_masks, "by two masks together")]
)
def test_rows_without_keys_whose_gradients_would_differ_stay(function: Attention, reason: str) -> None:
    _, calls, remarks = compiled(function, [*(x.requires_grad_() for x in tensors()), padding()])
    assert not calls and reason in remarks


def test_numbers_of_float16_are_not_small_enough() -> None:
    _, calls, remarks = compiled(padded_rows, [*tensors(torch.float16), padding()])
    assert not calls and "float16" in remarks
    torch._dynamo.reset()
    assert compiled(window, [*tensors(torch.float16), padding()])[1]


def dropped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    return F.dropout((q @ k.mT / 4).softmax(-1), 0.25, training=True) @ v


def test_dropout_is_a_parameter() -> None:
    _, calls, _ = compiled(dropped, [*tensors(), padding()])
    assert [call.kwargs["dropout_p"] for call in calls] == [0.25]


def test_dropout_by_eagers_numbers_stays() -> None:
    """Which is known to passes that torch.compile runs, from its option."""
    torch._dynamo.reset()
    given = [*tensors(), padding()]
    torch.manual_seed(3)
    eager = dropped(*given)
    with collecting() as remarks:
        torch.manual_seed(3)
        got = torch.compile(dropped, backend="inductile", options={"fallback_random": True})(*given)
    assert "as `fallback_random` asks" in "".join(each.reason for each in remarks)
    assert torch.equal(got == 0, eager == 0)
