"""Each scalar op against torch on float64, or against Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import gcd

import pytest
import torch

from inductile.backends.reference import differences
from inductile.backends.reference.scalars import CASTS, DIVISION, EXTENDED, FLOAT, INTEGER

from .helpers import elementwise

inf, nan = float("inf"), float("nan")
NUMBERS = [nan, inf, -inf, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 0.3, -0.7, 3.0, 7.25, 1e-40, 30.0]
PAIRS = list(itertools.product(NUMBERS, NUMBERS))
S = torch.special

UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "arith.negf": lambda x: -x,
    "math.absf": lambda x: x.abs(),
    "math.acos": lambda x: x.acos(),
    "math.acosh": lambda x: x.acosh(),
    "math.asin": lambda x: x.asin(),
    "math.asinh": lambda x: x.asinh(),
    "math.atan": lambda x: x.atan(),
    "math.atanh": lambda x: x.atanh(),
    "math.cbrt": lambda x: torch.copysign(x.abs() ** (1 / 3), x),
    "math.ceil": lambda x: x.ceil(),
    "math.cos": lambda x: x.cos(),
    "math.cosh": lambda x: x.cosh(),
    "math.erf": lambda x: x.erf(),
    "math.exp": lambda x: x.exp(),
    "math.exp2": lambda x: 2.0**x,
    "math.expm1": lambda x: x.expm1(),
    "math.floor": lambda x: x.floor(),
    "math.log": lambda x: x.log(),
    "math.log10": lambda x: x.log10(),
    "math.log1p": lambda x: x.log1p(),
    "math.log2": lambda x: x.log2(),
    "math.round": lambda x: torch.copysign((x.abs() + 0.5).floor(), x),
    "math.roundeven": lambda x: x.round(),
    "math.rsqrt": lambda x: 1 / x.sqrt(),
    "math.sin": lambda x: x.sin(),
    "math.sinh": lambda x: x.sinh(),
    "math.sqrt": lambda x: x.sqrt(),
    "math.tan": lambda x: x.tan(),
    "math.tanh": lambda x: x.tanh(),
    "math.trunc": lambda x: x.trunc(),
    "scalar.erfc": S.erfc,
    "scalar.erfinv": S.erfinv,
    "scalar.erfcx": S.erfcx,
    "scalar.lgamma": torch.lgamma,
    "scalar.digamma": S.digamma,
    "scalar.i0": S.i0,
    "scalar.i0e": S.i0e,
    "scalar.i1": S.i1,
    "scalar.i1e": S.i1e,
    "scalar.ndtri": S.ndtri,
    "scalar.log_ndtr": S.log_ndtr,
    "scalar.bessel_j0": S.bessel_j0,
    "scalar.bessel_j1": S.bessel_j1,
    "scalar.bessel_y0": S.bessel_y0,
    "scalar.bessel_y1": S.bessel_y1,
}
PREDICATES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "scalar.isnan": lambda x: x != x,
    "scalar.isinf": lambda x: x.abs() == inf,
    "scalar.isfinite": lambda x: x.abs() < inf,
    "scalar.signbit": lambda x: torch.copysign(torch.ones_like(x), x) < 0,
}
BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "arith.addf": lambda x, y: x + y,
    "arith.subf": lambda x, y: x - y,
    "arith.mulf": lambda x, y: x * y,
    "arith.divf": lambda x, y: x / y,
    "arith.maximumf": torch.maximum,
    "arith.minimumf": torch.minimum,
    "arith.maxnumf": torch.fmax,
    "arith.minnumf": torch.fmin,
    "math.atan2": torch.atan2,
    "math.copysign": torch.copysign,
    "math.powf": lambda x, y: x**y,
    "scalar.fmod": torch.fmod,
    "scalar.remainderf": lambda x, y: x % y,
    "scalar.floordivf": lambda x, y: x // y,
    "scalar.hypot": torch.hypot,
    "scalar.zeta": S.zeta,
    "scalar.igamma": S.gammainc,
    "scalar.igammac": S.gammaincc,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("name", UNARY)
def test_float_unary(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(NUMBERS).to(dtype)
    element = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16"}[dtype]
    got = elementwise(f"%r = {name} %a : {element}", element, x)
    assert not differences(UNARY[name](x.double()).to(dtype), got)


@pytest.mark.parametrize("name", PREDICATES)
def test_float_predicates(name: str) -> None:
    x = torch.tensor(NUMBERS)
    assert torch.equal(elementwise(f"%r = {name} %a : f32", "i1", x), PREDICATES[name](x))


@pytest.mark.parametrize("name", BINARY)
def test_float_binary(name: str) -> None:
    # torch's float32 igamma takes a subnormal first argument for 0
    pairs = [p for p in PAIRS if p[0] != 1e-40] if "igamma" in name else PAIRS
    x, y = torch.tensor(pairs).unbind(1)
    got = elementwise(f"%r = {name} %a, %b : f32", "f32", x.contiguous(), y.contiguous())
    assert not differences(BINARY[name](x.double(), y.double()).float(), got)


def test_fma_rounds_once() -> None:
    # 1 + 2**-52 squared is 1 + 2**-51 + 2**-104; the last term decides how the sum rounds
    for dtype, e in ((torch.float32, 23), (torch.float64, 52)):
        x = torch.tensor([1 + 2.0**-e, 3.0, inf, 2.0], dtype=dtype)
        z = torch.tensor([-(1 + 2.0 ** (1 - e)), 1.0, 0.0, nan], dtype=dtype)
        element = "f32" if dtype == torch.float32 else "f64"
        got = elementwise(f"%r = math.fma %a, %a, %b : {element}", element, x, z)
        assert not differences(torch.tensor([2.0 ** (-2 * e), 10.0, inf, nan], dtype=dtype), got)


def test_fpowi() -> None:
    x, n = torch.tensor([2.0, -3.0, 0.5, 0.0]), torch.tensor([10, 3, -2, 0], dtype=torch.int32)
    got = elementwise("%r = math.fpowi %a, %b : f32, i32", "f32", x, n)
    assert got.tolist() == [1024.0, -27.0, 4.0, 1.0]


def test_nextafter_moves_by_the_type_also_when_wide() -> None:
    x, y = torch.tensor([1.0, 0.0, nan]), torch.tensor([2.0, -1.0, 1.0])
    for wide in (False, True):
        got = elementwise("%r = scalar.nextafter %a, %b : f32", "f32", x, y, wide=wide)
        assert torch.equal(got[:2], torch.nextafter(x, y)[:2]) and bool(got[2].isnan())


@pytest.mark.parametrize("predicate",
    ["false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"],
)  # fmt: skip
def test_cmpf(predicate: str) -> None:
    def expected(x: float, y: float) -> bool:
        unordered = x != x or y != y
        if predicate in ("false", "true"):
            return predicate == "true"
        if predicate in ("ord", "uno"):
            return unordered == (predicate == "uno")
        if unordered:
            return predicate[0] == "u"
        return {"eq": x == y, "gt": x > y, "ge": x >= y, "lt": x < y, "le": x <= y, "ne": x != y}[predicate[1:]]

    x, y = torch.tensor(PAIRS).unbind(1)
    got = elementwise(f"%r = arith.cmpf {predicate}, %a, %b : f32", "i1", x.contiguous(), y.contiguous())
    assert got.tolist() == [expected(float(a), float(b)) for a, b in zip(x, y, strict=True)]


def wrap(value: int, bits: int) -> int:
    """The signed number with the lowest bits of a value."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


