"""Launches in one foreign call, with a function of the test in the place of the driver's."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from inductile.backends.host.constants import Constants
from inductile.backends.triton import run_table, runs
from inductile.backends.triton.run_table import Direct
from inductile.backends.triton.runs import RunLaunch, write_run
from inductile.backends.triton.variants import Variant, traits_of
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
    """Records launches that take their usual way. With `loads`, such a launch loads a variant for C."""

    def __init__(self, name: str, directs: dict[int, Direct], status: int = 0) -> None:
        self.name, self.directs, self.status_pointer, self.overlaps = name, directs, status, False
        self.calls: list[tuple[Any, ...]] = []
        self.loads: dict[int, Direct] = {}

    def __call__(self, *arguments: Any) -> None:
        self.calls.append(arguments)
        self.directs |= self.loads


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


def written(launches: list[RunLaunch], arguments: str) -> Any:
    """A function of the stream and of these arguments that makes the launches."""
    constants = Constants()
    lines = write_run(launches, constants)
    assert len(lines) == 2
    body = "".join(f"    {line}\n" for line in lines)
    exec(f"def run(stream, {arguments}):\n{body}", constants.namespace)
    return constants.namespace["run"]


def program(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> tuple[Any, list[tuple[Any, ...]]]:
    monkeypatch.setattr(run_table, "driver", lambda: driver.address)
    one: Any = Kernel("one", {0: Direct(1, 128, 0, 0)})
    two: Any = Kernel("two", {0: Direct(2, 64, 1024, 2)})
    two.calls = one.calls
    launches = [RunLaunch(one, "5", ("a", "b")), RunLaunch(two, "7", ("b", "a + 64"))]
    return written(launches, "a, b"), one.calls


class Config(ctypes.Structure):
    """What the driver is given with attributes, of which each has a number, 4 bytes of nothing, and 64 of its value."""

    _fields_ = (
        ("sizes", ctypes.c_uint * 7), ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(ctypes.c_int * 18)),
        ("count", ctypes.c_uint),
    )  # fmt: skip


@pytest.mark.parametrize("programs", ["5", "0"])
def test_launches_that_follow_one_another_overlap(monkeypatch: pytest.MonkeyPatch, programs: str) -> None:
    """All but the first, for nobody knows what is in front of that; and but those of kernels that do not wait."""
    driver, early = Driver(), []
    driver.counts = {1: 1, 2: 1, 3: 1}

    def launch(config: Any, function: int, arguments: Any, _: Any) -> int:
        given = config.contents
        assert given.count == 1 and list(given.attributes.contents) == [6, 0, 1, *[0] * 15]
        early.append((function, *given.sizes, given.stream, ctypes.c_int64.from_address(arguments[0]).value))
        return 0

    kind = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(Config), ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p
    )
    function = kind(launch)
    monkeypatch.setattr(run_table, "driver", lambda: driver.address)
    monkeypatch.setattr(run_table, "overlapping_driver", lambda: ctypes.cast(function, ctypes.c_void_p).value)
    kernels: list[Any] = [Kernel(str(k), {0: Direct(k, 32 * k, 0, 0)}) for k in (1, 2, 3)]
    kernels[0].overlaps = kernels[1].overlaps = True
    launches = [RunLaunch(each, programs if k == 0 else "7", ("a",)) for k, each in enumerate(kernels)]
    written([*launches, launches[1]], "a")(9, 4096)
    in_order = [(k, 5 if k == 1 else 7, 1, 1, 32 * k, 1, 1, 0, 9, 4096) for k in (1, 2, 3)]
    if programs == "0":  # what launches nothing is nothing to follow
        assert driver.calls == in_order[1:]
        assert early == [in_order[1]]
    else:
        assert driver.calls == [in_order[0], in_order[2]]
        assert early == [in_order[1], in_order[1]]


def test_all_launches_are_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    run, calls = program(monkeypatch, driver)
    for first in (1 << 40, 4096):
        run(33, first, 8192)
        assert driver.calls == [
            (1, 5, 1, 1, 128, 1, 1, 0, 33, first, 8192),
            (2, 7, 1, 1, 64, 1, 1, 1024, 33, 8192, first + 64, 0, 0),
        ]
        driver.calls.clear()
    assert not calls


def test_an_address_that_is_not_aligned_takes_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    run, calls = program(monkeypatch, driver)
    run(33, 64, 8196)
    assert not driver.calls and calls == [(33, 5, False, 64, 8196), (33, 7, False, 8196, 128)]


def test_a_thread_without_a_context_takes_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(0, 201)
    run, calls = program(monkeypatch, driver)
    run(33, 64, 128)
    assert len(driver.calls) == 2 and calls == [(33, 7, False, 128, 128)]


def test_an_error_of_the_driver_names_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = program(monkeypatch, Driver(0, 701))
    with pytest.raises(RuntimeError, match="CUDA error 701 of the driver at the launch of two"):
        run(33, 64, 128)


#: traits of one integer: no multiple of 16, a multiple, one of more than 32 bits, and offsets of 64 bits
ODD, EVEN, LONG, WIDE = 0b100, 0b110, 0b000, 0b101


def dynamic(monkeypatch: pytest.MonkeyPatch, driver: Driver, status: int = 0) -> tuple[Any, Any]:
    """A launch of `n` programs with the integer `n` and a buffer of `m` elements."""
    driver.counts = {1: 2 + bool(status), 2: 2 + bool(status)}
    monkeypatch.setattr(run_table, "driver", lambda: driver.address)
    kernel: Any = Kernel("dynamic", {EVEN: Direct(1, 128, 0, 0)}, status)
    return written([RunLaunch(kernel, "n", ("a",), ("n",), "m")], "a, n, m"), kernel


def test_integers_choose_the_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    run, kernel = dynamic(monkeypatch, driver)
    run(33, 64, 32, 100)
    assert driver.calls == [(1, 32, 1, 1, 128, 1, 1, 0, 33, 64, 32)] and not kernel.calls
    kernel.loads = {ODD: Direct(2, 64, 0, 0)}
    run(33, 64, 31, 100)  # is loaded by the kernel itself, and is there from then on
    run(33, 64, 31, 100)
    assert kernel.calls == [(33, 31, False, 64, 31)]
    assert driver.calls[1:] == [(2, 31, 1, 1, 64, 1, 1, 0, 33, 64, 31)]


@pytest.mark.parametrize(
    ("n", "m", "traits"), [(-3, 1, ODD), (-32, 1, EVEN), (1 << 32, 1, LONG | 2), (7, 1 << 31, WIDE)]
)
def test_traits_are_those_of_variants(monkeypatch: pytest.MonkeyPatch, n: int, m: int, traits: int) -> None:
    assert Variant(m >= 1 << 31, integers=(traits_of(n),)).traits == traits
    driver = Driver()
    run, kernel = dynamic(monkeypatch, driver)
    kernel.loads = {traits: Direct(2, 64, 0, 0)}
    for _ in range(2):
        run(33, 64, n, m)
    assert [each[0] for each in driver.calls] in ([2], [1, 1]) and len(kernel.calls) == (traits != EVEN)


def test_no_programs_are_no_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    run, kernel = dynamic(monkeypatch, driver)
    run(33, 64, 0, 0)
    assert not driver.calls and not kernel.calls


def test_a_reported_error_takes_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    word = ctypes.c_int32(0)
    driver = Driver()
    run, kernel = dynamic(monkeypatch, driver, ctypes.addressof(word))
    run(33, 64, 32, 100)
    assert driver.calls == [(1, 32, 1, 1, 128, 1, 1, 0, 33, 64, 32, ctypes.addressof(word))]
    word.value = 1
    run(33, 64, 32, 100)
    assert len(driver.calls) == 1 and kernel.calls == [(33, 32, False, 64, 32)]


def test_without_a_compiler_a_remark_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(sources: Any) -> Any:
        raise CompilerNotFoundError("C++ compiler", "g++")

    monkeypatch.setattr(runs, "compile_kernels", fail)
    monkeypatch.setattr(runs, "driver", lambda: 1)
    runs.run_kernel.cache_clear()
    try:
        with collecting() as remarks:
            assert not runs.is_possible()
        assert any("g++" in each.reason for each in remarks)
    finally:
        runs.run_kernel.cache_clear()


def test_descriptors_are_made_in_the_last_buffer() -> None:
    """Its address follows the arguments once more, where Triton expects memory of the kernel's own."""
    kernel: Any = Kernel("boxes", {})
    launch = RunLaunch(kernel, "5", ("a", "b"), scratch=2, makes_boxes=True)
    assert launch.arguments(Constants()) == ("a", "b", "b", "0")
