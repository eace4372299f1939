"""A test module of Inductor's, run with another backend in Inductor's place.

All ways to Inductor go through `torch._inductor.compile_fx.compile_fx`: torch.compile's default backend looks it up
there, and so does a test module that imports it. It is replaced before the module is loaded.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import importlib
import importlib.util
import io
import logging
import os
import re
import shutil
import signal
import sys
import time
import unittest
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import not_owed


class SuiteTimeoutError(BaseException):
    """A test took too long; no test's own `except Exception` may catch it."""


#: one entry for each graph that was compiled in Inductor's place
COMPILED: list[int] = []


@contextlib.contextmanager
def in_place_of_inductor(backend: str) -> Iterator[None]:
    """Have Inductor's entry point call another backend; "inductor" changes nothing."""
    import torch._dynamo
    import torch._inductor.compile_fx as entry

    original = entry.compile_fx
    if backend != "inductor":
        compile_with: Any = torch._dynamo.lookup_backend(backend)

        def compile_fx(graph: Any, example_inputs: Any, *_: Any, **given: Any) -> Any:
            COMPILED.append(1)
            options = _shared_options(given.get("config_patches")) if backend == "inductile" else {}
            return compile_with(graph, example_inputs, **({"options": options} if options else {}))

        setattr(entry, "compile_fx", compile_fx)  # noqa: B010 - its signature is another one
    try:
        yield
    finally:
        setattr(entry, "compile_fx", original)  # noqa: B010


@contextlib.contextmanager
def symbolic_sizes(wanted: bool) -> Iterator[None]:
    """Have Dynamo make symbols of all sizes, where a test does not say otherwise."""
    import torch._dynamo

    with torch._dynamo.config.patch(assume_static_by_default=False) if wanted else contextlib.nullcontext():
        yield


#: options of Inductor that this package has under the same name, and with the same meaning
SHARED_OPTIONS = ("fallback_random", "emulate_precision_casts")


def _shared_options(patches: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a test has set of them, and what a mode or options of torch.compile say of recorded graphs."""
    from torch._inductor import config

    given = {name: value for name, value in (patches or {}).items() if name.startswith("triton.cudagraph")}
    return {name: True for name in SHARED_OPTIONS if getattr(config, name, False)} | given


class MissingNameError(unittest.SkipTest):
    """A test uses what the installed torch does not have."""


class MissingName:
    """Stands for what a test module imports from torch, and the installed torch lacks; who uses it skips."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise MissingNameError(f"this torch has no {self._name}")

    def __getattr__(self, name: str) -> Any:
        raise MissingNameError(f"this torch has no {self._name}, whose {name} is used")


#: name that torch had -> what it is called now, in the same module
RENAMED = {"torch.testing._internal.inductor_utils.HAS_CUDA": "HAS_CUDA_AND_TRITON"}


def supply_missing_names(path: Path) -> list[str]:
    """Put a `MissingName` where a test module imports a name that a module of torch lacks; the names.

    The file and torch may be of different commits, between which private names come and go.
    """
    found: list[str] = []
    for statement in ast.walk(ast.parse(path.read_text())):
        if not isinstance(statement, ast.ImportFrom) or not str(statement.module).startswith("torch."):
            continue
        try:
            module = importlib.import_module(str(statement.module))
        except ImportError:
            continue  # told by the statement itself where it runs
        for name in (each.name for each in statement.names if each.name != "*"):
            if not hasattr(module, name) and not _is_module(f"{statement.module}.{name}"):
                full = f"{statement.module}.{name}"
                known = getattr(module, RENAMED.get(full, ""), None)
                if known is None:
                    found.append(full)
                setattr(module, name, MissingName(full) if known is None else known)
    return found


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@contextlib.contextmanager
def without_trial_builds() -> Iterator[None]:
    """Let torch's helpers for tests believe that there is a C++ compiler where one is found.

    Those of torch 2.11 find out while they are imported, by building Inductor's headers, which takes a minute.
    """
    from torch._inductor.codecache import CppCodeCache

    original = vars(CppCodeCache)["load"]

    def load(cls: Any, source_code: str, *arguments: Any, **options: Any) -> Any:
        if source_code:
            return original.__func__(cls, source_code, *arguments, **options)
        if not any(map(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++"))):
            raise OSError("no C++ compiler is found")
        return None

    setattr(CppCodeCache, "load", classmethod(load))  # noqa: B010 - for as long as this lasts
    try:
        yield
    finally:
        setattr(CppCodeCache, "load", original)  # noqa: B010


def load(path: Path) -> ModuleType:
    """Import a test module; files beside it and in the folder above can be imported from it."""
    with without_trial_builds():
        return _load(path)


def _load(path: Path) -> ModuleType:
    supply_missing_names(path)
    for folder in (path.parent.parent, path.parent):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


class _CurrentStderr:
    """A stream that writes to what `sys.stderr` is when something is written."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def log_to_current_stderr() -> None:
    """Have torch's loggers write where a test captures `sys.stderr`, as those of later versions do.

    Up to torch 2.11 their handlers keep the stream that there was when torch was imported.
    """
    for name in (None, *logging.root.manager.loggerDict):
        for handler in logging.getLogger(name).handlers:
            if type(handler) is logging.StreamHandler and handler.stream in (sys.stderr, sys.__stderr__):
                handler.setStream(_CurrentStderr())


def clean_up() -> None:
    """Drop what a test that failed has left in torch: compiled functions, recordings, memory of recordings."""
    import torch

    torch._dynamo.reset()
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


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
    """A test's result: pass, fail, skipped, or not owed, with the reason; `text` is the end of the traceback."""
    result, started = unittest.TestResult(), time.perf_counter()
    written, before = io.StringIO(), len(COMPILED)
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
        clean_up()
        method: Callable[..., Any] = getattr(test, test._testMethodName)
        why = not_owed.reason(name, method, device, "\n".join(texts))
        if why is not None:
            status, problem = "not owed", f"{why} ({problem})"
    return {
        "test": name,
        "status": status,
        "problem": problem[:400],
        "graphs": len(COMPILED) - before,
        "seconds": round(time.perf_counter() - started, 2),
    } | ({"text": "\n".join(texts)[-TEXT:]} if texts else {})


#: characters of a traceback that are kept
TEXT = 4000


def _last_line(traceback: str) -> str:
    """The error at the end of a traceback, without torch's advice on how to repeat the test."""
    lines = traceback.partition("\nTo execute this test, run the following")[0].strip().splitlines()
    starts = [k for k, line in enumerate(lines) if re.match(r"^[\w.]+(Error|Exception|Failed|Warning|Failure)\b", line)]
    return " ".join(line.strip() for line in lines[starts[-1] if starts else -1 :] if line.strip())[:400]
