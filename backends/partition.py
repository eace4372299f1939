"""The joint phase: a joint graph of AOTAutograd becomes a forward and a backward graph."""

from __future__ import annotations

import dataclasses
import logging
import time
import warnings
from collections.abc import Sequence
from typing import Any

from torch.fx import GraphModule
from xdsl.context import Context
from xdsl.passes import ModulePass

from ..errors import PassError, PassFailureWarning, UnsupportedError, UserError
from ..lowering.fx_joint import JointGraph, import_joint
from ..lowering.fx_layouts import mark_saved
from ..lowering.fx_private import memory_budget, torch_partition
from ..lowering.fx_undo import GraphCopy
from ..lowering.pipeline import pipeline_string
from ..lowering.registry import parse_passes
from ..passes.common.choices import timed_by
from ..passes.graph.partition import Partition
from ..passes.graph.round_decisions import RoundDecisions
from ..passes.remarks import remark
from .choice import timer_of
from .compile_graph import configured, is_joint, options_of_passes, reason_to_leave_it, run_joint_passes
from .compiled import GraphReport, keep_report
from .config import Config
from .insertion import insert_passes
from .observer import Observer
from .run_passes import run_passes
from .torch_bisector import bisected
from .torch_compile import no_garbage_collection
from .trace import Trace

log = logging.getLogger(__name__)


def partition_joint(
    graph: GraphModule,
    inputs: Sequence[Any],
    config: Config,
    *,
    num_fwd_outputs: int,
    static_lifetime_input_indices: Sequence[int] | None = None,
) -> tuple[GraphModule, GraphModule]:
    """The forward and the backward graph of a joint graph: a `partition_fn` of AOTAutograd, but for `config`.

    A graph on which our partition fails is left to torch's partitioner, with a warning and a remark. So is one that the
    aten level has no types for; of that the graphs that come out of it warn.
    """
    static = list(static_lifetime_input_indices or ())
    run_joint_passes(graph, config)
    forward, backward = _split(graph, inputs, config, num_fwd_outputs, static)
    mark_saved(forward, num_fwd_outputs)
    return forward, backward


class _NotImportedError(UnsupportedError):
    """The aten level has no type for a value of the joint graph."""


def _split(
    graph: GraphModule, inputs: Sequence[Any], config: Config, num_fwd_outputs: int, static: Sequence[int]
) -> tuple[GraphModule, GraphModule]:
    if config.custom_partitioner_fn is None and config.partition == "inductile":
        graph.graph.eliminate_dead_code()
        before = GraphCopy(graph)
        try:
            with no_garbage_collection(), bisected():
                return _partition(graph, inputs, config, num_fwd_outputs, static)
        except (UserError, PassFailureWarning):
            raise
        except Exception as error:
            if not _may_be_left_to_torch(error, config):
                raise
            before.restore()
            _tell(error)
    _mark_rounded(graph, inputs, config, num_fwd_outputs)
    split = config.custom_partitioner_fn or torch_partition()
    return split(graph, inputs, num_fwd_outputs=num_fwd_outputs, static_lifetime_input_indices=static)


def _may_be_left_to_torch(error: Exception, config: Config) -> bool:
    """Whether it is the partition itself that failed, which torch has too; not a pass that a user asked for."""
    if reason_to_leave_it(error, config) is not None:
        return True
    return not isinstance(error, PassError) or (error.pass_name == Partition.name and config.verify_each != "numerics")


def _tell(error: Exception) -> None:
    """Say that torch splits a graph, and warn unless a graph that comes out of it will."""
    unsupported = reason_to_leave_it(error, Config())
    reason = unsupported or (str(error) if isinstance(error, PassError) else f"{type(error).__name__}: {error}")
    category = UserWarning if unsupported else PassFailureWarning
    if not isinstance(error, _NotImportedError):
        warnings.warn(f"torch splits a graph into forward and backward: {reason}", category, stacklevel=3)
    remark("missed" if unsupported else "failure", Partition.name, None, f"torch splits the graph: {reason}")


def _mark_rounded(graph: GraphModule, inputs: Sequence[Any], config: Config, forward_outputs: int) -> None:
    """Mark what has to be rounded alike in forward and backward, in a joint graph that torch splits."""
    try:
        joint = import_joint(graph, inputs, forward_outputs)
    except Exception as error:
        if reason_to_leave_it(error, config) is None:
            raise
        return
    RoundDecisions().apply(Context(), joint.imported.module)
    joint.mark_rounded()


def _partition(
    graph: GraphModule, inputs: Sequence[Any], config: Config, forward_outputs: int, static: Sequence[int]
) -> tuple[GraphModule, GraphModule]:
    report = GraphReport("joint")

    def load() -> JointGraph:
        try:
            return import_joint(graph, inputs, forward_outputs, static)
        except UnsupportedError as error:
            raise _NotImportedError(str(error)) from error

    trace = Trace.of(config, "joint")
    if trace is not None:
        trace.about(graph, config)
    with timed_by(timer_of(config)):
        joint = run_passes(load, lambda module: joint_passes(config), config, report, trace, Observer("joint"))
    if report.failures:
        keep_report(report)
    started = time.perf_counter()
    split = joint.split()
    report.seconds["split"] = time.perf_counter() - started
    log.info("split %s", {stage: round(seconds, 4) for stage, seconds in report.seconds.items()})
    return split


def joint_passes(config: Config) -> list[ModulePass]:
    """The passes of the joint phase that a configuration asks for."""
    budget, options = min(config.activation_memory_budget, memory_budget()), options_of_passes(config)
    passes = [
        configured(dataclasses.replace(p, budget=budget) if isinstance(p, Partition) else p, options)
        for p in parse_passes(pipeline_string(graph="joint"))
    ]
    return insert_passes(passes, {place: text for place, text in config.insert.items() if is_joint(place)})
