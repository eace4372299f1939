"""Tests in forked processes that take one after the other, so that a slow one holds nobody up.

This process imports what all of them need, once. It only counts GPUs, through NVML: where that is not there, torch asks
the driver, after which a fork cannot use a GPU. Then each process starts over, as a command of its own.

A failure may leave things behind, recordings above all. With `fresh` a process in which a test failed goes on, for what
passes there passes; what fails there is run again where nothing has failed, and that result counts.

A process that takes long to start writes into its log where it is.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import os
import selectors
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Result = dict[str, Any]
Start = Callable[[], Mapping[str, Callable[[], Result]]]

#: what torch and the compiler import for a first graph, none of which asks for a GPU
_FIRST = (
    "torch._dynamo.backends.inductor", "torch._dynamo.repro.after_dynamo", "torch._functorch.aot_autograd",
    "torch._inductor.compile_fx", "torch._inductor.cudagraph_trees", "torch._subclasses.schema_check_mode",
    "torch.fx.experimental.validator", "inductile.backends.compile_graph", "inductile.backends.graphs.recording",
)  # fmt: skip
_FAILED = ("fail", "not owed")
#: seconds after which a process that still starts says where it is, again and again, and is given up
_SLOW, _LOST = 10, 240


def warm_up() -> None:
    """Import it, as far as this torch has it."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    for name in _FIRST:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"not imported ahead: {error}", file=sys.stderr)
    gc.collect()
    gc.freeze()  # tests collect garbage several times each, and all of this would be looked through


@dataclass(eq=False)
class _Worker:
    """A process that was forked: where it reads names of tests, and where it writes results.

    names: the tests that it has; None until it has said so
    """

    process: int
    commands: int
    results: int
    text: bytes = b""
    names: list[str] | None = None
    test: str | None = None
    since: float = field(default_factory=time.time)
    done: int = 0
    failed: bool = False

    def give(self, test: str) -> None:
        """Let it run a test."""
        self.test, self.since = test, time.time()
        os.write(self.commands, f"{test}\n".encode())

    def lines(self) -> Iterator[Any]:
        """What it has written since; raises EOFError behind the last line."""
        piece = os.read(self.results, 1 << 16)
        *lines, self.text = (self.text + piece).split(b"\n")
        yield from map(json.loads, lines)
        if not piece:
            raise EOFError

    def end(self) -> None:
        """Stop it, whatever it does."""
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.commands)
        os.close(self.results)


