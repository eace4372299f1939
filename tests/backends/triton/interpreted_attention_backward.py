"""Gradients of attention from two numbers of each row, in kernels that compute scores again, in both interpreters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from inductile.backends.compile_graph import report_layouts
from inductile.backends.compiled import CompiledGraph, GraphReport
from inductile.backends.host import build
from inductile.backends.reference import run_module
from inductile.backends.triton.offline import OfflineBackend
from inductile.lowering import (
    fx_attention,
    fx_attention_heads,
    fx_attention_masks,
    fx_attention_written,
    fx_either,
)  # fmt: skip
from inductile.lowering.fx_private import without_modes
from inductile.lowering.pipeline import pipeline_string
from inductile.machines import GpuTarget, Library, target_named
from inductile.machines.nests import ATTENTION, MeasuredNest, NestShape
from inductile.passes.graph import choose_scores, partition, reassociate_row_sums, split_softmax

from ...scripts import load_benchmark
from .products import Tensor, for_cpu, kernels_for_gpu

VARIANTS: Any = load_benchmark("attention_variants")
VARIANTS.WINDOW, VARIANTS.PREFIX = 9, 20

HIDDEN = -float("inf")
#: small tiles leave something over
TILES = "kernel-map-chained-products{chain-rows=16 chain-step=16}"
OPTIONS: dict[str, Any] = {
    "loop_products": True,
    "pre_grad": "remove-identities",
    "pipeline": pipeline_string()
    .replace("kernel-map-chained-products", TILES)
    .replace("kernel-map-softmax-sums", "kernel-map-softmax-sums{softmax-rows=16 softmax-step=16}")
    .replace("kernel-peel-masked-steps", "kernel-peel-masked-steps{peel-least=1}"),
}


def _full(scores: Tensor) -> Tensor:
    return scores


def _hidden(scores: Tensor) -> Tensor:
    rows, columns = (torch.arange(size) for size in scores.shape[-2:])
    return scores.masked_fill(columns[None, :] > rows[:, None], HIDDEN)


def _capped(scores: Tensor) -> Tensor:
    return _hidden(torch.tanh(scores / 3) * 3)


def _scores(modify: Callable[[Tensor], Tensor], q: Tensor, k: Tensor) -> Tensor:
    return modify((q @ k.mT).to(torch.promote_types(q.dtype, torch.float32)) * 0.25)


def _statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    highest = x.amax(-1, keepdim=True)
    return highest, 1 / (x - highest).exp().sum(-1, keepdim=True)


def _gradients(modify: Callable[[Tensor], Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
    """The gradients of queries, keys and values, as autograd has them."""
    q, k, v, given, highest, share = inputs
    x = _scores(modify, q, k)
    weights = (x - highest).exp() * share
    of_v = weights.to(q.dtype).mT @ given
    of_weights = (given @ v.mT).to(x.dtype)
    of_x = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True))
    if modify is _capped:
        of_x = of_x * (1 - (torch.tanh((q @ k.mT).to(x.dtype) * 0.25 / 3)) ** 2)
    of_x = (of_x * 0.25).to(q.dtype)
    return of_x @ k, of_x.mT @ q, of_v


@pytest.mark.parametrize("modify", [_full, _hidden, _capped])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_gradients(modify: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    """Nothing as large as the scores is written."""
    generator = torch.Generator().manual_seed(0)
    q, k, v, given = (torch.randn(2, 40, 16, generator=generator).to(dtype) for _ in range(4))
    inputs = [q, k, v, given, *_statistics(_scores(modify, q, k))]

    def function(*inputs: Tensor) -> tuple[Tensor, ...]:
        return _gradients(modify, *inputs)

    module, program_inputs, sources = kernels_for_gpu(function, inputs, OPTIONS)
    wide = [x.double() for x in inputs[:4]]
    exact = function(*wide, *_statistics(_scores(modify, *wide[:2])))
    eager = function(*inputs)
    for run in (build(module), lambda given: run_module(module, given))[: 2 if dtype == torch.bfloat16 else 1]:
        for got, want, beside in zip(run(list(program_inputs)), exact, eager, strict=True):
            assert got.dtype == dtype and got.shape == want.shape
            allowed = 2 * (beside.double() - want).norm() + 1e-6 * want.norm()
            assert (got.double() - want).norm() <= allowed
    text = "\n".join(sources)
    peeled = modify is not _full  # steps without the mask by themselves
    assert text.count("tl.dot(") == 2 + (3 + 4) * (1 + peeled)


#: measurements of what the tests train, forward with backward
RECORDS = (
    MeasuredNest(
        NestShape(ATTENTION, "bf16", (8, 40, 40, 16), ("_softmax", "hidden:places", "tanh", "training")), 2.0, 1.0
    ),
)


class _OneTarget:
    """Whatever device a tensor is on, it is an H100."""

    def target(self, device: str) -> Any:
        found = target_named("cuda:90")
        assert isinstance(found, GpuTarget)
        return replace(found, nests=RECORDS)


class _Interpreted(OfflineBackend):
    """Runs what it compiles for a GPU on the CPU."""

    def _compile(self, kind: str, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        super()._compile(kind, graph, inputs)
        imported = self._lowered(graph, inputs, "cuda:90", self.config, kind)
        imported.module = for_cpu(imported.module)
        if kind == "forward":
            report_layouts(imported, inputs)
        with without_modes():
            return CompiledGraph(build(imported.module), imported, GraphReport(kind))


@pytest.mark.parametrize("name", [name for name in VARIANTS.VARIANTS if not name.startswith("called")])
def test_training(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward is one kernel, which stores a number of each row; the gradients are those of float64."""
    forward, backward = _trained(name, OPTIONS, monkeypatch)
    on_units = [text for text in forward.split("kernel.func")[1:] if "map matrix" in text]
    assert len(on_units) == 1 and "softmax_sum" in on_units[0]
    assert not [line for line in (forward + backward).splitlines() if "host.empty" in line and "x40x40x" in line]


