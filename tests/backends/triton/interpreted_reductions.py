"""Every monoid in every shape of reduction and scan, against the reference interpreter."""

from __future__ import annotations

import math

import pytest
import torch

from .support import Tensor, check, interpreted, kernel_of

INF, NAN = math.inf, math.nan
ROWS, LENGTH = 5, 37

#: how the reduced axis runs: (mapping of the row axis, mapping of the reduced one)
SHAPES = {
    "registers": ("grid", "vector tile 64"),
    "registers, rows share a program": ("grid tile 4", "vector tile 64"),
    "loop": ("grid", "vector tile 16"),
    "loop, rows share a program": ("grid tile 4", "vector tile 8"),
    "unrolled loop, rows share a program": ("grid tile 4", "vector tile 8 unroll 2"),
    "loop of full tiles": ("grid tile 8", "vector tile 1"),
    "steps": ("grid tile 4", "serial"),
    "unrolled steps": ("grid tile 4", "serial unroll 4"),
    "scalar": ("grid", "serial"),
}
DTYPES = {"f32": torch.float32, "f64": torch.float64, "i64": torch.int64, "i32": torch.int32, "i8": torch.int8,
          "i1": torch.bool}  # fmt: skip


def _values(type_: str) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    if type_ == "i1":
        return torch.rand(ROWS, LENGTH, generator=generator) < 0.9
    if type_[0] == "i":
        return torch.randint(-3, 4, (ROWS, LENGTH), generator=generator).to(DTYPES[type_])
    values = torch.randn(ROWS, LENGTH, generator=generator, dtype=DTYPES[type_])
    values[1] = values[1].round()  # ties
    values[2, 30] = NAN
    values[3] = -INF
    values[4, [3, 20]] = INF
    return values


def _index(layout: str) -> str:
    return f"{LENGTH}*i0 + r0" if layout == "rows" else f"{ROWS}*r0 + i0"


def _reduction(combiner: str, source: str, body: str, results: list[str], shape: str, layout: str = "rows") -> str:
    """`body` turns the loaded %v into what is yielded; `results` are the types."""
    rows, axis = SHAPES[shape]
    names = ", ".join(f"%s{k}" for k in range(len(results)))
    buffers = "".join(f", %y{k}: !kernel.buffer<{t}, {ROWS}>" for k, t in enumerate(results))
    stores = "\n    ".join(f"kernel.store %s{k}, %y{k}[i0]" for k in range(len(results)))
    return f"""kernel.func @reduce(%x: !kernel.buffer<{source}, {ROWS * LENGTH}>{buffers}) target "cuda:90" {{
  kernel.for i0 in 0 to {ROWS} map {rows} {{
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    {names} = kernel.reduce {combiner} r0 in 0 to {LENGTH} map {axis} {{
      %v = kernel.load %x[{_index(layout)}]
      {body}
    }}
    {stores}
    kernel.yield
  }}
  kernel.yield
}}"""


def _run(
    combiner: str, source: str, body: str, results: list[str], shape: str, layout: str = "rows", **options
) -> None:
    x = _values(source)
    if layout == "columns":
        x = x.t().contiguous()
    outs = [torch.zeros(ROWS, dtype=DTYPES[t]) for t in results]
    check(_reduction(combiner, source, body, results, shape, layout), [x, *outs], **options)


#: one of each kind, for what does not depend on how rows are spread
FEW = ("registers", "loop, rows share a program", "steps")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("combiner", ["sum", "prod", "max", "min"])
def test_arithmetic_of_floats(combiner: str, shape: str) -> None:
    _run(combiner, "f32", "kernel.yield %v", ["f32"], shape, zeros=False)


@pytest.mark.parametrize("shape", FEW)
@pytest.mark.parametrize("type_", ["f64", "i64", "i32", "i8"])
@pytest.mark.parametrize("combiner", ["sum", "prod", "max", "min"])
def test_arithmetic(combiner: str, type_: str, shape: str) -> None:
    _run(combiner, type_, "kernel.yield %v", [type_], shape, zeros=False)


@pytest.mark.parametrize("shape", FEW)
@pytest.mark.parametrize(("combiner", "type_"), [("any", "i1"), ("all", "i1"), ("xor", "i1"), ("xor", "i32")])
def test_logic(combiner: str, type_: str, shape: str) -> None:
    _run(combiner, type_, "kernel.yield %v", [type_], shape)


@pytest.mark.parametrize("shape", FEW)
@pytest.mark.parametrize("type_", ["f32", "i64", "i8"])
@pytest.mark.parametrize("combiner", ["argmax", "argmin"])
def test_arg(combiner: str, type_: str, shape: str) -> None:
    _run(combiner, type_, "%i = kernel.index r0\nkernel.yield %v, %i", [type_, "i64"], shape)


