"""One FX graph from AOTAutograd to an executable: import, the pipeline, emission; and what happens when it fails."""

from __future__ import annotations

import dataclasses
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..dialects import host
from ..dialects.machine import aim_at
from ..errors import PassError, PassFailureWarning, UnsupportedError, UserError
from ..lowering.fx_custom_passes import run_custom_passes
from ..lowering.fx_import import ImportedGraph, ResultSlot, import_graph
from ..lowering.fx_layouts import changed_strides, restrided
from ..lowering.fx_packed_weights import packed_elements
from ..lowering.fx_private import multiplies_in_tf32, report_output_strides, without_modes
from ..lowering.pipeline import pipeline_string, pipelines
from ..lowering.registry import parse_passes
from ..machines import in_host_memory
from ..passes.common.choices import MEASURED, NONE, RECORDED, timed_by
from ..passes.common.implementations import BLAS
from ..passes.host.split_parts import HostSplitParts
from ..passes.remarks import collecting, remark
from . import host as host_program
from .choice import timer_of
from .choice.libraries import faster_library
from .compiled import CompiledGraph, GraphReport, keep_report
from .config import Config
from .discarding import discard_weights
from .foreign_lowerings import operators_of, tell_of_foreign_lowerings
from .frame_stack import with_stack_room
from .freezing import freeze, with_freezing
from .generators import load_generators
from .graphs.recording import Recording
from .host.copies import carrying_now
from .host.products import has_matrix_units, way_to_multiply_integers
from .host.regions import graph_region
from .insertion import insert_passes
from .observer import Observer
from .run_passes import run_passes
from .torch_bisector import bisected
from .torch_compile import no_garbage_collection
from .torch_repro import Reproducer, repro_level
from .torch_trace import count, count_eager, timed
from .trace import BoxedFunction, Trace

log = logging.getLogger(__name__)


@with_stack_room
def compile_graph(
    graph: torch.fx.GraphModule,
    inputs: Sequence[Any],
    config: Config,
    kind: str,
    recording: Recording | None = None,
    target: str | None = None,
    take: Callable[[ModuleOp], None] | None = None,
) -> Callable[[list[Any]], Any]:
    """Compile one functional graph, of the kind forward, backward or inference.

    `recording` is what forward and backward graph of one function share, where they may be recorded for replays.
    For a `target` that is named, such as "cuda:90", the program is made for files: it need not run here.
    `take` is given the IR of kernels and program.

    Returns a callable that takes one list of inputs and clears it. A graph with values that the aten level has no type
    for (sparse or nested tensors) runs through torch, with a warning and a remark; with `on_error="eager"` so does one
    on which a pass of ours failed.
    """
    if kind == "inference":
        run_joint_passes(graph, config)
    for name in ("post_grad_custom_pre_pass", "post_grad_custom_post_pass"):
        run_custom_passes(graph, name, getattr(config, name), is_inference=kind == "inference")
    try:
        with no_garbage_collection(), timed(kind), bisected():
            return _compile(graph, inputs, config, kind, recording, target, take)
    except (UserError, PassFailureWarning):
        raise
    except Exception as error:
        reason = reason_to_leave_it(error, config)
        if reason is None:
            raise
        warnings.warn(f"inductile runs a graph in eager: {reason}", stacklevel=2)
        remark("missed", "import", None, f"the graph runs in eager: {reason}")
        count_eager()
        return eager_callable(graph, inputs)


def run_joint_passes(graph: torch.fx.GraphModule, config: Config) -> None:
    """What users want to change in a graph of forward and backward together, or in one without gradients."""
    for name in ("joint_custom_pre_pass", "joint_custom_post_pass"):
        run_custom_passes(graph, name, getattr(config, name))


def reason_to_leave_it(error: Exception, config: Config) -> str | None:
    """Why torch may take over where we failed, None for a bug of ours that has to show."""
    if isinstance(error, UnsupportedError):
        return str(error)
    if isinstance(error, PassError) and isinstance(error.__cause__, UnsupportedError):
        return str(error.__cause__)
    return str(error) if config.on_error == "eager" else None


