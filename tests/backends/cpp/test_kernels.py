"""Whole kernels by hand, compiled and run, against torch: loops, mappings, reductions, memory."""

from __future__ import annotations

import pytest
import torch

from .programs import emit, run_kernel

torch.manual_seed(0)
pytestmark = pytest.mark.usefixtures("target")


def softmax(rows: str = "s0", columns: str = "4096", reduce: str = "vector", local: str = "4096") -> str:
    return f"""
kernel.func @softmax(%x: !kernel.buffer<f32, {columns}*{rows}>, %y: !kernel.buffer<f32, {columns}*{rows}>)
    symbols (s0, s1) {{
  kernel.for i0 in 0 to {rows} map parallel {{
    %row = kernel.local : !kernel.buffer<f32, {local}, local>
    %m = kernel.reduce max r0 in 0 to {columns} map {reduce} {{
      %v = kernel.load %x[{columns}*i0 + r0]
      kernel.yield %v
    }}
    %s = kernel.reduce sum r1 in 0 to {columns} map {reduce} {{
      %v = kernel.load %x[{columns}*i0 + r1]
      %d = arith.subf %v, %m : f32
      %e = math.exp %d : f32
      kernel.store %e, %row[r1]
      kernel.yield %e
    }}
    kernel.for i1 in 0 to {columns} map vector {{
      %e = kernel.load %row[i1]
      %q = arith.divf %e, %s : f32
      kernel.store %q, %y[{columns}*i0 + i1]
      kernel.yield
    }}
    kernel.yield
  }}
  kernel.yield
}}"""


@pytest.mark.parametrize("reduce", ["vector", "serial", "vector tile 64", "unroll"])
@pytest.mark.parametrize("width", [1, 3, 40, 1000])
def test_softmax(reduce: str, width: int) -> None:
    x = torch.randn(7, width)
    y = run_kernel(softmax(columns=str(width), local=str(width), reduce=reduce), x, torch.empty_like(x), 7, width)
    torch.testing.assert_close(y.view_as(x), x.softmax(-1))


def test_softmax_of_dynamic_size_needs_a_row_on_the_heap(target: str) -> None:
    x = torch.randn(9, 30001)
    x[3, 5] = float("nan")
    x[4] = float("-inf")
    text = softmax(columns="s1", local="s1")
    assert ("Scratch<float>" if target == "cpp" else "scratch(s1, sizeof(float))") in emit(text).text
    y = run_kernel(text, x, torch.empty_like(x), 9, 30001)
    torch.testing.assert_close(y.view_as(x), x.softmax(-1), equal_nan=True)


LAYER_NORM = """
kernel.func @layer_norm(%x: !kernel.buffer<f32, 770*s0>, %w: !kernel.buffer<f32, 770>, %b: !kernel.buffer<f32, 770>,
                        %y: !kernel.buffer<f32, 770*s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 map parallel tile 2 {
    %one = arith.constant 1.0 : f32
    %zero = arith.constant 0.0 : f32
    %n = arith.constant 770.0 : f32
    %eps = arith.constant 1.0e-5 : f32
    %mean, %m2, %count = kernel.reduce welford r0 in 0 to 770 map vector {
      %v = kernel.load %x[770*i0 + r0]
      kernel.yield %v, %zero, %one
    }
    %var = arith.divf %m2, %n : f32
    %stable = arith.addf %var, %eps : f32
    %scale = math.rsqrt %stable : f32
    kernel.for i1 in 0 to 770 map vector {
      %v = kernel.load %x[770*i0 + i1]
      %w1 = kernel.load %w[i1]
      %b1 = kernel.load %b[i1]
      %d = arith.subf %v, %mean : f32
      %q = arith.mulf %d, %scale : f32
      %r = arith.mulf %q, %w1 : f32
      %t = arith.addf %r, %b1 : f32
      kernel.store %t, %y[770*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}"""


