"""The road of a graph: the named pipelines, phase by phase. Read this file top to bottom."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .. import extensions
from ..errors import UserError
from ..machines import target_named
from ..records import dataclass
from .registry import nearest, parse_passes, parse_specs, with_options


@dataclass(frozen=True)
class Phase:
    """A stretch of the road on one level.

    passes: a pipeline string
    graph:  what it runs on: "dynamo", the graph of torch-level calls, whose passes `pre_grad.py` lists; a "joint" graph
            of forward and backward; or each "functional" graph that comes out of it (one without gradients is
            functional from the start)
    """

    name: str
    purpose: str
    passes: str
    graph: str = "functional"


DEFAULT: tuple[Phase, ...] = (
    Phase(
        "pre-grad",
        "torch FX: what must be done before autograd; the option `pre_grad` chooses",
        "remove-identities",
        graph="dynamo",
    ),
    Phase(
        "joint",
        "aten: no duplicates in forward and backward together; what backward gets and what it computes again",
        "graph-canonicalize,graph-cse,graph-match-patterns,graph-merge-seeds,graph-dce,graph-choose-scores,graph-reassociate-row-sums,"
        "graph-split-softmax,graph-narrow-indices,graph-partition,graph-round-decisions",
        graph="joint",
    ),
    Phase(
        "post-grad",
        "aten: canonical form, no duplicates, a variance with its mean, maps of channels in frozen weights, known "
        "combinations of ops as one op, nothing dead, products of one operand joined, each by the library or as a "
        "nest, of few vectors as nests, of quantised numbers exactly, others in aligned rows, what frozen weights "
        "decide once, these packed, equal layers once",
        "graph-canonicalize,graph-cse,graph-join-moments,graph-fold-affine,graph-match-patterns,graph-merge-seeds,graph-dce,"
        "graph-join-products,graph-choose-products,graph-expand-products,graph-multiply-quantised,graph-panel-products,graph-pad-products,graph-round-decisions,"
        "graph-hoist-weights,graph-pack-products,"
        "graph-outline-repeats",
    ),
    Phase("lower-to-loop", "aten -> loop: every op as scalar bodies over named axes", "lower-aten-to-loop"),
    Phase(
        "loop",
        "loop: no views, simple indices, one fusion a kernel, in-place decisions",
        "loop-eliminate-views,loop-simplify-indices,loop-cse,loop-dce,loop-merge-updates,loop-select-pieces,"
        "loop-expand-convolutions,loop-channels-last,loop-assign-layouts,loop-select-implementation,loop-hoist-weights,"
        "loop-pack-weights,"
        "loop-expand-moments,loop-inline,loop-cse,loop-dce,loop-stream-reductions,loop-chain-products,loop-sum-one-hot,"
        "loop-unroll-pieces,loop-split-axes,"
        "loop-split-products,loop-split-reductions,loop-spread-copies,loop-turn-readers,loop-repeat-rows,loop-fuse,loop-bufferize",
    ),
    Phase(
        "lower-to-kernel",
        "loop -> kernel + host: buffers, linear addresses, launches",
        "lower-loop-to-kernel",
    ),
    # Layers that were compiled once stand in one program again, for memory is planned for all of it. Equal kernels
    # become one first, so that the rest is done once. What operators write in place is memory that reuse must know of,
    # so that they come before it. Reuse stands before tiling: which element a kernel
    # reads and writes when is plain before its loops are blocked.
    Phase(
        "kernel",
        "kernel: equal kernels once, loops merged and collapsed, memory reused, small launches as one",
        "host-inline,host-reinplace,host-donate,kernel-deduplicate,kernel-merge-loops,kernel-elide-casts,kernel-cse,"
        "kernel-reorder,kernel-collapse,host-reuse,kernel-relax-order,kernel-merge-launches,"
        "kernel-approximate,kernel-stream-results",
    ),
    # Kernels say for which target they are behind `kernel-tile` for a GPU, `kernel-choose-threads` for a CPU; passes
    # behind these ask the kernel.
    Phase(
        "schedule",
        "kernel: loops mapped to hardware and tiled; then what a tile cannot hold, what waits for memory, warps",
        "kernel-apply-schedule,kernel-unroll-windows,kernel-relax-order,kernel-sink-prologues,"
        "kernel-fold-lanes,kernel-inline-launches,kernel-pair-lanes,kernel-interleave-lanes,"
        "kernel-read-back,kernel-write-ahead,"
        "kernel-map-softmax-sums,kernel-map-chained-products,kernel-bound-steps,"
        "kernel-skip-hidden-steps,kernel-fold-exponents,kernel-fuse-scales,kernel-factor-sums,kernel-peel-masked-steps,"
        "kernel-lead-products,kernel-order-programs,"
        "kernel-map-products,kernel-factor-groups,kernel-split-last-wave,kernel-load-boxes,kernel-load-in-lanes,"
        "kernel-jam-rows,kernel-join-runs,kernel-stage-rows,kernel-map,"
        "kernel-fold-rows,kernel-join-axes,"
        "kernel-vectorize,kernel-relax-atomics,kernel-tile,"
        "kernel-choose-threads,kernel-stage-blocks,"
        "kernel-privatize,kernel-rematerialize,kernel-spill,kernel-online-softmax,kernel-sink-stores,"
        "kernel-hoist-loads,kernel-load-ahead,kernel-choose-steps,kernel-unroll,kernel-block-rows,kernel-turn-scans,"
        "kernel-assign-registers,kernel-hint-cache,kernel-pair-accesses,"
        "kernel-group-elements,kernel-insert-barriers,kernel-choose-warps,kernel-share-scales,kernel-unpack-digits,"
        "kernel-mark-arithmetic,kernel-narrow-choices,"
        "kernel-split-lanes,kernel-hoist-rows,kernel-hoist-invariants,kernel-unmask-lanes,"
        "kernel-peel-lanes,kernel-peel-rows,kernel-unroll-quotients,kernel-tensorize,"
        "kernel-assign-accumulators,kernel-place-locals,kernel-overlap-launches",
    ),
    Phase(
        "host",
        "host: the order in which least is alive, a pool for temporaries, views of memory alone, recorded parts, "
        "one tensor a place of a pool, ends of lives",
        "host-order,host-plan-memory,host-compose-views,host-split-parts,host-share-places,host-free",
    ),
)

#: `schedule` is that phase alone, for kernels written by hand
PIPELINES: dict[str, tuple[Phase, ...]] = {
    "default": DEFAULT,
    "schedule": tuple(phase for phase in DEFAULT if phase.name == "schedule"),
}


def pipelines() -> tuple[str, ...]:
    """The names of all pipelines, those of other packages included."""
    return (*PIPELINES, *extensions.loaders("inductile.pipelines"))


def phases(name: str = "default") -> tuple[Phase, ...]:
    """Phases of a named pipeline; UserError with the nearest name when there is none."""
    if name in PIPELINES:
        return PIPELINES[name]
    load = extensions.loaders("inductile.pipelines").get(name)
    if load is None:
        raise UserError(f"unknown pipeline {name!r}", nearest(name, pipelines()) or f"known: {', '.join(pipelines())}")
    found = load()
    made: Any = found() if callable(found) else found
    return tuple(made)


def pipeline_string(name: str = "default", graph: str = "functional") -> str:
    """The whole named pipeline of a functional or a joint graph as one string. For which machine, the module says."""
    return ",".join(phase.passes for phase in phases(name) if phase.graph == graph)


def cut(passes: list[ModulePass], start_at: str | None, stop_after: str | None) -> list[ModulePass]:
    """The stretch of a pipeline from the first pass named `start_at` through the last named `stop_after`."""
    names = [p.name for p in passes]
    for wanted in filter(None, (start_at, stop_after)):
        if wanted not in names:
            raise UserError(f"the pipeline has no pass {wanted!r}", nearest(wanted, names))
    first = names.index(start_at) if start_at else 0
    last = len(names) - 1 - names[::-1].index(stop_after) if stop_after else len(names) - 1
    return passes[first : last + 1]


def named_passes(
    name: str = "default", target: str | None = None, start_at: str | None = None, stop_after: str | None = None
) -> list[ModulePass]:
    """The passes of a named pipeline, optionally only a stretch of it.

    The name may give options: `schedule{warps=4}`. Each is for all passes that have it. Where a `target` is given, by
    that option or the argument, `module-attach-target` comes first. Raises UserError for an unknown pipeline, pass,
    option or target.
    """
    (spec,) = parse_specs(name)
    options = dict(spec.parameters)
    named = str(*options.pop("target", (target or "",)))
    passes = with_options(cut(parse_passes(pipeline_string(spec.name)), start_at, stop_after), options)
    return [*attached(named), *passes]


def attached(target: str | None) -> list[ModulePass]:
    """The pass that lets a module name a target; none without one. UserError for an unknown target."""
    return parse_passes(f'module-attach-target{{target="{target_named(target).name}"}}') if target else []


def level_of(module: ModuleOp) -> str:
    """The highest level that a module still has: aten, loop (some nest exists), or kernel (no func.func is left)."""
    names = {op.name for op in module.walk()}
    if "func.func" not in names:
        return "kernel"
    return "loop" if any(n.startswith("loop.") for n in names) else "aten"


def remaining_passes(module: ModuleOp, target: str | None = None) -> list[ModulePass]:
    """What the default pipeline still has to do for a module that stands somewhere on the road, for a target if given.

    Passes are safe to run again on their own output, so a level is entered at its first pass; kernels that name a
    target are tiled already, and finished where they have warps or are for a CPU; behind a mapping it goes on there.
    """
    if level_of(module) == "kernel" and any(op.name == "transform.sequence" for op in module.ops):
        return named_passes("default", target, start_at="host-inline")
    from ..passes.kernel.scheduled import is_mapped, tiled_for_gpu

    if level_of(module) == "aten":
        return named_passes("default", target)
    if level_of(module) == "loop":
        return named_passes("default", target, start_at="loop-eliminate-views")
    kernels = [op for op in module.ops if op.name == "kernel.func"]
    if not any("target" in op.properties for op in kernels):
        start = "kernel-fold-rows" if any(map(is_mapped, kernels)) else "host-inline"
        return named_passes("default", target, start_at=start)
    unfinished = any(True for _ in tiled_for_gpu(module))
    return named_passes("default", target, start_at="kernel-privatize") if unfinished else attached(target)
