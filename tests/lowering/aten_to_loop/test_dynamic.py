"""Symbolic sizes: whole functions captured with dynamic shapes, lowered, and run on several sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule
from xdsl.dialects.builtin import ModuleOp

from inductile.backends.reference import run_module
from inductile.dialects.context import new_context
from inductile.lowering.aten_to_loop import LowerAtenToLoop
from inductile.lowering.fx_import import import_graph

from ...versions import torch_version
from .harness import differences


class LoopLevel:
    """A backend of torch.compile that lowers to the loop level and interprets."""

    def __init__(self) -> None:
        self.modules: list[ModuleOp] = []

    def __call__(self, graph: GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        imported = import_graph(graph, inputs)
        LowerAtenToLoop().apply(new_context(), imported.module)
        imported.module.verify()
        self.modules.append(imported.module)

        def run(args: list[Any]) -> Any:
            return imported.arrange_outputs(run_module(imported.module, [*args, *imported.constants]))

        run._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
        return run


def views(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    n, m = x.shape
    y = x.view(n * m)
    return (
        y.view(m, n) + 1, x.t().reshape(-1) * 2, x[1:, :-1] + x[:-1, 1:], x[:, -3:].flip(1), x.unfold(1, 2, 1).sum(-1),
        x.roll(1, 0), x.repeat(2, 3), torch.cat([x, x[:1]]), x.expand(2, n, m).sum(0), x[-1], x.diagonal() + 0,
        torch.stack([x, -x], 1), torch.tril(x), x.unsqueeze(1).expand(n, 2, m).reshape(2 * n, m) + 0,
        F.pad(x, (1, 2), value=3.0), F.pad(x[None], (2, 1), mode="reflect"),
    )  # fmt: skip


def reductions(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    n, m = x.shape
    return (
        x.mean(), x.mean(0), x.softmax(-1), x.log_softmax(0), x.var(1), F.layer_norm(x, (m,)), x.argmax(), x.cumsum(1),
        x.logsumexp(0), torch.linalg.vector_norm(x, dim=1), x.amax(1, keepdim=True), x.std(), x + n * m,
        torch.arange(n) * m, torch.full((n, 2), m), F.group_norm(x.t()[None, :4], 2), torch.eye(n) + 0,
    )  # fmt: skip


def indexing(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    n, m = x.shape
    i = torch.arange(n) % 2
    return (
        x[i], x[-i - 1], x.index_select(0, i), x.gather(0, i[:, None].expand(n, m)), F.embedding(i, x),
        x.clone().index_put_((i,), x[0] * 2), x.index_add(0, i, x), x.scatter_add(0, i[:, None].expand(n, m), x),
        F.max_pool2d(x[None], 2), F.avg_pool2d(x[None], 3, 2, 1), F.adaptive_avg_pool2d(x[None], (1, 2)),
        F.interpolate(x[None, None], scale_factor=2.0), x.masked_fill(x > 3, 0.0), torch.where(x > 1, x, 0.0),
    )  # fmt: skip


SHAPES = ((4, 6), (5, 8), (7, 9))


def _graphs_of_torch(function: Callable[..., Any]) -> int:
    """How many graphs Dynamo makes for the shapes when nothing is lowered."""
    torch._dynamo.reset()
    graphs: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        graphs.append(graph)
        return graph

    compiled = torch.compile(function, backend=keep, dynamic=True, fullgraph=True)
    for shape in SHAPES:
        compiled(torch.ones(shape))
    return len(graphs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", [views, reductions, indexing])
def test_one_module_serves_every_size(function: Callable[..., Any]) -> None:
    torch._dynamo.reset()
    level = LoopLevel()
    compiled = torch.compile(
        function, backend=aot_autograd(fw_compiler=level, inference_compiler=level), dynamic=True, fullgraph=True
    )
    for shape in SHAPES:
        x = torch.randint(-9, 10, shape, generator=torch.Generator().manual_seed(shape[0])) / 2
        expected, got = function(x), compiled(x)
        found = [(k, d) for k, (e, g) in enumerate(zip(expected, got, strict=True)) for d in differences(e, g)]
        assert found == [], shape
    # torch 2.11 itself guards on sizes in `indexing`
    assert len(level.modules) == 1 or (torch_version() < (2, 12) and len(level.modules) <= _graphs_of_torch(function))
