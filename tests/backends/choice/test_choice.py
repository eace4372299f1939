"""Who computes a product: by what is measured, what was recorded, and what a cache holds or not."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import inductile
from inductile.backends.choice import libraries, progress, timer
from inductile.backends.choice.asked import Asked
from inductile.backends.choice.store import STORE
from inductile.backends.config import Config
from inductile.passes.common.choices import Question
from inductile.passes.remarks import collecting

Function = Callable[..., torch.Tensor]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(tmp_path))
    STORE.clear()
    libraries._times.cache_clear()
    return tmp_path / "choices"


def _layer(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.addmm(b, x, w.t())) + 1


def _inputs(rows: int = 40) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(rows, 64), torch.randn(48, 64), torch.randn(48)]


def _compiled(function: Function, *inputs: torch.Tensor, **options: Any) -> tuple[torch.Tensor, list[str]]:
    torch._dynamo.reset()
    dynamic = options.pop("dynamic", False)
    with collecting() as remarks:
        run = torch.compile(
            function,
            backend="inductile",
            options={"max_autotune": True, "products": "blas", **options},
            dynamic=dynamic,
        )
        got = run(*inputs)
    return got, [str(each) for each in remarks if each.pass_name == timer.PASS]


class _Pretending(timer.MeasuringTimer):
    """Measures, and says something else."""

    said: Mapping[str, float] = {}

    def times(self, questions: Sequence[Question]) -> Sequence[Mapping[str, float]]:
        return [self.said or each for each in super().times(questions)]


@pytest.mark.parametrize("winner", ["blas", "onednn", "nest 4", "nest 1"])
def test_the_fastest_is_taken_and_computes_the_same(monkeypatch: pytest.MonkeyPatch, winner: str) -> None:
    said = {name: 1.0 if name == winner else 9.0 for name in ("blas", "onednn", "nest 4", "nest 1")}
    monkeypatch.setattr(_Pretending, "said", said)
    monkeypatch.setattr("inductile.backends.compile_graph.timer_of", _Pretending)
    inputs = _inputs()
    got, remarks = _compiled(_layer, *inputs)
    torch.testing.assert_close(got, _layer(*inputs))
    assert any(f"{winner}, as measured" in each for each in remarks), remarks
    calls = inductile.backends.compiled.REPORTS[-1].aten_calls
    expected = {"blas": ["aten.addmm by blas"], "onednn": ["aten.addmm by onednn"]}
    assert list(calls) == expected.get(winner, []), calls


def test_what_was_measured_is_kept_and_shared(folder: Path) -> None:
    def twice(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cat((_layer(x, w, b), _layer(x + 1, w, b)))

    inputs = _inputs()
    got, remarks = _compiled(twice, *inputs)
    torch.testing.assert_close(got, twice(*inputs), rtol=1e-4, atol=1e-3)
    assert sum("as measured" in each for each in remarks) == 2, remarks
    (file,) = folder.glob("*.json")
    content = json.loads(file.read_text())
    assert {"blas", "nest 4", "nest 1"} <= content["times"].keys() and not content["failed"]
    content["times"] = dict.fromkeys(content["times"], 5.0) | {"nest 1": 1.0}
    file.write_text(json.dumps(content))
    STORE.clear()  # as in another process
    _, remarks = _compiled(twice, *inputs)
    assert all("nest 1, as measured" in each and "nest 1=1.0 us" in each for each in remarks), remarks


def test_a_question_is_parsed_once_and_a_device_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    devices: list[str] = []
    of, identity = Asked.of, timer._identity
    monkeypatch.setattr(Asked, "of", lambda question: parsed.append(question.text) or of(question))
    monkeypatch.setattr(timer, "_identity", lambda device: devices.append(device) or identity(device))

    def two(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return _layer(_layer(x, w, b), w.t(), x[0])

    inputs = _inputs()
    got, remarks = _compiled(two, *inputs)
    torch.testing.assert_close(got, two(*inputs), rtol=1e-4, atol=1e-3)
    assert sum("as measured" in each for each in remarks) == 2, remarks
    assert len(parsed) == len(set(parsed)) == 2 and devices == ["cpu"]


def test_sizes_that_change_are_measured_as_they_were_seen(folder: Path) -> None:
    inputs = _inputs(33)
    got, remarks = _compiled(_layer, *inputs, dynamic=True)
    torch.testing.assert_close(got, _layer(*inputs))
    assert any("as measured" in each for each in remarks), remarks
    assert any("33x" in json.loads(file.read_text())["question"] for file in folder.glob("*.json"))


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b'{"format": 1, "times": {"blas": "fast"}, "failed": {}}'])
def test_a_damaged_file_is_measured_again(folder: Path, damage: bytes) -> None:
    inputs = _inputs()
    _compiled(_layer, *inputs)
    (file,) = folder.glob("*.json")
    file.write_bytes(damage)
    STORE.clear()
    got, _ = _compiled(_layer, *inputs)
    torch.testing.assert_close(got, _layer(*inputs))
    assert json.loads(file.read_text())["times"]


def test_a_candidate_that_fails_is_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    build = timer.MeasuringTimer._built

    def broken(self: timer.MeasuringTimer, question: Question, candidate: Any) -> Any:
        if "nest" in str(candidate):
            raise RuntimeError("no registers left")
        return build(self, question, candidate)

    monkeypatch.setattr(timer.MeasuringTimer, "_built", broken)
    inputs = _inputs()
    got, remarks = _compiled(_layer, *inputs)
    torch.testing.assert_close(got, _layer(*inputs))
    assert any("the candidate nest 4 failed: RuntimeError: no registers left" in each for each in remarks), remarks


def test_a_candidate_that_computes_something_else_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    build = timer.MeasuringTimer._built

    def wrong(self: timer.MeasuringTimer, question: Question, candidate: Any) -> Any:
        program = build(self, question, candidate)
        return (lambda args: [each + 1 for each in program(args)]) if "nest" in str(candidate) else program

    monkeypatch.setattr(timer.MeasuringTimer, "_built", wrong)
    _, remarks = _compiled(_layer, *_inputs())
    assert any("the candidate nest 1 failed: its result is" in each for each in remarks), remarks


_PROCESS = """
import torch
from inductile.backends.choice import timer
def layer(x, w): return torch.relu(x @ w)
x, w = torch.randn(32, 64), torch.randn(64, 48)
got = torch.compile(layer, backend="inductile", options={"max_autotune": True})(x, w)
torch.testing.assert_close(got, layer(x, w))
"""


def test_two_processes_at_once_and_then_a_third(folder: Path) -> None:
    command = [sys.executable, "-c", _PROCESS]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    files = {file: file.stat().st_mtime_ns for file in folder.glob("*.json")}
    assert files and all(json.loads(file.read_text())["times"] for file in files)
    subprocess.run(command, check=True)
    assert {file: file.stat().st_mtime_ns for file in folder.glob("*.json")} == files


def test_nothing_is_measured_without_the_option_and_by_a_graph_of_the_cache(folder: Path) -> None:
    inputs = _inputs()
    _compiled(_layer, *inputs, max_autotune=False)
    assert not list(folder.glob("*.json"))
    measured: list[int] = []

    class Counting(timer.MeasuringTimer):
        def _measure(self, questions: Any) -> Any:
            measured.append(len(questions))
            return super()._measure(questions)

    for _ in range(2):
        torch._dynamo.reset()
        STORE.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("inductile.backends.compile_graph.timer_of", Counting)
            torch.compile(_layer, backend="inductile", options={"max_autotune": True, "products": "blas"})(*inputs)
    assert measured == [1]


@pytest.mark.parametrize(
    ("onednn", "precision", "library"), [(5.0, "highest", "onednn"), (9.8, "highest", "blas"), (5.0, "medium", "blas")]
)
def test_the_faster_library_is_measured_once_a_machine(
    monkeypatch: pytest.MonkeyPatch, onednn: float, precision: str, library: str
) -> None:
    calls: list[int] = []

    def measured() -> dict[str, float]:
        calls.append(1)
        return {"blas": 10.0, "onednn": onednn}

    monkeypatch.setattr(libraries, "has_onednn", lambda: True)
    monkeypatch.setattr(libraries, "_measured", measured)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: precision)
    for _ in range(2):
        assert libraries.faster_library() == library
        libraries._times.cache_clear()
        STORE.clear()
    assert len(calls) == (precision == "highest")


@pytest.mark.parametrize(
    ("is_terminal", "seconds", "said"), [(True, 0.0, "1/2 nest"), (False, 3.0, "1/2 nest"), (False, 0.0, "")]
)
def test_progress_is_told_on_a_terminal_and_where_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, seconds: float, said: str
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    told = progress.Progress("choosing", 2)
    told._last -= seconds
    told.step("nest")
    told.close()
    assert said in stream.getvalue() and bool(said) == bool(stream.getvalue())


def test_words_for_switching_it() -> None:
    assert Config.resolve(None, {"loop_products": True}).loop_products == "always"
    assert Config.resolve(None, {"loop_products": False}).loop_products == "never"
    assert Config.resolve(None, {}).loop_products == "auto"
    with pytest.raises(Exception, match="loop_products"):
        Config.resolve(None, {"loop_products": 1})


def test_deterministic_algorithms_measure_nothing(folder: Path) -> None:
    _, remarks = _compiled(_layer, *_inputs(), deterministic=True)
    assert not remarks and not list(folder.glob("*.json")), os.listdir(folder)


def test_frozen_weights_are_packed_in_what_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Listening(timer.MeasuringTimer):
        def times(self, questions: Sequence[Question]) -> Sequence[Mapping[str, float]]:
            asked.extend(each.text for each in questions)
            return super().times(questions)

        def _built(self, question: Question, candidate: Any) -> Any:
            made = self._lowered_ones[question, candidate]
            assert not isinstance(made, Exception), made
            asked.extend(str(each) for each in made.modules)
            return super()._built(question, candidate)

    monkeypatch.setattr("inductile.backends.compile_graph.timer_of", Listening)
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(512, 2048), torch.randn(64, 512)
    torch._dynamo.reset()
    with torch.no_grad():
        got = torch.compile(layer, backend="inductile", options={"max_autotune": True, "freezing": True})(x)
        torch.testing.assert_close(got, layer(x), rtol=1e-4, atol=1e-4)
    question, *modules = asked
    assert question.count("{frozen}") == 2
    packed = ("inductile::packed_product", "inductile::mkl_product")
    assert sum(any(name in each for name in packed) for each in modules) == 2  # by either library
