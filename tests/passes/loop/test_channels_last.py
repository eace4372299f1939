"""`loop-channels-last` changes no value, whatever reads the results of convolutions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import inductile
from inductile.backends.reference import run_module
from inductile.dialects.context import new_context
from inductile.lowering.registry import parse_passes
from inductile.passes.manager import PassManager

GPU = ', device = "cuda:0"'
T = f"!aten.tensor<2x4x6x5xbf16{GPU}>"
W = f"!aten.tensor<4x4x3x3xbf16{GPU}>"
ARGUMENTS = (
    "stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1"
)


def _convolution(source: str) -> str:
    return f"aten.convolution({source}, %w, none, {ARGUMENTS}) : {T}"


def _nest(body: str) -> str:
    return f"loop.generate (i0 in 2, i1 in 4, i2 in 6, i3 in 5) {{\n{body}\n  }} : {T}"


RELU = """    %v = loop.load %{0}[i0, i1, i2, i3]
    %z = arith.constant 0.0 : bf16
    %c = arith.cmpf ogt, %v, %z : bf16
    %r = arith.select %c, %v, %z : bf16
    loop.yield %r"""
ADD = """    %p = loop.load %{0}[i0, i1, i2, i3]
    %q = loop.load %{1}[i0, i1, i2, i3]
    %r = arith.addf %p, %q : bf16
    loop.yield %r"""

PROGRAMS = {
    "residual": (
        [
            ("a", _convolution("%x")), ("b", _nest(RELU.format("a"))), ("d", _convolution("%b")),
            ("e", _nest(ADD.format("d", "b"))), ("f", _nest(RELU.format("e"))), ("g", _convolution("%e")),
        ],
        ["f", "g"],
    ),
    "returned": (
        [("b", _nest(RELU.format("x"))), ("d", _convolution("%b")), ("e", _nest(ADD.format("d", "b")))],
        ["d", "e"],
    ),
    "twice": (
        [("a", _convolution("%x")), ("b", _convolution("%x")), ("e", _nest(ADD.format("a", "b")))],
        ["e", "a"],
    ),
}  # fmt: skip


def _text(name: str) -> str:
    lines, returned = PROGRAMS[name]
    body = "\n".join(f"  %{result} = {text}" for result, text in lines)
    types = ", ".join([T] * len(returned))
    values = ", ".join(f"%{r}" for r in returned)
    return f"func.func @f(%x: {T}, %w: {W}) -> ({types}) {{\n{body}\n  func.return {values} : {types}\n}}"


def _on_cpu(module: ModuleOp) -> ModuleOp:
    module.verify()
    return Parser(new_context(), str(module).replace(GPU, "")).parse_module()


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_stay(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 4, 6, 5, generator=generator).bfloat16()
    w = torch.randn(4, 4, 3, 3, generator=generator).bfloat16()
    before, after = (Parser(new_context(), _text(name)).parse_module() for _ in range(2))
    PassManager(parse_passes("loop-channels-last")).run(new_context(), after)
    assert "strides = [120, 1, 20, 4]" in str(after)
    expected = run_module(_on_cpu(before), [x, w], strict=False)
    got = run_module(_on_cpu(after), [x, w], strict=False)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-2)
        assert one.stride() == other.stride()


def test_what_nests_pass_on_follows() -> None:
    """The sum is read by a convolution and by a nest: both read it with its channels side by side."""
    module = Parser(new_context(), _text("residual")).parse_module()
    PassManager(parse_passes("loop-channels-last")).run(new_context(), module)
    lines = [line for line in str(module).splitlines() if "bf16" in line and "strides" not in line and "}" in line]
    assert len(lines) == 2  # what is returned: the last nest, and the copy of the last convolution


@pytest.mark.parametrize("options", [{}, {"freezing": True}])
def test_images_of_one_point_keep_their_strides(options: dict[str, Any]) -> None:
    """As squeeze-and-excitation has them: what a convolution returns lies as what it reads."""
    convolution = nn.Conv2d(64, 16, 1).eval()

    def excited(x: torch.Tensor) -> torch.Tensor:
        return convolution(x.mean((2, 3), keepdim=True))

    x = torch.randn(1, 64, 7, 7).contiguous(memory_format=torch.channels_last)
    with torch.no_grad():
        found = inductile.explain(excited, options=options)(x).result
        assert found.stride() == excited(x).stride()
        torch.testing.assert_close(found, excited(x))
