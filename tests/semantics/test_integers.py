"""Integer division, wrapping, shifts, bools, and which type comes out of mixed operands."""

from __future__ import annotations

import torch

from .catalogue import Case, Cases, check, parametrized, tensors

MIXED = (torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.bool)


def _mixed() -> tuple[torch.Tensor, ...]:
    return tuple(torch.tensor([1, 0, 1]).to(dtype) for dtype in MIXED)


CASES: Cases = {
    "division": Case(
        lambda a, b: (
            torch.div(a, b, rounding_mode="floor"), torch.div(a, b, rounding_mode="trunc"), a // b, a % b,
            torch.fmod(a, b), a / b, torch.remainder(a, 3), a // -2, torch.floor_divide(7, b),
        ),
        tensors([-7, 7, -7, 7, -8], [2, -2, -2, 2, 4]),
    ),
    "division by zero raises": Case(lambda a, b: a // b, tensors([1, 2], [1, 0])),
    "remainder by zero raises": Case(lambda a, b: a % b, tensors([1, 2], [1, 0])),
    "division by zero of no elements": Case(lambda a, b: a[:0] // b[:0], tensors([1, 2], [1, 0])),
    "the smallest integer": Case(
        lambda a, b: (a // b, -a, a.abs(), a - 1, a * a, a / b),
        tensors([-(2**31), 5], [-1, -1], dtype=torch.int32),
    ),
    "wrapping": Case(
        lambda a: (a + a, a * a, a - 200, -a, a + 300, a.sum(), a.prod(), a.cumsum(0), (a * a).int()),
        tensors([200, 3, 255], dtype=torch.uint8),
    ),
    "wrapping sums": Case(
        lambda a: (a.sum(dtype=torch.int8), a.sum(), a.prod(dtype=torch.int8), a.cumsum(0, dtype=torch.int8)),
        tensors([100, 100, 3], dtype=torch.int8),
    ),
    "no sign of zero in an integer": Case(
        lambda x: (
            x.int().float(), x.long().to(x.dtype) * 1.0, 1 / x.short().float(), x.double().int().double(),
            x.double().long().double(), torch.where(x < 5, x.int(), 1).float(), x.half().int().half(), x.int() * -0.0,
        ),
        tensors([0.0, -0.0, -0.3, 0.7, -0.99, -5.7, 9.0] * 9),
    ),
    "bytes of floats and back": Case(
        lambda x: (x.to(torch.uint8).float(), x.to(torch.int8).float(), x.to(torch.int16).double()),
        tensors([300.0, -0.5, 7.9, -129.0, 40000.0] * 9),
    ),
    "floats that no integer holds, and back": Case(
        lambda x: (x.int().float(), x.long().float(), x.double().int().double()),
        tensors([3e9, -3e9, 1e20, -1e20, float("nan"), float("inf")] * 9),
    ),
    "position of a bool raises": Case(lambda b: b.argmax(), tensors([True, False])),
    "shifts": Case(
        lambda a, b: (a << b, a >> b, a << 1, a >> 1, 1 << b.clamp(0, 5)),
        tensors([1, -8, 5, -1, 7], [0, 1, 31, 3, 2], dtype=torch.int32),
    ),
    "bits": Case(
        lambda a, b: (a & b, a | b, a ^ b, ~a, a & 6, torch.gcd(a, b), torch.lcm(a, b)), tensors([12, -7], [10, 3])
    ),
    "powers": Case(
        lambda a, b: (a**b, a**2, a**3, a**0, 2 ** b.abs(), a.float() ** b, torch.pow(a, 5)),
        tensors([-3, 2, 1, -1, 0, 7], [3, 2, 5, 4, 0, 1]),
    ),
    "bool arithmetic": Case(
        lambda b: (
            b + b, b * b, b.sum(), b.cumsum(0), b ^ b, b.mean(dtype=torch.float32), ~b, b < True,
            b.to(torch.uint8) + 200,
            b.max(), b.any(), b.all(), b.max(0), b + 1, b * 2.5, torch.where(b, 1, 0), b.prod(), b / b.logical_or(~b),
        ),
        tensors([True, True, False]),
    ),
    "numbers and tensors": Case(
        lambda i: (
            i + 1.5, i * torch.tensor(2.0, dtype=torch.float64), i.to(torch.uint8) + 300, i / 2,
            torch.true_divide(i, i),
            torch.where(i > 1, 1, 0), torch.where(i > 1, 1.0, i), i.sum(), i.prod(), i.float().sum(dtype=torch.float64),
            torch.ones(2, dtype=torch.float16) * torch.tensor(3.0), torch.arange(3) * 1.0, i + True, i.clamp(0.5, 1.5),
        ),
        tensors([1, 2], dtype=torch.int32),
    ),
    "every pair of types": Case(lambda *x: [a + b for k, a in enumerate(x) for b in x[k:]], _mixed),
    "products of every pair of types": Case(lambda *x: [a * b[0] for a in x for b in x], _mixed),
    "unsigned order": Case(
        lambda a, b: (a < b, torch.maximum(a, b), a.max(), a.min(), a.argmax(), a.sort().values, a.cummax(0), a // b),
        tensors([200, 3, 255], [100, 250, 7], dtype=torch.uint8),
    ),
    "positions of equal extrema": Case(
        lambda a: (a.argmax(), a.argmin(), a.max(1), a.min(0), a.argmax(1, keepdim=True), a.cummin(1)),
        tensors([[3, 1, 3], [1, 3, 3]]),
    ),
    "ranges": Case(
        lambda a: (
            torch.arange(0, 10, 3), torch.arange(5, 0, -2), torch.arange(0.0, 1.0, 0.3), torch.arange(len(a)) + a,
            torch.linspace(0, 1, 5), torch.full_like(a, 3), torch.eye(3, dtype=torch.int64), torch.zeros_like(a).bool(),
        ),
        tensors([4, 5]),
    ),
}  # fmt: skip


@parametrized(CASES)
def test_integers(case: Case, dynamic: bool) -> None:
    check(case, dynamic)


def test_quotients_that_do_not_fit() -> None:
    """The smallest integer by -1: eager's kernels for these two end the process, ours wrap."""
    a, b = torch.tensor([-(2**31), 5], dtype=torch.int32), torch.tensor([-1, -1], dtype=torch.int32)
    compiled = torch.compile(
        lambda a, b: (torch.div(a, b, rounding_mode="trunc"), a % b, torch.fmod(a, b)), backend="inductile"
    )
    quotient, remainder, rest = compiled(a, b)
    assert quotient.tolist() == [-(2**31), -5]
    assert remainder.tolist() == rest.tolist() == [0, 0]
