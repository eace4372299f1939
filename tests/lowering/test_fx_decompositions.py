"""The decomposition table says only what torch can do, and nothing that a lowering does better."""

from __future__ import annotations

import torch

from inductile.lowering.aten_to_loop import RULES, refusals
from inductile.lowering.fx_decompositions import DECOMPOSED, decompositions


def test_every_entry_has_a_decomposition() -> None:
    found = {op.overloadpacket.__name__ for op in decompositions() if isinstance(op, torch._ops.OpOverload)}
    assert sorted(set(DECOMPOSED) - found) == []


def test_no_entry_hides_a_lowering() -> None:
    lowered = {name.removeprefix("aten.").partition(".")[0] for name in RULES}
    assert sorted(set(DECOMPOSED) & lowered) == []


def test_what_eager_refuses_and_we_would_lower_names_rules() -> None:
    names = {name.removeprefix("aten.").partition(".")[0] for name in RULES} | RULES.keys()
    assert sorted((refusals._RESULTS.keys() | refusals._OPERANDS.keys() | refusals._NUMBERS.keys()) - names) == []
