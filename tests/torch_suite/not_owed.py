"""Tests of Inductor that a backend does not owe: those that ask for Inductor's own insides.

A rule excuses a test that fails, never one that passes. Rules look at the source of a test, for it is there that its
claims about Inductor stand; TESTS names those whose source does not show them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

#: what a test's source contains -> why it is not owed, the first that fits
SOURCES: tuple[tuple[str, str], ...] = (
    (
        r"run_and_get_(cpp_|triton_)?code|run_fw_bw_and_get_code|get_triton_code|run_and_get_kernels|FileCheck",
        "reads Inductor's generated code",
    ),
    (r"\bmetrics\.|generated_kernel_count|KernelCount|counters\[.inductor.\]", "counts what Inductor did"),
    (r"aoti_|_aoti|aot_inductor", "tests AOTInductor"),
    (r"fx_passes|pattern_matcher|post_grad|joint_graph|pre_grad|pad_mm", "tests Inductor's graph passes"),
    (r"test_operators", "uses an operator that Inductor alone knows"),
    (r"register_lowering|lowerings?\b\.|fallback_handler|make_fallback", "tests Inductor's lowerings"),
    (r"cudagraph", "tests Inductor's use of CUDA graphs"),
    (r"InductorError|LoweringException", "expects Inductor's errors"),
    (
        r"compile_fx_inner|GraphLowering|add_scheduler_init_hook|\bV\.|complex_memory_overlap|torch\._inductor\.",
        "calls Inductor's own functions",
    ),
    (r"config\.patch|@config", "sets Inductor's options"),
)

#: what an error of wrong values says: no rule about a test's source excuses it
VALUES = re.compile(r"Tensor-likes are not|Scalars are not|Mismatched elements|not close")

#: the name of a test without its device -> why it is not owed
TESTS: dict[str, str] = {}


def reason(name: str, method: Callable[..., Any], device: str, problem: str) -> str | None:
    """Why a failure of a test is not owed, or None; `problem` is the text of the error."""
    plain = name.rpartition(".")[2].removesuffix(f"_{device}")
    if plain in TESTS:
        return TESTS[plain]
    if VALUES.search(problem):
        return None
    text = source(method)
    return next((why for pattern, why in SOURCES if re.search(pattern, text)), None)


def source(method: Callable[..., Any]) -> str:
    """The text of a test, with its decorators."""
    import inspect

    try:
        return inspect.getsource(inspect.unwrap(method))
    except (OSError, TypeError):
        return ""
