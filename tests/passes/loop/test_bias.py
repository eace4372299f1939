"""Taking the bias out of a convolution or a product changes no value: eager rounds the sum without it first, too."""

from __future__ import annotations

import pytest
import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from inductile.backends.reference import run_module
from inductile.dialects.context import new_context
from inductile.lowering.registry import parse_passes
from inductile.passes.manager import PassManager

GPU = ', device = "cuda:0"'
#: spatial dimensions, transposed, groups
CONVOLUTIONS = [(2, False, 1), (2, False, 4), (2, True, 1), (1, False, 2), (3, False, 1)]
_ONES = {n: f"[{', '.join('1' * n)}]" for n in (1, 2, 3)}


def _convolution(rank: int, transposed: bool, groups: int, element: str) -> tuple[str, list[list[int]]]:
    window = [3] * rank
    shapes = [[2, 8, *[5] * rank], [8, 8 // groups, *window], [8]]
    x, w, b = (f"!aten.tensor<{'x'.join(map(str, shape))}x{element}{GPU}>" for shape in shapes)
    zeros = _ONES[rank].replace("1", "0")
    call = (
        f"aten.convolution(%x, %w, %b, stride = {_ONES[rank]}, padding = {_ONES[rank]}, dilation = {_ONES[rank]}, "
        f"transposed = {str(transposed).lower()}, output_padding = {zeros}, groups = {groups}) : {x}"
    )
    return _program((x, w, b), call, x, shapes[0]), shapes


def _program(types: tuple[str, ...], call: str, result: str, shape: list[int]) -> str:
    axes = [f"i{k}" for k in range(len(shape))]
    nest = ", ".join(f"{axis} in {size}" for axis, size in zip(axes, shape, strict=True))
    return f"""func.func @f(%x: {types[0]}, %w: {types[1]}, %b: {types[2]}) -> {result} {{
  %0 = {call}
  %1 = loop.generate ({nest}) {{
    %v = loop.load %0[{", ".join(axes)}]
    loop.yield %v
  }} : {result}
  func.return %1 : {result}
}}"""


def _module(text: str) -> ModuleOp:
    return Parser(new_context(), text).parse_module()


def _on_cpu(text: str) -> ModuleOp:
    return _module(text.replace(GPU, ""))


def _compare(text: str, shapes: list[list[int]], dtype: torch.dtype) -> None:
    module = _module(text)
    PassManager(parse_passes("loop-select-implementation")).run(new_context(), module)
    separated = str(module)
    assert separated.count("loop.generate") == text.count("loop.generate") + 1
    torch.manual_seed(0)
    inputs = [torch.randn(shape).to(dtype) for shape in shapes]
    (actual,) = run_module(_on_cpu(separated), inputs)
    if dtype == torch.float32:
        torch.testing.assert_close(actual, *run_module(_on_cpu(text), inputs))
    else:  # eager adds to the rounded sum on a GPU; the CPU's library adds before it rounds
        (alone,) = run_module(_on_cpu(text.replace("%b,", "none,")), inputs)
        assert torch.equal(actual, alone + inputs[2].view(-1, *[1] * (alone.dim() - 2)))


@pytest.mark.parametrize(("element", "dtype"), [("f32", torch.float32), ("bf16", torch.bfloat16)])
@pytest.mark.parametrize(("rank", "transposed", "groups"), CONVOLUTIONS)
def test_convolution(rank: int, transposed: bool, groups: int, element: str, dtype: torch.dtype) -> None:
    _compare(*_convolution(rank, transposed, groups, element), dtype)


def test_product() -> None:
    shapes = [[4, 6], [6, 5], [5]]
    x, w, b = (f"!aten.tensor<{'x'.join(map(str, shape))}xf32{GPU}>" for shape in shapes)
    result = f"!aten.tensor<4x5xf32{GPU}>"
    text = _program((x, w, b), f"aten.addmm(%b, %x, %w) : {result}", result, [4, 5])
    _compare(text, shapes, torch.float32)