def test_layer_norm_by_welford(target: str) -> None:
    mean = 100 if target == "cpp" else 10  # one accumulator instead of 32 rounds more often
    x, w, b = torch.randn(5, 770) * 3 + mean, torch.randn(770), torch.randn(770)
    y = run_kernel(LAYER_NORM, x, w, b, torch.empty_like(x), 5)
    want = torch.nn.functional.layer_norm(x, (770,), w, b)
    torch.testing.assert_close(y.view_as(x), want, rtol=1e-4, atol=2e-5)


GELU = """
kernel.func @gelu(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, n>) symbols (n) {
  kernel.for i0 in 0 to n map parallel {
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.70710678 : f32
    %v = kernel.load %x[i0]
    %s = arith.mulf %v, %root : f32
    %e = math.erf %s : f32
    %p = arith.addf %e, %one : f32
    %h = arith.mulf %v, %half : f32
    %r = arith.mulf %h, %p : f32
    kernel.store %r, %y[i0]
    kernel.yield
  }
  kernel.yield
}"""


@pytest.mark.parametrize("n", [0, 1, 17, 100003])
def test_gelu(n: int) -> None:
    x = torch.randn(n) * 3
    y = run_kernel(GELU, x, torch.empty_like(x), n)
    torch.testing.assert_close(y, torch.nn.functional.gelu(x))


TRANSPOSE_ADD = """
kernel.func @add(%x: !kernel.buffer<f32, 33*n>, %z: !kernel.buffer<f32, 33*n>, %y: !kernel.buffer<f32, 33*n>)
    symbols (n) {
  kernel.for i2 in 0 to (n + 31) floordiv 32 map parallel {
    kernel.for i1 in 0 to 33 {
      kernel.for i0 in 32*i2 to min(n, 32*i2 + 32) map vector tile 16 {
        %a = kernel.load %x[33*i0 + i1]
        %b = kernel.load %z[n*i1 + i0]
        %c = arith.addf %a, %b : f32
        kernel.store %c, %y[n*i1 + i0]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}"""


def test_transposed_operand_in_blocks() -> None:
    x, z = torch.randn(70, 33), torch.randn(33, 70)
    y = run_kernel(TRANSPOSE_ADD, x, z, torch.empty_like(z), 70)
    assert torch.equal(y.view_as(z), x.t() + z)


