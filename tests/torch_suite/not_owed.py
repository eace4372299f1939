"""Tests of Inductor that a backend does not owe: those that ask for Inductor's own insides.

A rule excuses a test that fails, never one that passes. Rules look at the statement that fails, then at the source of
the test, for there its claims about Inductor stand; TESTS names those that show them nowhere.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from collections.abc import Callable
from functools import cache
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

#: the same where a module's subject is recorded graphs: there, only what is Inductor's own is not owed
SOURCES_OF_GRAPHS: tuple[tuple[str, str], ...] = (
    (r"compile_fx_inner|_test_unaligned_static_input_impl", "calls Inductor's own functions"),
    (r"complex_memory_overlap", "changes a check of Inductor's, so that a graph is not recorded"),
    (r"FxGraphCache|AOTAutogradCache", "counts hits of Inductor's cache"),
)
STATEMENTS_OF_GRAPHS: tuple[tuple[str, str], ...] = (
    (r"FileCheck|captured_output|log_stream", "reads the words in which Inductor says why a graph is not recorded"),
    (r"counters\[.inductor.\]", "counts what Inductor did not record"),
    (r"get_num_partitions|run_and_get_code", "reads Inductor's generated code"),
)
#: test modules whose subject is recorded graphs
OF_GRAPHS = ("test_cudagraph_trees",)

#: what an error of wrong values says: no rule about a test's source excuses it
VALUES = re.compile(r"Tensor-likes are not|Scalars are not|Mismatched elements|not close")
OF_TENSORS = re.compile(r"Tensor-likes are not")

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
    if re.search(r"backend_cudagraphs$|_nonzero_backend$", plain):
        return "tests torch's own backend `cudagraphs`"
    if is_of_this_package(problem):
        return None
    file = str(inspect.getsourcefile(inspect.unwrap(method)))
    of_graphs = Path(file).stem in OF_GRAPHS
    failed = "\n".join(statements(problem, file))
    told = _first(STATEMENTS_OF_GRAPHS if of_graphs else STATEMENTS, failed)
    if told is not None or (OF_TENSORS if of_graphs else VALUES).search(problem):
        return told
    return _first(SOURCES_OF_GRAPHS if of_graphs else SOURCES, source(method))


def _first(rules: tuple[tuple[str, str], ...], text: str) -> str | None:
    """What the first rule says that fits a text."""
    return next((why for pattern, why in rules if re.search(pattern, text)), None)


def is_of_this_package(problem: str) -> bool:
    """Whether an error was raised by this package's own code, or below it: no rule about a test excuses that."""
    files = [Path(file) for file, _, _ in _FRAME.findall(problem)]
    own = [file.relative_to(_PACKAGE).parts[0] for file in files if file.is_relative_to(_PACKAGE)]
    return any(folder != "tests" and not folder.startswith(".") for folder in own)


def statements(problem: str, file: str) -> list[str]:
    """The calls of a traceback in one file: the function, and the statement that ran."""
    return [f"in {name}: {_statement(file, int(line))}" for path, line, name in _FRAME.findall(problem) if path == file]


@cache
def _statement(file: str, line: int) -> str:
    """The innermost statement around a line; of one with a body what stands before it.

    The line may be any of it: of a call that fails Python 3.12 names the one with the name of the method.
    """
    around = [each for each in ast.walk(_parsed(file)) if isinstance(each, ast.stmt) and _covers(each, line)]
    if not around:
        return linecache.getline(file, line)
    inner = max(around, key=lambda each: each.lineno)
    body: list[ast.stmt] = getattr(inner, "body", [])
    last = body[0].lineno - 1 if body else inner.end_lineno or line
    return "".join(linecache.getline(file, number) for number in range(inner.lineno, max(last, line) + 1))


def _covers(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


@cache
def _parsed(file: str) -> ast.Module:
    return ast.parse("".join(linecache.getlines(file)))


def source(method: Callable[..., Any]) -> str:
    """The text of a test, with its decorators."""
    try:
        return inspect.getsource(inspect.unwrap(method))
    except (OSError, TypeError):
        return ""
