"""The phase before autograd, watched: its passes change Dynamo's graph, which is torch's and no IR of ours."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch.fx import GraphModule

from ..lowering.fx_custom_passes import run_custom_passes
from ..lowering.fx_pre_grad import Adapter, run_pre_grad
from ..lowering.pre_grad import pre_grad_names
from ..passes.common.choices import timed_by
from ..passes.counters import active
from ..passes.watching import Watch
from .choice.timer import timer_of
from .config import Config, names_of
from .observer import PRE_GRAD, Observer
from .run_passes import watch_flags
from .torch_bisector import bisected
from .trace import counters_json, fresh_folder, trace_root

#: apart from those of other graphs, whose numbers stay what they are without passes that do something here
_numbers = itertools.count()


def watched_pre_grad(graph: GraphModule, inputs: Sequence[Any], config: Config) -> list[Adapter]:
    """Run the passes that a configuration asks for, under its counters and remarks, and with files in a trace.

    Returns what has to be done to the inputs of each call.
    """
    Observer("dynamo").show(PRE_GRAD, lambda: _text(graph))
    adapters = _own_passes(graph, inputs, config)
    run_custom_passes(graph, "pre_grad_custom_pass", config.pre_grad_custom_pass)
    return adapters


def _own_passes(graph: GraphModule, inputs: Sequence[Any], config: Config) -> list[Adapter]:
    left_out = names_of(config.disabled_passes)
    passes = ",".join(name for name in pre_grad_names(config.pre_grad) if name not in left_out)
    root = trace_root(config)
    with bisected(), timed_by(timer_of(config)), _watch(config, count=root is not None):
        if root is None:
            return run_pre_grad(graph, inputs, passes, fallback_random=config.fallback_random)
        texts = {"input": _text(graph)}

        def keep(name: str) -> None:
            texts[name] = _text(graph)

        adapters = run_pre_grad(graph, inputs, passes, keep, config.fallback_random)
        if active():
            _write(fresh_folder(root, "dynamo", _numbers), texts)
        return adapters


def _watch(config: Config, count: bool) -> Watch:
    """What of the watching flags holds here: counters, and remarks; there is no IR of ours to print or time."""
    flags = watch_flags(config)
    flags.timing = flags.print_ir_tree_dir = None
    flags.pass_statistics = False
    return Watch(flags, append=True, count=count)


def _text(graph: GraphModule) -> str:
    return graph.print_readable(print_output=False)


def _write(folder: Path, texts: dict[str, str]) -> None:
    for number, (name, text) in enumerate(texts.items()):
        (folder / f"{number:02d}-{name}.py").write_text(text + "\n")
    (folder / "counters.json").write_text(counters_json())
