"""Passes on Dynamo's graph of torch-level calls, before autograd and functionalization see it."""

from __future__ import annotations

import importlib
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import field
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch.fx import GraphModule, Node
from torch.fx.operator_schemas import normalize_function

from .. import extensions
from ..errors import PassError, PassFailureWarning, UserError
from ..passes.counters import counter
from ..passes.remarks import remark
from ..records import dataclass
from .fx_undo import GraphCopy
from .pre_grad import PRE_GRAD, PreGradPass, pre_grad_names

#: changes the inputs of a call before the compiled graph gets them
Adapter: TypeAlias = Callable[[list[Any]], None]
PassFunction: TypeAlias = Callable[[GraphModule, Sequence[Any]], "Adapter | None"]

_FUNCTIONS: dict[str, PassFunction] = {}
_RANDOM_AS_EAGER: ContextVar[bool] = ContextVar("random_as_eager", default=False)


def random_as_eager() -> bool:
    """Whether passes that run now must leave random numbers to be those of eager."""
    return _RANDOM_AS_EAGER.get()


def pre_grad_pass(name: str) -> Callable[[PassFunction], PassFunction]:
    """Enter the code of a pass that `pre_grad.PRE_GRAD` lists."""

    def enter(function: PassFunction) -> PassFunction:
        assert name in PRE_GRAD, name
        _FUNCTIONS[name] = function
        return function

    return enter


def register_pre_grad(name: str, purpose: str, function: PassFunction) -> None:
    """Make a pass of a plugin known in this process. UserError when the name is taken.

    `function` changes the graph in place; it may return a function that changes the inputs of each call.
    """
    if name in PRE_GRAD:
        raise UserError(f"the pass name {name!r} is taken", "give the plugin's pass another name")
    extensions.add("inductile.pre_grad", name, function)
    PRE_GRAD[name] = PreGradPass(name, purpose, function.__module__, optional=False)
    _FUNCTIONS[name] = function


def pass_function(name: str) -> PassFunction:
    """The code of a pass, loaded when it is first asked for."""
    if name not in _FUNCTIONS:
        importlib.import_module(f"..{PRE_GRAD[name].module}", __package__)
    return _FUNCTIONS[name]


def run_pre_grad(
    graph: GraphModule,
    inputs: Sequence[Any],
    names: str,
    after_pass: Callable[[str], None] = lambda name: None,
    fallback_random: bool = False,
) -> list[Adapter]:
    """Run the named passes on a graph in place; returns what has to be done to the inputs of each call.

    after_pass:      called with the name of each pass behind it
    fallback_random: whether random numbers must be eager's

    An optional pass that fails is undone, which a warning and a remark say. Raises PassError for any other.
    """
    adapters: list[Adapter | None] = []
    for name in pre_grad_names(names):
        before = GraphCopy(graph)
        token = _RANDOM_AS_EAGER.set(fallback_random)
        try:
            adapters.append(pass_function(name)(graph, inputs))
            graph.graph.lint()
        except UserError:
            raise
        except Exception as error:
            _undo(before, name, error)
        finally:
            _RANDOM_AS_EAGER.reset(token)
        after_pass(name)
    graph.recompile()
    return [adapter for adapter in adapters if adapter is not None]


def _undo(before: GraphCopy, name: str, error: Exception) -> None:
    """Take back what a pass did that failed, or raise PassError for one that graphs need."""
    failure = PassError(name, f"{type(error).__name__}: {error}")
    if not PRE_GRAD[name].optional:
        raise failure from error
    before.restore()
    warnings.warn(f"inductile compiles a graph without a pass: {failure}", PassFailureWarning, stacklevel=2)
    remark("failure", name, None, f"the program is compiled without it: {failure.reason}")


def with_adapters(compiled: Callable[..., Any], adapters: Sequence[Adapter]) -> Callable[..., Any]:
    """A compiled function whose inputs pass through `adapters` first."""
    if not adapters:
        return compiled

    def run(*args: Any) -> Any:
        inputs = list(args)
        for adapt in adapters:
            adapt(inputs)
        return compiled(*inputs)

    return run


def _arguments(node: Node) -> dict[str, Any]:
    """Arguments of a call by name, defaults included; empty when they cannot be told."""
    normalized = normalize_function(node.target, node.args, dict(node.kwargs), normalize_to_only_use_kwargs=True)  # pyright: ignore
    return dict(normalized.kwargs) if normalized is not None else {}


# remove-identities

_DROPOUTS = (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout)


@pre_grad_pass("remove-identities")
def remove_identities(graph: GraphModule, inputs: Sequence[Any]) -> None:
    """dropout(x, training=False) == dropout(x, p=0) == x: eager returns the very tensor, and no alias comes or goes."""
    for node in list(graph.graph.nodes):
        if node.op != "call_function" or node.target not in _DROPOUTS or not isinstance(node.args[0], Node):
            continue
        given = _arguments(node)
        drops_nothing = given.get("training") is False or (isinstance(given.get("p"), int | float) and given["p"] == 0)
        if drops_nothing and counter("remove-identities"):
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)
            remark("passed", "remove-identities", None, f"{node.name} is its argument")


# fold-batch-norm

