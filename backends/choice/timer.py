"""The timer that a graph compiles with under `max_autotune`: compiles candidates, runs them, remembers."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.context import new_context
from ...lowering.fx_private import without_modes
from ...passes.common.choices import Candidate, Question
from ...passes.graph.choose_scores import ChooseScores
from ...passes.manager import PassManager
from ...passes.remarks import remark
from ..config import Config
from ..host.gpu import is_gpu
from .asked import Asked
from .halves import Halves, halves_of
from .progress import Progress
from .store import STORE, Answer, key_of
from .timing import microseconds

log = logging.getLogger(__name__)

Run = Callable[[list[Any]], list[Any]]

PASS = "graph-choose-products"
#: a candidate whose result is farther from the first one's, relative to its norm, computes something else
_FAR = 0.05


def timer_of(config: Config) -> MeasuringTimer | None:
    """What measures for a configuration, if it asks for that."""
    return MeasuringTimer(config) if config.max_autotune else None


class MeasuringTimer:
    """Answers questions by running their candidates on random inputs of the sizes that were seen."""

    def __init__(self, config: Config) -> None:
        called: dict[str, Any] = {field.name: None for field in dataclasses.fields(Config) if field.type == "Any"}
        changed: dict[str, Any] = {
            "max_autotune": False,
            "loop_products": "never",
            "cudagraphs": False,
            "freezing": False,
        }
        unwatched: dict[str, Any] = {
            "insert": {},
            "watch": "",
            "verify_each": "",
            "debug_counter": "",
            "trace_enabled": False,
        }
        self.config = dataclasses.replace(config, **called, **changed, **unwatched)
        self.keeps = config.cache
        self._lowered_ones: dict[tuple[Question, Candidate], _Lowered | Exception] = {}
        self._identities: dict[str, Sequence[str]] = {}

    def times(self, questions: Sequence[Question]) -> Sequence[Mapping[str, float]]:
        """For each question microseconds by the names of the candidates that ran."""
        asked = {question: Asked.of(question) for question in questions}
        keys = {question: self._key(each) for question, each in asked.items()}
        found: dict[str, Answer] = {}
        new: dict[str, Asked] = {}
        for question, key in keys.items():
            known = STORE.get(key, self.keeps)
            if known is None:
                new.setdefault(key, asked[question])
            else:
                found[key] = known
        for key, answer in zip(new, self._measure(list(new.values())) if new else (), strict=True):
            found[key] = answer
            about = {"question": new[key].text(), "target": new[key].question.target, "torch": str(torch.__version__)}
            STORE.put(key, answer, about, self.keeps)
        answers = [found[keys[question]] for question in questions]
        for name, reason in (item for each in answers for item in each.failed.items()):
            remark("missed", PASS, None, f"the candidate {name} failed: {reason}")
        return [each.times for each in answers]

    def _key(self, asked: Asked) -> str:
        """What an answer depends on: question, device, versions, threads, options."""
        kind = asked.device.partition(":")[0]
        if asked.device not in self._identities:
            self._identities[asked.device] = _identity(asked.device)
        identity = [line.replace(asked.device, kind) for line in self._identities[asked.device]]
        names = [str(each) for each in asked.candidates]
        text = asked.text().replace(f'"{asked.device}"', f'"{kind}"')
        question, threads = asked.question, str(torch.get_num_threads())
        return key_of([text, question.target, str(question.allow_tf32), *names, self.config.key(), threads, *identity])

    def _measure(self, questions: Sequence[Asked]) -> list[Answer]:
        """Compile all candidates of all questions side by side, then time them one question after the other."""
        total = sum(len(asked.candidates) for asked in questions)
        progress = Progress("choosing among candidates for products", total)
        workers = self.config.compile_threads or os.cpu_count() or 1
        with without_modes(), torch.no_grad(), ThreadPoolExecutor(workers) as pool:
            self._lower(questions)
            waiting = [
                [pool.submit(Context().run, self._built, asked.question, each) for each in asked.candidates]
                for asked in questions
            ]
            answers: list[Answer] = []
            for asked, futures in zip(questions, waiting, strict=True):
                programs: dict[str, Run] = {}
                failed: dict[str, str] = {}
                for candidate, future in zip(asked.candidates, futures, strict=True):
                    try:
                        programs[str(candidate)] = future.result()
                    except Exception as error:  # one that does not compile is no candidate
                        failed[str(candidate)] = _told(error)
                    progress.step(str(candidate))
                pool_is_busy = not all(each.done() for others in waiting for each in others)
                if pool_is_busy and not is_gpu(asked.device):
                    _wait_for(waiting)  # compilers would slow down what is measured
                answers.append(_timed(asked, programs, failed))
        progress.close()
        return answers

    def _lowered(self, asked: Asked, candidate: Candidate) -> _Lowered:
        """The kernels and the host functions of a candidate."""
        from ..compile_graph import choose_passes
        from ..targets import attach_devices

        module = asked.marked(candidate)
        attach_devices(module)
        context = new_context()
        if asked.is_trained:
            PassManager(self._joint_passes()).run(context, module)
            halves = halves_of(module)
            found = _Lowered((halves.forward, halves.backward), halves)
        else:
            found = _Lowered((module,), None)
        for each in found.modules:
            PassManager(choose_passes(self.config)).run(context, each)
        return found

    def _joint_passes(self) -> list[ModulePass]:
        """Those of joint graphs, without the one that asks."""
        from ..partition import joint_passes

        return [each for each in joint_passes(self.config) if each.name != ChooseScores.name]

    def _built(self, question: Question, candidate: Candidate) -> Run:
        """The program of a candidate."""
        from ..host import build

        made = self._lowered_ones.pop((question, candidate))
        if isinstance(made, Exception):
            raise made
        first, *others = (build(each, self.config) for each in made.modules)
        return first if made.halves is None else _with_gradients(first, others[0], made.halves)

    def _lower(self, questions: Sequence[Asked]) -> None:
        """Run the passes for all candidates, then compile what Triton compiles, all of it side by side."""
        for asked, candidate in ((each, c) for each in questions for c in each.candidates):
            try:  # without the remarks and counters of the graph that asks
                made: _Lowered | Exception = Context().run(self._lowered, asked, candidate)
            except Exception as error:
                made = error
            self._lowered_ones[asked.question, candidate] = made
        if any(is_gpu(asked.device) for asked in questions):
            from ..triton.ahead import compile_ahead

            lowered = [each for each in self._lowered_ones.values() if isinstance(each, _Lowered)]
            try:
                compile_ahead([module for each in lowered for module in each.modules], self.config.compile_threads)
            except Exception as error:  # programs compile by themselves, and tell what fails
                log.warning("candidates are not compiled side by side: %s", error)


@dataclasses.dataclass(frozen=True)
class _Lowered:
    """A candidate behind the passes: one module, or those of forward and backward."""

    modules: tuple[ModuleOp, ...]
    halves: Halves | None


def _with_gradients(forward: Run, backward: Run, halves: Halves) -> Run:
    """Forward and backward as one program."""

    def run(given: list[Any]) -> list[Any]:
        tangents = [given[k] for k in halves.tangents]
        inputs = [each for k, each in enumerate(given) if k not in halves.tangents]
        found = forward(list(inputs))
        results, kept = found[: halves.results], found[halves.results :]
        return [*results, *backward([*(given[k] for k in halves.saved), *kept, *tangents])]

    return run


def _identity(device: str) -> Sequence[str]:
    """What is installed, and what the device is; of this process alone where nobody watches the code of plugins."""
    from ..graph_cache.identity import identity_lines
    from ..graph_cache.key import NotCacheableError

    try:
        return identity_lines([device])
    except NotCacheableError:
        return [f"process {os.getpid()}"]


def _wait_for(waiting: Sequence[Sequence[Any]]) -> None:
    for each in (future for futures in waiting for future in futures):
        each.exception()


def _timed(asked: Asked, programs: Mapping[str, Run], failed: dict[str, str]) -> Answer:
    """Run each program once, look at its results, and time those that computed the same."""
    try:
        inputs = asked.inputs()
    except Exception as error:  # memory, most likely
        return Answer({}, {**failed, **{name: _told(error) for name in programs}})
    runs: dict[str, Callable[[], Any]] = {}
    expected: list[torch.Tensor] = []
    for name, program in programs.items():
        try:
            results = program(list(inputs))
            _synchronize(asked.device)
        except Exception as error:
            failed[name] = _told(error)
            continue
        if not expected:
            expected = results
        elif (distance := max(map(_distance, results, expected))) > _FAR:
            failed[name] = f"its result is {distance:.1e} off"
            continue
        runs[name] = lambda program=program: program(list(inputs))
    try:
        return Answer(microseconds(runs, asked.device), failed)
    except Exception as error:
        return Answer({}, {**failed, "timing": _told(error)})


def _distance(result: torch.Tensor, expected: torch.Tensor) -> float:
    """The norm of the difference, relative; 0 where that says nothing."""
    norm = torch.linalg.vector_norm(expected, dtype=torch.float32)
    if not bool(torch.isfinite(norm)) or not bool(norm):
        return 0.0
    found = float(torch.linalg.vector_norm(result.float() - expected.float()) / norm)
    return found if found == found else float("inf")


def _told(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"


def _synchronize(device: str) -> None:
    if is_gpu(device):
        torch.get_device_module(device).synchronize()
