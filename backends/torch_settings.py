"""What torch is configured with, for the names that mean something here: `torch._inductor.config`, set or patched."""

from __future__ import annotations

import os
import sys
from typing import Any

from .config import Config, field_name
from .option_names import SAME, TRANSLATED, WITHOUT_EFFECT, option_names

TOLD_WHEN_SET = ("cpp_wrapper", "nan_asserts", "memory_planning", "b2b_gemm_pass", "use_fast_math")
"""Names without effect of which somebody who sets them for the whole process has to hear."""


def torch_settings() -> dict[str, Any]:
    """Options that hold for the whole process, under TorchInductor's names: those that ask for something.

    They are set by assignment, by `torch._inductor.config.patch`, or by torch's environment variables. Empty where
    nobody has loaded that module, which Dynamo does.
    """
    config: Any = sys.modules.get("torch._inductor.config")
    found: dict[str, Any] = {"fallback_random": True} if _compares_with_eager() else {}
    for name, known in option_names().items() if config is not None else ():
        if known.verdict == WITHOUT_EFFECT and name not in TOLD_WHEN_SET:
            continue
        value = _read(config, name)
        if value is not None and _asks(config, name, value):
            found[name] = value
    return found


def _threads_are_chosen(config: Any) -> bool:
    """Whether somebody says how many compilers may run: torch's default is the number of cores."""
    return "TORCHINDUCTOR_COMPILE_THREADS" in os.environ or not config._is_default("compile_threads")


def _compares_with_eager() -> bool:
    """Whether torch's reproducers compare answers with eager's, for which random numbers have to be the same."""
    config: Any = sys.modules.get("torch._dynamo.config")
    return config is not None and config.repro_after is not None and config.repro_level == 4


def _read(config: Any, name: str) -> Any:
    """The value of a setting; None where this torch has no such name."""
    for part in name.split("."):
        config = getattr(config, part, None)
    return config


def _asks(config: Any, name: str, value: Any) -> bool:
    """Whether a value asks for something that is not so here anyway."""
    known = option_names()[name]
    if known.verdict == SAME:
        is_ours = value == getattr(Config, field_name(name))
        return not is_ours and (name != "compile_threads" or _threads_are_chosen(config))
    if known.verdict == TRANSLATED:
        options = known.translate(value) or {}
        return any(getattr(Config, option) != given for option, given in options.items())
    return known.is_refused(value) or (known.verdict == WITHOUT_EFFECT and bool(value))
