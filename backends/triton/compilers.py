"""Compiling kernels in other processes: a server that is started early, and what it made.

Most of a first compile by Triton is Python and a digest of its library, which threads of one process do one after the
other. The server of `compile_server.py` gets ready while a graph is traced, then compiles all kernels side by side
through Triton's cache on disk. What it cannot do is compiled here, where a failure is raised as it is.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence

from .request import Binary, Request
from .targets import TritonTarget

log = logging.getLogger(__name__)

_CODE = f"""import json, sys
sys.path[:] = json.loads(sys.argv[1])
from {__package__}.compile_server import main
main(sys.argv[2])"""
#: requests that are sent before answers are read: so few that their answers fit into a pipe
_AHEAD = 64


class CompileServer:
    """The compile server of this process; at most one runs at a time. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    @property
    def is_running(self) -> bool:
        """Whether there is a server; a fork of the process that started it has none."""
        return self._process is not None and self._owner == os.getpid() and self._process.poll() is None

    def start(self, target: TritonTarget) -> None:
        """Start a server that gets ready for a target, unless one runs. Returns at once."""
        with self._lock:
            if self.is_running or not sys.executable:
                return
            self._close()
            path = json.dumps([entry or os.getcwd() for entry in sys.path])
            ready_for = json.dumps([target.backend, target.arch, target.warp_size])
            try:
                # in a session of its own, so that an interrupt from the keyboard is ours alone; it ends with its input
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _CODE, path, ready_for],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                )
            except OSError as error:
                log.warning("kernels are compiled in this process: %s", error)
                return
            self._owner = os.getpid()
            atexit.register(self.stop)

    def compile(self, requests: Sequence[Request], jobs: int = 0) -> list[Binary | None]:
        """Compile side by side, at most `jobs` at once (0: one a core); None for what the server did not compile."""
        made: list[Binary | None] = [None] * len(requests)
        with self._lock:
            if self.is_running:
                try:
                    self._exchange(requests, jobs or os.cpu_count() or 1, made)
                except (OSError, ValueError) as error:
                    log.warning("the compile server is gone: %s", error)
                    self._close()
                except BaseException:  # an interrupt: answers that nobody has read would be taken for others
                    self._close()
                    raise
        return made

    def _exchange(self, requests: Sequence[Request], jobs: int, made: list[Binary | None]) -> None:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        ahead = max(jobs, _AHEAD)
        lines = (f"{number} {request.text()}\n" for number, request in enumerate(requests))
        process.stdin.write(f"jobs {jobs}\n".encode())
        for _ in range(len(requests)):
            process.stdin.write("".join(itertools.islice(lines, ahead)).encode())
            process.stdin.flush()
            ahead = 1
            answer = json.loads(process.stdout.readline())
            number = answer["id"]
            if "files" in answer:
                made[number] = Binary(answer["files"], requests[number].signature)
                log.debug("%s compiled in %.3f s", requests[number].name, answer["seconds"])
            else:
                log.info("the compile server did not compile %s: %s", requests[number].name, answer["problem"])

    def stop(self) -> None:
        """End the server, if one runs."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        assert process.stdin is not None and process.stdout is not None
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what was not sent yet is sent when it is closed
                pipe.close()


SERVER = CompileServer()
"""The one of this process."""