def _compile(
    graph: torch.fx.GraphModule,
    inputs: Sequence[Any],
    config: Config,
    kind: str,
    recording: Recording | None,
    target: str | None,
    take: Callable[[ModuleOp], None] | None,
) -> BoxedFunction:
    config = with_freezing(with_torch_flags(config, graph), kind)
    report = GraphReport(kind)

    constants = 0

    def load() -> ImportedGraph:
        nonlocal constants
        imported = import_graph(graph, inputs)
        if target is not None:
            aim_at(imported.module, target)
        if kind == "backward":
            imported.hold_layouts()
        constants = len(imported.constants)
        if config.freezing:
            freeze(imported, graph)
        return imported

    trace = Trace.of(config, kind)
    if trace is not None:
        trace.about(graph, config)
    in_folder = config.trace_enabled or config.trace_graph_diagram
    observer = Observer(kind, trace if in_folder else None, config.trace_graph_diagram)
    observer.show_graph(graph)
    report.operators = operators_of(graph)
    tell_of_foreign_lowerings(report.operators)

    def choose(module: ModuleOp) -> list[ModulePass]:
        report.describe_input(module)
        passes = choose_passes(config)
        load_generators(module)
        return [replace(p, constants=constants) if type(p) is HostSplitParts else p for p in passes]

    level = repro_level()
    reproducer = None
    if level is not None:
        eager = eager_callable(graph, inputs)
        reproducer = Reproducer(graph, kind, config, load, lambda: choose_passes(config), eager, level)
    with _reproduced(reproducer):
        with timed_by(timer_of(config)):
            imported = run_passes(load, choose, config, report, trace, observer)
        started = time.perf_counter()
        with without_modes():  # programs own real tensors: constants, status words
            carriers = watched_inputs([*inputs, *imported.constants], kind)
            program = host_program.build(
                imported.module, config, imported.references, carriers, False, target is not None
            )
        report.seconds["emit and compile"] = time.perf_counter() - started
    discard_weights(imported.module, program, graph, config)
    report.describe(imported.module, program)
    if take is not None:
        take(imported.module)
    if trace is not None:
        trace.add_program(imported.module, program.sources)
    observer.show_program(imported.module, program.sources)
    observer.show_times(report)
    count(report)
    keep_report(report)
    log.info("compiled %s%s", report, "".join(f"; {name}={value!r}" for name, value in config.changed().items()))
    compiled: BoxedFunction = CompiledGraph(program, imported, report, graph_region(kind, imported.module), config.nvtx)
    if kind == "forward":
        report_layouts(imported, inputs)
    if recording is not None:
        with collecting() as said:
            compiled = recording.wrap(compiled, program, imported, graph, kind)
        if trace is not None:
            trace.report.add_remarks(said)
    if reproducer is not None:
        compiled = reproducer.wrap(compiled)
    return compiled if trace is None else trace.watch_calls(compiled, imported.constants, config)


@contextmanager
def _reproduced(reproducer: Reproducer | None) -> Iterator[None]:
    """Write a reproducer for what fails inside, where torch's switch asks for one."""
    try:
        yield
    except Exception as error:
        if reproducer is not None and not isinstance(error, UserError):
            reproducer.try_to_write(error)
        raise


def report_layouts(imported: ImportedGraph, inputs: Sequence[Any]) -> None:
    """Tell AOTAutograd of the strides that a lowered forward graph returns instead of those it was traced with.

    `inputs` are the fake inputs of the graph. Without a change nothing is told: what AOTAutograd assumes is right.
    """
    program = next(op for op in imported.module.ops if isinstance(op, host.FuncOp))
    returned = program.function_type.outputs.data
    declarations = [symbol.data for symbol in program.symbols.data]
    changed = changed_strides(imported.result_types, returned, declarations, inputs)
    if any(each is not None for each in changed):
        structure = imported.output_structure
        report_output_strides([changed[o.number] if type(o) is ResultSlot else None for o in structure])


def watched_inputs(inputs: Sequence[Any], kind: str) -> frozenset[int] | None:
    """Positions of the inputs that calls have to look at for the negative or conjugate bit; None for all.

    Dynamo guards these bits of the inputs of a forward graph: it compiles again when one changes. Nothing guards the
    gradients that reach a backward graph.
    """
    return None if kind == "backward" else carrying_now(inputs)


def with_torch_flags(config: Config, graph: torch.fx.GraphModule | None = None) -> Config:
    """A configuration with what torch's own switches and this machine ask for.

    Dynamo compiles again when the switch for deterministic algorithms, or that for TF32, changes.
    """
    return dataclasses.replace(
        config,
        deterministic=config.deterministic or torch.are_deterministic_algorithms_enabled(),
        allow_tf32=config.allow_tf32 or multiplies_in_tf32(),
        products=_library_for(config, graph),
        packed_weights=_packed_weights(config),
        overlap_launches=_overlap(config, graph),
        row_products=config.row_products and not (has_matrix_units() and _multiplies_on_cpu(graph)),
        integer_products=way_to_multiply_integers() if config.integer_products == "auto" else config.integer_products,
    )


def _library_for(config: Config, graph: torch.fx.GraphModule | None) -> str:
    """Who multiplies float32 matrices on the CPU. Where a graph has none nothing is measured."""
    if config.products != "auto":
        return config.products
    return faster_library(config.cache) if graph is None or _multiplies_on_cpu(graph) else BLAS


