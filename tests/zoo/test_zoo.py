"""Twelve models of the zoo, others for every commit; benchmarks/zoo.py has all of them and more modes."""

from __future__ import annotations

import importlib
import json
import random
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

from ..rotation import commit

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))  # the scripts there import one another
zoo_measure: Any = importlib.import_module("zoo_measure")
zoo_models: Any = importlib.import_module("zoo_models")
zoo: Any = importlib.import_module("zoo")

#: families whose models compile in a few seconds
QUICK = ("transformers, encoder", "transformers, decoder", "torch, ")
#: models of them that do not
SLOW = (
    "canine", "funnel", "longformer", "big_bird", "prophetnet", "ibert", "reformer", "big_bird_sparse", "mra", "yoso",
    "xmod", "gemma3n",
)  # fmt: skip
#: of each, how many a commit takes
TAKEN = (3, 4, 5)
#: (model, mode) -> why it fails at present
KNOWN: dict[tuple[str, str], str] = {}


def quick() -> list[str]:
    """The models that commits take from."""
    return [n for n, row in zoo_models.MODELS.items() if row.family.startswith(QUICK) and n not in SLOW]


def of_commit(commit: str) -> list[tuple[str, str]]:
    """(model, mode): twelve that depend on the commit alone, one of them a step of training."""
    numbers = random.Random(commit)
    found: list[str] = []
    for family, count in zip(QUICK, TAKEN, strict=True):
        found += numbers.sample([name for name in quick() if zoo_models.MODELS[name].family.startswith(family)], count)
    return [(name, "training" if k == len(found) - 1 else "inference") for k, name in enumerate(found)]


def cases() -> list[Any]:
    """The twelve, with a mark where a failure is known."""
    return [
        pytest.param(*each, id="-".join(each), marks=[pytest.mark.xfail(reason=KNOWN[each], strict=True)])
        if each in KNOWN
        else pytest.param(*each, id="-".join(each))
        for each in of_commit(commit())
    ]


@pytest.mark.parametrize(("name", "mode"), cases())
def test_is_as_eager(name: str, mode: str) -> None:
    """Values, gradients, strides and dtypes by the error rule; a failure that aot_eager shares is not ours."""
    result = zoo_measure.measure(zoo_models.MODELS[name], mode, "cpu", threads=1)
    if result["status"] == "missing":
        pytest.skip(result["problem"])
    if result.get("shared"):
        return  # Dynamo itself may fail, and then nothing is compiled
    assert result["status"] == "pass", result["problem"]
    assert result["graphs"], "nothing was compiled"


def test_there_are_enough() -> None:
    """Names are unique, and of each package there are as many as the zoo promises."""
    families = [row.family for row in zoo_models.MODELS.values()]
    promised = {"transformers": 45, "timm": 50, "torchvision": 10, "diffusers": 8, "torchaudio": 3, "torch": 10}
    for package, count in promised.items():
        assert sum(f.partition(",")[0] == package for f in families) >= count, package
    rows = [*zoo_models.hugging_face.ROWS, *zoo_models.timm_models.ROWS, *zoo_models.vision.ROWS,
            *zoo_models.diffusion.ROWS, *zoo_models.audio.ROWS, *zoo_models.of_torch.ROWS]  # fmt: skip
    assert len({row.name for row in rows}) == len(rows)


def test_twelve_rotate() -> None:
    """The same commit takes the same models, and some commit takes each."""
    assert of_commit("a") == of_commit("a") != of_commit("b")
    assert len(of_commit("a")) == 12
    assert {name for k in range(300) for name, _ in of_commit(str(k))} == set(quick())


class _Wrong:
    """A backend whose programs return something else."""

    def __init__(self, change: Any) -> None:
        self.change = change

    def __call__(self, graph: Any, inputs: Any) -> Any:
        del inputs
        return lambda *args: tuple(self.change(x) for x in graph(*args))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda x: x, None),
        (lambda x: x * 1.0001, "relative error"),
        (lambda x: x.double(), "dtype"),
        (lambda x: x.transpose(0, -1).contiguous().transpose(0, -1), "stride"),
        (lambda x: x / 0, "finite"),
    ],
)
def test_faults_are_seen(change: Any, fault: str | None) -> None:
    """What a wrong program gives is told by what is wrong about it."""
    case = zoo_models.MODELS["gcn"].build()
    mode, inputs = zoo_measure.MODES["inference"], [case.inputs(0)]
    references = [zoo_measure.References.of(case.module, inputs[0], mode, "cpu")]
    found = zoo_measure.compile_and_compare(case, inputs, references, mode, "cpu", _Wrong(change), 1)
    assert not found.error
    assert ([] if fault is None else [True]) == [fault in each for each in found.faults if fault]


class _Kink(torch.nn.Module):
    """A ReLU at 0: the gradient of the weight jumps from 1 to 2 where a weight is a unit larger."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([2.0] + [1.0] * 63))  # the zoo varies weights that are equal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.weight - x).relu().sum() + self.weight.sum()


def _rounding_up(graph: Any, inputs: Any) -> Any:
    """A backend whose numbers are a unit in the last place larger."""
    del inputs
    return lambda *args: graph(*(x * (1 + torch.finfo(x.dtype).eps) if x.requires_grad else x for x in args))


def test_kinks_are_told_from_faults() -> None:
    """A side that rounding decides is no fault; what is wrong with moved weights too is one."""
    row = zoo_models.Row("kink", "ours", "torch", lambda: zoo_models.Case(_Kink(), lambda _: {"0": torch.ones(64)}))
    found = zoo_measure.measure(row, "training", "cpu", 1, _rounding_up)
    assert found["status"] == "pass" and "grad.weight" in found["kink"]
    wrong = zoo_measure.measure(row, "training", "cpu", 1, _Wrong(lambda x: x * 1.0001))
    assert wrong["status"] == "values" and "kink" not in wrong


def test_packages_that_lack_are_said() -> None:
    """A row whose package is not installed is a result, not an error."""
    row = zoo_models.Row("absent", "nobody's", "no_such_package", lambda: pytest.fail("it was built"))
    assert zoo_measure.measure(row, "inference", "cpu", 1)["status"] == "missing"


def test_only_is_names_and_patterns() -> None:
    def names(*only: str) -> set[str]:
        args = Namespace(only=only, shard="0/1", device="cpu", modes=["inference"], again=[])
        return {name for name, _ in zoo.chosen(args, {})}

    def of(family: str) -> set[str]:
        return {name for name, row in zoo_models.MODELS.items() if row.family.startswith(family)}

    assert names("bert") == {"bert"}
    assert names("torch, graph", "gpt2") == of("torch, graph") | {"gpt2"}
    assert names("transformers, *") == of("transformers, ") > names("transformers, encoder")
    with pytest.raises(SystemExit, match="no model or family transformers; families: "):
        names("bert", "transformers")


def test_a_row_is_written_when_it_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also of a model that is stopped between two modes."""
    out, seen = tmp_path / "zoo.jsonl", list[str]()
    row = {"model": "m", "mode": "inference", "status": "pass"}

    def stopped(model: str, modes: Any, args: Any, cache: str, keep: Any) -> None:
        keep(row)
        seen.append(out.read_text())

    monkeypatch.setattr(zoo, "measure_model", stopped)
    zoo.run_all([("m", ("inference", "training"))], Namespace(jobs=1, deadline=0), out)
    assert [json.loads(text) for text in seen] == [row]
