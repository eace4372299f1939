"""How much memory a file may take and how long its loops may run: sizes are data, and one of 2^60 gets a message."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch

from ..errors import UserError, program_raises

MAX_STEPS = 1 << 36
"""Iterations of loops that a file may run, unless its reader says otherwise."""
STEPS_OF_RUN = 1 << 14
"""A run of a body on the host, of a branch or of a loop, counts as so many iterations: it takes as long."""
_MEMORY: ContextVar[int | None] = ContextVar("memory", default=None)
_STEPS: ContextVar[int] = ContextVar("steps", default=MAX_STEPS)
_LARGE = 1 << 20
"""Numbers whose product is smaller make no large tensor of a small one."""
_FALLBACK = 8 << 30
"""Bytes, where a machine does not say how much memory it has left."""


def default_memory() -> int:
    """Three quarters of the memory that is left on this machine, in bytes."""
    try:
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    except OSError:
        found = None
    return _FALLBACK if found is None else int(found[1]) * 1024 * 3 // 4


def max_steps() -> int:
    """How many iterations of loops a checked program may run."""
    return _STEPS.get()


def steps_of_files() -> int | None:
    """How many iterations an interpreted program may run; None where no limits hold."""
    return None if _MEMORY.get() is None else _STEPS.get()


def too_many_steps(what: str, steps: int) -> UserError:
    """The error of a program that runs more iterations than `steps`."""
    return UserError(f"{what} runs its loops more than {steps} times", "use smaller sizes, or a larger --max-steps")


def check_bytes(count: int) -> None:
    """Raise UserError for a tensor of more bytes than the limit, where there is one."""
    limit = _MEMORY.get()
    if limit is not None and count > limit:
        raise UserError(
            f"a tensor takes {count} bytes, and the file may take {limit}", "use smaller sizes, or --memory-limit GIB"
        )


def bounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operator as a file may call it: no call makes a tensor over the limit, and what one raises the file raises."""

    def call(*args: Any, **kwargs: Any) -> Any:
        _check_call(function, args, kwargs)
        with program_raises():
            return function(*args, **kwargs)

    return call


def _check_call(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise UserError where a call of ATen by a file makes a tensor of more bytes than the limit.

    Only numbers make large tensors of small ones, so that a call without large ones is not looked at. The others run
    on torch's meta device first, which computes sizes alone; what cannot run there is left to the system's limit.
    """
    if _MEMORY.get() is None or _growth([*args, *kwargs.values()]) < _LARGE:
        return
    given = {**kwargs, "device": torch.device("meta")} if "device" in kwargs else kwargs
    try:
        results = function(*_on_meta(list(args)), **{name: _on_meta(value) for name, value in given.items()})
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
        return  # the call itself says what is wrong
    for result in results if isinstance(results, list | tuple) else [results]:
        if isinstance(result, torch.Tensor):
            check_bytes(result.untyped_storage().nbytes())


def _growth(value: Any) -> int:
    """The product of the whole numbers in an argument, each at least 1."""
    if isinstance(value, list | tuple):
        return math.prod(map(_growth, value))
    return max(1, abs(value)) if isinstance(value, int) else 1


def _on_meta(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_on_meta, value))
    return value.to("meta") if isinstance(value, torch.Tensor) else value


@contextmanager
def limited(memory: int, steps: int = MAX_STEPS) -> Iterator[None]:
    """Inside, programs run at most `steps` iterations of loops; a tensor that the IR asks for has at most `memory`
    bytes, and all that is allocated takes at most twice as many.

    The last is the system's limit on the address space of the process, where it has one and no GPU reserves more.
    """
    tokens = _MEMORY.set(memory), _STEPS.set(steps)
    restore = _limit_address_space(memory)
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "DefaultCPUAllocator" not in str(error):
            raise
        problem = f"the file takes more memory than the limit of {memory / (1 << 30):g} GiB"
        raise UserError(problem, "use smaller sizes, or --memory-limit GIB") from error
    finally:
        _MEMORY.reset(tokens[0])
        _STEPS.reset(tokens[1])
        if restore is not None:
            restore()


def _limit_address_space(count: int) -> Callable[[], None] | None:
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return None
    if torch.cuda.is_available():
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * os.sysconf("SC_PAGE_SIZE") + 2 * count + (1 << 30)
    if soft != resource.RLIM_INFINITY and soft <= wanted:
        return None
    resource.setrlimit(resource.RLIMIT_AS, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
