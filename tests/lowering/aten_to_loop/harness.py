"""Runs one ATen overload eagerly and, lowered to the loop level, by the reference backend, and compares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._prims_common import check_significant_strides
from torch.fx import Graph, GraphModule
from torch.utils import _pytree as pytree
from xdsl.dialects.builtin import ModuleOp

from inductile.backends.reference import run_module
from inductile.dialects.context import new_context
from inductile.lowering.aten_to_loop import LowerAtenToLoop
from inductile.lowering.fx_import import import_graph


def overload(name: str) -> Any:
    """`add.Tensor` -> torch.ops.aten.add.Tensor"""
    packet, _, rest = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), rest or "default")


def traced(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[GraphModule, list[Any], Any]:
    """A graph with one node, its tensor inputs, and what eager returns."""
    op = overload(name)
    expected = op(
        *pytree.tree_map_only(
            torch.Tensor, lambda t: t.clone(memory_format=torch.preserve_format) if not _overlaps(t) else t, args
        ),
        **kwargs,
    )
    graph = Graph()
    inputs: list[torch.Tensor] = []

    def place(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        node = graph.placeholder(f"x{len(inputs)}")
        node.meta["val"] = value
        inputs.append(value)
        return node

    node = graph.call_function(op, pytree.tree_map(place, tuple(args)), pytree.tree_map(place, kwargs))
    node.meta["val"] = expected
    if isinstance(expected, (tuple, list)):
        import operator

        outputs = []
        for position, each in enumerate(expected):
            if each is None:
                continue
            item = graph.call_function(operator.getitem, (node, position))
            item.meta["val"] = each
            outputs.append(item)
    else:
        outputs = [node]
    graph.output(tuple(outputs))
    flat = [each for each in pytree.tree_leaves(expected) if each is not None]
    return GraphModule({}, graph), inputs, flat


def _overlaps(tensor: torch.Tensor) -> bool:
    return any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def lower(name: str, args: Sequence[Any], kwargs: dict[str, Any], **options: Any) -> tuple[ModuleOp, list[Any], Any]:
    """The module of one op after the pass, its inputs, and eager's results."""
    graph, inputs, expected = traced(name, args, kwargs)
    module = import_graph(graph).module
    LowerAtenToLoop(**options).apply(new_context(), module)
    module.verify()
    return module, inputs, expected


def differences(expected: Any, got: Any, exact_strides: bool = True) -> list[str]:
    """What differs between two tensors; [] when they agree."""
    if expected.dtype != got.dtype:
        return [f"dtype {expected.dtype} -> {got.dtype}"]
    if expected.shape != got.shape:
        return [f"shape {tuple(expected.shape)} -> {tuple(got.shape)}"]
    if exact_strides and not check_significant_strides(expected, got, only_cuda=False)[0]:
        return [f"stride {expected.stride()} -> {got.stride()}"]
    try:
        torch.testing.assert_close(got, expected, equal_nan=True, check_stride=False)
    except AssertionError:
        wrong = ~torch.isclose(got.double(), expected.double(), 1e-3, 1e-5, equal_nan=True).flatten()
        wrong = wrong if wrong.any() else (got != expected).flatten()
        places = wrong.nonzero().flatten()[:6]
        shown = [t.flatten()[places].tolist() for t in (expected, got)]
        return [f"values at {places.tolist()}: {shown[0]} -> {shown[1]}"]
    if expected.dtype.is_floating_point and expected.dtype.itemsize > 1:
        zeros = (expected == 0) & (got == 0)
        if not torch.equal(expected.signbit()[zeros], got.signbit()[zeros]):
            return [f"sign {expected.flatten()[:8].tolist()} -> {got.flatten()[:8].tolist()}"]
    return []


def faults(name: str, *args: Any, skip_results: Sequence[int] = (), **kwargs: Any) -> list[str]:
    """How the lowered op differs from eager; errors count as equal when both raise."""
    module, inputs, expected = lower(name, args, kwargs)
    assert not any(op.name.startswith("aten.") for op in module.walk()), f"{name} was not lowered"
    got = run_module(module, inputs)
    assert len(got) == len(expected)
    return [
        f"#{k} {difference}"
        for k, (e, g) in enumerate(zip(expected, got, strict=True))
        if k not in skip_results
        for difference in differences(e, g)
    ]