def _multiplies_on_cpu(graph: torch.fx.GraphModule | None) -> bool:
    """Whether a graph multiplies matrices in the memory of the host."""
    ops = torch.ops.aten
    if graph is None:
        return False
    targets = (ops.mm.default, ops.addmm.default)
    products = (node for each in targets for node in graph.graph.find_nodes(op="call_function", target=each))
    return any(in_host_memory(node.meta["val"].device.type) for node in products if "val" in node.meta)


#: products of one row that a graph has at least whose launches overlap: one has no other to hide behind
LEAST_PRODUCTS = 2


def _overlap(config: Config, graph: torch.fx.GraphModule | None) -> str:
    """Whether launches overlap: 'always' or 'never'.

    A product of one row is as long as its weight takes to read, of which little is on its way while a launch begins and
    ends. In other graphs nobody has measured that it pays.
    """
    if config.overlap_launches != "auto" or graph is None:
        return "never" if config.overlap_launches == "auto" else config.overlap_launches
    ops = torch.ops.aten
    if any(graph.graph.find_nodes(op="call_function", target=ops.convolution.default)):
        return "never"
    lefts = [
        node.args[place].meta.get("val")  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
        for target, place in ((ops.mm.default, 0), (ops.addmm.default, 1))
        for node in graph.graph.find_nodes(op="call_function", target=target)
    ]
    rows = [left.shape[0] if isinstance(left, torch.Tensor) and left.is_cuda else 0 for left in lefts]
    is_one_row = len(rows) >= LEAST_PRODUCTS and all(isinstance(each, int) and each == 1 for each in rows)
    return "always" if is_one_row else "never"


def _packed_weights(config: Config) -> str:
    """The elements of frozen weights that are packed on the CPU."""
    if config.packed_weights != "auto" or not torch.backends.mkldnn.enabled:
        return "never"
    return ",".join(packed_elements())


def choose_passes(config: Config) -> list[ModulePass]:
    """The pipeline that a configuration asks for."""
    named = config.pipeline in pipelines()
    text = pipeline_string(config.pipeline) if named else config.pipeline
    changed = options_of_passes(config)
    passes = [configured(p, changed) for p in parse_passes(text)]
    return insert_passes(passes, {place: text for place, text in config.insert.items() if not is_joint(place)})


def is_joint(place: str) -> bool:
    """Whether a place of the option `insert` is in the joint phase: it names a pass that is in no other."""
    name = place.partition(":")[2]
    joint, functional = (
        {p.name for p in parse_passes(pipeline_string(graph=graph))} for graph in ("joint", "functional")
    )
    return name in joint - functional


_OF_PASSES = (
    "emulate_precision_casts", "deterministic", "memory_pool", "patterns", "products", "integer_products",
    "dequantised_copies", "packed_weights", "pad_products", "allow_tf32", "row_products", "overlap_launches",
    "loop_products", "fallback_by_default", "cudagraphs", "graph_partition",
)  # fmt: skip
"""Options that passes have under the same name."""


def options_of_passes(config: Config) -> dict[str, Any]:
    """The options of the configuration that passes have too, where they are not left at their default."""
    changed = {name: value for name in _OF_PASSES if (value := getattr(config, name)) != getattr(Config, name)}
    if "loop_products" in changed:
        changed["loop_products"] = config.loop_products == "always"
    if changed.pop("overlap_launches", None) == "always":  # else passes of a pipeline may ask for it by themselves
        changed["overlap_launches"] = True
    return {**changed, "choices": choices_of(config)}


def configured(module_pass: ModulePass, options: Mapping[str, Any]) -> ModulePass:
    """A pass with those of the options that it has."""
    fields = type(module_pass).__dataclass_fields__
    changed = {name: value for name, value in options.items() if name in fields}
    return dataclasses.replace(module_pass, **changed) if changed else module_pass


def choices_of(config: Config) -> str:
    """How `graph-choose-products` chooses. What is measured may differ from process to process."""
    if config.max_autotune and not config.deterministic:
        return MEASURED
    return RECORDED if config.loop_products == "auto" else NONE


def eager_callable(graph: torch.fx.GraphModule, inputs: Sequence[Any] = ()) -> Callable[[list[Any]], Any]:
    """The graph run by torch, with the boxed calling convention.

    Where the fake `inputs` come in other strides than the graph was traced with, which are contiguous, each call
    restores those.
    """
    restored = restrided(graph.graph.find_nodes(op="placeholder"), inputs)

    def run(args: list[Any]) -> Any:
        taken = list(args)
        args.clear()
        for position in restored:
            taken[position] = taken[position].contiguous()
        return graph(*taken)

    run._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
    return run
