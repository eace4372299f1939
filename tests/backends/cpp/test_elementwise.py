"""Every scalar op that a kernel may hold, vectorised, against torch, on values that break careless code."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import pytest
import torch

from inductile.backends.c_like.scalars import RULES
from inductile.dialects.scalar import FUNCTIONS

from .programs import compile_together, element_text, run_kernel

inf, nan = float("inf"), float("nan")
# an odd number of values: whole vectors and a ragged rest
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, inf, -inf, nan, 1e-40, 3e38, -3e38, 1e-8, 88.0, -103.0, 0.999,
         1.001, 3.14159, -3.14159, 100.25, -100.25, 1e5, 4e6, 7.0, -7.0, 0.3, -0.3, 20.0, -20.0, 2.0, -2.0, 0.1, 9.5,
         -4.0]  # fmt: skip
INTS = [0, 1, -1, 2, -2, 7, -7, 127, -128, 100, -100, 3, -3, 5, 64, -64, 31, 8, 9]
FLOATS = (torch.float32, torch.float64)
INTEGERS = (torch.int8, torch.int32, torch.int64)

Function = Callable[..., torch.Tensor]


def kernel_text(op: str, source: torch.dtype, target: torch.dtype, operands: int, tail: str = "") -> str:
    """A kernel that maps an op over vectors of n elements. A name of its own: equal ones share no compiler process."""
    element = element_text(source)
    kernel = re.sub(r"\W", "_", f"{op} {element} {source}")
    names = ["a", "b", "c"][:operands]
    buffers = [f"%x{k}: !kernel.buffer<{element}, n>" for k in range(operands)]
    loads = [f"%{name} = kernel.load %x{k}[i0]" for k, name in enumerate(names)]
    body = "\n    ".join([*loads, f"%r = {op} {', '.join(f'%{n}' for n in names)}{tail or f' : {element}'}"])
    return f"""
