"""An exported program for another device, which need not be here: its tensors there are fake."""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._pytree import tree_map, tree_map_only

from ...errors import UserError


def moved(program: ExportedProgram, device: str) -> ExportedProgram:
    """The same program with all tensors on a device. Its weights are fake tensors: it can be traced, and not be run.

    UserError for a program with graphs inside.
    """
    mode = _mode_of(program)
    module = program.graph_module
    if any(isinstance(child, GraphModule) for child in module.children()):
        raise UserError("a program with graphs inside cannot be moved", "export it on the device that it is for")
    graph = Graph()
    nodes: dict[Node, Node] = {}
    output = graph.graph_copy(module.graph, nodes)
    graph.output(output)
    for old, new in nodes.items():
        new.name = old.name  # a copy gets others where names are those of Python's functions
    there = torch.device(device)
    with mode:
        for node in graph.nodes:
            node.args, node.kwargs = (
                tree_map_only(torch.device, lambda _: there, each) for each in (node.args, node.kwargs)
            )
            if node.target is torch.ops.aten.to.device:
                node.args = (node.args[0], there, *node.args[2:])
            if "val" in node.meta:
                node.meta = {**node.meta, "val": _faked(node.meta["val"], mode, there)}
        state = {name: _faked(tensor, mode, there) for name, tensor in program.state_dict.items()}
        constants = {name: _faked(tensor, mode, there) for name, tensor in program.constants.items()}
    output_node = module.graph.output_node()
    graph.output_node().meta = dict(output_node.meta)
    return ExportedProgram(
        root=GraphModule(module, graph),
        graph=graph,
        graph_signature=program.graph_signature,
        state_dict=state,
        range_constraints=program.range_constraints,
        module_call_graph=program.module_call_graph,
        example_inputs=None,
        constants=constants,
        verifiers=program.verifiers,
    )


def _mode_of(program: ExportedProgram) -> FakeTensorMode:
    values = (node.meta.get("val") for node in program.graph.find_nodes(op="placeholder"))
    modes = (getattr(value, "fake_mode", None) for value in values)
    return next((mode for mode in modes if mode is not None), FakeTensorMode(shape_env=ShapeEnv()))


def _faked(value: Any, mode: FakeTensorMode, device: torch.device) -> Any:
    """A fake tensor of the same layout on a device; what is no tensor stays."""

    def fake(tensor: torch.Tensor) -> torch.Tensor:
        shape, stride = tensor.shape, tensor.stride()
        made = torch.empty_strided(shape, stride, dtype=tensor.dtype, device=device)
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
        return made

    return tree_map(lambda each: fake(each) if isinstance(each, torch.Tensor) else each, value)
