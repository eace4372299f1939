"""Hooks on saved tensors that give back the same values with other strides do not change a gradient."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

Tensor = torch.Tensor


def _transposed(x: Tensor) -> Tensor:
    return x.t().exp().sin().cos()


def _plain(x: Tensor) -> Tensor:
    return x.exp().sin().cos()


def _contiguous(tensor: Tensor) -> Tensor:
    return tensor.clone(memory_format=torch.contiguous_format)


def _turned(tensor: Tensor) -> Tensor:
    order = tuple(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def _spaced(tensor: Tensor) -> Tensor:
    return torch.stack([tensor, tensor], -1)[..., 0]


def _gradient(function: Callable[[Tensor], Tensor], hook: Callable[[Tensor], Tensor] | None, dynamic: bool) -> Tensor:
    torch._dynamo.reset()
    wide = torch.randn(6, 16, generator=torch.Generator().manual_seed(0))
    x = wide.t() if dynamic else wide[:, ::2]  # gaps of unknown size are not restored
    x = x.detach().requires_grad_()
    call = torch.compile(function, backend="inductile", dynamic=dynamic) if hook else function
    with torch.autograd.graph.saved_tensors_hooks(hook or (lambda t: t), lambda t: t):
        result = call(x)
    result.square().sum().backward()
    assert x.grad is not None
    return x.grad


@pytest.mark.rotates(2, each="hook")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("hook", [_contiguous, _turned, _spaced])
@pytest.mark.parametrize("function", [_plain, _transposed])
def test_strides_that_hooks_change(
    function: Callable[[Tensor], Tensor], hook: Callable[[Tensor], Tensor], dynamic: bool
) -> None:
    expected, got = _gradient(function, None, dynamic), _gradient(function, hook, dynamic)
    torch.testing.assert_close(got, expected)
    assert got.stride() == expected.stride()
