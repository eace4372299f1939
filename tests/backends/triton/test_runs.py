"""Launches in one foreign call, with a function of the test in the place of the driver's."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from inductile.backends.host.constants import Constants
from inductile.backends.triton import runs
from inductile.backends.triton.runs import Direct, RunLaunch, write_run
from inductile.errors import CompilerNotFoundError
from inductile.passes.remarks import collecting

_DRIVER = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    *[ctypes.c_uint] * 7,
    ctypes.c_void_p,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.c_void_p,
)


class Kernel:
    """Records launches that take their usual way."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, *arguments: Any) -> None:
        self.calls.append(arguments)


class Driver:
    """Records what it is asked to launch; `answers` are its results, 0 behind the last."""

    def __init__(self, *answers: int) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[int, ...]] = []
        self.counts = {1: 2, 2: 4}
        self.function = _DRIVER(self._launch)
        self.address = ctypes.cast(self.function, ctypes.c_void_p).value

    def _launch(self, function: int, x: int, y: int, z: int, tx: int, ty: int, tz: int, *rest: Any) -> int:
        shared, stream, arguments, _ = rest
        read = [ctypes.c_int64.from_address(arguments[k]).value for k in range(self.counts[function])]
        self.calls.append((function, x, y, z, tx, ty, tz, shared, stream, *read))
        return self.answers.pop(0) if self.answers else 0


def program(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> tuple[Any, Kernel]:
    monkeypatch.setattr(runs, "driver", lambda: driver.address)
    kernel: Any = Kernel()
    launches = [
        RunLaunch("one", kernel, Direct(1, 128, 0, 0), 5, ("a", "b")),
        RunLaunch("two", kernel, Direct(2, 64, 1024, 2), 7, ("b", "a + 64")),
    ]
    constants = Constants()
    lines = write_run(launches, constants)
    assert len(lines) == 2 and lines[0].endswith("# one, two")
    body = "".join(f"    {line}\n" for line in lines)
    exec(f"def run(stream, a, b):\n{body}", constants.namespace)
    return constants.namespace["run"], kernel


def test_all_launches_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    run, kernel = program(monkeypatch, driver)
    for first in (1 << 40, 4096):
        run(33, first, 8192)
        assert driver.calls == [
            (1, 5, 1, 1, 128, 1, 1, 0, 33, first, 8192),
            (2, 7, 1, 1, 64, 1, 1, 1024, 33, 8192, first + 64, 0, 0),
        ]
        driver.calls.clear()
    assert not kernel.calls


def test_an_address_that_is_not_aligned_takes_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    run, kernel = program(monkeypatch, driver)
    run(33, 64, 8196)
    assert not driver.calls and kernel.calls == [(33, 5, False, 64, 8196), (33, 7, False, 8196, 128)]


def test_a_thread_without_a_context_takes_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(0, 201)
    run, kernel = program(monkeypatch, driver)
    run(33, 64, 128)
    assert len(driver.calls) == 2 and kernel.calls == [(33, 7, False, 128, 128)]


def test_an_error_of_the_driver_names_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = program(monkeypatch, Driver(0, 701))
    with pytest.raises(RuntimeError, match="CUDA error 701 of the driver at the launch of two"):
        run(33, 64, 128)


def test_without_a_compiler_a_remark_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(sources: Any) -> Any:
        raise CompilerNotFoundError("C++ compiler", "g++")

    monkeypatch.setattr(runs, "compile_kernels", fail)
    monkeypatch.setattr(runs, "driver", lambda: 1)
    runs.launch_run.cache_clear()
    try:
        with collecting() as remarks:
            assert not runs.is_possible()
        assert any("g++" in each.reason for each in remarks)
    finally:
        runs.launch_run.cache_clear()
