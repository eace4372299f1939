"""Divisions without a branch for each element, which NVIDIA's GPUs get where the divisor allows it."""

from __future__ import annotations

import math

import pytest
import torch

from inductile.backends.triton import TritonKernel
from inductile.dialects.context import new_context
from inductile.passes.kernel.mark_arithmetic import KernelMarkArithmetic
from inductile.passes.manager import PassManager

from . import support
from .support import Tensor

INF, NAN = math.inf, math.nan
DIVIDENDS = torch.tensor([0.0, -0.0, 1.0, -3.0, 1e-30, 3e38, -7e37, INF, -INF, NAN, 1 / 3, 5.0, 1e-3, 2e20, -9.0, 1e5])


def _marked(text: str) -> str:
    module = support.parse(text)
    PassManager([KernelMarkArithmetic()]).run(new_context(), module)
    return "\n".join(map(str, module.ops))


def kernel_of(text: str) -> TritonKernel:
    """The kernel of a text, with its marks."""
    return support.kernel_of(_marked(text))


def check(text: str, buffers: list[Tensor], rtol: float, atol: float) -> list[Tensor]:
    """Both interpreters agree on the kernel with its marks."""
    return support.check(_marked(text), buffers, rtol=rtol, atol=atol)


def _rows(divisor: str, of: str) -> str:
    """Each row of 16 over a number of its own; or over what is made of its elements."""
    return f"""kernel.func @divide(
    %x: !kernel.buffer<f32, 256>, %d: !kernel.buffer<f32, 16>, %y: !kernel.buffer<f32, 256>
  ) target "cuda:90" {{
  kernel.for i0 in 0 to 16 map grid {{
    %b = kernel.load %d[i0]
    kernel.for i1 in 0 to 16 map vector tile 16 {{
      %v = kernel.load %x[16*i0 + i1]
      {of}
      %q = arith.divf %v, {divisor} : f32
      kernel.store %q, %y[16*i0 + i1]
      kernel.yield
    }}
    kernel.yield
  }}
  kernel.yield
}}"""


def _inputs(divisors: Tensor) -> list[Tensor]:
    return [DIVIDENDS.repeat(16), divisors, torch.zeros(256)]


@pytest.mark.parametrize("scale", [1.0, 1e-38, 1e37, 1e-20, 1e20])
def test_by_a_number_that_a_row_shares(scale: float) -> None:
    divisors = (
        torch.tensor([1.0, 3.0, -7.0, 0.1, 9.9, -1.0, 2.0, 1e-2, 0.0, -0.0, INF, -INF, NAN, 5.0, 1.5, 0.7]) * scale
    )
    text = _rows("%b", "")
    assert "nvidia.divide_by_shared(" in kernel_of(text).source
    # the correction of a quotient that is nearly denormal is denormal: the last digit may be another
    got = check(text, _inputs(divisors), rtol=2**-22, atol=2**-149)[-1]
    expected = (DIVIDENDS / divisors[:, None]).flatten()
    large = ~(expected.abs() < 2**-102)
    assert torch.equal(got[large].nan_to_num(7.0), expected[large].nan_to_num(7.0))


def test_a_number_over_itself_is_one() -> None:
    numbers = torch.randn(16).abs().exp() * torch.logspace(-37, 37, 16)
    given = [torch.cat([numbers[:, None]] * 16, 1).flatten(), numbers, torch.zeros(256)]
    assert torch.equal(check(_rows("%b", ""), given, rtol=0, atol=0)[-1], torch.ones(256))


@pytest.mark.parametrize(
    "least",
    [
        "%o = arith.constant 1.0 : f32\n%n = math.absf %v : f32\n%s = arith.addf %n, %o : f32",
        "%o = arith.constant 1.0 : f32\n%n = math.exp %v : f32\n%s = arith.addf %o, %n : f32",
        "%o = arith.constant 2.5 : f32\n%n = arith.mulf %v, %v : f32\n%s = arith.addf %o, %n : f32",
    ],
)
def test_by_a_number_that_is_at_least_one(least: str) -> None:
    text = _rows("%s", least)
    assert "nvidia.divide_by_at_least_one(" in kernel_of(text).source
    check(text, _inputs(torch.ones(16)), rtol=2e-7, atol=1e-38)


def test_of_a_constant_by_a_number_that_is_at_least_one() -> None:
    least = "%o = arith.constant 1.0 : f32\n%n = math.exp %v : f32\n%s = arith.addf %n, %o : f32"
    text = _rows("%s", least).replace("arith.divf %v", "arith.divf %o")
    assert "nvidia.divide_by_at_least_one(" in kernel_of(text).source
    check(text, _inputs(torch.ones(16)), rtol=2e-7, atol=1e-38)


@pytest.mark.parametrize(
    "other", ["%s = math.absf %v : f32", "%o = arith.constant 1.0 : f32\n%s = arith.addf %v, %o : f32"]
)
def test_by_any_number(other: str) -> None:
    assert "tl.div_rn(" in kernel_of(_rows("%s", other)).source


def test_what_may_be_approximate() -> None:
    """Infinities, NaN, zeros and their signs are as ever."""
    least = "%o = arith.constant 1.0 : f32\n%n = math.exp %v fastmath<afn> : f32\n%s = arith.addf %n, %o : f32"
    text = _rows("%s", least).replace("%s : f32\n", "%s fastmath<arcp> : f32\n")
    source = kernel_of(text).source
    assert "nvidia.exp_or_zero(" in source
    assert "nvidia.ratio_to_at_least_one(" in source
    check(text, _inputs(torch.ones(16)), rtol=1e-6, atol=1e-38)
    assert "nvidia." not in kernel_of(text.replace("cuda:90", "hip:gfx942")).source


def test_an_approximate_exponential() -> None:
    """Not 0 for what is below the normal numbers, unless it is added to a larger number."""
    text = _rows("%b", "").replace("arith.divf %v, %b", "math.exp %v fastmath<afn>")
    assert "nvidia.exp(" in kernel_of(text).source
    check(text, [torch.linspace(-110, 89, 256), torch.ones(16), torch.zeros(256)], rtol=2e-5, atol=1e-44)
