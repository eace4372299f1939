"""Programs whose inputs carry the negative or the conjugate bit."""

from __future__ import annotations

import pytest
import torch
from xdsl.parser import Parser

from inductile.backends.host import build
from inductile.backends.host.copies import carrying_now, resolved
from inductile.dialects.context import new_context

INCREMENT = """
kernel.func @increment(%x: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f32, 4>) {
  kernel.for i0 in 0 to 4 map vector {
    %v = kernel.load %x[i0]
    %one = arith.constant 1.0 : f32
    %w = arith.addf %v, %one : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}
"""
VIEW = """
host.func @f(%x: !aten.tensor<4xf32>, %y: !aten.tensor<8xf32>, %n: !aten.tensor<4xi64>) -> (!aten.tensor<4xi64>) {
  %part = host.view %y offset 4 : !aten.tensor<4xf32>
  host.launch @increment(%x, %part)
  host.return %n
}
"""


def negative(tensor: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten._neg_view(tensor)


@pytest.mark.parametrize("carried", [(), (0,), (1,), (0, 1)], ids=str)
def test_what_a_view_of_an_input_writes_is_copied_back(carried: tuple[int, ...]) -> None:
    run = build(Parser(new_context(), INCREMENT + VIEW).parse_module())
    assert "if a0.is_neg() or a1.is_neg():" in run.source
    plain = [torch.randn(4), torch.randn(8), torch.arange(4)]
    inputs = [negative(t) if k in carried else t for k, t in enumerate(plain)]
    x, y = inputs[0], inputs[1]
    expected = torch.cat([y[:4], x + 1])
    versions = x._version
    args = list(inputs)
    (n,) = run(args)
    assert torch.equal(y, expected)
    assert y.is_neg() == (1 in carried)
    assert n is plain[2] and not args
    assert x._version == versions, "what is only read is not written"


def test_inputs_that_are_guarded_are_not_looked_at() -> None:
    module = Parser(new_context(), INCREMENT + VIEW).parse_module()
    assert "is_neg" not in build(module, carriers=frozenset()).source
    assert "if a1.is_neg():" in build(module, carriers={1}).source


def test_many_inputs_are_looked_at_in_one_expression() -> None:
    names = [f"%x{k}" for k in range(9)]
    arguments = ", ".join(f"{name}: !aten.tensor<4x{'f64' if k % 2 else 'c64'}>" for k, name in enumerate(names))
    results = ", ".join(f"!aten.tensor<4x{'f64' if k % 2 else 'c64'}>" for k in range(9))
    text = f"host.func @f({arguments}) -> ({results}) {{ host.return {', '.join(names)} }}"
    run = build(Parser(new_context(), text.replace("c64", "complex<f32>")).parse_module())
    assert "if any(map(is_neg, (a0, a1, a2, a3, a4, a5, a6, a7, a8))) or any(map(is_conj, (a0, a2, a4, a6, a8))):" in (
        run.source
    )


LAYOUTS = {
    "dense": lambda t: t,
    "strided": lambda t: t[::2, 1:],
    "transposed": lambda t: t.T,
    "expanded": lambda t: t[:1].expand(5, -1),
    "overlapping": lambda t: t.as_strided((3, 4), (2, 1), 3),
    "0-d": lambda t: t[1, 2],
    "empty": lambda t: t[:0],
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_copy_keeps_sizes_strides_and_values(layout) -> None:
    complexes = layout(torch.randn(6, 8, dtype=torch.complex64))
    for tensor in (complexes.conj(), negative(complexes), negative(complexes.conj()), complexes.conj().imag):
        copy = resolved(tensor)
        assert carrying_now([tensor]) == {0} and carrying_now([copy, 3, None]) == frozenset()
        assert copy.shape == tensor.shape and copy.stride() == tensor.stride()
        assert torch.equal(
            torch.view_as_real(copy) if copy.is_complex() else copy,
            torch.view_as_real(tensor.resolve_conj().resolve_neg()) if copy.is_complex() else tensor,
        )
