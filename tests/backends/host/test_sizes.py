"""What only sizes of arguments decide is computed once for these sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from xdsl.parser import Parser

from inductile.backends.host import build, sizes
from inductile.dialects.context import new_context

TEXT = """
host.func @f(%x: !aten.tensor<(n)x(m)xf32>)
    -> (!aten.tensor<(m)x(n)xf32, strides = [1, m]>, !aten.tensor<(n + m)xf32>, !aten.tensor<(n*m)xf32>)
    symbols [#sym.symbol<n, arg = 0, dim = 0>, #sym.symbol<m, arg = 0, dim = 1>] {
  %a = aten.sin(%x) : !aten.tensor<(n)x(m)xf32>
  %y = host.view %a offset 0 : !aten.tensor<(m)x(n)xf32, strides = [1, m]>
  %z = aten.full(size = [n + m], fill_value = 1.0) : !aten.tensor<(n + m)xf32>
  %w = host.view %a offset 0 : !aten.tensor<(n*m)xf32>
  host.return %y, %z, %w
}"""


def test_one_look_up_gives_what_the_sizes_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    misses: list[Any] = []
    keep = sizes.kept_for_sizes

    def counted(function: Any) -> Any:
        return keep(lambda *given: (misses.append(given), function(*given))[1])

    monkeypatch.setattr("inductile.backends.host.sizes.kept_for_sizes", counted)
    program = build(Parser(new_context(), TEXT).parse_module())
    for n, m in ((2, 3), (3, 2), (2, 3), (3, 2)):
        x = torch.randn(n, m)
        turned, ones, flat = program([x])
        assert torch.equal(turned, x.sin().T) and torch.equal(flat, x.sin().flatten()) and ones.shape == (n + m,)
    assert misses == [(2, 3), (3, 2)]


def test_few_values_are_computed_in_the_program() -> None:
    shared = sizes.SharedSizes()
    shared.begin(["s0"], 1)
    texts = {"s0": "s0", "4*s0": "c0", "s1 + s0": "s1 + s0", "16": "16", "8*s0": "c1", "-4": "-4"}
    for text, shown in [*texts.items(), *texts.items()]:
        assert shared.share(text, {name for name in ("s0", "s1") if name in text}) == shown
    assert shared.share("16", {"s0"}) == "16"
    lines = shared.insert(["s0 = a0", "use(c0)"], sizes.Constants())
    assert lines == ["s0 = a0", "c0 = 4*s0", "c1 = 8*s0", "use(c0)"]
    assert shared.function() == ""
