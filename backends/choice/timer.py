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
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from ...dialects.aten import TensorType
from ...dialects.context import new_context
from ...lowering.fx_private import without_modes
from ...passes.common.choices import Candidate, Question, mark, open_products
from ...passes.common.implementations import NEST
from ...passes.graph.choose_products import is_either, take
from ...passes.manager import PassManager
from ...passes.printing import module_text
from ...passes.remarks import remark
from ..config import Config
from ..reference.precision import actual_device, torch_dtype
from ..reference.tensors import span
from .progress import Progress
from .store import STORE, Answer, key_of
from .timing import microseconds

log = logging.getLogger(__name__)

PASS = "graph-choose-products"
#: a candidate whose result is farther from the first one's, relative to its norm, computes something else
_FAR = 0.05
_SEED = 0


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
        self._modules: dict[tuple[Question, Candidate], ModuleOp | Exception] = {}

    def times(self, questions: Sequence[Question]) -> Sequence[Mapping[str, float]]:
        """For each question microseconds by the names of the candidates that ran."""
        keys = [self._key(question) for question in questions]
        new = {
            key: question
            for key, question in zip(keys, questions, strict=True)
            if key is None or STORE.get(key, self.keeps) is None
        }
        answers = self._measure(list(new.values())) if new else []
        made = dict(zip(new, answers, strict=True))
        found: list[Answer] = []
        for key in keys:
            known = made.get(key) or STORE.get(key or "", self.keeps)
            assert known is not None
            found.append(known)
        for key, question in new.items():
            if key is not None:
                text, version = module_text(parsed(question)), str(torch.__version__)
                about = {"question": text, "target": question.target, "torch": version}
                STORE.put(key, made[key], about, self.keeps)
        for name, reason in (item for each in found for item in each.failed.items()):
            remark("missed", PASS, None, f"the candidate {name} failed: {reason}")
        return [each.times for each in found]

    def _key(self, question: Question) -> str | None:
        """What an answer depends on: question, device, versions, threads, options."""
        from ..graph_cache.identity import identity_lines
        from ..graph_cache.key import NotCacheableError

        module = parsed(question)
        device = device_of(module)
        try:
            identity = identity_lines([device])
        except NotCacheableError:  # plugins, whose code nobody watches
            identity = [f"process {os.getpid()}"]
        names = [str(each) for each in question.candidates]
        identity = [line.replace(device, device.partition(":")[0]) for line in identity]
        text = module_text(module).replace(f'"{device}"', f'"{device.partition(":")[0]}"')
        threads = str(torch.get_num_threads())
        return key_of([text, question.target, str(question.allow_tf32), *names, self.config.key(), threads, *identity])

    def _measure(self, questions: Sequence[Question]) -> list[Answer]:
        """Compile all candidates of all questions side by side, then time them one question after the other."""
        total = sum(len(question.candidates) for question in questions)
        progress = Progress("choosing among candidates for products", total)
        workers = self.config.compile_threads or os.cpu_count() or 1
        with without_modes(), torch.no_grad(), ThreadPoolExecutor(workers) as pool:
            self._lower(questions)
            waiting = [
                [pool.submit(Context().run, self._built, question, each) for each in question.candidates]
                for question in questions
            ]
            answers: list[Answer] = []
            for question, futures in zip(questions, waiting, strict=True):
                programs: dict[str, Callable[[list[Any]], list[Any]]] = {}
                failed: dict[str, str] = {}
                for candidate, future in zip(question.candidates, futures, strict=True):
                    try:
                        programs[str(candidate)] = future.result()
                    except Exception as error:  # one that does not compile is no candidate
                        failed[str(candidate)] = _told(error)
                    progress.step(str(candidate))
                pool_is_busy = not all(each.done() for others in waiting for each in others)
                if pool_is_busy and device_of(parsed(question)) == "cpu":
                    _wait_for(waiting)  # compilers would slow down what is measured
                answers.append(_timed(question, programs, failed))
        progress.close()
        return answers

    def _lowered(self, question: Question, candidate: Candidate) -> ModuleOp:
        """The kernels and the host function of a candidate."""
        from ..compile_graph import choose_passes
        from ..targets import attach_devices

        module = parsed(question)
        for op in [each for each in module.walk() if is_either(each)]:
            take(op, second=candidate.implementation == NEST)
        for op in open_products(module):
            mark(op, candidate, question.allow_tf32)
        attach_devices(module)
        PassManager(choose_passes(self.config)).run(new_context(), module)
        return module

    def _built(self, question: Question, candidate: Candidate) -> Callable[[list[Any]], list[Any]]:
        """The program of a candidate."""
        from ..targets import build

        made = self._modules.pop((question, candidate))
        if isinstance(made, Exception):
            raise made
        return build(made, self.config)

    def _lower(self, questions: Sequence[Question]) -> None:
        """Run the passes for all candidates, then compile what Triton compiles, all of it side by side."""
        for question, candidate in ((q, c) for q in questions for c in q.candidates):
            try:  # without the remarks and counters of the graph that asks
                made: ModuleOp | Exception = Context().run(self._lowered, question, candidate)
            except Exception as error:
                made = error
            self._modules[question, candidate] = made
        if any(device_of(parsed(question)) != "cpu" for question in questions):
            from ..triton.ahead import compile_ahead

            modules = [each for each in self._modules.values() if isinstance(each, ModuleOp)]
            try:
                compile_ahead(modules, self.config.compile_threads)
            except Exception as error:  # programs compile by themselves, and tell what fails
                log.warning("candidates are not compiled side by side: %s", error)