_CONVOLUTIONS = (torch.conv1d, torch.conv2d, torch.conv3d)
_ROLES = ("running_mean", "running_var", "weight", "bias")


@pre_grad_pass("fold-batch-norm")
def fold_batch_norm(graph: GraphModule, inputs: Sequence[Any]) -> Adapter | None:
    """batch_norm(conv(x, w, b)) == conv(x, w * s, (b - mean) * s + beta), with s = gamma / sqrt(var + eps).

    The folded weights take the places of w and beta among the inputs of the graph. They are computed when a call
    brings other parameters than the call before, or parameters that were written since.
    """
    if torch.is_grad_enabled():
        return None
    placeholders = {node: k for k, node in enumerate(graph.graph.find_nodes(op="placeholder"))}
    folds: list[_Fold] = []
    for node in list(graph.graph.nodes):
        if node.op != "call_function" or node.target is not F.batch_norm:
            continue
        found = _fold_at(node, placeholders, inputs)
        if isinstance(found, str):
            remark("missed", "fold-batch-norm", None, f"{node.name} stays: {found}")
            continue
        if not counter("fold-batch-norm"):
            continue
        convolution = node.args[0]
        assert isinstance(convolution, Node)
        bias = _arguments(node)["bias"]
        convolution.args = (*convolution.args[:2], bias, *convolution.args[3:])
        node.replace_all_uses_with(convolution)
        graph.graph.erase_node(node)
        folds.append(found)
        remark("passed", "fold-batch-norm", None, f"{node.name} is folded into {convolution.name}")
    return _Folds(folds) if folds else None


def _fold_at(node: Node, placeholders: dict[Node, int], inputs: Sequence[Any]) -> _Fold | str:
    """How a batch norm is folded, or why it is not."""
    norm = _arguments(node)
    convolution = node.args[0]
    if norm.get("training") is not False:
        return "it is not in evaluation"
    if not isinstance(convolution, Node) or convolution.target not in _CONVOLUTIONS or len(convolution.args) < 3:
        return "no convolution is before it"
    if len(convolution.users) > 1:
        return "something else reads the convolution"
    parts = {"conv_weight": convolution.args[1], **{role: norm.get(role) for role in _ROLES}}
    conv_bias = convolution.args[2]
    if conv_bias is not None:
        parts["conv_bias"] = conv_bias
    if any(not isinstance(part, Node) or part not in placeholders for part in parts.values()):
        return "a weight is computed in the graph"
    if len(parts["conv_weight"].users) > 1 or len(parts["bias"].users) > 1:  # pyright: ignore
        return "a weight is used elsewhere too"
    positions = {role: placeholders[part] for role, part in parts.items()}  # pyright: ignore
    values = [inputs[k] for k in positions.values()]
    if any(value.dtype not in (torch.float32, torch.float64) for value in values):
        return "its weights are of low precision"
    if any(value.is_inference() for value in values):
        return "writes to inference tensors are not counted"
    return _Fold(positions, norm["eps"])


def _version(tensor: torch.Tensor) -> int | None:
    """How often a tensor was written; None where that is not counted."""
    return None if tensor.is_inference() else tensor._version


@dataclass
class _Fold:
    """One batch norm: where its tensors are among the inputs, and the weights that stand in for them."""

    positions: dict[str, int]
    eps: float
    versions: list[tuple[weakref.ref[torch.Tensor], int | None]] = field(default_factory=list)
    weight: torch.Tensor | None = None
    bias: torch.Tensor | None = None

    def apply(self, inputs: list[Any]) -> None:
        """Put the folded weights in their places."""
        tensors = {role: inputs[k] for role, k in self.positions.items()}
        if not self._is_current(tensors):
            self._compute(tensors)
            self.versions = [(weakref.ref(tensor), _version(tensor)) for tensor in tensors.values()]
        inputs[self.positions["conv_weight"]] = self.weight
        inputs[self.positions["bias"]] = self.bias

    def _is_current(self, tensors: dict[str, torch.Tensor]) -> bool:
        return len(self.versions) == len(tensors) and all(
            ref() is tensor and version is not None and version == _version(tensor)
            for (ref, version), tensor in zip(self.versions, tensors.values(), strict=True)
        )

    def _compute(self, tensors: dict[str, torch.Tensor]) -> None:
        with torch.no_grad():
            wide = {role: tensor.detach().double() for role, tensor in tensors.items()}
            scale = wide["weight"] / (wide["running_var"] + self.eps).sqrt()
            weight = tensors["conv_weight"]
            folded = wide["conv_weight"] * scale.reshape(-1, *[1] * (weight.dim() - 1))
            # the compiled graph relies on the strides of the weight that it was compiled for
            self.weight = torch.empty_strided(
                weight.shape, weight.stride(), dtype=weight.dtype, device=weight.device
            ).copy_(folded)
            shift = wide.get("conv_bias", 0.0) - wide["running_mean"]
            self.bias = (shift * scale + wide["bias"]).to(tensors["bias"].dtype)


class _Folds:
    """Folds all batch norms of a graph; an `Adapter`."""

    def __init__(self, folds: Sequence[_Fold]) -> None:
        self.folds = folds

    def __call__(self, inputs: list[Any]) -> None:
        """Replace inputs in place."""
        for fold in self.folds:
            fold.apply(inputs)
