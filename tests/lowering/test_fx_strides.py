"""Strides of what is traced against those of eager's kernels: op by op on fake tensors, and through AOTAutograd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map_only

from inductile.backends.config import Config
from inductile.backends.torch_compile import compile_dynamo_graph
from inductile.lowering.fx_strides import eager_strides

aten = torch.ops.aten


def laid(*shape: int, order: Sequence[int] | None = None, strides: Sequence[int] | None = None) -> torch.Tensor:
    """A tensor whose dimensions follow in an order, the outermost in memory first, or with given strides."""
    if strides is None:
        strides = [0] * len(shape)
        step = 1
        for dim in reversed(order or range(len(shape))):
            strides[dim] = step
            step *= shape[dim]
    tensor = torch.empty_strided(shape, tuple(strides))
    torch.as_strided(tensor, (tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,)).zero_()
    return tensor


CHANNELS_LAST = (0, 2, 3, 1)
PAIRS = [
    (laid(4, 6), laid(4, 6, order=(1, 0))),
    (laid(4, 6, order=(1, 0)), laid(4, 6)),
    (laid(4, 6, order=(1, 0)), torch.tensor(2.0)),
    (laid(4, 6, strides=(0, 1)), laid(4, 6, strides=(1, 0))),
    (laid(4, 6, strides=(2, 8)), laid(6)),
    (laid(3, 1, 5), laid(3, 5, order=(1, 0))),
    (laid(2, 3, 4, 5, order=CHANNELS_LAST), laid(2, 3, 4, 5)),
    (laid(1, 3, 1, 1), laid(2, 3, 4, 5, order=CHANNELS_LAST)),
    (laid(2, 3, 4, 1, order=CHANNELS_LAST), laid(2, 3, 4, 1, order=CHANNELS_LAST)),
    (laid(2, 3, 2, 4, 5, order=(0, 2, 3, 4, 1)), laid(2, 3, 2, 4, 5)),
    (laid(5, 1, order=(1, 0)), laid(5, 1, strides=(7, 3))),
]
BINARY = [
    aten.add.Tensor, aten.copysign.Tensor, aten.floor_divide.default, aten.logaddexp.default, aten.heaviside.default,
    aten.logical_and.default, aten.xlogy.Tensor, aten.maximum.default, aten.lt.Tensor, aten.hardswish_backward.default,
    aten.complex.default, lambda a, b: aten.threshold_backward(a, b, 0),
    lambda a, b: aten.leaky_relu_backward(a, b, 0.1, False), lambda a, b: torch.ops.aten.masked_fill(a, b < 1, 2.0),
    lambda a, b: aten.div.Tensor_mode(a, b, rounding_mode="floor"), lambda a, b: aten.where.self(a < 1, a, b),
]  # fmt: skip
UNARY = [
    aten.relu.default, aten.silu.default, aten.clone.default, aten.gelu.default, aten.empty_like.default,
    aten.log_sigmoid_forward.default, lambda x: aten.mul.Scalar(x, 2.0), lambda x: aten.pow.Scalar(2.0, x),
    aten.sort.default, aten.tril.default, aten.nan_to_num.default, aten.frexp.Tensor, aten.hardtanh.default,
    lambda x: aten.clamp.default(x, 0.0), lambda x: aten.sub.Scalar(x, 1.0), lambda x: aten.flip(x, [0]),
    lambda x: aten.roll(x, [1], [0]), lambda x: aten.roll(x[:0], [1], [0]),
    lambda x: aten.eq.Scalar(x, 1.0), lambda x: aten.add.Tensor(x, 1.0),
]  # fmt: skip


def differing(function: Callable[..., Any], args: Sequence[torch.Tensor]) -> list[str]:
    """Results whose fake strides are not eager's."""
    mode = FakeTensorMode()
    fakes = tree_map_only(torch.Tensor, mode.from_tensor, list(args))
    with eager_strides(fakes), mode:
        found = tree_leaves(function(*fakes))
    pairs = zip(tree_leaves(function(*args)), found, strict=True)
    return [f"{e.stride()} -> {f.stride()}" for e, f in pairs if e.stride() != f.stride()]


def _name(function: Any) -> str | None:
    """That of an operator; None, for which pytest counts, for what has none."""
    return str(function) if isinstance(function, torch._ops.OpOverload) else None


@pytest.mark.parametrize("function", BINARY, ids=_name)
def test_binary(function: Callable[..., Any]) -> None:
    assert [(k, d) for k, pair in enumerate(PAIRS) if (d := differing(function, pair))] == []


@pytest.mark.parametrize("function", UNARY, ids=_name)
def test_unary(function: Callable[..., Any]) -> None:
    tensors = [each for pair in PAIRS for each in pair if each.dim() > 1]
    assert [(k, d) for k, each in enumerate(tensors) if (d := differing(function, [each]))] == []


