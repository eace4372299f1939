"""Compiled graphs that are recorded once and replayed: the options `triton.cudagraphs` and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._dynamo.utils import counters
from xdsl.ir import SSAValue

from ...dialects import host
from ...dialects.aten import TensorType
from ...dialects.machine import targets_of
from ...errors import UserError
from ...lowering.fx_import import ImportedGraph, ResultSlot
from ...machines import in_host_memory
from ...passes.analysis.functions import kernels_of
from ...passes.analysis.kept import is_kept_value
from ...passes.host._capturable import obstacles
from ...passes.remarks import format_location, remark
from ..config import Config
from ..host.emit import main_device
from ..host.gpu import is_gpu
from ..host.lazy_bits import written_arguments
from ..host.program import HostProgram
from . import private
from .recorded import Recorded, hints

if TYPE_CHECKING:
    from ..targets import Program

PASS = "cudagraphs"
"""The name under which remarks are made."""
#: the fact that names the results to copy before a new step overwrites them
VISIBLE = "user_visible_output_idxs"


class Recording:
    """What the forward and the backward graph of one function share: whether they are recorded, and on what device.

    A backward graph is recorded only where its forward graph is: what that saved else lies elsewhere in each call.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.device: int | None = None
        self.is_possible = True
        self.static_names: frozenset[str] | None = None
        """Inputs that keep their address of a forward graph that runs in parts, by name."""

    def wrap(
        self,
        compiled: Callable[[list[Any]], Any],
        program: Program,
        imported: ImportedGraph,
        graph: torch.fx.GraphModule,
        kind: str,
    ) -> Callable[[list[Any]], Any]:
        """The compiled graph as one that is recorded, or as it is, with the reason told once.

        Raises UserError instead with the option `triton.cudagraph_or_error`.
        """
        function = next(op for op in imported.module.ops if isinstance(op, host.FuncOp))
        in_parts = any(isinstance(op, host.CallOp) and op.kept is None for op in function.body.block.ops)
        if isinstance(program, HostProgram) and in_parts and self.is_possible:
            self._wrap_parts(function, program, imported, graph, kind)
            return compiled
        static = self._static(graph, kind)
        reason = None if _computes_nothing(function) else self._reason(function, imported, graph, static)
        if reason is not None or _computes_nothing(function):
            self.is_possible = self.is_possible and kind == "backward"
            if reason is not None:
                self._tell(kind, function, reason)
            return compiled if kind != "backward" or self.device is None else _announced(compiled, self.device)
        if self.device is None:
            self.device = torch.device(main_device(function)).index or 0
        facts = self._facts(kind) | {
            "stack_traces": private.output_traces(graph),
            "constants": tuple(c for c in imported.constants if is_gpu(c.device.type)),
            "placeholders": private.placeholder_facts(graph),
            "mutated_input_idxs": sorted(_written(function, imported)),
            VISIBLE: self._visible(graph, kind),
        }
        remark("passed", PASS, function, f"the {kind} graph is recorded and replayed")
        return Recorded(compiled, static, facts, self.config, getattr(program, "checks", ()))

    def _facts(self, kind: str) -> dict[str, Any]:
        """What torch's machinery is told of all recordings of a graph."""
        return {
            "device_index": self.device,
            "is_backward": kind == "backward",
            "is_inference": kind == "inference",
            "compile_id": private.compile_id(),
        }

    def _visible(self, graph: torch.fx.GraphModule, kind: str) -> tuple[int, ...]:
        """Outputs that torch copies where they are alive when a new step begins, which it does where it is asked to."""
        if self.config.cudagraph_trees_generation_cloning is None:
            return ()
        if not private.takes(VISIBLE):
            hints.warning("triton.cudagraph_trees_generation_cloning: this torch copies no results of recordings")
        return private.visible_outputs(graph, kind)

    def _static(self, graph: torch.fx.GraphModule, kind: str) -> list[int]:
        """Positions of the inputs that keep their address.

        Behind a forward graph that runs in parts these are of a backward graph its parameters alone: what the steps
        between the parts made lies elsewhere in each call.
        """
        found = private.static_inputs(graph, kind)
        if kind == "backward" and self.static_names is not None:
            return [k for k in found if not self.static_names.isdisjoint(private.names_of(graph, [k]))]
        return found

    def _wrap_parts(
        self,
        function: host.FuncOp,
        program: HostProgram,
        imported: ImportedGraph,
        graph: torch.fx.GraphModule,
        kind: str,
    ) -> None:
        """Let a program call recordings of its parts."""
        static = self._static(graph, kind)
        if kind == "forward":
            self.static_names = private.names_of(graph, static)
        arguments = function.body.block.args
        static += range(len(arguments) - len(imported.constants), len(arguments))
        if self.device is None:
            self.device = torch.device(main_device(function)).index or 0
        known = [
            *private.placeholder_facts(graph),
            *(private.unknown_placeholder("constant") for _ in imported.constants),
        ]
        kernels = kernels_of(imported.module)
        overlapping = private.overlapping_inputs(graph, static)
        visible = _values(function, imported, self._visible(graph, kind))
        for kept in program.kept.values():
            kept.in_place = True
        checks: Sequence[Callable[[], None]] = program.checks
        parts = {op.sym_name.data: op for op in imported.module.ops if isinstance(op, host.FuncOp)}
        for call in function.body.block.ops:
            if not isinstance(call, host.CallOp) or call.kept is not None:
                continue
            name = call.callee.root_reference.data
            written = set(written_arguments(parts[name], kernels))
            places = [arguments.index(v) if v in arguments else None for v in call.arguments]
            fixed = [k for k, (v, place) in enumerate(zip(call.arguments, places, strict=True))
                     if is_kept_value(v) or (place is not None and place in static)]  # fmt: skip
            is_left = self._is_left(bool(parts[name].symbols.data)) or self._writes_are_left(written, fixed)
            if is_left or not set(overlapping).isdisjoint(places):
                continue
            facts = self._facts(kind) | {
                VISIBLE: tuple(k for k, result in enumerate(call.out) if result in visible),
                "stack_traces": [None] * len(call.out),
                "constants": (),
                "placeholders": [
                    private.unknown_placeholder(f"{name}_{k}") if place is None else known[place]
                    for k, place in enumerate(places)
                ],
                "mutated_input_idxs": sorted(written),
            }
            recorded = Recorded(program.parts[name].run, fixed, facts, self.config, checks)
            program.call_instead(name, recorded)
            checks = ()
        counters["inductile"]["graphs that are recorded in parts"] += 1
        hints.warning(
            "the %s graph is recorded in %d parts: explain() says what runs between", kind, len(program.parts)
        )

    def _reason(
        self, function: host.FuncOp, imported: ImportedGraph, graph: torch.fx.GraphModule, static: Sequence[int]
    ) -> str | None:
        """Why a graph is not recorded."""
        arguments = function.body.block.args
        own = len(arguments) - len(imported.constants)
        if not targets_of(imported.module).target(main_device(function)).family.records:
            return "it does not run on a CUDA device"
        if not self.is_possible:
            return "its forward graph is not recorded"
        dynamic = any(declared.data.arg is not None for declared in function.symbols)
        if self._is_left(dynamic):
            return "it has dynamic sizes (options triton.cudagraph_skip_dynamic_graphs, triton.cudagraph_trees)"
        for position, argument in enumerate(arguments[:own]):
            kind = argument.type
            if isinstance(kind, TensorType) and in_host_memory(kind.device):
                return f"its input {position} ({argument.name_hint}) is a tensor of the CPU"
            if not isinstance(kind, TensorType) and str(kind) != "index":
                return f"its input {position} ({argument.name_hint}) is a number that is no integer"
        devices = {a.type.device for a in arguments[:own] if isinstance(a.type, TensorType)}
        if len(devices) > 1:
            return f"its inputs are on several devices: {', '.join(sorted(devices))}"
        if any(isinstance(o, bool | float) for o in imported.output_structure):
            return "it returns a number that is no integer"
        overlapping = private.overlapping_inputs(graph, static)
        if overlapping:
            names = ", ".join(arguments[k].name_hint or str(k) for k in overlapping)
            return f"elements of an input share memory, and torch cannot copy it ({names})"
        written = _written(function, imported)
        if self._writes_are_left(written, static):
            return "it writes to its inputs (options triton.cudagraph_support_input_mutation, triton.cudagraph_trees)"
        constants = [k for k in range(own, len(arguments)) if k not in written]
        found = next(obstacles(function, kernels_of(imported.module), constants), None)
        if found is None:
            return None
        where = format_location(found.op.location)
        name = getattr(found.op, "target", found.op.name)
        return f"{name}{f' at {where}' if where else ''}: {found.reason}"

    def _is_left(self, dynamic: bool) -> bool:
        """Whether options forbid to record what has dynamic sizes."""
        return dynamic and (self.config.cudagraph_skip_dynamic_graphs or not self.config.cudagraph_trees)

    def _writes_are_left(self, written: Collection[int], static: Sequence[int]) -> bool:
        """Whether options forbid to record what writes to these inputs."""
        if not self.config.cudagraph_trees:
            return bool(written)  # the call that prepares a recording would write once more
        return not self.config.cudagraph_support_input_mutation and not set(static).issuperset(written)

    def _tell(self, kind: str, function: host.FuncOp, reason: str) -> None:
        if self.config.cudagraph_or_error:
            raise UserError(
                f"the {kind} graph cannot be recorded: {reason}", "change that, or leave out triton.cudagraph_or_error"
            )
        counters["inductile"]["graphs that are not recorded"] += 1
        remark("missed", PASS, function, f"the {kind} graph is not recorded: {reason}")
        hints.warning("the %s graph is not recorded as a CUDA graph: %s", kind, reason)


