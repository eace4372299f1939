"""Torch's tools for debugging work on inductile: reproducers, the bisector, stances, and profiles of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo import config as dynamo_config
from torch._inductor.compiler_bisector import BACKENDS
from torch.profiler import ProfilerActivity, profile
from xdsl.dialects import arith
from xdsl.passes import ModulePass

import inductile
from inductile import extensions
from inductile.passes.counters import counter
from inductile.passes.loop.cse import EliminateCommonSubexpressions
from inductile.tools.opt import main as opt


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture
def wrong_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass of the loop level that swaps the operands of subtractions, once each, if its counter lets it."""
    swapped: set[Any] = set()
    apply = EliminateCommonSubexpressions.apply

    def wrong(self: EliminateCommonSubexpressions, ctx: Any, op: Any) -> None:
        apply(self, ctx, op)
        for each in op.walk():
            if isinstance(each, arith.SubfOp) and each not in swapped and counter("loop-cse-swap"):
                swapped.add(each)
                each.operands = each.operands[::-1]

    monkeypatch.setattr(EliminateCommonSubexpressions, "apply", wrong)


def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x - x) * 3 + (x - y)


@pytest.fixture
def debug_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("torch._dynamo.debug_utils.minifier_dir", lambda: str(tmp_path))
    return tmp_path


def test_wrong_answers_leave_a_reproducer(wrong_pass: None, debug_folder: Path) -> None:
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    with dynamo_config.patch(repro_after="aot", repro_level=4), pytest.raises(Exception, match="Bad accuracy"):
        torch.compile(chain, backend="inductile")(x, y)
    (file,) = debug_folder.glob("inductile-inference-*.mlir")
    assert sorted(path.name for path in Path(f"{file}.inputs").iterdir()) == ["0.npy", "1.npy"]
    assert opt([str(file), "--run-reproducer"]) == 1


def test_failures_leave_a_reproducer(debug_folder: Path) -> None:
    def fails(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return x[index] + 1

    with dynamo_config.patch(repro_after="aot", repro_level=2), pytest.raises(IndexError):
        torch.compile(fails, backend="inductile")(torch.ones(3), torch.tensor([1, 7]))
    assert len(list(debug_folder.glob("inductile-inference-*.mlir.inputs/1.npy"))) == 1


def test_every_graph_is_kept_and_right_ones_pass(debug_folder: Path) -> None:
    x = torch.randn(5, 3, requires_grad=True)
    for level, expected in ((4, 0), (3, 2)):
        torch.compiler.reset()
        with dynamo_config.patch(repro_after="aot", repro_level=level):
            compiled = torch.compile(lambda x: torch.nn.functional.dropout(x.sin() * 2, 0.5), backend="inductile")
            compiled(x).sum().backward()
        assert len(list(debug_folder.glob("*.mlir"))) == expected


def test_torch_makes_scripts_for_this_backend(debug_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TORCHDYNAMO_REPRO_AFTER=dynamo with `backend="inductile"`, and with chosen options."""
    scripts: list[str] = []
    monkeypatch.setattr("torch._dynamo.repro.after_dynamo.helper_for_dump_minify", scripts.append)
    for backend in ("inductile", inductile.backend(on_error="raise")):
        torch.compiler.reset()
        with dynamo_config.patch(repro_after="dynamo", repro_level=3):
            torch.compile(lambda x: x.cos() + 1, backend=backend)(torch.ones(3))
    assert len(scripts) == 2 and all("backend='inductile'" in script for script in scripts)


def bisect(function: Callable[..., torch.Tensor], *inputs: torch.Tensor, options: Any = None) -> Any:
    def is_right() -> bool:
        torch.compiler.reset()
        return torch.allclose(torch.compile(function, backend="inductile", options=options)(*inputs), function(*inputs))

    return inductile.debug.bisect(is_right)


def test_bisector_finds_the_rewrite(wrong_pass: None, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    found = bisect(lambda x, y: (x - y).relu() * 2, x, y)
    assert (found.backend, found.subsystem) == ("inductile", "loop_rewrites")
    assert found.debug_info == "loop-cse-swap, number 1 of its graph"
    assert "inductile" not in BACKENDS


@dataclass(frozen=True)
class SwapsSubtractions(ModulePass):
    name = "swaps-subtractions"
    level = "loop"

    def apply(self, ctx: Any, op: Any) -> None:
        for each in op.walk():
            if isinstance(each, arith.SubfOp) and self.may(each):
                each.operands = each.operands[::-1]

    def may(self, op: arith.SubfOp) -> bool:
        return True


@dataclass(frozen=True)
class AsksForSubtractions(SwapsSubtractions):
    name = "asks-for-subtractions"

    def may(self, op: arith.SubfOp) -> bool:
        return counter(self.name)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (SwapsSubtractions, "the inserted pass swaps-subtractions"),
        (AsksForSubtractions, "asks-for-subtractions, number 2 of its graph"),
    ],
)
def test_bisector_finds_an_inserted_pass(kind: type[ModulePass], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose fault shows only where rewrites of other levels are made: they are not to blame."""
    monkeypatch.setitem(extensions._added, "inductile.passes", {kind.name: lambda: kind})
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    found = bisect(chain, x, y, options={"insert": {"after:loop-cse": kind.name}})
    assert (found.subsystem, found.debug_info) == ("loop_rewrites", said)


def test_stances_and_recompiles() -> None:
    x = torch.randn(4)
    compiled = torch.compile(lambda x: x.sin() + 1, backend="inductile", dynamic=False)
    with torch.compiler.set_stance("force_eager"):
        torch.testing.assert_close(compiled(x), x.sin() + 1)
    compiled(x)
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="fail_on_recompile"):
        compiled(torch.randn(5))
    with torch.compiler.set_stance("eager_on_recompile"):
        assert compiled(torch.randn(6)).shape == (6,)


def test_memory_in_a_profile_lies_in_our_regions() -> None:
    """What records allocations sees them in a region that names the graph; a snapshot of a GPU has the same frames."""
    x, w = torch.randn(512, 512), torch.randn(512, 512)
    compiled = torch.compile(lambda x, w: torch.softmax(x @ w, -1), backend="inductile")
    with torch.no_grad():
        compiled(x, w)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
            compiled(x, w)
    (region,) = [each for each in profiled.events() or () if each.name.startswith("inductile inference")]
    assert region.cpu_memory_usage == x.nbytes
    assert region.cpu_children
