"""Room on Python's own stack.

CPython keeps the frames of a thread in chunks of 16 KiB, which hold some ninety of them. A call that finds a chunk full
maps another one, and the return from it unmaps that again: where a loop happens to stand at the end of a chunk, each of
its calls costs two system calls and a page fault, 5 to 10 microseconds. A compile stands behind a hundred frames of
Dynamo and AOTAutograd and walks trees, so that some loops always stand there: 3,800 calls, a sixth of the time that a
first compile of twelve layers took us.

A frame that needs more than a chunk gets one of its own, whose size is a power of two. The frames of the functions that
it calls take what is left of that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_SLOTS = 1 << 15
"""Words of a frame that gets a chunk of 512 KiB. It touches few of them, and leaves 250 KiB, which hold the thousand
frames that Python's limit on recursion allows."""


def with_stack_room(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, with room for the frames of all that it calls."""

    def called(*args: P.args, **named: P.kwargs) -> R:
        return function(*args, **named)

    called.__code__ = called.__code__.replace(co_stacksize=_SLOTS)
    return wraps(function)(called)
