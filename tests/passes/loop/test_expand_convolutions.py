"""Convolutions that are nests compute what eager does: no further from float64 than twice eager's distance."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

Tensors = list[torch.Tensor]


def _run(function: Callable[..., torch.Tensor], inputs: Tensors) -> Tensors:
    inputs = [each.clone().requires_grad_() for each in inputs]
    result = function(*inputs)
    result.backward(torch.linspace(-1, 1, result.numel(), dtype=torch.float64).view(result.shape).to(result.dtype))
    return [result.detach(), *(each.grad for each in inputs if each.grad is not None)]


CASES: dict[str, tuple[Callable[..., torch.Tensor], tuple[int, ...], tuple[int, ...]]] = {
    "depthwise and glu": (lambda x, w, b: F.glu(F.conv1d(x, w, b, padding=3, groups=8), 1), (2, 8, 47), (8, 1, 7)),
    "same, asymmetric": (lambda x, w, b: F.conv1d(x, w, b, padding="same", groups=8), (2, 8, 40), (8, 1, 4)),
    "causal": (lambda x, w, b: F.silu(F.conv1d(F.pad(x, (3, 0)), w, b, groups=8)), (2, 8, 40), (8, 1, 4)),
    "stride and dilation": (
        lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=4, dilation=3, groups=4),
        (3, 8, 64),
        (12, 2, 3),
    ),
    "image": (lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=8).relu(), (2, 8, 33, 37), (8, 1, 3, 3)),
    "transposed": (lambda x, w, b: F.conv_transpose1d(x, w, b, padding=1, groups=4), (2, 8, 33), (8, 2, 5)),
}


F32, F64, BF16, F16 = torch.float32, torch.float64, torch.bfloat16, torch.float16
BOTH = [("depthwise and glu", F64), ("same, asymmetric", F16), *((case, F32) for case in CASES), ("causal", BF16)]


@pytest.mark.rotates(2)
@pytest.mark.parametrize("case, dtype", BOTH)
def test_is_as_exact_as_eager(case: str, dtype: torch.dtype) -> None:
    function, source, weight = CASES[case]
    generator = torch.Generator().manual_seed(0)
    biases = weight[1] * 4 if case == "transposed" else weight[0]
    inputs = [torch.randn(shape, generator=generator).to(dtype) for shape in (source, weight, (biases,))]
    torch._dynamo.reset()
    ours = _run(torch.compile(function, backend="inductile", dynamic=dtype is torch.float64), inputs)
    eager, exact = _run(function, inputs), _run(function, [each.double() for each in inputs])
    for our, one, true in zip(ours, eager, exact, strict=True):
        assert (our.dtype, our.shape, our.stride()) == (one.dtype, one.shape, one.stride())
        allowed = 2 * (one.double() - true).abs().max() + 2 * torch.finfo(dtype).eps * true.abs().max()
        assert (our.double() - true).abs().max() <= allowed