def _wait_for(waiting: Sequence[Sequence[Any]]) -> None:
    for each in (future for futures in waiting for future in futures):
        each.exception()


def _timed(
    question: Question, programs: Mapping[str, Callable[[list[Any]], list[Any]]], failed: dict[str, str]
) -> Answer:
    """Run each program once, look at its result, and time those that computed the same."""
    module = parsed(question)
    device = device_of(module)
    try:
        inputs = inputs_of(module)
    except Exception as error:  # memory, most likely
        return Answer({}, {**failed, **{name: _told(error) for name in programs}})
    runs: dict[str, Callable[[], Any]] = {}
    expected: torch.Tensor | None = None
    for name, program in programs.items():
        try:
            result = program(list(inputs))[0]
            _synchronize(device)
        except Exception as error:
            failed[name] = _told(error)
            continue
        if expected is None:
            expected = result
        elif (distance := _distance(result, expected)) > _FAR:
            failed[name] = f"its result is {distance:.1e} off"
            continue
        runs[name] = lambda program=program: program(list(inputs))
    try:
        return Answer(microseconds(runs, device), failed)
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
    if device != "cpu":
        torch.get_device_module(device).synchronize()


def parsed(question: Question) -> ModuleOp:
    """The question as a module."""
    return Parser(new_context(), question.text).parse_module()


def device_of(module: ModuleOp) -> str:
    """Where the result of a module's function is."""
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    type_ = function.function_type.outputs.data[0]
    assert isinstance(type_, TensorType)
    return type_.device


def inputs_of(module: ModuleOp) -> list[torch.Tensor]:
    """Random tensors for a function of static sizes; the generators of the process stay as they are."""
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    return [_random(each) for each in function.function_type.inputs.data if isinstance(each, TensorType)]


def _random(type_: TensorType) -> torch.Tensor:
    shape = tuple(int(str(size)) for size in type_.shape)
    strides = tuple(int(str(step)) for step in type_.strides)
    device, dtype, count = actual_device(type_.device), torch_dtype(type_.element), span(shape, strides)
    generator = torch.Generator(device).manual_seed(_SEED)
    if dtype.is_floating_point:
        flat = torch.randn(count, generator=generator, device=device).to(dtype)
    else:
        flat = torch.randint(0, 2, (count,), generator=generator, device=device).to(dtype)
    return flat.as_strided(shape, strides)