def column_sum(tile: int, row: str = "") -> str:
    return f"""
kernel.func @columns(%x: !kernel.buffer<f32, m*n>, %y: !kernel.buffer<f32, n>) symbols (m, n) {{
  kernel.for i0 in 0 to n map vector tile {tile} {{
    %two = arith.constant 2.0 : f32
    %k = kernel.index i0
    %first = kernel.load %x[i0]
    %s, %p = kernel.reduce [sum, max] r0 in 0 to m {{
      %v = kernel.load %x[n*r0 + d0] (d0 = %k)
      %w = arith.mulf %v, %two : f32
      kernel.yield %w, %v
    }}
    %a = arith.addf %s, %p : f32
    %b = arith.subf %a, %first : f32
    kernel.store %b, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""


@pytest.mark.parametrize("n", [1, 16, 64, 130])
def test_column_sums_in_lanes(n: int, target: str) -> None:
    x = torch.randn(50, n)
    text = column_sum(64)
    assert ("for_tiles<64>" in emit(text).text) == (target == "cpp")
    y = run_kernel(text, x, torch.empty(n), 50, n)
    torch.testing.assert_close(y, 2 * x.sum(0) + x.amax(0) - x[0])


POOL = """
kernel.func @pool(%x: !kernel.buffer<f32, 12*n>, %y: !kernel.buffer<f32, 6*n>) symbols (n) {
  kernel.for i0 in 0 to n map parallel {
    kernel.for i1 in 0 to 6 map vector tile 8 {
      %row = kernel.local : !kernel.buffer<f32, 2, local>
      kernel.for i2 in 0 to 2 {
        %v = kernel.load %x[12*i0 + 2*i1 + i2]
        %a = math.absf %v : f32
        kernel.store %a, %row[i2]
        kernel.yield
      }
      %m = kernel.reduce max r0 in 0 to 2 map unroll {
        %v = kernel.load %row[1 - r0]
        kernel.yield %v
      }
      kernel.store %m, %y[6*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}"""


def test_locals_are_one_for_each_lane() -> None:
    x = torch.randn(5, 12)
    y = run_kernel(POOL, x, torch.empty(5, 6), 5)
    assert torch.equal(y.view(5, 6), x.abs().view(5, 6, 2).amax(-1))


GATHER = """
kernel.func @gather(%w: !kernel.buffer<bf16, 8*m>, %i: !kernel.buffer<i64, n>, %y: !kernel.buffer<bf16, 8*n>)
    symbols (m, n) errors ["RuntimeError: never", "IndexError: index out of range in self"] {
  kernel.for i0 in 0 to n map parallel {
    %size = kernel.index m
    %zero = arith.constant 0 : i64
    %none = arith.constant 0.0 : bf16
    kernel.for i1 in 0 to 8 map vector {
      %j = kernel.load %i[i0]
      %low = arith.cmpi sge, %j, %zero : i64
      %high = arith.cmpi slt, %j, %size : i64
      %ok = arith.andi %low, %high : i1
      kernel.assert %ok, 2
      %v = kernel.load %w[8*d0 + i1] (d0 = %j) if %ok else %none
      kernel.store %v, %y[8*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}"""


def test_gather_and_its_error() -> None:
    w, i = torch.randn(10, 8).bfloat16(), torch.randint(0, 10, (3000,))
    y = run_kernel(GATHER, w, i, torch.empty(3000, 8, dtype=torch.bfloat16), 10, 3000)
    assert torch.equal(y.view(3000, 8), w[i])
    i[1777] = 10
    with pytest.raises(IndexError, match=r"^index out of range in self$"):
        run_kernel(GATHER, w, i, torch.empty(3000, 8, dtype=torch.bfloat16), 10, 3000)


def test_the_first_error_of_the_program_wins() -> None:
    text = """
kernel.func @k(%x: !kernel.buffer<f32, n>) symbols (n) errors ["ValueError: first", "IndexError: second: late"] {
  kernel.for i0 in 0 to n map parallel {
    %v = kernel.load %x[i0]
    %one = arith.constant 1.0 : f32
    %late = arith.cmpf olt, %v, %one : f32
    kernel.assert %late, 2
    %nan = scalar.isnan %v : f32
    %true = arith.constant true
    %ok = arith.xori %nan, %true : i1
    kernel.assert %ok, 1
    kernel.yield
  }
  kernel.yield
}"""
    x = torch.zeros(100000)
    run_kernel(text, x, 100000)
    x[7] = 2.0
    with pytest.raises(IndexError, match=r"^second: late$"):
        run_kernel(text, x, 100000)
    x[99999] = float("nan")
    with pytest.raises(ValueError, match=r"^first$"):
        run_kernel(text, x, 100000)


def arg(kind: str, mapping: str, element: str = "f32") -> str:
    return f"""
kernel.func @arg(%x: !kernel.buffer<{element}, n>, %i: !kernel.buffer<i64, 1>) symbols (n) {{
  %v, %j = kernel.reduce {kind} r0 in 0 to n map {mapping} {{
    %a = kernel.load %x[r0]
    %k = kernel.index r0
    kernel.yield %a, %k
  }}
  kernel.store %j, %i[0]
  kernel.yield
}}"""


@pytest.mark.parametrize("mapping", ["serial", "vector"])
@pytest.mark.parametrize("kind", ["argmax", "argmin"])
def test_arg_reductions_prefer_nan_and_the_first(kind: str, mapping: str) -> None:
    best = float("inf") if kind == "argmax" else float("-inf")
    for fill in (None, float("nan"), best, -best):
        x = torch.randn(1001)
        if fill is not None:
            x[torch.tensor([999, 130, 500])] = fill
        got = run_kernel(arg(kind, mapping), x, torch.empty(1, dtype=torch.int64), 1001)
        assert got.item() == getattr(x, kind)().item()
    integers = torch.randint(-5, 5, (1001,))
    got = run_kernel(arg(kind, mapping, "i64"), integers, torch.empty(1, dtype=torch.int64), 1001)
    assert got.item() == int((integers == getattr(integers, kind[3:])()).nonzero()[0])


def reduction(monoid: str, element: str, mapping: str) -> str:
    return f"""
kernel.func @r(%x: !kernel.buffer<{element}, n>, %y: !kernel.buffer<{element}, 1>) symbols (n) {{
  %v = kernel.reduce {monoid} r0 in 0 to n map {mapping} {{
    %a = kernel.load %x[r0]
    kernel.yield %a
  }}
  kernel.store %v, %y[0]
  kernel.yield
}}"""


REDUCTIONS = {
    "sum": torch.sum,
    "prod": torch.prod,
    "max": torch.amax,
    "min": torch.amin,
    "any": torch.any,
    "all": torch.all,
}


@pytest.mark.rotates(2, each="monoid")
@pytest.mark.parametrize("mapping", ["serial", "vector", "vector tile 8"])
@pytest.mark.parametrize(
    ("monoid", "dtype", "element"),
    [
        *((m, torch.float32, "f32") for m in ("sum", "prod", "max", "min")),
        *((m, torch.float64, "f64") for m in ("sum", "max")),
        *((m, torch.int32, "i32") for m in ("sum", "prod", "max", "min")),
        *((m, torch.int64, "i64") for m in ("sum", "max")),
        *((m, torch.bool, "i1") for m in ("any", "all", "max", "min")),
    ],
)
def test_reductions(monoid: str, dtype: torch.dtype, element: str, mapping: str) -> None:
    text = reduction(monoid, element, mapping)
    for n in (0, 1, 7, 100, 1037):
        x = (
            (torch.rand(n) * 4 - 2).to(dtype)
            if dtype != torch.bool
            else torch.rand(n) > (0.1 if monoid == "all" else 0.9)
        )
        got = run_kernel(text, x, torch.empty(1, dtype=dtype), n)[0]
        if n == 0:
            assert got.item() == IDENTITIES[monoid](dtype)
            continue
        want = REDUCTIONS[monoid](x).to(dtype) if monoid != "prod" else torch.prod(x, dtype=dtype)
        if monoid == "sum" and dtype.is_floating_point:  # terms that cancel leave a sum below the rounding of its parts
            want = x.double().sum()
            assert abs(got.double() - want) <= x.double().abs().sum() * torch.finfo(dtype).eps
        else:
            torch.testing.assert_close(got, want)
        if dtype.is_floating_point:
            x[n // 2] = float("nan")
            assert run_kernel(text, x, torch.empty(1, dtype=dtype), n).isnan().all()


def _least(dtype: torch.dtype) -> float:
    return False if dtype == torch.bool else -float("inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def _most(dtype: torch.dtype) -> float:
    return True if dtype == torch.bool else float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max


IDENTITIES = {
    "sum": lambda dtype: 0, "prod": lambda dtype: 1, "max": _least, "min": _most, "any": lambda dtype: False,
    "all": lambda dtype: True,
}  # fmt: skip


@pytest.mark.parametrize("mapping", ["serial", "vector"])
def test_long_sums_round_no_worse_than_eager(mapping: str) -> None:
    x = torch.rand(3_000_000)
    got = run_kernel(reduction("sum", "f32", mapping), x, torch.empty(1), len(x)).double()
    exact = x.double().sum()
    assert (got - exact).abs() <= max((x.sum().double() - exact).abs(), exact * 2**-22)


def test_logsumexp_monoid() -> None:
    text = """
kernel.func @lse(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, 1>) symbols (n) {
  %one = arith.constant 1.0 : f32
  %m, %s = kernel.reduce logsumexp r0 in 0 to n map vector {
    %a = kernel.load %x[r0]
    kernel.yield %a, %one
  }
  %l = math.log %s : f32
  %r = arith.addf %l, %m : f32
  kernel.store %r, %y[0]
  kernel.yield
}"""
    for x in (torch.randn(1000) * 50, torch.full((77,), float("-inf")), torch.tensor([1.0, float("inf"), 2.0] * 20)):
        got = run_kernel(text, x, torch.empty(1), len(x))
        torch.testing.assert_close(got[0], x.logsumexp(0), equal_nan=True)


def custom(mapping: str) -> str:
    """2x2 matrices [[a, b], [0, 1]] multiplied in order: x -> a*x + b, composed; not commutative."""
    return f"""
kernel.func @affine(%p: !kernel.buffer<f64, n>, %q: !kernel.buffer<f64, n>, %y: !kernel.buffer<f64, 2>) symbols (n) {{
  %one = arith.constant 1.0 : f64
  %zero = arith.constant 0.0 : f64
  %a, %b = kernel.reduce custom init(%one, %zero) r0 in 0 to n map {mapping} {{
    %u = kernel.load %p[r0]
    %v = kernel.load %q[r0]
    kernel.yield %u, %v
  }} combine {{
  ^bb0(%a0: f64, %b0: f64, %a1: f64, %b1: f64):
    %a2 = arith.mulf %a1, %a0 : f64
    %t = arith.mulf %a1, %b0 : f64
    %b2 = arith.addf %t, %b1 : f64
    kernel.yield %a2, %b2
  }}
  kernel.store %a, %y[0]
  kernel.store %b, %y[1]
  kernel.yield
}}"""


@pytest.mark.parametrize("mapping", ["serial", "vector", "vector tile 8"])
def test_custom_combiner_keeps_the_order(mapping: str) -> None:
    p, q = torch.rand(50, dtype=torch.float64) + 0.5, torch.rand(50, dtype=torch.float64)
    got = run_kernel(custom(mapping), p, q, torch.empty(2, dtype=torch.float64), 50)
    a, b = 1.0, 0.0
    for u, v in zip(p.tolist(), q.tolist(), strict=True):
        a, b = u * a, u * b + v
    torch.testing.assert_close(got, torch.tensor([a, b], dtype=torch.float64))


def scan(monoid: str, lanes: bool) -> str:
    return f"""
kernel.func @scan(%x: !kernel.buffer<f32, 12*n>, %y: !kernel.buffer<f32, 12*n>) symbols (n) {{
  kernel.for i0 in 0 to 12 map {"vector tile 8" if lanes else "parallel"} {{
    kernel.scan {monoid} r0 in 0 to n {{
      %v = kernel.load %x[12*r0 + i0]
      kernel.yield %v
    }} then {{
    ^bb0(%c: f32):
      kernel.store %c, %y[12*r0 + i0]
      kernel.yield
    }}
    kernel.yield
  }}
  kernel.yield
}}"""


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize(("monoid", "function"), [("sum", torch.cumsum), ("prod", torch.cumprod)])
def test_scan(monoid: str, function: object, lanes: bool) -> None:
    x = torch.rand(100, 12) + 0.5
    y = run_kernel(scan(monoid, lanes), x, torch.empty_like(x), 100)
    torch.testing.assert_close(y.view_as(x), function(x, 0))  # pyright: ignore[reportCallIssue]


def scatter(kind: str, element: str, mapping: str) -> str:
    return f"""
kernel.func @scatter(%i: !kernel.buffer<i64, n>, %x: !kernel.buffer<{element}, n>, %y: !kernel.buffer<{element}, 5>)
    symbols (n) {{
  kernel.for i0 in 0 to n map {mapping} {{
    %j = kernel.load %i[i0]
    %v = kernel.load %x[i0]
    kernel.store {kind} atomic %v, %y[d0] (d0 = %j)
    kernel.yield
  }}
  kernel.yield
}}"""


@pytest.mark.parametrize("mapping", ["parallel", "serial", "vector"])
@pytest.mark.parametrize(
    ("kind", "reduce", "dtype", "element"),
    [
        ("add", "sum", torch.float32, "f32"), ("add", "sum", torch.int64, "i64"), ("add", "sum", torch.int8, "i8"),
        ("mul", "prod", torch.float64, "f64"), ("amax", "amax", torch.float32, "f32"),
        ("amin", "amin", torch.uint8, "ui8"), ("amax", "amax", torch.bfloat16, "bf16"),
        ("add", "sum", torch.float16, "f16"), ("amin", "amin", torch.float64, "f64"),
    ],
)  # fmt: skip
def test_stores_that_combine(kind: str, reduce: str, dtype: torch.dtype, element: str, mapping: str) -> None:
    n = 40000
    i = torch.randint(0, 5, (n,))
    x = torch.randint(1, 3, (n,)).to(dtype) if reduce == "sum" else (torch.rand(n) * 0.01 + 1).to(dtype)
    if dtype == torch.float16:  # exact sums
        i, x, n = i[:500], x[:500], 500
    y = torch.ones(5, dtype=dtype)
    want = y.clone().scatter_reduce(0, i, x, reduce)
    torch.testing.assert_close(run_kernel(scatter(kind, element, mapping), i, x, y, n), want)


PAD = """
kernel.func @pad(%x: !kernel.buffer<ui8, n>, %y: !kernel.buffer<ui8, n + 4>) symbols (n) {
  kernel.for i0 in 0 to n + 4 map vector {
    %two = arith.constant 2 : i64
    %end = kernel.index n + 2
    %fill = arith.constant 250 : i8
    %step = arith.constant 10 : i8
    %i = kernel.index i0
    %low = arith.cmpi sge, %i, %two : i64
    %high = arith.cmpi slt, %i, %end : i64
    %in = arith.andi %low, %high : i1
    %v = kernel.load %x[i0 - 2] if %in else %fill
    %w = arith.addi %v, %step : i8
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.yield
}"""


def test_masked_load_reads_nothing_outside_and_bytes_wrap() -> None:
    x = torch.randint(0, 256, (1000,), dtype=torch.uint8)
    y = run_kernel(PAD, x, torch.empty(1004, dtype=torch.uint8), 1000)
    assert torch.equal(y, torch.nn.functional.pad(x, (2, 2), value=250) + 10)


MASKED_STORE = """
kernel.func @keep(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, n>) symbols (n) {
  kernel.for i0 in 0 to n map vector {
    %zero = arith.constant 0.0 : f32
    %v = kernel.load %x[i0]
    %p = arith.cmpf ogt, %v, %zero : f32
    kernel.store %v, %y[i0] if %p
    kernel.yield
  }
  kernel.yield
}"""


def test_masked_store() -> None:
    x, y = torch.randn(100), torch.full((100,), 7.0)
    assert torch.equal(run_kernel(MASKED_STORE, x, y, 100), torch.where(x > 0, x, 7.0))


REVERSED_BYTES = """
kernel.func @reverse(%x: !kernel.buffer<ui8, 1000*s0>, %y: !kernel.buffer<ui8, 1000*s0>) symbols (s0) {
  kernel.for i0 in 0 to s0 map parallel {
    kernel.for i1 in 0 to 1000 map vector {
      %v = kernel.load %x[1000*i0 - i1 + 999]
      kernel.store %v, %y[1000*(s0 - 1 - i0) + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}"""


@pytest.mark.parametrize("rows", [3, 40])
def test_bytes_in_threads_and_in_one(rows: int) -> None:
    x = torch.randint(0, 256, (rows, 1000), dtype=torch.uint8)
    y = run_kernel(REVERSED_BYTES, x, torch.empty_like(x), rows)
    assert torch.equal(y.view_as(x), x.flip(0, 1))


def test_halves_round_to_nearest_even_in_memory_and_by_narrow() -> None:
    for element, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16)):
        text = f"""
kernel.func @k(%x: !kernel.buffer<{element}, n>, %z: !kernel.buffer<{element}, n>, %y: !kernel.buffer<f32, n>)
    symbols (n) {{
  kernel.for i0 in 0 to n map vector {{
    %a = kernel.load %x[i0]
    %b = kernel.load %z[i0]
    %aw = scalar.widen %a : {element} to f32
    %bw = scalar.widen %b : {element} to f32
    %p = arith.mulf %aw, %bw : f32
    %h = scalar.narrow %p : f32 to {element}
    %q = arith.addf %h, %a : {element}
    %w = scalar.widen %q : {element} to f32
    kernel.store %w, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""
        bits = torch.arange(-32768, 32768).to(torch.int16)
        x = bits.view(dtype)
        for z in (torch.randn(65536).to(dtype), torch.full((65536,), 1e-5).to(dtype), bits.flip(0).view(dtype)):
            y = run_kernel(text, x, z, torch.empty(65536), 65536)
            torch.testing.assert_close(y, (x * z + x).float(), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_halves_survive_a_copy_bit_by_bit(dtype: torch.dtype) -> None:
    element = {torch.bfloat16: "bf16", torch.float16: "f16"}[dtype]
    text = f"""
kernel.func @copy(%x: !kernel.buffer<{element}, 65536>, %y: !kernel.buffer<{element}, 65536>) {{
  kernel.for i0 in 0 to 65536 map parallel {{
    %a = kernel.load %x[i0]
    kernel.store %a, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""
    x = torch.arange(-32768, 32768).to(torch.int16).view(dtype)
    y = run_kernel(text, x, torch.empty_like(x))
    torch.testing.assert_close(y, x, rtol=0, atol=0, equal_nan=True)


def test_index_division_of_negative_numbers() -> None:
    text = """
kernel.func @k(%y: !kernel.buffer<i64, 40>) symbols (s) {
  kernel.for i0 in 0 to 20 {
    %a = kernel.index (i0 - s) floordiv 3 + min(i0, s, 7)
    %b = kernel.index (i0 - s) mod 3 - max(i0, s)
    kernel.store %a, %y[2*i0]
    kernel.store %b, %y[2*i0 + 1]
    kernel.yield
  }
  kernel.yield
}"""
    y = run_kernel(text, torch.empty(40, dtype=torch.int64), 10).view(20, 2)
    assert y.tolist() == [[(i - 10) // 3 + min(i, 10, 7), (i - 10) % 3 - max(i, 10)] for i in range(20)]


def test_nested_parallel_loops_are_one() -> None:
    text = """
kernel.func @k(%y: !kernel.buffer<i64, 6*n>) symbols (n) {
  kernel.for i0 in 1 to 4 map parallel tile 1 {
    kernel.for i1 in 0 to n map parallel {
      kernel.for i2 in 5 to 7 map grid {
        %v = kernel.index 100000*i0 + 10*i1 + i2
        kernel.store %v, %y[2*n*i0 + 2*i1 + i2 - 2*n - 5]
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}"""
    for n in (0, 1, 5, 3000):
        y = run_kernel(text, torch.empty(6 * n, dtype=torch.int64), n)
        want = torch.arange(1, 4).view(3, 1, 1) * 100000 + torch.arange(n).view(1, n, 1) * 10 + torch.tensor([5, 6])
        assert torch.equal(y, want.flatten())


def test_philox_known_answers() -> None:
    """The answers of the Random123 distribution for zero and all-ones counters and keys."""
    text = """
kernel.func @k(%seed: !kernel.buffer<i64, 1>, %y: !kernel.buffer<i32, 8>) {
  %s = kernel.load %seed[0]
  kernel.for i0 in 0 to 8 map vector {
    %o = kernel.index i0
    %b = scalar.philox %s, %o
    kernel.store %b, %y[i0]
    kernel.yield
  }
  kernel.yield
}"""
    got = run_kernel(text, torch.zeros(1, dtype=torch.int64), torch.empty(8, dtype=torch.int32))
    assert [v % 2**32 for v in got[:4].tolist()] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    other = run_kernel(text, torch.tensor([2**40 + 5]), torch.empty(8, dtype=torch.int32))
    assert len({*got.tolist(), *other.tolist()}) == 16


def test_one_buffer_is_read_and_written() -> None:
    text = """
kernel.func @k(%x: !kernel.buffer<f32, n>) symbols (n) {
  kernel.for i0 in 0 to n map parallel {
    %v = kernel.load %x[i0]
    %w = arith.mulf %v, %v : f32
    kernel.store %w, %x[i0]
    kernel.yield
  }
  kernel.yield
}"""
    x = torch.randn(50000)
    want = x * x
    assert torch.equal(run_kernel(text, x.clone(), 50000), want)
