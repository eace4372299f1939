"""Writes to inputs, aliases, strides of results."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from .catalogue import Case, Cases, check, parametrized

Tensor = torch.Tensor


def write_through_views(x: Tensor) -> Any:
    y, z = x[1:], x.t()
    y.add_(1)
    z[0].mul_(10)
    return x.sum(), y, z


def write_to_storage(x: Tensor) -> Any:
    y = x + 1
    y.as_strided((3,), (4,), 1).fill_(5)
    return y, y.sum()


def shift(x: Tensor) -> Tensor:
    x[1:] = x[:-1].clone()
    return x


def shift_by_roll(x: Tensor) -> Tensor:
    return x.copy_(x.roll(1, 0))


def write_then_read(x: Tensor) -> Any:
    before = x * 2
    x.mul_(3)
    return before, x * 2, x.view(-1)[:3]


def swap(x: Tensor, y: Tensor) -> None:
    old = x.clone()
    x.copy_(y)
    y.copy_(old)


def write_diagonal(x: Tensor) -> Tensor:
    x.diagonal().zero_()
    x[:, 0] = x[:, 1]
    return x + 0


def grow_cache(cache: Tensor, new: Tensor) -> Tensor:
    cache[:, 2:4] = new
    return cache[:, :4].sum(1)


def aliases(x: Tensor) -> Any:
    y = x + 1
    return x, x.view(-1), y, y, y.t(), y[0], x.detach(), y.unsqueeze(0), x[:0], x.expand(2, *x.shape)


def no_new_aliases(x: Tensor) -> Any:
    return (
        x + 0,
        x * 1,
        x.clone(),
        x.contiguous(),
        x.to(x.dtype),
        x.flatten(),
        x.reshape(-1),
        x.t().contiguous(),
        x.neg().neg(),
    )


def views_of_a_convolution(x: Tensor, w: Tensor) -> Any:
    """Dynamically, its sizes are sums of those of the inputs."""
    y = F.conv2d(x, w, padding=1)
    return y.view(2, -1), y[:, 1], y.flatten(2).transpose(1, 2)


def equal_outputs(x: Tensor) -> Any:
    return x.sin(), x.sin(), torch.zeros(3), torch.zeros(3), x.sum(), x.sum()


def strides(x: Tensor) -> Any:
    return (
        x + 1, x.permute(0, 2, 3, 1) * 2, x.contiguous() + x, torch.empty_strided((2, 3), (1, 2)).fill_(1),
        x[:, :, ::2] + 0, x.sum(1, keepdim=True), F.relu(x).to(memory_format=torch.contiguous_format), x.flip(1),
        F.interpolate(x, scale_factor=2), torch.zeros_like(x), x.softmax(1), torch.where(x > 0, x, 0.0), x.cumsum(1),
        torch.cat([x, x], 1), F.max_pool2d(x, 2), F.avg_pool2d(x, 2), x.amax((2, 3)), F.pad(x, (1, 1)), x[:, 0] + 1,
    )  # fmt: skip


def mixed_strides(x: Tensor, y: Tensor, z: Tensor) -> Any:
    return x + y, y + x, x * z, torch.where(x > 0, y, z), torch.maximum(y, z), x.to(torch.float64), y.clone(), z.clone()


def _pair() -> tuple[Tensor, ...]:
    return torch.arange(6.0).reshape(2, 3), -torch.arange(6.0).reshape(3, 2).t()


def _channels_last() -> tuple[Tensor, ...]:
    x = torch.randn(2, 3, 4, 6, generator=torch.Generator().manual_seed(0))
    return (x.to(memory_format=torch.channels_last),)


def _three_layouts() -> tuple[Tensor, ...]:
    x = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(0))
    return x, x.transpose(0, 2).contiguous().transpose(0, 2), x[:, :1].expand(-1, 3, -1)


def _arange() -> tuple[Tensor, ...]:
    return (torch.arange(12.0).reshape(4, 3),)


def _complex() -> tuple[Tensor, ...]:
    return (torch.complex(torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(3, 2).t() - 2),)


def _square() -> tuple[Tensor, ...]:
    return (torch.arange(16.0).reshape(4, 4),)


CASES: Cases = {
    "places counted from the start of the storage": Case(write_to_storage, lambda: (torch.randn(12),)),
    "storages of intermediate tensors": Case(
        lambda x, y: (
            torch.as_strided_scatter(x + 1, y, (3,), (4,), 1) * 2,
            torch.as_strided_scatter((x + 2)[2:], y, (3,), (2,), 3).sin(),
            torch.as_strided_scatter(x[2:], (y * 2).exp(), (3,), (2,), 3).sin(),
            torch.as_strided_copy((x + 3)[2:], (3,), (2,), 3) * 2,
            (x + 4)[2:].as_strided((3,), (2,), 0) * 2,
        ),
        lambda: (torch.randn(12), torch.randn(3)),
    ),
    "writes through views of an input": Case(write_through_views, lambda: (torch.arange(6.0).reshape(2, 3),)),
    "rows moved by one": Case(shift, _arange),
    "rows moved by a roll": Case(shift_by_roll, _arange),
    "read, write, read": Case(write_then_read, _arange),
    "two inputs exchanged": Case(swap, _pair),
    "diagonal and column": Case(write_diagonal, _square),
    "a slice of a cache": Case(grow_cache, lambda: (torch.zeros(2, 6, 3), torch.ones(2, 2, 3))),
    "flip in place": Case(lambda x: x.copy_(x.flip(0)), _arange),
    "write to a slice of a strided input": Case(lambda x: x.add_(1), lambda: (torch.arange(12.0)[::3],)),
    "outputs that alias": Case(aliases, lambda: (torch.ones(2, 3),)),
    "outputs that alias nothing": Case(no_new_aliases, _arange),
    "views of a convolution": Case(views_of_a_convolution, lambda: (torch.randn(2, 4, 8, 8), torch.randn(4, 4, 3, 3))),
    "equal outputs are two tensors": Case(equal_outputs, _arange),
    "expanded input": Case(
        lambda x: (x + 1, x.t().contiguous().view(-1), x.sum(0), x.clone(), x * x),
        lambda: (torch.arange(3.0).expand(4, 3),),
    ),
    "copies of equal elements seen in several shapes": Case(
        lambda x: (x.reshape(2, -1), x.flatten(1), x.reshape(-1), x.reshape(2, -1)), _channels_last
    ),
    "strides of channels_last": Case(strides, _channels_last),
    "strides of mixed operands": Case(mixed_strides, _three_layouts),
    "input with an offset": Case(lambda x: (x.t() * 2, x.view(-1)), lambda: (torch.arange(20.0)[4:16].view(3, 4),)),
    "views of views": Case(
        lambda x: (x.view(2, 2, 4)[:, 1].t(), x.unfold(0, 2, 1), x.as_strided((3, 2), (4, 1), 1), x.split(2, 1), x.mT),
        _square,
    ),
    "pieces of a size that is 1 only by the range of a symbol": Case(lambda x: torch.unsafe_chunk(x, 4, 1), _square),
    "empty outputs": Case(lambda x: (x[:0], x[:, 2:2] + 1, x.new_zeros(0, 3), torch.cat([x[:0], x])), _arange),
}

#: a conjugate and a negative view are bits of a tensor; kernels read memory
CASES |= {
    "imaginary part of a conjugate": Case(lambda z: (z.conj().imag + 1, z.mH.imag.exp().sum(0)), _complex),
    "a conjugate, resolved": Case(lambda z: torch.view_as_real(z.conj().resolve_conj()) + 1, _complex),
    "write to a negative view": Case(lambda z: (z.conj().imag.add_(1), z), _complex),
}


@parametrized(CASES)
def test_memory(case: Case, dynamic: bool) -> None:
    check(case, dynamic)
