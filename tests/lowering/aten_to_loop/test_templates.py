"""Equal ATen ops run their rule once, and become what the rule would have made."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from inductile.dialects.context import new_context
from inductile.lowering.aten_to_loop import lower
from inductile.lowering.aten_to_loop.lower import LowerAtenToLoop
from inductile.lowering.aten_to_loop.rules import RULES, Rule
from inductile.passes.verification import find_violation

T = "!aten.tensor<4x6xf32>"
LAYERS = "".join(
    f"""
  %s{k} = aten._softmax(%h{k}, dim = -1, half_to_float = false) : {T}
  %a{k} = aten.add.Tensor(%s{k}, %y, alpha = 1) : {T}
  %h{k + 1} = aten.mul.Tensor(%a{k}, %a{k}) : {T}"""
    for k in range(12)
)
#: of one rule and equal types, but not equal: a tensor twice, another order, another number
OTHERS = f"""
  %o1 = aten.add.Tensor(%h12, %h12, alpha = 1) : {T}
  %o2 = aten.add.Tensor(%y, %o1, alpha = 2) : {T}
  %o3 = aten.mul.Tensor(%o2, %y) : {T}"""
TEXT = f"""
func.func @f(%h0: {T}, %y: {T}) -> {T} {{{LAYERS}{OTHERS}
  func.return %o3 : {T}
}}"""


def lowered() -> ModuleOp:
    """The program at the loop level."""
    module = Parser(new_context(), TEXT).parse_module()
    LowerAtenToLoop().apply(new_context(), module)
    assert find_violation(module) is None
    return module


def test_a_rule_runs_once_for_equal_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered_by_rule: list[str] = []
    by_rule = lower._lower  # pyright: ignore[reportPrivateUsage]

    def counted(builder: Any, op: Any, *rest: Any) -> object:
        lowered_by_rule.append(op.name)
        return by_rule(builder, op, *rest)

    monkeypatch.setattr(lower, "_lower", counted)
    lowered()
    assert sorted(lowered_by_rule) == sorted(
        ["aten._softmax", "aten.add.Tensor", "aten.mul.Tensor", *["aten.add.Tensor"] * 2, "aten.mul.Tensor"]
    )


def test_the_same_as_by_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    text = str(lowered())
    monkeypatch.setattr(lower, "_OWN_RULES", {})
    assert str(lowered()) == text


def test_rules_of_others_always_run(monkeypatch: pytest.MonkeyPatch) -> None:
    own = RULES["aten.mul.Tensor"]
    runs: list[object] = []

    def other(builder: object, call: object) -> object:
        runs.append(call)
        return own.lower(builder, call)  # pyright: ignore[reportArgumentType]

    monkeypatch.setitem(RULES, "aten.mul.Tensor", Rule(other, own.reject))  # pyright: ignore[reportArgumentType]
    lowered()
    assert len(runs) == 13