kernel.func @{kernel}({", ".join(buffers)}, %y: !kernel.buffer<{element_text(target)}, n>) symbols (n) {{
  kernel.for i0 in 0 to n map vector {{
    {body}
    kernel.store %r, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""


def assert_close(
    got: torch.Tensor, want: torch.Tensor, inputs: tuple[torch.Tensor, ...], rtol: float, atol: float = 0.0
) -> None:
    """Equal up to rounding, NaN where NaN is wanted, and with the sign of a zero."""
    assert got.dtype == want.dtype
    close = torch.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    if want.is_floating_point():
        close &= (want != 0) | (got != 0) | (torch.signbit(got) == torch.signbit(want))
    bad = torch.nonzero(~close).flatten().tolist()[:8]
    assert not bad, "; ".join(f"{[x[k].item() for x in inputs]}: {got[k].item()}, not {want[k].item()}" for k in bad)


def pairs(values: list[float] | list[int], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """All pairs of values, as two vectors."""
    x = torch.tensor(values, dtype=dtype)
    left, right = torch.meshgrid(x, x, indexing="ij")
    return left.reshape(-1), right.reshape(-1)


FLOAT_UNARY: dict[str, Function] = {
    "math.absf": torch.abs, "math.acos": torch.acos, "math.acosh": torch.acosh, "math.asin": torch.asin,
    "math.asinh": torch.asinh, "math.atan": torch.atan, "math.atanh": torch.atanh, "math.ceil": torch.ceil,
    "math.cos": torch.cos, "math.cosh": torch.cosh, "math.exp": torch.exp, "math.exp2": torch.exp2,
    "math.expm1": torch.expm1, "math.floor": torch.floor, "math.log": torch.log, "math.log10": torch.log10,
    "math.log1p": torch.log1p, "math.log2": torch.log2, "math.roundeven": torch.round, "math.rsqrt": torch.rsqrt,
    "math.sin": torch.sin, "math.sinh": torch.sinh, "math.sqrt": torch.sqrt, "math.tan": torch.tan,
    "math.tanh": torch.tanh, "math.trunc": torch.trunc, "math.erf": torch.erf, "arith.negf": torch.neg,
    "scalar.erfc": torch.erfc, "scalar.lgamma": torch.lgamma,
    "math.round": lambda x: torch.copysign(torch.floor(x.abs() + 0.5), x),
    "math.cbrt": lambda x: torch.tensor([_cbrt(v) for v in x.tolist()], dtype=x.dtype),
}  # fmt: skip


def _cbrt(x: float) -> float:
    return math.copysign(math.exp(math.log(abs(x)) / 3), x) if x and math.isfinite(x) else x


PREDICATES: dict[str, Function] = {
    "scalar.isnan": torch.isnan, "scalar.isinf": torch.isinf, "scalar.isfinite": torch.isfinite,
    "scalar.signbit": torch.signbit,
}  # fmt: skip
FLOAT_BINARY: dict[str, Function] = {
    "arith.addf": torch.add, "arith.subf": torch.sub, "arith.mulf": torch.mul, "arith.divf": torch.div,
    "arith.maximumf": torch.maximum, "arith.minimumf": torch.minimum, "arith.maxnumf": torch.fmax,
    "arith.minnumf": torch.fmin, "math.atan2": torch.atan2, "math.copysign": torch.copysign, "math.powf": torch.pow,
    "scalar.fmod": torch.fmod, "scalar.remainderf": torch.remainder, "scalar.floordivf": torch.floor_divide,
    "scalar.hypot": torch.hypot, "scalar.nextafter": torch.nextafter,
}  # fmt: skip
FLOAT_COMPARISONS: dict[str, Function] = {
    "oeq": torch.eq, "une": torch.ne, "olt": torch.lt, "ole": torch.le, "ogt": torch.gt, "oge": torch.ge,
    "uno": lambda a, b: a.isnan() | b.isnan(), "ord": lambda a, b: ~(a.isnan() | b.isnan()),
    "one": lambda a, b: (a < b) | (a > b), "ueq": lambda a, b: ~((a < b) | (a > b)),
    "ult": lambda a, b: ~(a >= b), "ule": lambda a, b: ~(a > b), "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
}  # fmt: skip


def _nonzero(function: Function) -> Function:
    """Division where the divisor is not 0; there kernels give what an assert before them reports."""
    return lambda a, b: torch.where(b != 0, function(a, torch.where(b == 0, 1, b)), 0)


def _trunc_div(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(b == -1, -a, torch.div(a, torch.where(b == -1, 1, b), rounding_mode="trunc"))


def _floor_div(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.where(b == -1, -a, torch.div(a, torch.where(b == -1, 1, b), rounding_mode="floor"))


INT_BINARY: dict[str, Function] = {
    "arith.addi": torch.add, "arith.subi": torch.sub, "arith.muli": torch.mul, "arith.andi": torch.bitwise_and,
    "arith.ori": torch.bitwise_or, "arith.xori": torch.bitwise_xor, "arith.maxsi": torch.maximum,
    "arith.minsi": torch.minimum, "arith.divsi": _nonzero(_trunc_div), "arith.floordivsi": _nonzero(_floor_div),
    "arith.remsi": _nonzero(lambda a, b: torch.where(b == -1, 0, torch.fmod(a, torch.where(b == -1, 1, b)))),
    "scalar.floordivi": _nonzero(_floor_div), "scalar.gcd": torch.gcd,
    "scalar.remainderi": _nonzero(lambda a, b: torch.where(b == -1, 0, torch.remainder(a, torch.where(b == -1, 1, b)))),
    "arith.ceildivsi": _nonzero(lambda a, b: _floor_div(a, b) + (_floor_div(a, b) * b != a).to(a.dtype)),
    "arith.shli": torch.bitwise_left_shift, "arith.shrsi": torch.bitwise_right_shift,
}  # fmt: skip
UNSIGNED_BINARY: dict[str, Function] = {
    "arith.divui": _nonzero(lambda a, b: a // b), "arith.remui": _nonzero(lambda a, b: a % b),
    "arith.maxui": torch.maximum, "arith.minui": torch.minimum,
}  # fmt: skip
INT_COMPARISONS: dict[str, Function] = {
    "eq": torch.eq, "ne": torch.ne, "slt": torch.lt, "sle": torch.le, "sgt": torch.gt, "sge": torch.ge,
}  # fmt: skip
UNSIGNED_COMPARISONS: dict[str, Function] = {"ult": torch.lt, "ule": torch.le, "ugt": torch.gt, "uge": torch.ge}


def _by_mpmath(function: Callable[..., Any]) -> Function:
    """A function of mpmath's numbers on tensors, where torch's own double precision is too rough to compare with."""

    def apply(*operands: torch.Tensor) -> torch.Tensor:
        rows = zip(*(x.tolist() for x in operands), strict=True)
        values = torch.tensor([float(function(*map(mpmath.mpf, row))) for row in rows], dtype=torch.float64)
        return torch.where(values == 0, torch.copysign(values, operands[0]), values)  # mpmath has no -0.0

    return apply


def _bessel(name: str) -> Callable[..., Any]:
    function = getattr(mpmath, f"bessel{name[0]}")

    def value(x: Any) -> Any:
        if mpmath.isnan(x) or mpmath.isinf(x) or (name[0] == "y" and x < 0):
            return nan
        return -inf if name[0] == "y" and x == 0 else function(int(name[1]), x)

    return value


SPECIAL: dict[str, Function] = {
    "erfinv": torch.erfinv, "erfcx": torch.special.erfcx, "digamma": torch.digamma, "ndtri": torch.special.ndtri,
    "log_ndtr": torch.special.log_ndtr, "i0": torch.special.i0, "i0e": torch.special.i0e, "i1": torch.special.i1,
    "i1e": torch.special.i1e, **{f"bessel_{name}": _by_mpmath(_bessel(name)) for name in ("j0", "j1", "y0", "y1")},
}  # fmt: skip
SPECIAL_BINARY: dict[str, Function] = {
    "zeta": torch.special.zeta, "igamma": torch.special.gammainc, "igammac": torch.special.gammaincc,
}  # fmt: skip
#: id -> (kernel, inputs, what torch says, relative tolerance)
Case = tuple[str, tuple[torch.Tensor, ...], torch.Tensor, float]


def _cases() -> Iterator[tuple[str, Case]]:
    for dtype in FLOATS:
        yield from _float_cases(dtype)
    for dtype in INTEGERS:
        yield from _int_cases(dtype)


def _float_cases(dtype: torch.dtype) -> Iterator[tuple[str, Case]]:
    x = torch.tensor(EDGES, dtype=dtype)
    a, b = pairs(EDGES, dtype)
    exact = 0.0
    # libmvec promises 4 units in the last place
    close = 5e-7 if dtype == torch.float32 else 1.2e-15
    for op, function in FLOAT_UNARY.items():
        rtol = max(close, 1e-14) if op == "math.cbrt" else close  # its reference goes through exp and log
        yield op, (kernel_text(op, dtype, dtype, 1), (x,), function(x), rtol)
    for op, function in PREDICATES.items():
        yield op, (kernel_text(op, dtype, torch.bool, 1), (x,), function(x), exact)
    for op, function in FLOAT_BINARY.items():
        tolerance = exact if op.startswith("arith") else close * 2
        left, right = a, b
        if op in ("arith.maximumf", "arith.minimumf"):  # of 0.0 and -0.0 eager takes now one, now the other
            left, right = a[(a != 0) | (b != 0)], b[(a != 0) | (b != 0)]
        if op in ("scalar.fmod", "scalar.remainderf"):  # eager's vectorised fmod is wrong for huge quotients
            ordinary = ~((a / b).abs() > 1e6) | (b == 0) | a.isinf()
            left, right = a[ordinary], b[ordinary]
        yield op, (kernel_text(op, dtype, dtype, 2), (left, right), function(left, right), tolerance)
    for name, function in FLOAT_COMPARISONS.items():
        text = kernel_text(f"arith.cmpf {name},", dtype, torch.bool, 2)
        yield f"cmpf {name}", (text, (a, b), function(a, b), exact)
    for name, function in SPECIAL.items():
        rtol, want = 1e-6 if close > 1e-8 else 2e-13, function(x.double()).to(dtype)
        yield name, (kernel_text(f"scalar.{name}", dtype, dtype, 1), (x,), want, rtol)
    ordinary = ~(a.abs() > 1e30) | a.isinf()  # torch.special.zeta(1e38, 2.0) is NaN, not 0
    a, b = a[ordinary], b[ordinary]
    for name, function in SPECIAL_BINARY.items():
        wide = function(a.double(), b.double())
        text = kernel_text(f"scalar.{name}", dtype, dtype, 2)
        rtol = 1e-6 if close > 1e-8 else 1e-11 if name == "zeta" else 2e-9  # torch's igamma is good to 1e-9
        yield name, (text, (a, b), wide.to(dtype), rtol)


def _int_cases(dtype: torch.dtype) -> Iterator[tuple[str, Case]]:
    info = torch.iinfo(dtype)
    a, b = pairs([*INTS, info.min, info.max, info.min + 1], dtype)
    for op, function in INT_BINARY.items():
        yield op, (kernel_text(op, dtype, dtype, 2), (a, b), function(a, b), 0.0)
    for name, function in INT_COMPARISONS.items():
        yield f"cmpi {name}", (kernel_text(f"arith.cmpi {name},", dtype, torch.bool, 2), (a, b), function(a, b), 0.0)
    yield "absi", (kernel_text("math.absi", dtype, dtype, 1), (a,), a.abs(), 0.0)
    if dtype is torch.int8:
        yield from _unsigned_cases()


def _unsigned_cases() -> Iterator[tuple[str, Case]]:
    """ui8 tensors: scalars are i8 and the ops carry the sign."""
    a, b = pairs([0, 1, 2, 7, 127, 128, 200, 255], torch.uint8)
    for op, function in UNSIGNED_BINARY.items():
        yield op, (kernel_text(op, a.dtype, a.dtype, 2, " : i8"), (a, b), function(a, b), 0.0)
    for name, function in UNSIGNED_COMPARISONS.items():
        text = kernel_text(f"arith.cmpi {name},", a.dtype, torch.bool, 2, " : i8")
        yield f"cmpi {name}", (text, (a, b), function(a, b), 0.0)


CASES = [pytest.param(*case, id=f"{name} {case[1][0].dtype}") for name, case in _cases()]


@pytest.fixture(scope="module", autouse=True)
def _compiled(target: str) -> None:
    compile_together(case.values[0] for case in CASES)  # pyright: ignore[reportArgumentType]


@pytest.mark.rotates(2)
@pytest.mark.parametrize(("text", "inputs", "want", "rtol"), CASES)
def test_scalar_op(text: str, inputs: tuple[torch.Tensor, ...], want: torch.Tensor, rtol: float) -> None:
    got = run_kernel(text, *inputs, torch.empty_like(want), want.numel())
    # the tails of igammac, 1 - igamma for a near 0, have no relative precision in torch either
    assert_close(got, want, inputs, rtol, atol=1e-14 if "igamma" in text else 1e-44 if rtol else 0.0)


def test_every_function_of_the_scalar_dialect_has_a_rule() -> None:
    covered = {op.name for op in RULES}
    assert {f"scalar.{function.name}" for function in FUNCTIONS} <= covered


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gelu_of_all_numbers_of_16_bits(dtype: torch.dtype) -> None:
    x = torch.arange(-(1 << 15), 1 << 15).to(torch.int16).view(dtype)
    found = torch.compile(torch.nn.functional.gelu, backend="inductile")(x)
    exact = torch.nn.functional.gelu(x.double())
    assert torch.equal(found.isnan(), exact.isnan())
    known = exact.isfinite() & found.isfinite()
    found, exact, x = found[known].double(), exact[known], x[known].double()
    unit = torch.maximum(exact.abs(), torch.tensor(torch.finfo(dtype).smallest_normal)) * torch.finfo(dtype).eps
    # half a unit of rounding, what the function may add, and what float32 loses of 1 + erf(x) where that is near 0
    assert bool(((found - exact).abs() <= 0.6 * unit + 1.2e-7 * x.abs()).all())
