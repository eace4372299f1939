"""float16 and bfloat16 that round as in eager, complex numbers, 8-bit floats, random numbers."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .catalogue import INF, NAN, Case, Cases, check, parametrized, tensors

ROUNDED = {"emulate_precision_casts": True}


def _half() -> tuple[torch.Tensor, ...]:
    return torch.full((4096,), 1.0, dtype=torch.float16), torch.linspace(0, 3, 16, dtype=torch.bfloat16)


def _rows() -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(6, 50, generator=generator)
    return x.bfloat16(), x.half(), torch.randn(50, generator=generator).bfloat16()


CASES: Cases = {
    "sums and chains": Case(
        lambda x, y: (
            x.sum(), x.cumsum(0)[-1], ((y * 1.1) + 0.3) * y - y, x.to(torch.float32).to(torch.float16).sum(),
            (y.float() * 1.001).to(torch.bfloat16).float(), (x * 60000 * 2).mean(),
        ),
        _half, options=ROUNDED,
    ),
    "signs, NaNs' included": Case(
        lambda b, h: (b.signbit(), h.signbit(), b.float().signbit(), b.double().signbit(), (b * -1).signbit()),
        lambda: (
            torch.tensor([-0.0, 0.0, -NAN, NAN, -INF, INF, -1.5, 2.5] * 8, dtype=torch.bfloat16),
            torch.tensor([-0.0, 0.0, -NAN, NAN, -INF, INF, -1.5, 2.5] * 8, dtype=torch.float16),
        ),
    ),
    "each op rounds": Case(
        lambda b, h, w: (
            b * w + b - w, (b + w).relu() * 3, h * 1.7 - h.sin(), (b.exp() * w).sum(1), (h / 3 + h) / 7, b.float() * w,
            torch.where(b > 0, b * w, b + w), (b * 0.1).tanh() + (b * 0.1).tanh(), b.addcmul(b, w),
            torch.lerp(b, w, 0.3),
        ),
        _rows, options=ROUNDED,
    ),
    "what is between two views rounds": Case(
        lambda b, h, w: ((b * w).t().contiguous() + 1, (h * 3).reshape(-1)[::2] - 1, torch.cat([b * 3, b + w], 1) * 7),
        _rows, options=ROUNDED,
    ),
    "pieces and choices of what is computed": Case(
        lambda b, h, w: (
            torch.cat((-b, b), 1) * 3, torch.where(b > 0, -b, w) * w, torch.cat((h.abs(), -h), 0).float(),
            torch.where(b > 0, torch.where(w > 0, -b, w), b.relu()) + w, F.pad(-b, (1, 2)) * 3,
        ),
        _rows,
    ),
    "0-d operands are rounded, but for divisors and factors": Case(
        lambda b, s: (
            b + s, s + b, b - s, b * s, s * b, b / s, s / b, b // s, s // b, b % s, s % b, b == s, b.fmod(s),
            torch.div(b, s, rounding_mode="trunc"), torch.div(s, b, rounding_mode="trunc"), torch.maximum(b, s) * 3,
            torch.where(b > 0, b, s), b.masked_fill(b > 0, s), torch.atan2(b, s), torch.nextafter(s, b),
        ),
        lambda: (torch.tensor([0.1, -0.1, -2.5, 2.5, 7.0, 1 / 3, NAN, INF] * 3, dtype=torch.bfloat16),
                 torch.tensor(1 / 3)), options=ROUNDED,
    ),
    "numbers beside float16": Case(
        lambda h: (
            h**0.5, h**-0.5, h ** (1 / 3), h // 0.1, 0.1 // h, h % 0.1, torch.div(h, 0.1, rounding_mode="trunc"),
            h + 0.1, h * 0.1, h == 0.1, h.clamp(min=1e-9), F.hardtanh(h, -1e-9, 0.1), torch.rsub(h, 0.1),
        ),
        lambda: (torch.tensor([-INF, -0.0, 4.0, 1.0, -1.0, 2.5, 0.1, INF, NAN] * 3, dtype=torch.float16),),
        options=ROUNDED,
    ),
    "casts of the program stay": Case(
        lambda b, h, w: (
            (b.float() * 1.001).bfloat16().float(), h.double().half(), (h.float() + 1e-4).half() - h,
            b.half().bfloat16(),
        ),
        _rows,
    ),
    "overflow": Case(
        lambda x: (x * 2, x + x - x, x.float() * 2, x.sum(), x.mean(), (x * 2).isinf()),
        tensors([60000.0, -60000.0, 1.0], dtype=torch.float16), options=ROUNDED,
    ),
    "complex": Case(
        lambda z: (
            z * z, z.abs(), z.angle(), z.real + z.imag, torch.view_as_real(z) + 1, z.conj() + 1, z.sum(), 1 / z,
            torch.exp(z), z == z, z.conj().imag, z.real * 2, z[::2], torch.stack([z, -z]),
        ),
        tensors([1 + 2j, -1j, 0j]),
    ),
    "complex beside real": Case(
        lambda z, x: ((z * x).real.relu(), torch.complex(x, x + 1).abs() * 2, torch.polar(x.abs(), x), z.mean() * x),
        lambda: (torch.tensor([1 + 2j, -1j, 0j]), torch.tensor([1.0, -2.0, 3.0])),
    ),
    "8-bit floats": Case(
        lambda x: (x.to(torch.float8_e4m3fn).float(), x.to(torch.float8_e5m2).float(), (x * 2).to(torch.float8_e5m2)),
        tensors([1e4, -1e4, NAN, 0.3, -0.0, 448.0, 464.0, INF]),
    ),
    "random numbers": Case(
        lambda x: (
            torch.rand_like(x), F.dropout(x, 0.5), torch.randn(3), torch.randint(0, 10, (3,)), torch.bernoulli(x * 0.5),
            torch.randperm(5), torch.normal(x, 1.0), x.uniform_(0, 1), F.dropout(x, 0.0),
            torch.rand(2, dtype=torch.float64),
        ),
        lambda: (torch.ones(8),), values=False,
    ),
    "what only looks random": Case(
        lambda x: (F.dropout(x, 0.5, training=False), F.dropout(x, 1.0), F.dropout(x, 0.0), torch.bernoulli(x - x)),
        lambda: (torch.ones(8),),
    ),
}  # fmt: skip


@parametrized(CASES)
def test_low_precision(case: Case, dynamic: bool) -> None:
    check(case, dynamic)


def test_seeds_repeat_and_differ() -> None:
    """One seed gives one stream, two calls do not give the same numbers, about half is dropped."""
    compiled = torch.compile(lambda x: (F.dropout(x, 0.5), torch.rand_like(x)), backend="inductile")
    x = torch.ones(10000)
    torch.manual_seed(7)
    first, second = compiled(x), compiled(x)
    torch.manual_seed(7)
    again = compiled(x)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    dropped, uniform = first
    assert abs((dropped == 0).float().mean().item() - 0.5) < 0.03
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert abs(uniform.mean().item() - 0.5) < 0.02 and uniform.min() >= 0 and uniform.max() < 1
