"""Attention that is written out becomes one call where no answer changes but by rounding, and stays elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductile.lowering.fx_attention as fx_attention
from inductile.lowering.fx_attention import recognise_attention
from inductile.machines import Library, library_of
from inductile.passes.remarks import collecting

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fx_attention, "library_of", lambda device: Library(keeps_nan=True))
    torch._dynamo.reset()
    yield


def hidden(q: torch.Tensor) -> torch.Tensor:
    return torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=q.device).triu(1)


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return scores(q, k).softmax(-1) @ v


def flat(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weights = torch.softmax(torch.bmm(q[0], k[0].mT) * 0.2, dim=2)
    return torch.bmm(weights, v[0]).view(-1, v.shape[-1])


def in_float32(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.matmul(F.softmax(scores(q, k), dim=-1, dtype=torch.float32).to(q.dtype), v)


def merged(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weights = F.dropout(scores(q, k).float().softmax(-1).type_as(v), 0.1, training=False)
    return torch.matmul(weights, v).transpose(1, 2).reshape(q.shape[0], q.shape[2], -1)


def filled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return scores(q, k).masked_fill(hidden(q), -torch.inf).softmax(-1) @ v


def chosen(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    least = torch.finfo(q.dtype).min
    return torch.where(~hidden(q), scores(q, k), least).softmax(-1) @ v


def added(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    mask = torch.zeros(q.shape[-2], q.shape[-2], dtype=q.dtype).masked_fill(hidden(q), -torch.inf)
    return (scores(q, k) + mask).softmax(-1) @ v


def over_transposed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT * 0.25).masked_fill(hidden(q) & ~hidden(q).mT, -torch.inf).softmax(-1) @ v


def kept_weights(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weights = scores(q, k).softmax(-1)
    return weights @ v + weights.sum()


def capped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (scores(q, k) / 5).tanh().mul(5).softmax(-1) @ v


def wide_bias(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    wide = q.float() @ k.float().mT * 0.25 + torch.linspace(0, 3, q.shape[2])
    return wide.softmax(-1).to(q.dtype) @ v


def learned_bias(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    bias = torch.linspace(0, 3, q.shape[2]).requires_grad_()
    return (scores(q, k) + bias).softmax(-1).to(q.dtype) @ v


def over_queries(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return scores(q, k).softmax(-2) @ v


def in_place(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    found = scores(q, k)
    found[..., 0] = 0
    return found.softmax(-1) @ v


def filled_in_place(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    found = q @ k.mT
    found /= 4
    found.masked_fill_(hidden(q), -torch.inf)
    return found.softmax(-1) @ v


def written_after_its_scores(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """By way of a tensor of which the keys are a view."""
    base = k * 2
    found = q @ base.mT
    base.add_(1)
    return (found / 4).softmax(-1) @ base + v


def written_before(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    base = k * 0.5
    base.add_(1)
    return (q @ base.mT / 4).softmax(-1) @ v


def tensors(dtype: torch.dtype = torch.bfloat16) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(2, 3, 12, 16).to(dtype) for _ in range(3)]


def as_torch_2_11(graph: torch.fx.GraphModule) -> None:
    """Read computed attributes as Dynamo of that version does."""
    names = {torch.ops.aten.mT: "mT", torch.ops.aten.numpy_T: "T"}
    for node in graph.graph.nodes:
        if node.target in names:
            node.args, node.target = (*node.args, names[node.target]), getattr


def compiled(
    function: Attention, given: list[torch.Tensor], dynamic: bool = False, old: bool = False
) -> tuple[torch.Tensor, list[Any], str]:
    """The result, the attention calls with their arguments, and the remarks."""
    calls: list[Any] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        from inductile.lowering.fx_pre_grad import remove_identities

        if old:
            as_torch_2_11(graph)
        remove_identities(graph, inputs)
        recognise_attention(graph, inputs)
        graph.graph.lint()
        graph.recompile()
        calls.extend(n for n in graph.graph.nodes if n.target is F.scaled_dot_product_attention)
        if calls:
            assert not any(n.target in (F.softmax, torch.softmax, "softmax") for n in graph.graph.nodes)
        return graph

    for x in given if dynamic else ():
        torch._dynamo.mark_dynamic(x, 2)
    with collecting() as remarks:
        result = torch.compile(function, backend=backend)(*given)
    return result, calls, "".join(each.reason for each in remarks)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("function", "is_causal"),
    [
        (plain, False), (flat, False), (in_float32, False), (merged, False), (filled, True), (chosen, True),
        (over_transposed, True), (filled_in_place, True), (written_before, False),
    ],
)  # fmt: skip
def test_one_call(function: Attention, is_causal: bool, dynamic: bool) -> None:
    given = tensors()
    got, calls, _ = compiled(function, given, dynamic)
    assert [call.kwargs["is_causal"] for call in calls] == [is_causal]
    eager, exact = function(*given), function(*(x.double() for x in given))
    assert (got.dtype, got.shape, got.stride()) == (eager.dtype, eager.shape, eager.stride())
    errors = [float((x.double() - exact).norm()) for x in (got, eager)]
    assert errors[0] <= 1.5 * errors[1]


def over_the_mask_turned(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT * 0.25).masked_fill(~hidden(q).T.logical_not().T, -torch.inf).softmax(-1) @ v


@pytest.mark.parametrize(
    ("function", "old"),
    [(flat, True), (over_transposed, True), (over_the_mask_turned, True), (over_the_mask_turned, False)],
)
def test_attributes_are_read_as_versions_write_them(function: Attention, old: bool) -> None:
    _, calls, _ = compiled(function, tensors(), dynamic=True, old=old)
    assert [call.kwargs["is_causal"] for call in calls] == [function is not flat]


def test_a_mask_that_is_added() -> None:
    _, calls, _ = compiled(added, tensors())
    assert [call.kwargs["is_causal"] for call in calls] == [True]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (capped, "changes its scores"), (wide_bias, "not rounded"), (learned_bias, "is learned"),
        (kept_weights, "another call reads"), (over_queries, ""), (in_place, ""),
        (written_after_its_scores, "is written by add_"),
    ],
)  # fmt: skip
def test_what_stays(function: Attention, reason: str) -> None:
    given = tensors()
    got, calls, remarks = compiled(function, given)
    assert not calls and reason in remarks
    torch.testing.assert_close(got, function(*given))


def test_other_types_and_devices_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not compiled(plain, tensors(torch.float32))[1]
    torch._dynamo.reset()
    monkeypatch.setattr(fx_attention, "library_of", library_of)
    assert not compiled(plain, tensors())[1]


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("function", [plain, in_float32])
def test_undefined_rows_are_those_of_eager(function: Attention, place: int) -> None:
    """With torch's own composition, as the kernels of a GPU are not at hand."""
    given = tensors()
    given[place][0, 1, 5, 3] = torch.nan
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        got, calls, _ = compiled(function, given)
    assert calls
    assert torch.equal(got.isnan(), function(*given).isnan())


def test_gradients() -> None:
    given = [x.requires_grad_() for x in tensors()]
    got, calls, _ = compiled(filled, given)
    assert calls
    of_got = torch.autograd.grad(got.float().sum(), given)
    for mine, eager in zip(of_got, torch.autograd.grad(filled(*given).float().sum(), given), strict=True):
        torch.testing.assert_close(mine, eager, rtol=0.05, atol=0.05)
