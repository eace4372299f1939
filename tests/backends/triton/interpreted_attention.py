"""Attention as people write it, as one kernel, in Triton's interpreter and ours, against float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from inductile.backends.host import build
from inductile.backends.reference import run_module
from inductile.lowering.pipeline import pipeline_string

from ...scripts import load_benchmark
from .products import Tensor, kernels_for_gpu

VARIANTS: Any = load_benchmark("attention_variants")
VARIANTS.WINDOW, VARIANTS.PREFIX = 9, 20
HIDDEN = -float("inf")
#: kinds whose first steps have no mask
PEELED = ("causal", "alibi", "softcap", "prefix", "grouped")
#: what recognises attention would call the library; small tiles leave something over
OPTIONS: dict[str, Any] = {
    "loop_products": True,
    "pre_grad": "remove-identities,write-out-flex-attention",
    "pipeline": pipeline_string()
    .replace("kernel-map-softmax-sums", "kernel-map-softmax-sums{softmax-rows=16 softmax-step=16}")
    .replace("kernel-peel-masked-steps", "kernel-peel-masked-steps{peel-least=1}"),
}


def _inputs(dtype: torch.dtype, *shape: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype) for _ in range(3)]


def _check(function: Callable[..., Tensor], inputs: Sequence[Tensor], reference: bool = True) -> str:
    """Run a program in both interpreters; the source of its kernel."""
    module, given, sources = kernels_for_gpu(function, inputs, OPTIONS)
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    exact, eager = function(*wide), function(*inputs)
    allowed = 2 * (eager.double() - exact).nan_to_num(0, 0, 0).norm() + 1e-6 * exact.nan_to_num().norm()
    for run in (build(module), lambda given: run_module(module, given))[: 2 if reference else 1]:
        (got,) = run(list(given))
        assert got.dtype == eager.dtype and got.shape == eager.shape
        assert torch.equal(got.isnan(), eager.isnan())
        assert (got.double() - exact).nan_to_num(0, 0, 0).norm() <= allowed
    (source,) = (source for source in sources if "tl.dot(" in source)
    return source


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", [name for name in VARIANTS.VARIANTS if not name.startswith("called")])
def test_variants(name: str, dtype: torch.dtype) -> None:
    """Scores are computed, weighted and summed in one loop over the keys, so that nothing writes them."""
    inputs = _inputs(dtype, 1, 4, 40, 32 if name == "differential" else 16)
    inputs += VARIANTS.extra_of(name, inputs[0])
    # the interpreter of the IR computes all points of the nests at once: one type will do
    source = _check(VARIANTS.VARIANTS[name], inputs, reference=dtype == torch.bfloat16)
    loops = 2 if name in PEELED else 1  # with the mask, and without it
    assert source.count("tl.dot(") == (4 if name == "differential" else 2 * loops) and source.count("tl.store(") == 1


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("causal", "range(16 * i1_tile, tl.minimum(16 * i1_tile + 16, 40), BLOCK_I"),
        ("window", "range(16 * (tl.maximum(16 * i1_tile - 8, 0) // 16), tl.minimum(16 * i1_tile + 16, 40), BLOCK_I"),
        ("full", "range(0, 40, BLOCK_I"),
    ],
)
def test_hidden_steps_are_left_out(name: str, steps: str) -> None:
    inputs = _inputs(torch.bfloat16, 1, 2, 40, 16)
    _, _, (source,) = kernels_for_gpu(VARIANTS.VARIANTS[name], inputs, OPTIONS)
    assert steps in source


def _hidden_rows(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Rows that see nothing are NaN, as 0 / 0 is."""
    rows = torch.arange(q.shape[-2])[:, None]
    columns = torch.arange(k.shape[-2])[None, :]
    scores = (q @ k.mT).masked_fill(columns > rows - 20, HIDDEN)
    return torch.softmax(scores.float(), -1).to(v.dtype) @ v


