"""A process that compiles kernels for the one that started it: see `compilers.py`.

Importing Triton, and the digest of its library that every key of its cache holds, take about a second: they happen
here while the other process still traces its graph. Each kernel is compiled in a fork of this process, which has one
thread, no torch and no GPU, so that nothing can be held by a thread that a fork lacks.

Lines come in on the standard input: `jobs N`, how many compiles may run at once, and `ID REQUEST`. A line of JSON goes
out for each request, when it is done: `id`, and `files` of Triton's cache and `seconds`, or the `problem`.
"""

from __future__ import annotations

import json
import os
import selectors
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import triton
import triton.language as tl

from . import nvidia, prelude, special  # noqa: F401  # what kernels import
from .loading import load_function
from .request import Request

#: seconds without work after which the process ends; the next graph starts another
IDLE = 120.0
_CHUNK = 1 << 16


class Server:
    """Reads requests from a file descriptor and answers on another."""

    def __init__(self, source: int, sink: int) -> None:
        self._sink = sink
        self._most = os.cpu_count() or 1
        self._waiting: deque[tuple[int, str]] = deque()
        self._running = 0
        self._selector = selectors.DefaultSelector()
        self._watch(source, lambda line: self._command(line.decode()))

    def run(self) -> None:
        """Serve until the source ends and all is answered, or nothing came for a while."""
        while self._selector.get_map():
            events = self._selector.select(None if self._running else IDLE)
            if not events:
                return
            for key, _ in events:
                key.data()

    def _watch(self, source: int, take: Callable[[bytes], None], end: Callable[[], None] = lambda: None) -> None:
        """Give each line of a file descriptor to `take`; close it behind the last one."""
        pieces: list[bytes] = []

        def read() -> None:
            piece = os.read(source, _CHUNK)
            *lines, rest = b"".join([*pieces, piece]).split(b"\n")
            pieces[:] = [rest]
            for line in lines:
                take(line)
            if not piece:
                self._selector.unregister(source)
                os.close(source)
                end()

        self._selector.register(source, selectors.EVENT_READ, read)

    def _command(self, line: str) -> None:
        head, _, rest = line.partition(" ")
        if head == "jobs":
            self._most = max(int(rest), 1)
        else:
            self._waiting.append((int(head), rest))
        self._start()

    def _start(self) -> None:
        while self._waiting and self._running < self._most:
            self._fork(*self._waiting.popleft())

    def _fork(self, number: int, text: str) -> None:
        receive, send = os.pipe()
        child = os.fork()
        if not child:
            os.close(receive)
            _send(send, _answer(text))
            os._exit(0)
        os.close(send)
        self._running += 1
        answers: list[dict[str, Any]] = []
        self._watch(
            receive, lambda line: answers.append(json.loads(line)), partial(self._ended, child, number, answers)
        )

    def _ended(self, child: int, number: int, answers: list[dict[str, Any]]) -> None:
        _, status = os.waitpid(child, 0)
        answer = answers[0] if answers else {"problem": f"the compiler ended with status {status}"}
        self._running -= 1
        _send(self._sink, {"id": number, **answer})
        self._start()


def _answer(text: str) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        request = Request.parse(text)
        files = request.compile(load_function(request.path, request.name)).metadata_group
        return {"files": files, "seconds": time.perf_counter() - started}
    except BaseException as error:
        return {"problem": f"{type(error).__name__}: {error}"}


def _send(sink: int, message: dict[str, Any]) -> None:
    left = memoryview(json.dumps(message, default=str).encode() + b"\n")
    while left:
        left = left[os.write(sink, left) :]


@triton.jit
def _copy(x, y, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def _warm_up(target: tuple[str, Any, int]) -> None:
    """Go through Triton's compiler once, so that forks find everything loaded."""
    signature = {"x": "*fp32", "y": "*fp32", "n": "i32", "block": "constexpr"}
    request = Request("_copy", __file__, signature, {"block": 128}, 0, (0, 1), {}, *target)
    before = os.environ.get("TRITON_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        try:
            request.compile(_copy)
        finally:
            del os.environ["TRITON_CACHE_DIR"]
            if before is not None:
                os.environ["TRITON_CACHE_DIR"] = before


def main(target: str) -> None:
    """Serve on the standard input and output; what compilers print goes to the standard error."""
    sink = os.dup(1)
    os.dup2(2, 1)
    _warm_up(tuple(json.loads(target)))
    Server(sys.stdin.fileno(), sink).run()