def _norms(x: torch.Tensor, g: torch.Tensor) -> list[torch.Tensor]:
    """Norms of an image and their gradients."""
    (n, c, h, w), ones = x.shape, torch.ones_like(x[0, :, 0, 0])
    results = [aten._native_batch_norm_legit_no_training(x, ones, ones, ones, ones, 0.1, 1e-5)[0]]
    y, mean, rstd = aten._native_batch_norm_legit.no_stats(x, ones, ones, True, 0.1, 1e-5)
    masks = [True, True, True]
    results += [y, aten.native_batch_norm_backward(g, x, ones, None, None, mean, rstd, True, 1e-5, masks)[0]]
    y, mean, rstd = aten.native_layer_norm(x, (c, h, w), None, None, 1e-5)
    results += [y, aten.native_layer_norm_backward(g, x, (c, h, w), mean, rstd, None, None, [True, False, False])[0]]
    return [*results, aten.native_group_norm(x, ones, ones, n, c, h * w, 1, 1e-5)[0]]


@pytest.mark.parametrize("shape", [(2, 1, 4, 6), (2, 4, 1, 1), (2, 3, 4, 6), (2, 4, 1, 6)])
def test_norms_of_ambiguous_images(shape: Sequence[int]) -> None:
    """One channel, or one point, is both contiguous and channels last; eager's kernels ask in different orders."""
    layouts = [laid(*shape), laid(*shape, order=CHANNELS_LAST)]
    wrong = [(x.stride(), g.stride(), d) for x in layouts for g in layouts if (d := differing(_norms, [x, g]))]
    assert wrong == []


def traced(function: Callable[..., Any], args: Sequence[torch.Tensor], dynamic: bool) -> list[str]:
    """Outputs, and gradients, whose strides are not eager's or not those that the traced graph says."""
    wrong: list[str] = []

    def run_in_eager(kind: str, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        said = [node.meta["val"] for node in tree_leaves(graph.graph.output_node().args) if node is not None]

        def run(taken: list[Any]) -> Any:
            results = graph(*taken)
            for old, new in zip(said, [r for r in tree_leaves(results) if r is not None], strict=True):
                if isinstance(old, torch.Tensor) and not dynamic and old.stride() != new.stride():
                    wrong.append(f"{kind}: {old.stride()} said, {new.stride()} given")
            return results

        run._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
        return run

    def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return compile_dynamo_graph(graph, inputs, Config(), run_in_eager)

    def outputs(called: Callable[..., Any]) -> list[torch.Tensor]:
        own = [each.detach().requires_grad_(each.requires_grad) for each in args]
        results = tree_leaves(called(*own))
        if any(each.requires_grad for each in own):
            torch.autograd.backward([r for r in results if r.requires_grad], [torch.ones_like(r) for r in results])
        return [*results, *(each.grad for each in own if each.grad is not None)]

    torch._dynamo.reset()
    got = outputs(torch.compile(function, backend=backend, dynamic=dynamic))
    pairs = zip(outputs(function), got, strict=True)
    return wrong + [f"{e.stride()} -> {g.stride()}" for e, g in pairs if e.stride() != g.stride()]


def image(requires_grad: bool = False) -> torch.Tensor:
    return laid(2, 4, 5, 6, order=CHANNELS_LAST).requires_grad_(requires_grad)


@pytest.mark.parametrize("dynamic", [False, True])
def test_traced_inference(dynamic: bool) -> None:
    def function(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Any:
        shuffled = F.channel_shuffle(x, 2)
        shared = torch.copysign(a, b)
        return torch.roll(x, (1, -2), (2, 3)), shuffled, F.group_norm(x, 2), shared.t(), shared.flatten(), x.relu()

    assert traced(function, [image(), laid(5, 6, order=(1, 0)), laid(5, 6)], dynamic) == []


def test_traced_training() -> None:
    """The gradients that reach the backward graph have the strides that outputs are said to have."""

    def function(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> Any:
        return F.group_norm(x, 2) * 2, torch.logaddexp(a, b), F.batch_norm(x, None, None, training=True)

    args = [image(True), laid(5, 6, order=(1, 0)).requires_grad_(), laid(5, 6).requires_grad_()]
    assert traced(function, args, dynamic=False) == []


def test_other_modes_are_left_alone() -> None:
    mode, other = FakeTensorMode(), FakeTensorMode()
    a, b = PAIRS[1]
    with eager_strides([mode.from_tensor(a)]), other:
        unchanged = aten.copysign.Tensor(other.from_tensor(a), other.from_tensor(b)).stride()
    with mode:
        after = aten.copysign.Tensor(mode.from_tensor(a), mode.from_tensor(b)).stride()
    assert unchanged == after
