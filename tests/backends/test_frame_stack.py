"""Python's own stack has room where we compile: calls at the end of a chunk of it are no system calls."""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from inductile.backends import compile_graph
from inductile.backends.frame_stack import with_stack_room

if sys.platform != "linux":
    pytest.skip("counts page faults of a thread as Linux does", allow_module_level=True)

_CALLS = 300
_DEPTHS = 250


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


def _leaf(a: int, b: int) -> int:
    return a + b


def _faults_of_calls(depth: int) -> int:
    """Page faults of many calls, behind so many frames."""
    if depth:
        return _faults_of_calls(depth - 1)
    before = _faults()
    for number in range(_CALLS):
        _leaf(number, number)
    return _faults() - before


def _most_faults() -> int:
    return max(_faults_of_calls(depth) for depth in range(_DEPTHS))


def _in_thread(function: Callable[[], int]) -> int:
    """What a function gives in a thread of its own, whose stack starts empty."""
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_calls_at_the_end_of_a_chunk_touch_no_new_memory() -> None:
    assert _in_thread(with_stack_room(_most_faults)) < _CALLS // 10


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="about frames of CPython")
def test_without_room_each_such_call_does() -> None:
    """Where this fails, Python keeps its frames in another way and needs no room."""
    assert _in_thread(_most_faults) >= _CALLS


def test_a_function_with_room_is_like_itself() -> None:
    @with_stack_room
    def add(a: int, *, b: int = 2) -> int:
        """Add."""
        return a + b

    assert (add(1), add(1, b=3), add.__name__, add.__doc__) == (3, 4, "add", "Add.")


def test_graphs_are_compiled_with_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many frames as Dynamo and AOTAutograd may leave behind them, the calls of a compile cost no page."""
    found: list[int] = []
    compile_one = compile_graph._compile

    def watched(*args: Any) -> Any:
        found.append(_most_faults())
        return compile_one(*args)

    monkeypatch.setattr(compile_graph, "_compile", watched)
    x = torch.randn(4, requires_grad=True)
    torch.compile(lambda x: x.sin() * 2, backend="inductile", options={"cache": False})(x).sum().backward()
    assert len(found) == 2
    assert max(found) < _CALLS // 10
