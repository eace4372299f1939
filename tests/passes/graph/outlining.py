"""Compile graphs with and without `graph-outline-repeats`, and compare the programs and what they compute."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation

from inductile.backends.compile_graph import choose_passes, eager_callable, with_torch_flags
from inductile.backends.compiled import CompiledGraph, GraphReport
from inductile.backends.config import Config
from inductile.backends.host import build
from inductile.backends.run_passes import run_passes
from inductile.backends.torch_compile import compile_dynamo_graph
from inductile.dialects import host, kernel
from inductile.lowering.fx_import import ImportedGraph, import_graph
from inductile.lowering.fx_private import without_modes
from inductile.passes.analysis.program_costs import program_costs
from inductile.passes.graph.outline_repeats import OutlineRepeats
from inductile.passes.module.attach_target import AttachTarget
from inductile.passes.printing import module_text


class _Counting(OutlineRepeats):
    """The pass, which tells how many functions it made."""

    def apply(self, ctx: Any, op: ModuleOp) -> None:
        before = len(list(op.ops))
        super().apply(ctx, op)
        MADE.append(len(list(op.ops)) - before)


MADE: list[int] = []


@dataclass
class Compared:
    """A graph: what is different with the pass and without it, and how many functions it made."""

    kind: str
    made: int
    differences: list[str]


@dataclass
class ComparingBackend:
    """A Dynamo backend that compiles each graph twice and compares the two programs.

    target: `cpp`, whose programs are run each time on equal inputs and random states; or that of a GPU
    """

    target: str = "cpp"
    options: dict[str, Any] = field(default_factory=dict)
    graphs: list[Compared] = field(default_factory=list)

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], **_: Any) -> Callable[..., Any]:
        """Compile one Dynamo graph; the callable raises AssertionError for a difference of results."""
        return compile_dynamo_graph(graph, inputs, Config.resolve(None, self.options), self._compile)

    @property
    def differences(self) -> list[str]:
        """Those of all graphs."""
        return [f"{graph.kind}: {line}" for graph in self.graphs for line in graph.differences]

    def made(self, kind: str) -> int:
        """How many functions were made of the graphs of a kind."""
        return sum(graph.made for graph in self.graphs if graph.kind == kind)

    def _compile(self, kind: str, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[[list[Any]], Any]:
        config = with_torch_flags(Config.resolve(None, self.options))
        off, on = (self._lowered(kind, graph, inputs, config, enabled) for enabled in (False, True))
        self.graphs.append(Compared(kind, MADE[-1], differences(off.module, on.module)))
        if self.target != "cpp":
            return eager_callable(graph)
        with without_modes():
            programs = [
                CompiledGraph(build(each.module, config, each.references), each, GraphReport(kind))
                for each in (off, on)
            ]
        return _run_both(*programs)

    def _lowered(
        self, kind: str, graph: torch.fx.GraphModule, inputs: Sequence[Any], config: Config, enabled: bool
    ) -> ImportedGraph:
        def load() -> ImportedGraph:
            imported = import_graph(graph, inputs)
            AttachTarget(self.target).apply(Context(), imported.module)
            return imported

        passes = [
            dataclasses.replace(_Counting(**dataclasses.asdict(p)), enabled=enabled)
            if isinstance(p, OutlineRepeats)
            else p
            for p in choose_passes(config)
        ]
        return run_passes(load, lambda module: passes, config, GraphReport(kind))


def _run_both(off: CompiledGraph, on: CompiledGraph) -> Callable[[list[Any]], Any]:
    def run(args: list[Any]) -> Any:
        given = list(args)
        args.clear()
        copies = [x.clone() if isinstance(x, torch.Tensor) else x for x in given]  # inputs may be written
        state = torch.get_rng_state()
        expected = off(list(copies))
        after = torch.get_rng_state()
        torch.set_rng_state(state)
        found = on(list(given))
        assert torch.equal(torch.get_rng_state(), after)
        for a, b in zip((*tree_leaves(expected), *copies), (*tree_leaves(found), *given), strict=True):
            if isinstance(a, torch.Tensor):
                assert a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
                assert torch.equal(_bits(a), _bits(b))
        return found

    run._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return run


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


def differences(off: ModuleOp, on: ModuleOp) -> list[str]:
    """What two modules at kernel and host level differ in, but for names: order of steps, kernels, memory."""
    found: list[str] = []
    peaks = [[(cost.peak, cost.allocated) for cost in program_costs(module)] for module in (off, on)]
    if peaks[0] != peaks[1]:
        found.append(f"planned memory {peaks[0]}, outlined {peaks[1]}")
    steps = [_steps(module) for module in (off, on)]
    if steps[0] != steps[1]:
        found.append(f"steps {len(steps[0])}, outlined {len(steps[1])}: {_first(*steps)}")
    texts = [_canonical(module).split("\n") for module in (off, on)]
    if texts[0] != texts[1]:
        found.append(f"lines {len(texts[0])}, outlined {len(texts[1])}: {_first(*texts)}")
    return found


def _first(a: Sequence[str], b: Sequence[str]) -> str:
    for k, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return f"{k}: {one!r}, outlined {other!r}"
    return "one is longer"


def _steps(module: ModuleOp) -> list[str]:
    """Launches and calls in order, kernels numbered by their first launch."""
    numbers: dict[str, int] = {}
    found: list[str] = []
    for function in module.ops:
        if isinstance(function, host.FuncOp):
            for op in function.body.block.ops:
                if isinstance(op, host.LaunchOp):
                    name = op.kernel.root_reference.data
                    found.append(f"kernel {numbers.setdefault(name, len(numbers))}")
                elif op.name.startswith("aten."):
                    found.append(op.name)
    return found


def _behind(op: Operation) -> Iterator[Operation]:
    following = op.next_op
    while following is not None:
        yield following
        following = following.next_op


def _canonical(module: ModuleOp) -> str:
    """The text with kernels in the order of their first launch and without names and places of the source."""
    module = module.clone()
    numbers: dict[str, str] = {}
    for op in list(module.walk()):
        for value in (*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)):
            value.name_hint = None
        if isinstance(op, host.ViewOp):  # which costs nothing, wherever it stands
            reader = next((user for user in _behind(op) if op.out in user.operands), None)
            if reader is not None:
                op.detach()
                reader.parent.insert_op_before(op, reader)  # pyright: ignore[reportOptionalMemberAccess]
        if isinstance(op, host.LaunchOp):
            name = op.kernel.root_reference.data
            op.properties["kernel"] = SymbolRefAttr(numbers.setdefault(name, f"kernel{len(numbers)}"))
    kernels: list[kernel.FuncOp] = []
    for op in list(module.ops):
        if isinstance(op, kernel.FuncOp):
            op.properties["sym_name"] = StringAttr(numbers.get(op.sym_name.data, "unused"))
            op.detach()
            kernels.append(op)
    for op in sorted(kernels, key=lambda op: int(op.sym_name.data.removeprefix("kernel") or -1)):
        module.body.block.add_op(op)
    return module_text(module)
