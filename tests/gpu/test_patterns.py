"""The patterns of the benchmarks on a GPU: values and gradients as close to the exact ones as eager's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

from ..scripts import load_benchmark

pytestmark = pytest.mark.gpu

_patterns = load_benchmark("patterns")
#: inputs without a gradient, by position: running statistics
_FIXED = {"batch_norm": (1, 2)}
ROWS = 520


def _relative(got: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]) -> float:
    pairs = [(g.double(), e.double()) for g, e in zip(got, exact, strict=True)]
    return max(float((g - e).norm() / e.norm().clamp_min(1e-30)) for g, e in pairs)


def _check(got: Any, eager: Any, exact: Any, dtype: torch.dtype) -> None:
    for g, e in zip(got, eager, strict=True):
        assert (g.dtype, g.shape, g.stride(), g.device) == (e.dtype, e.shape, e.stride(), e.device)
    floor = 1e-3 if dtype is torch.bfloat16 else 1e-6
    assert _relative(got, exact) <= 2 * _relative(eager, exact) + floor


def _in_double(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    wide = [x.detach().double() if x.is_floating_point() else x for x in inputs]
    return [w.requires_grad_(x.requires_grad) for w, x in zip(wide, inputs, strict=True)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", list(_patterns.PATTERNS))
def test_values(name: str, dtype: torch.dtype) -> None:
    function, inputs = _patterns.build(name, ROWS, dtype, "cuda")
    with torch.no_grad():
        eager, exact = tree_leaves(function(*inputs)), tree_leaves(function(*_in_double(inputs)))
        _check(tree_leaves(torch.compile(function, backend="inductile")(*inputs)), eager, exact, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", list(_patterns.PATTERNS))
def test_gradients(name: str, dtype: torch.dtype) -> None:
    function, inputs = _patterns.build(name, ROWS, dtype, "cuda")
    fixed = _FIXED.get(name, ())
    given = [x.requires_grad_(x.is_floating_point() and k not in fixed) for k, x in enumerate(inputs)]
    generator = torch.Generator("cuda").manual_seed(1)

    def gradients(call: Any, given: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        outputs = tree_leaves(call(*given))
        generator.manual_seed(1)
        wanted = [torch.randn(o.shape, generator=generator, device="cuda").to(dtype) for o in outputs]
        cotangents = [c.to(o.dtype) for c, o in zip(wanted, outputs, strict=True)]
        return torch.autograd.grad(outputs, [x for x in given if x.requires_grad], cotangents)

    compiled = torch.compile(function, backend="inductile")
    eager, exact = gradients(function, given), gradients(function, _in_double(given))
    _check(gradients(compiled, given), eager, exact, dtype)


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "bias_gelu", "square_sum", "column_sum", "cat_relu"])
def test_dynamic_rows(name: str) -> None:
    """One compile for several numbers of rows, odd ones among them."""
    function, first = _patterns.build(name, 64, torch.float32, "cuda")
    compiled = torch.compile(function, backend="inductile", dynamic=True)
    with torch.no_grad():
        torch.testing.assert_close(compiled(*first), function(*first), rtol=1e-4, atol=1e-4)
        with torch._dynamo.config.patch(error_on_recompile=True):
            for rows in (37, 64, 133):
                _, inputs = _patterns.build(name, rows, torch.float32, "cuda")
                torch.testing.assert_close(compiled(*inputs), function(*inputs), rtol=1e-4, atol=2e-3)