def _sigmoid(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    rows, columns = (torch.arange(q.shape[-2]) for _ in range(2))
    weights = torch.sigmoid((q @ k.mT).float() * 0.25 - 3).masked_fill(columns[None, :] > rows[:, None], 0)
    return weights.to(v.dtype) @ v


def test_scores_that_are_not_normalised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores that are many are computed again, too, where nothing is known of their rows."""
    forward, backward = _gradients_of(_sigmoid, (1, 2, 160, 16), [], OPTIONS, monkeypatch)
    assert forward.count("host.launch") == 1 and backward.count("host.launch") == 2
    assert not [line for line in (forward + backward).splitlines() if "host.empty" in line and "x160x160x" in line]


def test_training_by_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the option what was measured to be faster becomes loops, and nothing else."""
    options = {name: value for name, value in OPTIONS.items() if name != "loop_products"}
    forward, backward = _trained("softcap", options, monkeypatch)
    assert "softmax_sum" in forward and "aten.bmm" not in forward + backward
    assert not [line for line in (forward + backward).splitlines() if "host.empty" in line and "x40x40x" in line]
    forward, backward = _trained("alibi", options, monkeypatch)
    assert "softmax_sum" not in forward and "aten.bmm" in forward and "aten.bmm" in backward


#: those of calls, whose library is that of the CPU here
CALLS = tuple(
    MeasuredNest(NestShape(ATTENTION, "bf16", (8, 40, 40, 16), tuple(sorted((*steps.split(), "training")))), 2.0, 1.0)
    for steps in (
        "_softmax call hidden:places", "_softmax call hidden:places+vectors", "_softmax call hidden:keys",
        "_softmax call:rows hidden:places", "_softmax added:matrix call", "_softmax added:matrix call:rows",
        "_softmax", "_softmax hidden:places", "_softmax hidden:places+vectors", "_softmax hidden:places tanh",
        "_softmax added:places hidden:places", "_softmax hidden:table",
    )
)  # fmt: skip


def _seen(name: str, length: int) -> Tensor:
    rows, columns = torch.arange(length)[:, None], torch.arange(length)[None, :]
    return {
        "window": (columns <= rows) & (rows - columns < 9),
        "prefix": (columns <= rows) | (columns < 20),
        "a hidden row": (columns <= rows) & (columns > 5),
    }[name]


def _call(name: str, **options: Any) -> Callable[..., Tensor]:
    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mask = _seen(name, q.shape[-2])
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, **options)

    return function