def _written(function: host.FuncOp, imported: ImportedGraph) -> set[int]:
    return set(written_arguments(function, kernels_of(imported.module)))


def _values(function: host.FuncOp, imported: ImportedGraph, outputs: Sequence[int]) -> set[SSAValue]:
    """What a program returns as these outputs of its graph."""
    returned = function.body.block.last_op
    assert isinstance(returned, host.ReturnOp)
    slots = [imported.output_structure[k] for k in outputs]
    return {returned.values[slot.number] for slot in slots if isinstance(slot, ResultSlot)}


def _computes_nothing(function: host.FuncOp) -> bool:
    """Whether a graph only returns some of its inputs: a recording would copy them, and replay nothing."""
    return all(isinstance(op, host.FreeOp | host.ReturnOp) for op in function.body.block.ops)


def _announced(compiled: Callable[[list[Any]], Any], device: int) -> Callable[[list[Any]], Any]:
    """A backward graph that is launched op by op behind a recorded forward graph."""

    def run(args: list[Any]) -> Any:
        private.announce_backward(device)
        return compiled(args)

    run._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return run


def reset_recordings() -> None:
    """Drop all recordings, where the machinery is in use."""
    import sys

    if "torch._inductor.cudagraph_trees" in sys.modules:
        private.reset_trees()
