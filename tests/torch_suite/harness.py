"""A test module of Inductor's, run with another backend in Inductor's place.

All ways to Inductor go through `torch._inductor.compile_fx.compile_fx`: torch.compile's default backend looks it up
there, and so does a test module that imports it. It is replaced before the module is loaded.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import re
import signal
import sys
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import not_owed


class SuiteTimeoutError(BaseException):
    """A test took too long; no test's own `except Exception` may catch it."""


@contextlib.contextmanager
def in_place_of_inductor(backend: str) -> Iterator[None]:
    """Have Inductor's entry point call another backend; "inductor" changes nothing."""
    import torch._dynamo
    import torch._inductor.compile_fx as entry

    original = entry.compile_fx
    if backend != "inductor":
        compile_with: Any = torch._dynamo.lookup_backend(backend)

        def compile_fx(graph: Any, example_inputs: Any, *_: Any, **__: Any) -> Any:
            return compile_with(graph, example_inputs)

        setattr(entry, "compile_fx", compile_fx)  # noqa: B010 - its signature is another one
    try:
        yield
    finally:
        setattr(entry, "compile_fx", original)  # noqa: B010


def load(path: Path) -> ModuleType:
    """Import a test module; files beside it and in the folder above can be imported from it."""
    for folder in (path.parent.parent, path.parent):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def tests_of(module: ModuleType, classes: str = "", only: str = "") -> dict[str, unittest.TestCase]:
    """Name -> test of a module whose class and whose name a pattern finds."""
    found: dict[str, unittest.TestCase] = {}
    loader = unittest.TestLoader()
    for name, cls in vars(module).items():
        own = isinstance(cls, type) and issubclass(cls, unittest.TestCase) and cls.__module__ == module.__name__
        if own and re.search(classes, name):
            for method in loader.getTestCaseNames(cls):
                if re.search(only, method):
                    found[f"{name}.{method}"] = cls(method)
    return found


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise SuiteTimeoutError in the main thread after some seconds."""

    def stop(*_: Any) -> None:
        raise SuiteTimeoutError(f"no result after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run_test(name: str, test: unittest.TestCase, device: str, seconds: int = 120) -> dict[str, Any]:
    """A test's result: pass, fail, skipped, or not owed, with the reason."""
    result, started = unittest.TestResult(), time.perf_counter()
    written = io.StringIO()
    status, problem = "pass", ""
    try:
        with time_limit(seconds), contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
            unittest.TestSuite([test]).run(result)
    except SuiteTimeoutError as error:
        status, problem = "fail", str(error)
    texts = [text for _, text in [*result.errors, *result.failures]]
    for text in texts:
        status, problem = "fail", problem or _last_line(text)
    if status == "pass" and result.unexpectedSuccesses:
        status, problem = "pass", "an expected failure, and it passes"
    if status == "pass" and result.skipped:
        status, problem = "skipped", result.skipped[0][1]
    if status == "fail":
        method: Callable[..., Any] = getattr(test, test._testMethodName)
        why = not_owed.reason(name, method, device, "\n".join(texts))
        if why is not None:
            status, problem = "not owed", f"{why} ({problem})"
    return {
        "test": name,
        "status": status,
        "problem": problem[:400],
        "seconds": round(time.perf_counter() - started, 2),
    }


def _last_line(traceback: str) -> str:
    """The error at the end of a traceback."""
    lines = traceback.strip().splitlines()
    starts = [k for k, line in enumerate(lines) if re.match(r"^[\w.]+(Error|Exception|Failed|Warning|Failure)\b", line)]
    return " ".join(line.strip() for line in lines[starts[-1] if starts else -1 :] if line.strip())[:400]