def _documents(q: Tensor, k: Tensor, v: Tensor, ids: Tensor) -> Tensor:
    place = torch.arange(q.shape[-2])
    mask = (place <= place[:, None]) & (ids == ids[:, None])
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _added(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def _residual(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries have another gradient, too, and keys are values."""
    return _call("window")(q * 2, k, k) + q * v.sum()


CALLED: dict[str, tuple[Callable[..., Tensor], bool]] = {
    "window": (_call("window"), True),
    "prefix": (_call("prefix"), True),
    "scale": (_call("window", scale=0.7), True),
    "groups": (lambda q, k, v: _call("window", enable_gqa=True)(q, k[:, ::2], v[:, ::2]), True),
    "a hidden row": (_call("a hidden row"), True),
    "documents": (lambda q, k, v: _documents(q, k, v, torch.arange(40) // 13), True),
    "loaded documents": (_documents, True),
    "residual": (_residual, True),
    "bias": (_added, True),
    "learned bias": (_added, False),
    "dropout": (_call("window", dropout_p=0.0), True),
}


@pytest.fixture
def on_an_h100(monkeypatch: pytest.MonkeyPatch) -> None:
    """What passes on Dynamo's graph ask about the machine is answered as for an H100 with these records."""
    target = replace(_OneTarget().target(""), nests=CALLS)
    monkeypatch.setattr(_OneTarget, "target", lambda self, device: target)
    monkeypatch.setattr(fx_either, "target_named", lambda name: target)
    library = Library(reads_mask_rows=True, keeps_nan=True, groups_heads=True)
    for module in (fx_attention, fx_attention_heads, fx_attention_masks, fx_attention_written):
        monkeypatch.setattr(module, "library_of", lambda device: library)


@pytest.mark.parametrize("name", list(CALLED))
def test_calls_by_records(name: str, on_an_h100: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call under a mask trains by the same loops, where records say so; what a bias learns is the library's."""
    function, becomes_loops = CALLED[name]
    generator = torch.Generator().manual_seed(1)
    extra = {
        "loaded documents": [torch.arange(40) // 13],
        "bias": [torch.randn(40, 40, generator=generator).bfloat16()],
        "learned bias": [torch.randn(40, 40, generator=generator).bfloat16().requires_grad_()],
    }.get(name, [])
    options = {key: value for key, value in OPTIONS.items() if key == "pipeline"}
    forward, backward = _gradients_of(function, (2, 4, 40, 16), extra, options, monkeypatch)
    assert ("softmax_sum" in forward) == becomes_loops
    if becomes_loops:
        assert "_scaled_dot_product" not in forward + backward
    assert "inductile::" not in forward + backward
    if becomes_loops:
        assert not [line for line in (forward + backward).splitlines() if "host.empty" in line and "x40x40x" in line]


FLEX = ("full", "causal", "window", "alibi", "softcap", "document", "prefix", "grouped")


@pytest.mark.parametrize("name", FLEX)
def test_flex_attention(name: str, on_an_h100: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """`flex_attention` trains by the same loops; torch itself has no gradient on the CPU."""
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *_: None)
    shape = (2, 4, 40, 16)
    extra = VARIANTS.extra_of(name, torch.empty(shape).bfloat16())
    flex = VARIANTS.flex_of(name, torch.empty(shape), extra)
    groups = VARIANTS.GROUPS
    mask = flex.mask and create_block_mask(flex.mask, None, None, 40, 40, device="cpu")

    def function(q: Tensor, k: Tensor, v: Tensor, *extra: Tensor) -> Any:
        if q.dtype == torch.double or torch.compiler.is_compiling() is False:
            return VARIANTS.VARIANTS[name](q, k, v, *extra)
        k, v = (x[:, ::groups] if flex.grouped else x for x in (k, v))
        return flex_attention(q, k, v, score_mod=flex.score, block_mask=mask, enable_gqa=flex.grouped)

    options = {key: value for key, value in OPTIONS.items() if key == "pipeline"}
    forward, backward = _gradients_of(function, shape, extra, options, monkeypatch)
    assert "softmax_sum" in forward and "flex_attention" not in forward + backward
    assert not [line for line in (forward + backward).splitlines() if "host.empty" in line and "x40x40x" in line]


def _trained(name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Check the gradients of a variant; the kernels of forward and backward."""
    # with several sequences the axes of both products are those of one fusion after a split
    shape = (2 if name in ("causal", "softcap") else 1, 4, 40, 32 if name == "differential" else 16)
    extra = VARIANTS.extra_of(name, torch.empty(shape).bfloat16())
    return _gradients_of(VARIANTS.VARIANTS[name], shape, extra, options, monkeypatch)


def _gradients_of(
    function: Callable[..., Tensor],
    shape: Sequence[int],
    extra: Sequence[Tensor],
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[str, str]:
    """Check the gradients of an attention against float64's; the kernels of forward and backward."""
    for module in (choose_scores, partition, reassociate_row_sums, split_softmax):
        monkeypatch.setattr(module, "targets_of", lambda _: _OneTarget())
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).bfloat16().requires_grad_() for _ in range(3)]
    given = torch.randn(shape, generator=generator).bfloat16()
    wide, beside = ([_wide(x) for x in each] for each in (inputs, extra))
    asked = [x for x in (*inputs, *extra) if x.requires_grad]
    exact = torch.autograd.grad(
        function(*wide, *beside), [x for x in (*wide, *beside) if x.requires_grad], given.double()
    )
    eager = torch.autograd.grad(function(*inputs, *extra), asked, given)
    torch._dynamo.reset()
    backend = _Interpreted(["cuda:90"], "cuda:0", options)
    result = torch.compile(function, backend=backend, dynamic=False)(*inputs, *extra)
    found = torch.autograd.grad(result, asked, given)
    for got, want, other in zip(found, exact, eager, strict=True):
        assert (got.double() - want).norm() <= 2 * (other.double() - want).norm() + 1e-6 * want.norm()
    forward, backward = (str(module) for _, _, module in backend.modules)
    return forward, backward


def _wide(x: Tensor) -> Tensor:
    return x.detach().double().requires_grad_(x.requires_grad) if x.is_floating_point() else x
