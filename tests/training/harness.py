"""Compare training steps of a compiled module with those of eager."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from inductile.backends.compile_graph import eager_callable
from inductile.backends.config import Config
from inductile.backends.partition import partition_joint
from inductile.backends.torch_compile import chosen_decompositions
from inductile.lowering.fx_private import aot_backend


@dataclass
class SplitBackend:
    """A backend that splits joint graphs as inductile does and runs both halves in eager; it keeps the graphs.

    random: whether random ops become functions of seeds; else both halves draw what eager draws
    """

    options: dict[str, Any] = field(default_factory=dict)
    random: bool = False
    forward: list[torch.fx.GraphModule] = field(default_factory=list)
    backward: list[torch.fx.GraphModule] = field(default_factory=list)

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        config = Config.resolve(None, {"fallback_random": not self.random, **self.options})
        return aot_backend(
            forward=self._keeping(self.forward),
            backward=self._keeping(self.backward),
            inference=self._keeping([]),
            decompositions=lambda: chosen_decompositions(config),
            partition=partial(partition_joint, config=config),
        )(graph, inputs)

    @staticmethod
    def _keeping(graphs: list[torch.fx.GraphModule]) -> Callable[..., Any]:
        def compiler(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
            graphs.append(graph)
            return eager_callable(graph)

        return compiler

    def saved(self) -> list[str]:
        """Names of the values that the last backward graph is given, tangents apart."""
        placeholders = self.backward[-1].graph.find_nodes(op="placeholder")
        return [node.name for node in placeholders if not node.name.startswith("tangents")]

    def targets(self, which: str) -> list[str]:
        """What the last graph, "forward" or "backward", calls."""
        graph = getattr(self, which)[-1]
        return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


@dataclass
class Step:
    """Outputs, gradients and state of one training step."""

    outputs: list[Any]
    gradients: dict[str, torch.Tensor | None]
    state: dict[str, torch.Tensor]


def train_step(
    module: torch.nn.Module,
    function: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    seed: int = 0,
    context: AbstractContextManager[Any] | None = None,
    loss: Callable[[list[torch.Tensor]], torch.Tensor] | None = None,
) -> Step:
    """Run `function` (the module, or the compiled module) forward and backward on copies of `inputs`."""
    args = [x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x for x in inputs]
    module.zero_grad(set_to_none=True)
    torch.manual_seed(seed)
    with context or nullcontext():
        outputs = tree_leaves(function(*args))
    tensors = [t for t in outputs if isinstance(t, torch.Tensor) and t.requires_grad]
    total = (loss or _weighted_sum)(tensors)
    total.backward()
    gradients = {name: p.grad for name, p in module.named_parameters()}
    gradients |= {f"input {k}": a.grad for k, a in enumerate(args) if isinstance(a, torch.Tensor) and a.requires_grad}
    return Step(outputs, gradients, dict(module.named_buffers()))


def _weighted_sum(tensors: list[torch.Tensor]) -> torch.Tensor:
    """A loss with a different gradient for each element."""
    weights = [torch.linspace(0.5, 1.5, t.numel(), dtype=torch.float64).reshape(t.shape) for t in tensors]
    return sum((t.double() * w).sum() for t, w in zip(tensors, weights, strict=True))  # pyright: ignore


def check_step(
    module: torch.nn.Module,
    inputs: Sequence[Any],
    backend: Any = "inductile",
    *,
    steps: int = 1,
    options: dict[str, Any] | None = None,
    dynamic: bool | None = None,
    context: Callable[[], AbstractContextManager[Any]] = nullcontext,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Assert that `steps` training steps of the compiled module give what eager gives: outputs, gradients, buffers."""
    torch._dynamo.reset()
    twin = copy.deepcopy(module)
    compiled: Any = torch.compile(twin, backend=backend, dynamic=dynamic, options=options)
    close = partial(torch.testing.assert_close, rtol=rtol, atol=atol, check_stride=False)
    for seed in range(steps):
        expected = train_step(module, module, inputs, seed=seed, context=context())
        got = train_step(twin, compiled, inputs, seed=seed, context=context())
        assert len(expected.outputs) == len(got.outputs)
        for position, (e, g) in enumerate(zip(expected.outputs, got.outputs, strict=True)):
            close(g, e, msg=lambda text, position=position: f"output {position}: {text}")
        assert expected.gradients.keys() == got.gradients.keys()
        for name, gradient in expected.gradients.items():
            other = got.gradients[name]
            assert (gradient is None) == (other is None), f"gradient of {name} is missing on one side"
            if gradient is not None:
                close(other, gradient, msg=lambda text, name=name: f"gradient of {name}: {text}")
        for name, buffer in expected.state.items():
            close(got.state[name], buffer, msg=lambda text, name=name: f"buffer {name}: {text}")
