"""Marks on scalar ops of kernels are checked: what they are on, what they say, and whether it is so."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.reference import run_module
from inductile.backends.reference.errors import InterpretationError
from inductile.dialects.context import new_context
from inductile.dialects.reading import Reader
from inductile.passes.verification import find_violation

TEXT = """kernel.func @quotients(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {{
  kernel.for i0 in 0 to 8 {{
    %a = kernel.load %x[i0]
    %q = {op}
    kernel.store %q, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}
host.func @run(%x: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>) {{
  %y = host.empty : !aten.tensor<8xf32>
  host.launch @quotients(%x, %y)
  host.return %y
}}"""


@pytest.mark.parametrize(
    ("op", "problem"),
    [
        ('arith.mulf %a, %a {divisor = "shared"} : f32', "the mark divisor is for arith.divf of float32"),
        ('arith.divf %a, %a {divisor = "odd"} : f32', 'the mark divisor is one of shared, at_least_one, not "odd"'),
        ("arith.divf %a, %a {divisor = 1 : i64} : f32", "the mark divisor is one of shared, at_least_one, not 1 : i64"),
        ('math.exp %a {tiny = "one"} : f32', 'the mark tiny is one of zero, not "one"'),
    ],
)
def test_a_wrong_mark_is_refused(op: str, problem: str) -> None:
    violation = find_violation(Reader(new_context(), TEXT.format(op=op)).parse_module())
    assert violation is not None and violation.reason == problem


def test_the_interpreter_looks_at_divisors() -> None:
    module = Reader(new_context(), TEXT.format(op='arith.divf %a, %a {divisor = "at_least_one"} : f32')).parse_module()
    (result,) = run_module(module, [torch.arange(1.0, 9.0)])
    assert torch.equal(result, torch.ones(8))
    with pytest.raises(InterpretationError, match=r"the divisor is 0\.5, and is said to be at least 1"):
        run_module(module, [torch.arange(0.5, 8.5)])
