"""`inductile::either` under `max_autotune`: the question is both ways, and the faster one stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from xdsl.parser import Parser

import inductile
from inductile.backends.choice.asked import Asked
from inductile.backends.choice.timer import MeasuringTimer
from inductile.backends.config import Config
from inductile.dialects.context import new_context
from inductile.dialects.machine import set_targets
from inductile.passes.common.choices import Question, timed_by
from inductile.passes.graph.choose_products import ChooseProducts
from inductile.passes.graph.choose_scores import ChooseScores
from inductile.passes.printing import module_text
from inductile.passes.remarks import collecting

TRAINED = Path(inductile.__file__).parent / "tests/filecheck/passes/graph/choose_scores_of_calls.mlir"
FILE = Path(inductile.__file__).parent / "tests/filecheck/passes/graph/choose_attention.mlir"


class _Saying:
    """A timer that has its answers, and keeps the questions."""

    def __init__(self, **times: float) -> None:
        self.answer = times
        self.questions: list[Question] = []

    def times(self, questions: Sequence[Question]) -> Sequence[Mapping[str, float]]:
        self.questions += questions
        return [{str(each): self.answer.get(str(each), 50.0) for each in q.candidates} for q in questions]


def _chosen(timer: _Saying) -> tuple[dict[str, str], list[str]]:
    """The text of each function behind the pass, and the remarks."""
    module = Parser(new_context(), FILE.read_text()).parse_module()
    set_targets(module, ["cuda:90"])
    with timed_by(timer), collecting() as remarks:
        ChooseProducts(choices="measured").apply(new_context(), module)
    module.verify()
    names = [op.sym_name.data for op in module.ops]  # pyright: ignore[reportAttributeAccessIssue]
    return dict(zip(names, map(module_text, module.ops), strict=True)), [str(each) for each in remarks]


@pytest.mark.parametrize(("library", "written"), [(100.0, True), (20.0, False)])
def test_the_faster_way_stays(library: float, written: bool) -> None:
    timer = _Saying(library=library)
    functions, remarks = _chosen(timer)
    for name in ("masked", "few"):
        assert ("cudnn" in functions[name]) is not written
        assert ("aten.bmm" in functions[name]) is written
    assert "aten.bmm" not in functions["proved"]
    assert any("library=20.0 us" in each and "nest=50.0 us" in each for each in remarks) is not written
    assert len(timer.questions) == 2
    assert all("inductile::either" in each.text for each in timer.questions)


@pytest.mark.parametrize("number", [0, 1])
def test_candidates_are_one_way_each(number: int) -> None:
    timer = _Saying(library=1.0)
    _chosen(timer)
    question = timer.questions[0]
    lowered = MeasuringTimer(Config.resolve(None, {"max_autotune": True}))._lowered(
        Asked.of(question), question.candidates[number]
    )
    (module,) = lowered.modules
    text = module_text(module)
    assert ("cudnn" in text, "softmax_sum" in text, "either" in text) == (number == 0, number == 1, False)


@pytest.mark.parametrize("number", [0, 1])
def test_training_is_one_question(number: int) -> None:
    """A joint graph is asked about with the gradients of both ways, and each candidate computes one of them."""
    module = Parser(new_context(), TRAINED.read_text()).parse_module()
    set_targets(module, ["cuda:90"])
    timer = _Saying(library=1.0)
    with timed_by(timer):
        ChooseScores(choices="measured").apply(new_context(), module)
    assert "inductile::" not in module_text(module) and "cudnn_attention_backward" in module_text(module)
    (question,) = timer.questions
    assert "either_way" in question.text and question.text.count("of_way") == 6
    lowered = MeasuringTimer(Config.resolve(None, {"max_autotune": True}))._lowered(
        Asked.of(question), question.candidates[number]
    )
    forward, backward = map(module_text, lowered.modules)
    assert ("cudnn" in forward, "cudnn" in backward) == (number == 0, number == 0)
    assert ("softmax_sum" in forward, "map matrix" in backward) == (number == 1, number == 1)


_ROW = """
func.func @row(%x: !aten.tensor<1x1024x{0}>, %w: !aten.tensor<1024x1024x{0}>) -> !aten.tensor<1x1024x{0}> {{
  %0 = aten.mm(%x, %w) : !aten.tensor<1x1024x{0}>
  func.return %0 : !aten.tensor<1x1024x{0}>
}}
"""


@pytest.mark.parametrize(("element", "row_products", "has_nests"), [("bf16", False, False), ("bf16", True, True),
                                                                    ("f32", False, True)])  # fmt: skip
def test_units_of_a_cpu_leave_no_nest_as_a_candidate(element: str, row_products: bool, has_nests: bool) -> None:
    module = Parser(new_context(), _ROW.format(element)).parse_module()
    set_targets(module, ["cpp"])
    timer = _Saying()
    with timed_by(timer):
        ChooseProducts(choices="measured", row_products=row_products).apply(new_context(), module)
    (question,) = timer.questions
    assert any(each.implementation == "nest" for each in question.candidates) is has_nests
