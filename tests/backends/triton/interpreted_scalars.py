"""Every scalar op against the reference interpreter, over values that trip: NaN, infinities, zeros, wrapping."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from inductile.backends.triton.functions import FLOAT, SIGNED, UNSIGNED
from inductile.backends.triton.scalars import HANDLERS

from .support import Tensor, check

FLOATS = {"f32": torch.float32, "f64": torch.float64}
INTEGERS = {"i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}
ELEMENTS = {
    **FLOATS, **INTEGERS, "f16": torch.float16, "bf16": torch.bfloat16, "ui8": torch.uint8, "i1": torch.bool,
}  # fmt: skip
INF, NAN = math.inf, math.nan


def _floats(dtype: torch.dtype, shift: int = 0) -> Tensor:
    special = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 0.5, -0.5, 2.0, -2.0, 3.75, -3.75, 1e-3, 7.0, -7.0]
    values = torch.cat([torch.tensor(special), torch.linspace(-5, 5, 48)])
    return values.roll(shift).to(dtype)


def _integers(dtype: torch.dtype, shift: int = 0) -> Tensor:
    info = torch.iinfo(dtype)
    special = [0, 1, -1, 2, -2, 7, -7, info.max, info.min, info.max - 1, 3, 5, -5, 100, -100, 42]
    return torch.tensor(special * 4, dtype=dtype).roll(shift)


def _elementwise(lines: str, sources: list[str], result: str) -> str:
    """A kernel over 64 elements, in tiles of 32."""
    count = len(sources)
    buffers = ", ".join(f"%b{k}: !kernel.buffer<{t}, 64>" for k, t in enumerate([*sources, result]))
    loads = "\n".join(f"%x{k} = kernel.load %b{k}[i0]" for k in range(count))
    return f"""kernel.func @op({buffers}) target "cuda:90" {{
  kernel.for i0 in 0 to 64 map grid tile 32 {{
    {loads}
    {lines}
    kernel.store %r, %b{count}[i0]
    kernel.yield
  }}
  kernel.yield
}}"""


def _run(lines: str, sources: list[str], result: str, inputs: list[Tensor], **options: Any) -> Tensor:
    out = torch.zeros(64, dtype=ELEMENTS[result])
    return check(_elementwise(lines, sources, result), [*inputs, out], **options)[-1]


UNARY = sorted(
    op.name
    for op, text in FLOAT.items()
    if "{1" not in str(text) and op.name not in ("scalar.isnan", "scalar.isinf", "scalar.isfinite", "scalar.signbit")
)
BINARY = sorted(op.name for op, text in FLOAT.items() if "{1" in str(text) and "{2" not in str(text))


def _apply(name: str, count: int, type_: str) -> str:
    operands = ", ".join(f"%x{k}" for k in range(count))
    return f"%r = {name} {operands} : {type_}"


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, type_: str) -> None:
    _run(_apply(name, 1, type_), [type_], type_, [_floats(FLOATS[type_])], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite", "signbit"])
def test_predicate(name: str) -> None:
    _run(_apply(f"scalar.{name}", 1, "f32"), ["f32"], "i1", [_floats(torch.float32)])


@pytest.mark.parametrize("type_", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, type_: str) -> None:
    dtype = FLOATS[type_]
    zeros = "num" not in name  # which of two zeros maxnum gives is open
    for shift in (0, 1, 5, 17):
        _run(_apply(name, 2, type_), [type_] * 2, type_, [_floats(dtype), _floats(dtype, shift)], zeros=zeros)


@pytest.mark.parametrize("name", ["arith.addf", "arith.subf", "arith.mulf"])
def test_infix(name: str) -> None:
    for shift in (0, 1, 5):
        inputs = [_floats(torch.float32), _floats(torch.float32, shift)]
        _run(_apply(name, 2, "f32"), ["f32"] * 2, "f32", inputs)


DIVISIONS = ("div", "rem", "floordiv", "remainder")


@pytest.mark.parametrize("type_", INTEGERS)
@pytest.mark.parametrize("name", sorted(op.name for op, text in {**SIGNED, **UNSIGNED}.items() if "{1" in text))
def test_integers(name: str, type_: str) -> None:
    dtype = INTEGERS[type_]
    for shift in (0, 1, 6):
        left, right = _integers(dtype), _integers(dtype, shift)
        if any(word in name for word in DIVISIONS):
            # what is checked, or replaced, before a division
            right = torch.where((right == 0) | (right == -1), 3, right)
        if "sh" in name:
            right = right.abs() % torch.iinfo(dtype).bits
        if "ipowi" in name:
            right = right.abs() % 9
        if "gcd" in name:
            left, right = left // 2, right // 2
        _run(_apply(name, 2, type_), [type_] * 2, type_, [left, right])


@pytest.mark.parametrize("type_", [*INTEGERS, "i1"])
@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
def test_integer_comparison(predicate: str, type_: str) -> None:
    if type_ == "i1":
        if predicate[0] == "s":
            pytest.skip("bools are compared without a sign")
        inputs = [torch.tensor([False, False, True, True] * 16), torch.tensor([False, True] * 32)]
    else:
        inputs = [_integers(INTEGERS[type_]), _integers(INTEGERS[type_], 3)]
    _run(f"%r = arith.cmpi {predicate}, %x0, %x1 : {type_}", [type_] * 2, "i1", inputs)


@pytest.mark.parametrize(
    "predicate", ["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"]
)
def test_float_comparison(predicate: str) -> None:
    inputs = [_floats(torch.float32), _floats(torch.float32, 6)]
    _run(f"%r = arith.cmpf {predicate}, %x0, %x1 : f32", ["f32"] * 2, "i1", inputs)


CASTS = [
    ("f32", "f16"), ("f32", "bf16"), ("f16", "f32"), ("bf16", "f32"), ("f64", "f32"), ("f32", "f64"), ("f32", "i1"),
    ("i32", "f32"), ("i64", "f32"), ("i8", "f32"), ("ui8", "f32"), ("ui8", "i32"), ("i8", "i64"), ("i64", "i8"),
    ("i64", "i1"), ("i1", "f32"), ("i1", "i64"), ("ui8", "i1"), ("i32", "ui8"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), CASTS)
def test_cast(source: str, target: str) -> None:
    dtype = ELEMENTS[source]
    values = _floats(dtype) if dtype.is_floating_point else _integers(torch.int64).to(dtype)
    _run(f"%r = scalar.cast %x0 : {source} to {target}", [source], target, [values])


@pytest.mark.parametrize("target", ["i32", "i64", "i8"])
def test_cast_truncates(target: str) -> None:
    values = torch.linspace(-100.75, 100.75, 64)
    _run(f"%r = scalar.cast %x0 : f32 to {target}", ["f32"], target, [values])


def test_bfloat16_rounds_to_nearest_even() -> None:
    values = torch.tensor([1.00390625, 1.01171875, 1.0039062, 1.0039063, 3.3895314e38, 1e-40, -1.00390625, 0.1] * 8)
    got = _run("%r = scalar.narrow %x0 : f32 to bf16", ["f32"], "bf16", [values])
    assert torch.equal(got.isnan(), values.bfloat16().isnan()) and torch.equal(got[:4], values[:4].bfloat16())


@pytest.mark.parametrize("type_", ["f32", "f64", "f16", "i8", "i64", "i1"])
def test_select_with_constants(type_: str) -> None:
    dtype = ELEMENTS[type_]
    text = {"i1": "true", "i8": "-7 : i8", "i64": "-7 : i64"}.get(type_, f"0.1 : {type_}")
    lines = f"%k = arith.constant {text}\n%r = arith.select %x0, %k, %x1 : {type_}"
    values = torch.arange(64).to(dtype)
    _run(lines, ["i1", type_], type_, [torch.arange(64) % 3 == 0, values])


def test_constants_on_both_sides() -> None:
    lines = """%k = arith.constant 0.1 : f64
    %n = arith.constant 3.0 : f64
    %s = arith.divf %k, %n : f64
    %r = arith.addf %x0, %s : f64"""
    got = _run(lines, ["f64"], "f64", [torch.zeros(64, dtype=torch.float64)], rtol=0, atol=0)
    assert got[0].item() == 0.1 / 3.0


def test_negative_zero_is_a_constant() -> None:
    lines = "%k = arith.constant -0.0 : f32\n%r = math.copysign %x0, %k : f32"
    _run(lines, ["f32"], "f32", [torch.arange(64.0)])


def test_a_mixed_sign_is_the_ops_own() -> None:
    """ui8 values are i8 scalars; each op says how it reads them."""
    lines = """%q = arith.divui %x0, %x1 : i8
    %m = arith.maxui %q, %x0 : i8
    %r = arith.addi %m, %x1 : i8"""
    values = torch.arange(64, dtype=torch.uint8) * 4
    _run(lines, ["ui8", "ui8"], "ui8", [values, torch.full((64,), 3, dtype=torch.uint8)])


def test_philox() -> None:
    lines = "%r = scalar.philox %x0, %x1"
    seeds = torch.tensor([0, 1, -1, 1 << 40] * 16)
    offsets = torch.arange(64) * 3 + (torch.arange(64) % 5 == 0) * (1 << 36)
    got = _run(lines, ["i64", "i64"], "i32", [seeds, offsets])
    assert got.unique().numel() > 60


@pytest.mark.parametrize("half", ["low", "high"])
@pytest.mark.parametrize("less", ["", " less 8"])
def test_halves_of_bytes(half: str, less: str) -> None:
    values = (torch.arange(64) * 4 + torch.arange(64) % 4).to(torch.uint8)
    got = _run(f"%r = scalar.{half}_digits %x0{less}", ["ui8"], "f32", [values])
    assert torch.equal(got, (values & 15 if half == "low" else values >> 4).float() - (8 if less else 0))


def test_every_handler_is_covered() -> None:
    """A new spelling needs a case above."""
    tested = {*UNARY, *BINARY, *(op.name for op in (*SIGNED, *UNSIGNED))}
    rest = {
        "scalar.isnan", "scalar.isinf", "scalar.isfinite", "scalar.signbit", "arith.addf", "arith.subf", "arith.mulf",
        "arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori", "arith.shli",
        "arith.constant", "arith.cmpf", "arith.cmpi", "arith.select", "scalar.cast", "scalar.widen", "scalar.narrow",
        "scalar.philox", "scalar.low_digits", "scalar.high_digits", "kernel.index", "math.fma", "math.absi",
    }  # fmt: skip
    assert {op.name for op in HANDLERS} <= tested | rest


@pytest.mark.parametrize("name", ["addi", "subi", "muli", "andi", "ori", "xori"])
@pytest.mark.parametrize("type_", ["i8", "i64"])
def test_integer_infix(name: str, type_: str) -> None:
    dtype = INTEGERS[type_]
    _run(_apply(f"arith.{name}", 2, type_), [type_] * 2, type_, [_integers(dtype), _integers(dtype, 3)])


def test_absolute_value_and_fma() -> None:
    _run(_apply("math.absi", 1, "i32"), ["i32"], "i32", [_integers(torch.int32)])
    inputs = [torch.linspace(-2, 2, 64), torch.linspace(3, 1, 64), torch.linspace(0, 1, 64)]
    _run(_apply("math.fma", 3, "f32"), ["f32"] * 3, "f32", inputs)