#: op -> (result from signed operands, unsigned operands, bits)
INTEGERS: dict[str, Callable[[int, int, int, int, int], int]] = {
    "arith.addi": lambda x, y, u, v, n: x + y,
    "arith.subi": lambda x, y, u, v, n: x - y,
    "arith.muli": lambda x, y, u, v, n: x * y,
    "arith.divsi": lambda x, y, u, v, n: truncated(x, y),
    "arith.remsi": lambda x, y, u, v, n: x - y * truncated(x, y),
    "arith.floordivsi": lambda x, y, u, v, n: x // y,
    "arith.ceildivsi": lambda x, y, u, v, n: -(-x // y),
    "arith.divui": lambda x, y, u, v, n: u // v,
    "arith.remui": lambda x, y, u, v, n: u % v,
    "arith.ceildivui": lambda x, y, u, v, n: -(-u // v),
    "arith.minsi": lambda x, y, u, v, n: min(x, y),
    "arith.maxsi": lambda x, y, u, v, n: max(x, y),
    "arith.minui": lambda x, y, u, v, n: min(u, v),
    "arith.maxui": lambda x, y, u, v, n: max(u, v),
    "arith.andi": lambda x, y, u, v, n: x & y,
    "arith.ori": lambda x, y, u, v, n: x | y,
    "arith.xori": lambda x, y, u, v, n: x ^ y,
    "scalar.floordivi": lambda x, y, u, v, n: x // y,
    "scalar.remainderi": lambda x, y, u, v, n: x % y,
    "scalar.gcd": lambda x, y, u, v, n: gcd(x, y),
}
SHIFTS: dict[str, Callable[[int, int, int, int, int], int]] = {
    "arith.shli": lambda x, y, u, v, n: x << y,
    "arith.shrsi": lambda x, y, u, v, n: x >> y,
    "arith.shrui": lambda x, y, u, v, n: u >> y,
}
DIVISIONS = {name for name in INTEGERS if "div" in name or "rem" in name}
WIDTHS = {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}


def samples(bits: int) -> list[int]:
    top = 1 << (bits - 1)
    return [0, 1, -1, 2, 3, -3, 7, 100, -100, top - 1, -top, -top + 1, top // 3, -top // 5]


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("name", INTEGERS | SHIFTS)
def test_integer_binary(name: str, bits: int) -> None:
    pairs = list(itertools.product(samples(bits), samples(bits)))
    if name in DIVISIONS:
        pairs = [(x, y) for x, y in pairs if y]
    if name == "scalar.gcd":  # the gcd of the smallest integer may not be representable
        pairs = [(x, y) for x, y in pairs if min(x, y) > -(1 << (bits - 1))]
    if name in SHIFTS:
        pairs = [(x, y) for x in samples(bits) for y in range(bits)]
    x, y = torch.tensor(pairs, dtype=WIDTHS[bits]).unbind(1)
    got = elementwise(f"%r = {name} %a, %b : i{bits}", f"i{bits}", x.contiguous(), y.contiguous())
    mask = (1 << bits) - 1
    meaning = (INTEGERS | SHIFTS)[name]
    assert got.tolist() == [wrap(meaning(a, b, a & mask, b & mask, bits), bits) for a, b in pairs]


@pytest.mark.parametrize("name", sorted(INTEGERS.keys() - DIVISIONS - {"scalar.gcd"}))
def test_i1_is_an_integer_of_one_bit(name: str) -> None:
    pairs = list(itertools.product([False, True], repeat=2))
    x, y = torch.tensor(pairs).unbind(1)
    got = elementwise(f"%r = {name} %a, %b : i1", "i1", x.contiguous(), y.contiguous())
    assert got.tolist() == [bool(INTEGERS[name](-a, -b, +a, +b, 1) & 1) for a, b in pairs]


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("name", ["math.absi", "math.ctpop", "math.ctlz", "math.cttz"])
def test_integer_unary(name: str, bits: int) -> None:
    x = torch.tensor(samples(bits), dtype=WIDTHS[bits])
    got = elementwise(f"%r = {name} %a : i{bits}", f"i{bits}", x)
    unsigned = [v & ((1 << bits) - 1) for v in samples(bits)]
    expected = {
        "math.absi": [wrap(abs(v), bits) for v in samples(bits)],
        "math.ctpop": [u.bit_count() for u in unsigned],
        "math.ctlz": [bits - u.bit_length() for u in unsigned],
        "math.cttz": [bits if not u else (u & -u).bit_length() - 1 for u in unsigned],
    }
    assert got.tolist() == expected[name]


def test_ipowi() -> None:
    x, y = torch.tensor([3, -2, 10, 7]), torch.tensor([4, 3, 0, 1])
    assert elementwise("%r = math.ipowi %a, %b : i64", "i64", x, y).tolist() == [81, -8, 1, 7]


@pytest.mark.parametrize("bits", WIDTHS)
def test_extended(bits: int) -> None:
    pairs = list(itertools.product(samples(bits), samples(bits)))
    x, y = (v.contiguous() for v in torch.tensor(pairs, dtype=WIDTHS[bits]).unbind(1))
    mask = (1 << bits) - 1

    def upper(op: str) -> list[int]:
        return elementwise(f"%low, %r = {op} %a, %b : i{bits}", f"i{bits}", x, y).tolist()

    unsigned = [(a & mask, b & mask) for a, b in pairs]
    assert upper("arith.mului_extended") == [wrap(a * b >> bits, bits) for a, b in unsigned]
    assert upper("arith.mulsi_extended") == [wrap(a * b >> bits, bits) for a, b in pairs]
    overflow = elementwise(f"%low, %r = arith.addui_extended %a, %b : i{bits}, i1", "i1", x, y)
    assert overflow.tolist() == [a + b > mask for a, b in unsigned]


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
def test_cmpi(predicate: str) -> None:
    order = {"eq": "__eq__", "ne": "__ne__"}.get(predicate, f"__{predicate[1:]}__")
    for bits, dtype in WIDTHS.items():
        pairs = list(itertools.product(samples(bits), samples(bits)))
        x, y = (v.contiguous() for v in torch.tensor(pairs, dtype=dtype).unbind(1))
        got = elementwise(f"%r = arith.cmpi {predicate}, %a, %b : i{bits}", "i1", x, y)
        mask = (1 << bits) - 1 if predicate[0] == "u" else -1
        assert got.tolist() == [getattr(a & mask, order)(b & mask) for a, b in pairs]
    flags = torch.tensor([True, False])
    got = elementwise(f"%r = arith.cmpi {predicate}, %a, %b : i1", "i1", flags, ~flags)
    sign = 1 if predicate[0] == "u" else -1
    assert got.tolist() == [getattr(sign, order)(0), getattr(0, order)(sign)]


def test_select() -> None:
    m, x, y = torch.tensor([True, False]), torch.tensor([nan, nan]), torch.tensor([1.0, 2.0])
    got = elementwise("%r = arith.select %a, %b, %c : f32", "f32", m, x, y)
    assert bool(got[0].isnan()) and got[1] == 2.0


CAST_DTYPES = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i1": torch.bool,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "ui8": torch.uint8,
    "ui16": torch.uint16, "ui32": torch.uint32,
}  # fmt: skip


@pytest.mark.parametrize("target", CAST_DTYPES)
@pytest.mark.parametrize("source", CAST_DTYPES)
def test_scalar_cast_is_torch_to(source: str, target: str) -> None:
    x = torch.tensor([0.0, 1.0, 2.75, 100.0, 77.0]).to(CAST_DTYPES[source])
    got = elementwise(f"%r = scalar.cast %a : {source} to {target}", target, x)
    assert torch.equal(got, x.to(CAST_DTYPES[target])) and got.dtype == CAST_DTYPES[target]


def test_casts_wrap_and_truncate() -> None:
    x = torch.tensor([-1.5, 2.9, 300.0, -0.5, nan])
    assert elementwise("%r = scalar.cast %a : f32 to ui8", "ui8", x[:4]).tolist() == [255, 2, 44, 0]
    assert elementwise("%r = scalar.cast %a : f32 to i1", "i1", x).tolist() == [True] * 5
    n = torch.tensor([300, -1])
    assert elementwise("%r = scalar.cast %a : i64 to i8", "i8", n).tolist() == [44, -1]


@pytest.mark.parametrize(
    "op,source,target,expected",
    [
        ("arith.sitofp %a : i8 to f32", [-1, 5], "f32", [-1.0, 5.0]),
        ("arith.uitofp %a : i8 to f32", [-1, 5], "f32", [255.0, 5.0]),
        ("arith.extsi %a : i8 to i32", [-1, 5], "i32", [-1, 5]),
        ("arith.extui %a : i8 to i32", [-1, 5], "i32", [255, 5]),
        ("arith.trunci %a : i8 to i1", [-1, 4], "i1", [True, False]),
    ],
)
def test_arith_integer_casts(op: str, source: list[int], target: str, expected: list[float]) -> None:
    x = torch.tensor(source, dtype=torch.int8)
    assert elementwise(f"%r = {op}", target, x).tolist() == expected


@pytest.mark.parametrize(
    "op,target,expected",
    [
        ("arith.sitofp %a : i1 to f32", "f32", [-1.0, 0.0]),
        ("arith.uitofp %a : i1 to f32", "f32", [1.0, 0.0]),
        ("arith.extsi %a : i1 to i32", "i32", [-1, 0]),
        ("arith.extui %a : i1 to i32", "i32", [1, 0]),
        ("scalar.cast %a : i1 to f32", "f32", [1.0, 0.0]),
    ],
)
def test_casts_of_i1(op: str, target: str, expected: list[float]) -> None:
    assert elementwise(f"%r = {op}", target, torch.tensor([True, False])).tolist() == expected


def test_arith_float_casts() -> None:
    x = torch.tensor([2.75, -3.5])
    assert elementwise("%r = arith.fptosi %a : f32 to i8", "i8", x).tolist() == [2, -3]
    assert elementwise("%r = arith.fptoui %a : f32 to i8", "ui8", x[:1] + 200).tolist() == [202]
    assert elementwise("%r = arith.truncf %a : f32 to f16", "f16", x / 3).tolist() == (x / 3).half().tolist()
    assert elementwise("%r = arith.extf %a : f16 to f32", "f32", x.half()).tolist() == x.tolist()
    for wide in (False, True):
        bits = elementwise("%r = arith.bitcast %a : f32 to i32", "i32", x, wide=wide)
        assert torch.equal(bits, x.view(torch.int32))
        back = elementwise("%r = arith.bitcast %a : i32 to f32", "f32", bits, wide=wide)
        assert torch.equal(back, x)


def test_index_casts_and_large_unsigned() -> None:
    n = torch.tensor([-1, 2**40])
    body = "%i = arith.index_cast %a : i64 to index\n%r = arith.index_cast %i : index to i64"
    assert elementwise(body, "i64", n).tolist() == n.tolist()
    assert elementwise("%r = arith.uitofp %a : i64 to f64", "f64", n).tolist() == [2.0**64, 2.0**40]


def test_float16_rounds_after_each_op() -> None:
    x, y = torch.tensor([2048.0], dtype=torch.float16), torch.tensor([1.0], dtype=torch.float16)
    body = "%s = arith.addf %a, %b : f16\n%r = arith.subf %s, %a : f16"
    assert elementwise(body, "f16", x, y).item() == 0.0
    assert elementwise(body, "f16", x, y, wide=True).item() == 1.0


def test_wide_keeps_the_casts_of_the_program_only() -> None:
    x = torch.tensor([1.0 + 2**-20])
    written = "%h = scalar.cast %a : f32 to f16\n%r = scalar.widen %h : f16 to f32"
    inserted = "%h = scalar.narrow %a : f32 to f16\n%r = scalar.widen %h : f16 to f32"
    assert elementwise(written, "f32", x, wide=True).item() == 1.0
    assert elementwise(inserted, "f32", x, wide=True).item() == x.item()
    assert elementwise(inserted, "f32", x).item() == 1.0


def test_constants() -> None:
    x = torch.zeros(1)
    body = "%i = arith.constant 200 : i8\n%r = arith.uitofp %i : i8 to f32"
    assert elementwise(body, "f32", x).item() == 200.0
    assert elementwise("%r = arith.constant true", "i1", x).item() is True
    assert elementwise("%r = arith.constant 0.1 : f32", "f32", x).item() == torch.tensor(0.1).item()


def test_philox_known_answer() -> None:
    # Random123, kat_vectors: philox4x32 10, counter and key 0
    seed, offset = torch.zeros(4, dtype=torch.int64), torch.arange(4)
    words = elementwise("%r = scalar.philox %a, %b", "i32", seed, offset)
    assert [w & 0xFFFFFFFF for w in words.tolist()] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    # counter (ffffffff, ffffffff, 0, 0) is out of reach of a 64-bit draw number; a block and a key above 32 bits
    high = elementwise("%r = scalar.philox %a, %b", "i32", seed + (5 << 32), offset + (4 << 33))
    assert high.tolist() != words.tolist()


def test_every_op_of_the_tables_is_tested() -> None:
    tested = {*UNARY, *PREDICATES, *BINARY, *INTEGERS, *SHIFTS, "math.fma", "math.ipowi", "scalar.nextafter"}
    tested |= {"math.absi", "math.ctpop", "math.ctlz", "math.cttz"}
    assert {op.name for table in (FLOAT, INTEGER, DIVISION) for op in table} == tested
    assert len(EXTENDED) == 3 and len(CASTS) == 14
