"""Products in aligned rows: what `graph-pad-products` makes of a product gives its values, sizes and strides."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from inductile.backends.host import products
from inductile.backends.host.products import mm_by_scratch, mm_in_turns
from inductile.backends.reference import run_module
from inductile.dialects.context import new_context
from inductile.lowering.registry import parse_passes
from inductile.passes.manager import PassManager

GPU = ', device = "cuda:0"'
ELEMENTS = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def _module(text: str) -> ModuleOp:
    return Parser(new_context(), text).parse_module()


def _type(sizes: tuple[int, ...], element: str, is_turned: bool = False) -> str:
    strides = ""
    if is_turned:
        step = [1, sizes[-2]] if len(sizes) == 2 else [sizes[-1] * sizes[-2], 1, sizes[-2]]
        strides = f", strides = {step}"
    return f"!aten.tensor<{'x'.join(map(str, sizes))}x{element}{strides}{GPU}>"


def _tensor(sizes: tuple[int, ...], dtype: torch.dtype, is_turned: bool) -> torch.Tensor:
    x = torch.randint(-4, 5, sizes).to(dtype)  # sums of so few small integers are exact in any order
    return x.mT.contiguous().mT if is_turned else x


#: batch, rows, depth, columns
SIZES = [(0, 37, 24, 50), (0, 40, 21, 48), (0, 37, 21, 51), (0, 39, 24, 40), (3, 37, 16, 40), (3, 40, 21, 50)]


@pytest.mark.parametrize("element", ["f32", "bf16"])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(("sizes", "bias"), [(each, b) for each in SIZES for b in (False, True) if not (each[0] and b)])
def test_values_are_those_of_the_product(
    sizes: tuple[int, int, int, int], turned: tuple[bool, bool], bias: bool, element: str
) -> None:
    batch, rows, depth, columns = sizes
    prefix = (batch,) if batch else ()
    shapes = [(*prefix, rows, depth), (*prefix, depth, columns), (columns,)]
    types = [_type(shape, element, t) for shape, t in zip(shapes, (*turned, False), strict=True)]
    result = _type((*prefix, rows, columns), element)
    name = "addmm(%b, %x, %w)" if bias else "bmm(%x, %w)" if batch else "mm(%x, %w)"
    text = f"""func.func @f(%x: {types[0]}, %w: {types[1]}, %b: {types[2]}) -> {result} {{
  %0 = aten.{name} : {result}
  func.return %0 : {result}
}}"""
    module = _module(text)
    passes = "graph-pad-products{always=true}"
    PassManager(parse_passes(passes), verify_each=True).run(new_context(), module)
    changed = str(module)
    steps = (rows if turned[0] else depth, depth if turned[1] else columns, columns)
    is_aligned = all(step * ELEMENTS[element].itemsize % 16 == 0 for step in steps)
    assert is_aligned == (changed.count("aten.") == text.count("aten.") and "implementation" not in changed)
    torch.manual_seed(0)
    inputs = [_tensor(s, ELEMENTS[element], t) for s, t in zip(shapes, (*turned, False), strict=True)]
    inputs[2][3], inputs[0].flatten()[0] = torch.inf, torch.nan
    eager, got = (run_module(_module(each.replace(GPU, "")), inputs)[0] for each in (text, changed))
    assert (got.shape, got.stride()) == (eager.shape, eager.stride())
    torch.testing.assert_close(got, eager, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ELEMENTS.values())
@pytest.mark.parametrize("rows", [0, 1, 3, 8, 37])
@pytest.mark.parametrize("columns", [5, 16, 17, 33, 50, 52, 100])
@pytest.mark.parametrize("product", [mm_in_turns, mm_by_scratch])
def test_every_element_is_computed(
    product: Callable[..., torch.Tensor], rows: int, columns: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "SCRATCH_BYTES", 1000)  # several blocks
    left, right = _tensor((rows, 24), dtype, False), _tensor((24, columns), dtype, True)
    got, eager = product(left, right), left @ right
    assert got.stride() == eager.stride()
    torch.testing.assert_close(got, eager, rtol=0, atol=0)
