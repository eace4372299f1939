"""Torch's log switches, for us: `TORCH_LOGS=output_code,fusion`, `TORCH_LOGS=+inductile`, `torch._logging.set_logs`.

Uses `torch._logging._internal` of torch 2.11 to 2.14: `register_log`, `getArtifactLogger`, and the tables of names
(`log_registry`) and of what is switched on (`log_state`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from ..lowering.registry import module_of_pass

if TYPE_CHECKING:  # graphs from the cache load nothing of the compiler
    from ..passes.remarks import Remark

ROOT = __name__.partition(".")[0]
FUSION = {
    "loop-fuse", "loop-inline", "loop-expand-moments", "kernel-merge-loops", "kernel-merge-launches",
    "kernel-online-softmax",
}  # fmt: skip
"""Passes that decide what runs together: their remarks are torch's artifact `fusion`."""
REMARKS = ("fusion", "perf_hints", "cudagraphs")
"""Torch's artifacts that show remarks."""
STAGES = (
    "pre_grad_graphs", "post_grad_graphs", "ir_pre_fusion", "ir_post_fusion", "schedule", "output_code", "kernel_code",
)  # fmt: skip
"""Torch's artifacts that show a graph on its way."""
_OF_AOTAUTOGRAD = ("aot_graphs", "aot_joint_graph", "aot_graphs_effects")
"""Torch's artifacts that nobody writes for a graph from the cache, for which AOTAutograd traces nothing."""
_RECORDING = {"cudagraphs", "host-split-parts"}


@cache
def enter() -> None:
    """Make our loggers known to torch, once.

    They print through torch's handlers; `inductor` and `all` among the names of TORCH_LOGS and of `set_logs` mean ours
    too.
    """
    from torch._logging import _internal as internal

    registry = internal.log_registry
    if not registry.is_log(ROOT):
        internal.register_log(ROOT, ROOT)
        _share_handlers(logging.getLogger(ROOT))
    names = registry.log_alias_to_log_qnames
    for alias in ("torch", "inductor"):  # torch reads `all` as "torch"
        if ROOT not in names[alias]:
            names[alias] = [*names[alias], ROOT]
    levels = dict(internal.log_state.get_log_level_pairs())
    level = levels.get("torch._inductor", levels.get("torch", logging.NOTSET))
    if level != logging.NOTSET and ROOT not in levels:
        internal.log_state.enable_log(ROOT, level)
        logging.getLogger(ROOT).setLevel(level)


def _share_handlers(ours: logging.Logger) -> None:
    """What torch has set up for its own loggers before ours was among them; `set_logs` replaces them together.

    A module of ours that TORCH_LOGS names has handlers already: what it says must not come here as well.
    """
    from torch._logging._internal import log_registry

    for name in log_registry.get_log_qnames():
        if name.startswith(f"{ours.name}."):
            logging.getLogger(name).propagate = False
    ours.propagate = False
    for handler in logging.getLogger("torch").handlers:
        ours.addHandler(handler)


@cache
def artifact_logger(artifact: str) -> logging.Logger:
    """The logger of ours for one of torch's artifacts, such as `output_code`."""
    from torch._logging._internal import getArtifactLogger

    enter()
    return getArtifactLogger(ROOT, artifact)


def shows(artifact: str) -> bool:
    """Whether somebody reads an artifact: one that is off by default goes nowhere until it is switched on by name."""
    logger = artifact_logger(artifact)
    return logger.propagate and logger.isEnabledFor(logging.DEBUG)


def is_read() -> bool:
    """Whether somebody reads what a compile says: an artifact, remarks, or torch's structured trace."""
    traced = bool(logging.getLogger("torch.__trace").handlers)
    return traced or any(map(shows, STAGES)) or wants_remarks() or _aot_is_read()


def _aot_is_read() -> bool:
    from torch._logging._internal import log_state

    verbose = logging.getLogger("torch._functorch").isEnabledFor(logging.INFO)
    return verbose or any(map(log_state.is_artifact_enabled, _OF_AOTAUTOGRAD))


def show(artifact: str, title: str, text: str) -> None:
    """Log an artifact."""
    artifact_logger(artifact).debug("%s", f"{title}\n{text}")


def wants_remarks() -> bool:
    """Whether somebody reads remarks: as an artifact, or in the log of a pass."""
    return any(map(shows, REMARKS)) or _passes_are_watched()


def _passes_are_watched() -> bool:
    enter()
    root = f"{ROOT}.passes"
    if logging.getLogger(root).isEnabledFor(logging.INFO):
        return True
    known = logging.root.manager.loggerDict
    below = (each for name, each in known.items() if name.startswith(f"{root}."))
    return any(isinstance(each, logging.Logger) and each.isEnabledFor(logging.INFO) for each in below)


def log_remarks(kind: str, remarks: Iterable[Remark]) -> None:
    """Remarks of one graph, each to the log of its pass and to the artifacts that it belongs to; equal ones once."""
    times: Counter[str] = Counter()
    first: dict[str, Remark] = {}
    for each in remarks:
        times[text := each.told()] += 1
        first.setdefault(text, each)
    for text, each in first.items():
        said = f"{kind}: {text}" if times[text] == 1 else f"{kind}: {text} (x{times[text]})"
        logger = logging.getLogger(f"{ROOT}.{module_of_pass(each.pass_name) or 'remarks'}")
        logger.log(logging.DEBUG if each.kind == "analysis" else logging.INFO, "%s", said)
        for artifact in artifacts_of(each):
            if shows(artifact):
                artifact_logger(artifact).debug("%s", said)


def artifacts_of(remark: Remark) -> Sequence[str]:
    """Torch's artifacts that show a remark: what costs time is `perf_hints`, but for what `fusion` shows anyway."""
    found = ["cudagraphs"] if remark.pass_name in _RECORDING else []
    if remark.pass_name in FUSION:
        return [*found, "fusion"]
    return [*found, "perf_hints"] if remark.kind == "missed" else found
