"""Measurements whose processes prepare side by side and then measure one after the other, each alone on the machine.

Loading torch, building a model and compiling it under every backend take far longer than its timings. A process does
all of that, says that it is ready, and waits; when all of a wave are, each in turn is let go while the rest sleep.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from processes import CACHES, MeasurementError

READY = "== ready"


def wait_for_turn() -> None:
    """In the process that measures: say that it is ready and wait until it may go on."""
    print(READY, flush=True)
    sys.stdin.readline()


class Worker:
    """A process that prepares, waits and measures; it prints its result as the last line."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True
        )
        self.lines: deque[str] = deque(maxlen=60)
        self.is_ready = threading.Event()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == READY:
                self.is_ready.set()
            elif line.strip():
                self.lines.append(line.rstrip())
        self.is_ready.set()  # it has ended, well or not

    def prepared(self, deadline: float) -> bool:
        """Whether it waits for its turn before a time of `time.monotonic()`; else it is ended."""
        if self.is_ready.wait(max(deadline - time.monotonic(), 0)) and self.process.poll() is None:
            return True
        self.end()
        return False

    def measure(self, timeout: float) -> Any:
        """Let it go; what it printed last, as JSON. Raises MeasurementError."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
            self.process.wait(timeout)
        except (subprocess.TimeoutExpired, BrokenPipeError, OSError):
            self.end()
            raise self.failure(f"no answer after {timeout:.0f} s") from None
        self.reader.join()
        if self.process.returncode:
            raise self.failure(f"exit code {self.process.returncode}")
        return json.loads(self.lines[-1])

    def failure(self, problem: str) -> MeasurementError:
        """The error with the last thing that the process said."""
        return MeasurementError(self.lines[-1][:300] if self.lines else problem, [problem, *self.lines])

    def end(self) -> None:
        """Kill the process if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join(2)


def in_turns(
    commands: Sequence[Sequence[str]],
    cache: str,
    jobs: int,
    prepare: float = 240,
    measure: float = 120,
    deadline: float = float("inf"),
) -> Iterator[tuple[int, Any]]:
    """(position of a command, its result or a MeasurementError), `jobs` commands prepared at once.

    prepare, measure: seconds for each part; deadline: of `time.monotonic()`, after which nothing starts
    """
    cores = max((os.cpu_count() or 1) // max(min(jobs, len(commands)), 1), 1)
    environment = os.environ | {name: f"{cache}/{folder}" for name, folder in CACHES.items()}
    environment |= {"OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    environment.setdefault("TORCHINDUCTOR_COMPILE_THREADS", str(cores))
    for start in range(0, len(commands), jobs):
        if time.monotonic() > deadline:
            return
        wave = [(start + k, Worker(c, environment)) for k, c in enumerate(commands[start : start + jobs])]
        limit = min(time.monotonic() + prepare, deadline)
        prepared = [(position, worker, worker.prepared(limit)) for position, worker in wave]
        try:
            for position, worker, is_ready in prepared:
                yield position, _result(worker, is_ready, min(measure, deadline - time.monotonic() + 1))
        finally:
            for _, worker in wave:
                worker.end()


def _result(worker: Worker, is_ready: bool, timeout: float) -> Any:
    if not is_ready:
        return worker.failure("not ready in time")
    if timeout <= 0:
        return worker.failure("no time left")
    try:
        return worker.measure(timeout)
    except MeasurementError as error:
        return error