@pytest.mark.parametrize("shape", FEW)
@pytest.mark.parametrize("combiner", ["max", "min"])
def test_unsigned_extrema_in_their_own_width(combiner: str, shape: str) -> None:
    rows, axis = SHAPES[shape]
    buffers = f"%x: !kernel.buffer<ui8, {ROWS * LENGTH}>, %y: !kernel.buffer<ui8, {ROWS}>"
    text = f"""kernel.func @reduce({buffers}) target "cuda:90" {{
  kernel.for i0 in 0 to {ROWS} map {rows} {{
    %flip = arith.constant -128 : i8
    %s = kernel.reduce {combiner} r0 in 0 to {LENGTH} map {axis} {{
      %v = kernel.load %x[{LENGTH}*i0 + r0]
      %i = scalar.cast %v : ui8 to i8
      %c = arith.xori %i, %flip : i8
      kernel.yield %c
    }}
    %b = arith.xori %s, %flip : i8
    %u = scalar.cast %b : i8 to ui8
    kernel.store %u, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""
    x = torch.randint(0, 256, (ROWS, LENGTH), generator=torch.Generator().manual_seed(3)).to(torch.uint8)
    y = torch.zeros(ROWS, dtype=torch.uint8)
    check(text, [x, y])


MOMENTS = {
    "single elements": "kernel.yield %v, %zero, %one",
    "parts": "%w = arith.mulf %v, %v : f32\nkernel.yield %v, %w, %one",
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", MOMENTS)
def test_welford(kind: str, shape: str) -> None:
    x = torch.randn(ROWS, LENGTH, generator=torch.Generator().manual_seed(1)) + 100
    outs = [torch.zeros(ROWS) for _ in range(3)]
    text = _reduction("welford", "f32", MOMENTS[kind], ["f32"] * 3, shape)
    got = check(text, [x, *outs], rtol=1e-4, atol=1e-3)
    if kind == "single elements":
        torch.testing.assert_close(got[1], x.mean(1))
        torch.testing.assert_close(got[2] / got[3], x.var(1, correction=0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "index"), [("grid", "64*i0 + r0"), ("grid tile 4", "64*i0 + r0"), ("grid tile 4", "8*r0 + i0")]
)
def test_welford_of_lanes_that_count_alike(rows: str, index: str) -> None:
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(1)) + 100
    x[1], x[2, 3], x[3, 5], x[4], x[5, ::2] = 3e38, INF, NAN, 0, -1e4
    results = ", ".join(f"%{name}: !kernel.buffer<f32, 8>" for name in "abc")
    text = f"""kernel.func @moments(%x: !kernel.buffer<f32, 512>, {results}) target "cuda:90" {{
      kernel.for i0 in 0 to 8 map {rows} {{
        %zero = arith.constant 0.0 : f32
        %one = arith.constant 1.0 : f32
        %mean, %m2, %count = kernel.reduce welford r0 in 0 to 64 map vector tile 16 {{
          %v = kernel.load %x[{index}]
          kernel.yield %v, %zero, %one
        }}
        kernel.store %mean, %a[i0]
        kernel.store %m2, %b[i0]
        kernel.store %count, %c[i0]
        kernel.yield
      }}
      kernel.yield
    }}"""
    assert "welford_of_equals" in kernel_of(text).source
    given = x if index.startswith("64") else x.t().contiguous()
    _, mean, m2, count = check(text, [given, *(torch.zeros(8) for _ in range(3))], rtol=1e-5)
    exact = x.double()
    finite = [0, 1, 4, 5, 6, 7]
    torch.testing.assert_close(mean[finite], exact.mean(1)[finite].float(), rtol=1e-6, atol=0)
    torch.testing.assert_close((m2 / count)[finite], exact.var(1, correction=0)[finite].float(), rtol=1e-5, atol=1e-6)
    assert m2[2:4].isnan().all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("body", ["kernel.yield %v, %one", "%w = math.absf %v : f32\nkernel.yield %v, %w"])
def test_logsumexp(body: str, shape: str) -> None:
    _run("logsumexp", "f32", body, ["f32"] * 2, shape)


def test_logsumexp_is_eagers() -> None:
    x = _values("f32")
    text = _reduction("logsumexp", "f32", "kernel.yield %v, %one", ["f32"] * 2, "loop")
    _, m, s = check(text, [x, torch.zeros(ROWS), torch.zeros(ROWS)])
    torch.testing.assert_close(m + s.log(), x.logsumexp(1), equal_nan=True)


def test_logsumexp_of_neighbours_that_are_taken_in_at_once() -> None:
    inf, rows = float("inf"), 8
    x = torch.randn(rows, 700, generator=torch.Generator().manual_seed(3)) * 30
    x[1, 3], x[2, 600], x[3], x[4, :256], x[5, 5:9] = inf, float("nan"), -inf, -inf, -inf
    text = f"""kernel.func @rows(%x: !kernel.buffer<f32, {700 * rows}>, %m: !kernel.buffer<f32, {rows}>,
                      %s: !kernel.buffer<f32, {rows}>) target "cuda:90" {{
      kernel.for i0 in 0 to {rows} map grid {{
        %h, %t = kernel.reduce logsumexp r0 in 0 to 700 map vector tile 256 group 4 {{
          %v = kernel.load %x[700*i0 + r0]
          %one = arith.constant 1.0 : f32
          kernel.yield %v, %one
        }}
        kernel.store %h, %m[i0]
        kernel.store %t, %s[i0]
        kernel.yield
      }}
      kernel.yield
    }}"""
    assert "nvidia.logsumexp_fold(" in kernel_of(text).source
    _, m, s = interpreted(text, [x, torch.zeros(rows), torch.zeros(rows)], {})
    torch.testing.assert_close(m + s.log(), x.logsumexp(1), equal_nan=True)


@pytest.mark.parametrize("shape", ["steps", "scalar"])
def test_custom_reduction_keeps_the_order(shape: str) -> None:
    rows, axis = SHAPES[shape]
    text = f"""kernel.func @reduce(%x: !kernel.buffer<f32, 185>, %y: !kernel.buffer<f32, 5>, %z: !kernel.buffer<f32, 5>)
      target "cuda:90" {{
  kernel.for i0 in 0 to 5 map {rows} {{
    %one = arith.constant 1.0 : f32
    %none = arith.constant 0.0 : f32
    %s, %n = kernel.reduce custom init(%one, %none) r0 in 0 to 37 map {axis} {{
      %v = kernel.load %x[37*i0 + r0]
      %w = math.absf %v : f32
      kernel.yield %v, %w
    }} combine {{
    ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
      %m = arith.mulf %a, %c : f32
      %n = arith.mulf %b, %c : f32
      %k = arith.addf %n, %d : f32
      kernel.yield %m, %k
    }}
    kernel.store %s, %y[i0]
    kernel.store %n, %z[i0]
    kernel.yield
  }}
  kernel.yield
}}"""
    check(text, [torch.rand(ROWS, LENGTH) * 1.2, torch.zeros(ROWS), torch.zeros(ROWS)])


@pytest.mark.parametrize("shape", SHAPES)
def test_several_at_once(shape: str) -> None:
    body = "%w = math.absf %v : f32\n%i = kernel.index r0\nkernel.yield %v, %w, %i, %v"
    _run("[sum, argmax, max]", "f32", body, ["f32", "f32", "i64", "f32"], shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_columns(shape: str) -> None:
    _run("sum", "f32", "kernel.yield %v", ["f32"], shape, "columns")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("combiner", ["sum", "max"])
def test_what_does_not_vary_along_the_axis(combiner: str, shape: str) -> None:
    """A constant, and a value of the row, count once for each element."""
    _run(combiner, "f32", "kernel.yield %one", ["f32"], shape)
    rows, axis = SHAPES[shape]
    text = f"""kernel.func @reduce(%x: !kernel.buffer<f32, 5>, %y: !kernel.buffer<f32, 5>) target "cuda:90" {{
  kernel.for i0 in 0 to 5 map {rows} {{
    %v = kernel.load %x[i0]
    %s = kernel.reduce {combiner} r0 in 0 to 37 map {axis} {{ kernel.yield %v }}
    kernel.store %s, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""
    check(text, [torch.randn(5), torch.zeros(5)])


@pytest.mark.parametrize("combiner", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("tile", ["tile 16", "tile 4"])
def test_an_empty_axis_gives_the_identity(combiner: str, tile: str) -> None:
    text = f"""kernel.func @reduce(%x: !kernel.buffer<f32, 5*s0>, %y: !kernel.buffer<f32, 5>) symbols (s0)
      target "cuda:90" {{
  kernel.for i0 in 0 to 5 map grid {{
    %s = kernel.reduce {combiner} r0 in 0 to s0 map vector {tile} {{
      %v = kernel.load %x[i0*s0 + r0]
      kernel.yield %v
    }}
    kernel.store %s, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""
    check(text, [torch.zeros(0), torch.full((5,), 9.0)], {"s0": 0})


@pytest.mark.parametrize("inner", ["vector tile 8", "vector tile 4", "serial"])
@pytest.mark.parametrize("rows", ["grid", "grid tile 4"])
@pytest.mark.parametrize("combiner", ["sum", "max"])
def test_nested(combiner: str, rows: str, inner: str) -> None:
    """Over two axes: one set of accumulators serves both loops."""
    text = f"""kernel.func @reduce(%x: !kernel.buffer<f32, 210>, %y: !kernel.buffer<f32, 6>) target "cuda:90" {{
  kernel.for i0 in 0 to 6 map {rows} {{
    %s = kernel.reduce {combiner} r0 in 0 to 5 {{
      %t = kernel.reduce {combiner} r1 in 0 to 7 map {inner} {{
        %v = kernel.load %x[7*i0 + 42*r0 + r1]
        kernel.yield %v
      }}
      kernel.yield %t
    }}
    kernel.store %s, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""
    check(text, [torch.randn(210), torch.zeros(6)])


SCANS = {
    "registers": ("grid", "vector tile 64"),
    "registers, rows share a program": ("grid tile 4", "vector tile 64"),
    "tiles with a carry": ("grid", "vector tile 16"),
    "tiles with a carry, rows share a program": ("grid tile 4", "vector tile 8"),
    "steps": ("grid tile 4", "serial"),
}


@pytest.mark.parametrize("shape", SCANS)
@pytest.mark.parametrize(
    ("combiner", "type_"),
    [("sum", "f32"), ("sum", "i64"), ("prod", "f32"), ("max", "f32"), ("any", "i1"), ("xor", "i32")],
)
def test_scan(combiner: str, type_: str, shape: str) -> None:
    rows, axis = SCANS[shape]
    text = f"""kernel.func @scan(%x: !kernel.buffer<{type_}, 185>, %y: !kernel.buffer<{type_}, 185>) target "cuda:90" {{
  kernel.for i0 in 0 to 5 map {rows} {{
    kernel.scan {combiner} r0 in 0 to 37 map {axis} {{
      %v = kernel.load %x[37*i0 + r0]
      kernel.yield %v
    }} then {{
    ^bb0(%c: {type_}):
      kernel.store %c, %y[37*i0 + r0]
      kernel.yield
    }}
    kernel.yield
  }}
  kernel.yield
}}"""
    values = _values(type_)
    if type_ == "f32" and combiner != "max":
        values = torch.randn(5, 37)
    check(text, [values, torch.zeros_like(values)], rtol=1e-4, atol=1e-5, zeros=False)


@pytest.mark.parametrize("shape", SCANS)
def test_scan_of_pairs(shape: str) -> None:
    rows, axis = SCANS[shape]
    text = f"""kernel.func @scan(%x: !kernel.buffer<f32, 185>, %y: !kernel.buffer<f32, 185>,
      %z: !kernel.buffer<i64, 185>) target "cuda:90" {{
  kernel.for i0 in 0 to 5 map {rows} {{
    kernel.scan argmax r0 in 0 to 37 map {axis} {{
      %v = kernel.load %x[37*i0 + r0]
      %i = kernel.index r0
      kernel.yield %v, %i
    }} then {{
    ^bb0(%c: f32, %j: i64):
      kernel.store %c, %y[37*i0 + r0]
      kernel.store %j, %z[37*i0 + r0]
      kernel.yield
    }}
    kernel.yield
  }}
  kernel.yield
}}"""
    check(text, [_values("f32"), torch.zeros(185), torch.zeros(185, dtype=torch.int64)])


@pytest.mark.parametrize("shape", SCANS)
def test_custom_scan_keeps_the_order(shape: str) -> None:
    """The composition of affine maps does not commute."""
    rows, axis = SCANS[shape]
    text = f"""kernel.func @scan(%x: !kernel.buffer<f32, 185>, %y: !kernel.buffer<f32, 185>) target "cuda:90" {{
  kernel.for i0 in 0 to 5 map {rows} {{
    %one = arith.constant 1.0 : f32
    %none = arith.constant 0.0 : f32
    kernel.scan custom init(%one, %none) r0 in 0 to 37 map {axis} {{
      %v = kernel.load %x[37*i0 + r0]
      %w = math.absf %v : f32
      kernel.yield %v, %w
    }} then {{
    ^bb0(%c: f32, %d: f32):
      kernel.store %d, %y[37*i0 + r0]
      kernel.yield
    }} combine {{
    ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
      %m = arith.mulf %a, %c : f32
      %n = arith.mulf %b, %c : f32
      %k = arith.addf %n, %d : f32
      kernel.yield %m, %k
    }}
    kernel.yield
  }}
  kernel.yield
}}"""
    check(text, [torch.rand(185) * 1.2, torch.zeros(185)], rtol=1e-4, atol=1e-4)