class Workers:
    """Runs tests in processes.

    start:  in a fork, returns the tests by name, each a call that gives its result
    wanted: of their names, those that are to be run
    keep:   takes each result
    jobs:   how many processes
    stuck:  seconds after which a process is killed whose test has not ended
    count:  tests of a process before another one takes over
    fresh:  whether what fails behind a failure is run again
    """

    def __init__(
        self,
        start: Start,
        wanted: Callable[[Sequence[str]], list[str]],
        keep: Callable[[Result], None],
        jobs: int,
        stuck: float,
        count: int,
        fresh: bool,
    ) -> None:
        self._start, self._wanted, self._keep = start, wanted, keep
        self._jobs, self._stuck, self._count, self._fresh = jobs, stuck, count, fresh
        self._waiting: deque[str] | None = None
        self._again: deque[str] = deque()
        """What failed behind a failure."""
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()
        self._stillborn = 0

    def run(self, deadline: float) -> None:
        """Until nothing is left or the deadline, of `time.time()`, has come; what runs then has no result."""
        for _ in range(self._jobs):
            self._fork()
        while self._workers and time.time() < deadline:
            for key, _ in self._selector.select(0.5):
                self._hear(key.data)
            for worker in list(self._workers):
                patience = _LOST if worker.names is None else self._stuck
                if time.time() > worker.since + patience:
                    self._died(worker, f"no result after {patience:.0f} s")
        left = [*(worker.test for worker in self._workers if worker.test), *self._again, *(self._waiting or ())]
        for worker in list(self._workers):
            self._drop(worker)
        if left:
            print(f"{len(left)} tests have no result yet: {', '.join(left)}", file=sys.stderr, flush=True)

    @property
    def _left(self) -> int:
        return len(self._waiting or ()) + len(self._again)

    def _fork(self) -> None:
        (read_commands, commands), (results, write_results) = os.pipe(), os.pipe()
        sys.stdout.flush()
        process = os.fork()
        if not process:
            for each in (commands, results, *(n for w in self._workers for n in (w.commands, w.results))):
                os.close(each)
            _start_over(read_commands, write_results)
            serve(self._start, read_commands, write_results)
        os.close(read_commands)
        os.close(write_results)
        worker = _Worker(process, commands, results)
        self._workers.append(worker)
        self._selector.register(results, selectors.EVENT_READ, worker)

    def _hear(self, worker: _Worker) -> None:
        try:
            for message in worker.lines():
                worker.since = time.time()
                if worker.names is None:
                    self._met(worker, message)
                else:
                    self._take(worker, message)
                if worker in self._workers:
                    self._go_on(worker)
        except EOFError:
            if worker in self._workers:
                self._died(worker, "the process died")

    def _met(self, worker: _Worker, names: list[str]) -> None:
        """The first process says what there is to do."""
        worker.names = names
        self._stillborn = 0
        if self._waiting is None:
            self._waiting = deque(self._wanted(names))
            print(f"{len(names)} tests, {self._left} of them left", file=sys.stderr, flush=True)

    def _take(self, worker: _Worker, result: Result) -> None:
        assert worker.test is not None
        test, worker.test = worker.test, None
        worker.done += 1
        failed = result["status"] in _FAILED
        if failed and worker.failed and self._fresh:
            self._again.append(test)
            self._replace(worker)
            return
        worker.failed |= failed
        self._keep(result)
        if worker.done == self._count:
            self._replace(worker)

    def _go_on(self, worker: _Worker) -> None:
        """Give a process its next test; what failed behind a failure only where nothing has failed."""
        if self._again and not worker.failed:
            worker.give(self._again.popleft())
        elif self._waiting:
            worker.give(self._waiting.popleft())
        elif self._again:
            self._replace(worker)
        else:
            self._drop(worker)

    def _died(self, worker: _Worker, problem: str) -> None:
        if worker.names is None:
            self._stillborn += 1
        elif worker.test is not None and worker.failed and self._fresh:
            self._again.append(worker.test)
        elif worker.test is not None:
            self._keep({"test": worker.test, "status": "fail", "problem": problem})
        if self._stillborn < 2:
            self._replace(worker)
        else:
            self._drop(worker)

    def _replace(self, worker: _Worker) -> None:
        self._drop(worker)
        if self._waiting is None or self._left:
            self._fork()

    def _drop(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        self._selector.unregister(worker.results)
        worker.end()


def serve(start: Start, commands: int, results: int) -> None:
    """Be a process of tests, to the end."""
    status = 1
    try:
        started = time.perf_counter()
        faulthandler.dump_traceback_later(_SLOW, repeat=True, file=sys.__stderr__ or sys.stderr)
        tests = start()
        faulthandler.cancel_dump_traceback_later()
        print(f"process {os.getpid()}: tests loaded in {time.perf_counter() - started:.1f} s", flush=True)
        with os.fdopen(commands) as names, os.fdopen(results, "w") as answers:
            print(json.dumps(list(tests)), file=answers, flush=True)
            for name in names:
                print(json.dumps(tests[name.strip()]()), file=answers, flush=True)
        status = 0
    except BaseException:
        traceback.print_exc()
    os._exit(status)


def _start_over(commands: int, results: int) -> None:
    """Become a process that has imported nothing, where a fork cannot use the GPU."""
    import torch

    if torch.cuda._is_in_bad_fork():
        for each in (commands, results):
            os.set_inheritable(each, True)
        os.execv(sys.executable, [sys.executable, *sys.argv, "--worker", f"{commands},{results}"])
