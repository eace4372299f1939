"""Tests of Inductor that a backend does not owe: those that ask for Inductor's own insides.

A rule excuses a test that fails, never one that passes. Rules look at the statement that fails, then at the source of
the test, for there its claims about Inductor stand; TESTS names those that show them nowhere.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable
from pathlib import Path
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
)

#: what the statement that fails contains -> why it is not owed: it says so itself, also where it compares numbers
STATEMENTS: tuple[tuple[str, str], ...] = (
    (r"metrics\.|KernelCount|num_kernels|counters\[|ir_nodes_pre_fusion", "counts what Inductor did"),
    (
        r"run_and_get|run_fw_bw_and_get|get_triton_code|FileCheck|source_codes?\b|\bcodes?\b|_indirect_indexing",
        "reads Inductor's generated code",
    ),
    (r"post_grad_graph|logs_to_string|log_stream|inductor_wrapper_call", "reads what Inductor logs"),
)

#: what an error of wrong values says: no rule about a test's source excuses it
VALUES = re.compile(r"Tensor-likes are not|Scalars are not|Mismatched elements|not close")

#: the name of a test without its device -> why it is not owed
TESTS: dict[str, str] = {
    "test_buffer_batch_norm": "expects what it calls a fault of torch, one write too many; here it is eager's count",
    "test_uniform": "compares random numbers with eager's, which takes `fallback_random`",
}

_FRAME = re.compile(r'^  File "([^"]+)", line (\d+), in (\S+)$', re.M)
_PACKAGE = Path(__file__).parents[2]


def reason(name: str, method: Callable[..., Any], device: str, problem: str) -> str | None:
    """Why a failure of a test is not owed, or None; `problem` is the text of the error."""
    plain = name.rpartition(".")[2].removesuffix(f"_{device}")
    if plain in TESTS:
        return TESTS[plain]
    if is_of_this_package(problem):
        return None
    failed = "\n".join(statements(problem, str(inspect.getsourcefile(inspect.unwrap(method)))))
    told = next((why for pattern, why in STATEMENTS if re.search(pattern, failed)), None)
    if told is not None or VALUES.search(problem):
        return told
    text = source(method)
    return next((why for pattern, why in SOURCES if re.search(pattern, text)), None)


def is_of_this_package(problem: str) -> bool:
    """Whether an error was raised by this package's own code, or below it: no rule about a test excuses that."""
    files = [Path(file) for file, _, _ in _FRAME.findall(problem)]
    own = [file.relative_to(_PACKAGE).parts[0] for file in files if file.is_relative_to(_PACKAGE)]
    return any(folder not in (".venv", "tests") for folder in own)


def statements(problem: str, file: str) -> list[str]:
    """The calls of a traceback in one file: the function, and the statement up to where its brackets close."""
    found: list[str] = []
    for path, line, function in _FRAME.findall(problem):
        if path == file:
            text = ""
            for number in range(int(line), int(line) + 12):
                text += linecache.getline(file, number)
                if text.count("(") <= text.count(")"):
                    break
            found.append(f"in {function}: {text}")
    return found


def source(method: Callable[..., Any]) -> str:
    """The text of a test, with its decorators."""
    try:
        return inspect.getsource(inspect.unwrap(method))
    except (OSError, TypeError):
        return ""
