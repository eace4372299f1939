"""A pass that only makes programs better may fail: the program is compiled without it, and that is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed
from xdsl.ir import Operation

from inductile.backends import run_passes
from inductile.backends.compiled import REPORTS
from inductile.errors import PassFailureWarning, UnsupportedError
from inductile.lowering import fx_pre_grad
from inductile.lowering.fx_joint import JointGraph
from inductile.lowering.pipeline import pipeline_string
from inductile.lowering.registry import parse_passes
from inductile.passes.manager import is_optional
from inductile.passes.remarks import collecting
from inductile.tools.opt import main as opt

PASSES = {p.name: type(p) for graph in ("joint", "functional") for p in parse_passes(pipeline_string(graph=graph))}
OPTIONAL = [name for name, cls in PASSES.items() if is_optional(cls())]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield


def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A product, a softmax, an update and a write."""
    z = torch.softmax(x @ y, 1)
    w = torch.cat([z[1:], z.sin()]).cumsum(0)
    w[2:4] = y[:2]
    return w.mul_(2)


def gradients(backend: Any) -> tuple[torch.Tensor, ...]:
    """What the function gives with its gradients."""
    torch.manual_seed(0)
    x, y = (torch.randn(6, 6, requires_grad=True) for _ in range(2))
    result = (torch.compile(function, backend=backend) if backend else function)(x, y)
    result.square().sum().backward()
    assert x.grad is not None
    assert y.grad is not None
    return result, x.grad, y.grad


def break_pass(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception | None = None) -> None:
    """Let a pass fail, after it has thrown away all that it got."""

    def fail(self: Any, ctx: Any, op: Any) -> None:
        for each in list(op.body.block.ops):
            each.detach()
        raise error or KeyError("on purpose")

    monkeypatch.setattr(PASSES[name], "apply", fail)


def test_every_optional_pass_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_passes, "write_reproducer", lambda path, text, name, passes, error, *_: f"{passes[0]}.mlir")
    for name in OPTIONAL:
        break_pass(monkeypatch, name)
    start = len(REPORTS)
    with pytest.warns(PassFailureWarning) as caught, collecting() as remarks:
        torch.testing.assert_close(gradients("inductile"), gradients(None))
    told = {m.group(1) for w in caught if (m := re.search(r"pass '([a-z-]+)' failed: KeyError", str(w.message)))}
    assert told == set(OPTIONAL)
    assert not [w for w in caught if "in eager" in str(w.message)]
    assert {r.pass_name for r in remarks if r.kind == "failure"} == set(OPTIONAL)
    assert {name for report in REPORTS[start:] for name in report.failures} == set(OPTIONAL)


def test_the_reproducer_fails_loudly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    break_pass(monkeypatch, "loop-inline", UnsupportedError("on purpose"))
    x = torch.randn(5)
    with pytest.warns(PassFailureWarning, match="loop-inline") as caught:
        assert torch.equal(torch.compile(lambda x: x + 1, backend="inductile")(x), x + 1)
    path = str(caught[0].message).split()[-1]
    assert opt(["--run-reproducer", path]) == 1
    assert "pass 'loop-inline' failed: on purpose" in capsys.readouterr().err


def test_what_a_pass_broke_and_another_one_met(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is verified behind most passes: the one that is found guilty is the one that broke it."""

    def spoil(self: Any, ctx: Any, op: Any) -> None:
        for each in list(op.walk()):
            if each.name == "loop.generate":
                each.operands = []
                each.regions[0].blocks[0].erase_op(each.regions[0].blocks[0].last_op)

    monkeypatch.setattr(PASSES["loop-assign-layouts"], "apply", spoil)
    x = torch.randn(5)
    with pytest.warns(PassFailureWarning, match="pass 'loop-assign-layouts' failed: the module does not verify"):
        assert torch.equal(torch.compile(lambda x: x + 1, backend="inductile")(x), x + 1)


def test_fusion_has_a_simpler_form(monkeypatch: pytest.MonkeyPatch) -> None:
    real = PASSES["loop-fuse"].apply

    def fail(self: Any, ctx: Any, op: Operation) -> None:
        if self.max_members > 1:
            raise KeyError("on purpose")
        real(self, ctx, op)  # pyright: ignore

    monkeypatch.setattr(PASSES["loop-fuse"], "apply", fail)
    with pytest.warns(PassFailureWarning, match="pass 'loop-fuse' failed: KeyError"):
        torch.testing.assert_close(gradients("inductile"), gradients(None))


@pytest.mark.parametrize("name", sorted(set(PASSES) - {*OPTIONAL, "graph-partition"}))
def test_other_passes_may_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_pass(monkeypatch, name)
    with pytest.raises(BackendCompilerFailed, match=f"pass '{name}' failed: KeyError"):
        gradients("inductile")


def test_the_tests_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    break_pass(monkeypatch, "graph-cse")
    with pytest.raises(BackendCompilerFailed, match="pass 'graph-cse' failed: KeyError"):
        torch.compile(lambda x: x + 1, backend="inductile")(torch.randn(5))


def test_torch_splits_where_the_partition_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    break_pass(monkeypatch, "graph-partition")
    with pytest.warns(PassFailureWarning, match="torch splits a graph .*'graph-partition' failed: KeyError"):
        torch.testing.assert_close(gradients("inductile"), gradients(None))


def test_a_split_that_fails_half_way_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: JointGraph) -> Any:
        for node in reversed(self.graph.graph.nodes):
            node.args = ()
        raise KeyError("on purpose")

    monkeypatch.setattr(JointGraph, "split", fail)
    with pytest.warns(PassFailureWarning, match="torch splits a graph .*: KeyError: 'on purpose'"):
        torch.testing.assert_close(gradients("inductile"), gradients(None))


def test_a_pass_before_autograd_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(graph: torch.fx.GraphModule, inputs: Any) -> None:
        first = next(node for node in graph.graph.nodes if node.op == "call_function")
        first.replace_all_uses_with(first.args[0])
        graph.graph.erase_node(first)
        raise KeyError("on purpose")

    monkeypatch.setitem(fx_pre_grad._FUNCTIONS, "remove-identities", fail)
    with pytest.warns(PassFailureWarning, match="'remove-identities' failed: KeyError"), collecting() as remarks:
        torch.testing.assert_close(gradients("inductile"), gradients(None))
    assert [r.pass_name for r in remarks if r.kind == "failure"] == ["remove-identities"]