def _lowest_rows(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Rows that are hidden by the lowest number weigh all alike."""
    rows = torch.arange(q.shape[-2])[:, None]
    columns = torch.arange(k.shape[-2])[None, :]
    scores = (q @ k.mT).float().masked_fill(columns > rows - 20, torch.finfo(torch.float32).min)
    return torch.softmax(scores, -1).to(v.dtype) @ v


def _cross(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Fewer keys than queries, and heads of another size."""
    k, v = k[:, :, :21], v[:, :, :21, :9]
    return torch.softmax((q @ k.mT).float() * 0.3, -1).to(v.dtype) @ v


def _in_place_of_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Heads that lie inside of rows, as linear layers leave them; the result too."""
    q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    return (torch.softmax((q @ k.mT).float(), -1).to(v.dtype) @ v).transpose(1, 2).flatten(2)


def _residual(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """What is done with the result is done where it is."""
    return q + 0.5 * torch.tanh(torch.softmax((q @ k.mT).float(), -1).to(v.dtype) @ v)


def _normed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """What divides queries and keys is a sum of their own, and is not computed for each product."""
    q, k = (x / x.norm(dim=-1, keepdim=True) for x in (q, k))
    return torch.softmax((q @ k.mT).float() * 7, -1).to(v.dtype) @ v


@pytest.mark.parametrize("function", [_hidden_rows, _lowest_rows, _cross, _in_place_of_heads, _residual, _normed])
def test_others(function: Callable[..., Tensor]) -> None:
    _check(function, _inputs(torch.bfloat16, 1, 2, 40, 16))


def test_dropped_weights() -> None:
    """What dropout keeps is a factor of the weights, in the same loop; both interpreters draw the same numbers."""

    def dropped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = torch.softmax((q @ k.mT).float(), -1).to(v.dtype)
        return torch.nn.functional.dropout(weights, 0.4) @ v

    inputs = _inputs(torch.bfloat16, 1, 2, 40, 16)
    module, given, sources = kernels_for_gpu(dropped, inputs, OPTIONS)
    results: list[Tensor] = []
    for run in (build(module), lambda given: run_module(module, given)):
        torch.manual_seed(0)
        results += run(list(given))
    assert (results[0].float() - results[1].float()).norm() <= 0.01 * results[1].float().norm()
    kept = torch.softmax((inputs[0] @ inputs[1].mT).float(), -1) @ inputs[2].float()
    assert 0.1 < (results[0].float() - kept).norm() / kept.norm() < 1
    (source,) = (source for source in sources if "tl.dot(" in source)
    assert source.count("tl.dot(") == 2 and "philox" in source


def _wide_window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    rows, columns = torch.arange(q.shape[-2])[:, None], torch.arange(k.shape[-2])[None, :]
    hidden = (columns > rows) | (rows - columns >= 56)
    return torch.softmax((q @ k.mT).float().masked_fill(hidden, HIDDEN), -1).to(v.dtype) @ v


@pytest.mark.parametrize("length", [96, 90])
def test_steps_without_a_mask(length: int) -> None:
    """The steps between both ends of a window have no mask; rows in front have no such steps."""
    source = _check(_wide_window, _inputs(torch.bfloat16, 1, 2, length, 16))
    assert source.count("tl.dot(") == 6
    if length == 96:
        assert source.count("tl.where(") == 2


def test_infinite_scores() -> None:
    """inf - inf is NaN, in the rows that have it."""
    q, k, v = _inputs(torch.float32, 1, 1, 20, 16)
    q[0, 0, 3] = float("inf")
    k[0, 0].abs_()
    _check(VARIANTS.causal, [q, k, v])


def _flex(name: str, inputs: Sequence[Tensor]) -> Callable[..., Tensor]:
    """A variant as it is told to flex_attention; with the keys of one head for a group."""
    said = VARIANTS.flex_of(name, inputs[0], inputs[3:])
    wide = VARIANTS.flex_of(name, inputs[0], [x.double() if x.is_floating_point() else x for x in inputs[3:]])
    length = inputs[0].shape[2]
    mask = said.mask and create_block_mask(said.mask, None, None, length, length, device="cpu", BLOCK_SIZE=8)

    def function(q: Tensor, k: Tensor, v: Tensor) -> Any:
        if said.grouped:
            k, v = k[:, :: VARIANTS.GROUPS], v[:, :: VARIANTS.GROUPS]
        score = (wide if q.dtype == torch.float64 else said).score
        return flex_attention(q, k, v, score, mask, enable_gqa=said.grouped)

    return function


def _can_be_said(name: str) -> bool:
    """Whether flex_attention can compute a variant."""
    return VARIANTS.flex_of(name, torch.empty(1, 1, 1, 1), [torch.empty(1)]) is not None


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("name", [name for name in VARIANTS.VARIANTS if _can_be_said(name)])
def test_functions_of_scores(name: str) -> None:
    """flex_attention becomes the loop that the same variant becomes where it is written by hand."""
    inputs = _inputs(torch.bfloat16, 1, 4, 40, 16)
    function = _flex(name, [*inputs, *VARIANTS.extra_of(name, inputs[0])])
    source = _check(function, inputs)
    assert source.count("tl.dot(") == (4 if name in PEELED else 2) and source.count("tl.store(") == 1
    assert name != "causal" or "range(16 * i1_tile, tl.minimum(16 * i1_tile + 16, 40), BLOCK_I" in source


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_rows_that_see_nothing_are_zero() -> None:
    def is_far(b: Any, h: Any, i: Any, j: Any) -> Any:
        return j <= i - 20

    mask = create_block_mask(is_far, None, None, 40, 40, device="cpu", BLOCK_SIZE=8)
    _check(lambda q, k, v: flex_attention(q, k, v, block_mask=mask), _inputs(torch.bfloat16, 1, 2, 40, 16))  # pyright: ignore
