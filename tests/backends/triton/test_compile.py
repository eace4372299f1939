"""Every spelling and shape of kernel compiles for NVIDIA and AMD GPUs, without one; Triton brings its assembler."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductile.backends.triton import TritonKernel, emit
from inductile.backends.triton.compile_only import compile_kernel
from inductile.backends.triton.functions import FLOAT, SIGNED, UNSIGNED
from inductile.backends.triton.loading import load_functions
from inductile.backends.triton.targets import triton_target
from inductile.backends.triton.variants import Variant, compile_variant
from inductile.errors import UserError

from .support import kernel_of, parse, skip_crash_of_triton

TARGETS = ("cuda:90", "hip:gfx942")
PATTERNS = Path(__file__).parent / "Inputs" / "patterns.mlir"
PREDICATES = ("scalar.isnan", "scalar.isinf", "scalar.isfinite", "scalar.signbit")


def _compile(kernel: TritonKernel, target: str, wide: bool = False) -> None:
    compiled = compile_kernel(kernel, target, wide)
    binary = "cubin" if target.startswith("cuda") else "hsaco"
    assert compiled.asm[binary][:4] == b"\x7fELF"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["softmax", "softmax_looped", "add_transposed", "column_sum", "gather", "layer_norm"])
def test_patterns(name: str, target: str) -> None:
    skip_crash_of_triton(name, target)
    (kernel,) = (k for k in emit(parse(PATTERNS.read_text())) if k.name == name)
    _compile(kernel, target)
    if kernel.chooses_index:
        _compile(kernel, target, wide=True)


def _sum_of_all(names: list[str], type_: str, tile: str) -> str:
    """A kernel that adds up what each of the named ops makes of two loaded values."""
    lines: list[str] = []
    add = "addf" if type_[0] == "f" else "addi"
    total = "%x0"
    for k, name in enumerate(names):
        op = next(o for o in (*FLOAT, *SIGNED, *UNSIGNED) if o.name == name)
        text = str(FLOAT.get(op) or SIGNED.get(op) or UNSIGNED.get(op))
        count = 3 if "{2" in text else 2 if "{1" in text else 1
        lines.append(f"%o{k} = {name} {', '.join(['%x0', '%x1', '%x0'][:count])} : {type_}")
        lines.append(f"%t{k} = arith.{add} {total}, %o{k} : {type_}")
        total = f"%t{k}"
    body = "\n    ".join(lines)
    return f"""kernel.func @ops(%x: !kernel.buffer<{type_}, 512>, %y: !kernel.buffer<{type_}, 512>) target "cuda:90" {{
  kernel.for i0 in 0 to 500 map grid {tile} {{
    %x0 = kernel.load %x[i0]
    %x1 = kernel.load %x[i0 + 1]
    {body}
    kernel.store {total}, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""


@pytest.mark.rotates(2, each="type_")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_float_ops(type_: str, target: str) -> None:
    skip_crash_of_triton(type_, target)
    names = sorted(op.name for op in FLOAT if op.name not in PREDICATES)
    _compile(kernel_of(_sum_of_all(names, type_, "tile 128")), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("type_", "tile"), [("i8", "tile 128"), ("i32", ""), ("i64", "tile 128")])
def test_integer_ops(type_: str, tile: str, target: str) -> None:
    names = sorted(op.name for op in (*SIGNED, *UNSIGNED))
    _compile(kernel_of(_sum_of_all(names, type_, tile)), target)


def _reductions(rows: str, axis: str) -> str:
    return f"""kernel.func @reductions(%x: !kernel.buffer<f32, 6400>, %m: !kernel.buffer<i1, 6400>,
      %y: !kernel.buffer<f32, 64>, %z: !kernel.buffer<i64, 64>, %b: !kernel.buffer<i1, 64>) target "cuda:90" {{
  kernel.for i0 in 0 to 64 map grid {rows} {{
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %s, %p, %h, %a, %i, %mean, %m2, %n, %top, %share = kernel.reduce [sum, prod, max, argmin, welford, logsumexp]
        r0 in 0 to 100 map {axis} {{
      %v = kernel.load %x[100*i0 + r0]
      %k = kernel.index r0
      kernel.yield %v, %v, %v, %v, %k, %v, %zero, %one, %v, %one
    }}
    %q, %w, %e = kernel.reduce [any, all, xor] r0 in 0 to 100 map {axis} {{
      %c = kernel.load %m[100*i0 + r0]
      kernel.yield %c, %c, %c
    }}
    %u, %o, %c = kernel.reduce welford r0 in 0 to 100 map {axis} {{
      %v = kernel.load %x[100*i0 + r0]
      kernel.yield %v, %v, %one
    }}
    %t0 = arith.addf %s, %p : f32
    %t1 = arith.addf %t0, %h : f32
    %t2 = arith.addf %t1, %m2 : f32
    %t3 = arith.addf %t2, %share : f32
    %t4 = arith.addf %t3, %o : f32
    %t5 = arith.addf %t4, %a : f32
    %f0 = arith.andi %q, %w : i1
    %f1 = arith.xori %f0, %e : i1
    kernel.store %t5, %y[i0]
    kernel.store %i, %z[i0]
    kernel.store %f1, %b[i0]
    kernel.yield
  }}
  kernel.yield
}}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("axis", ["vector tile 128", "vector tile 32", "serial"])
@pytest.mark.parametrize("rows", ["tile 4", ""])
def test_reductions(rows: str, axis: str, target: str) -> None:
    _compile(kernel_of(_reductions(rows, axis)), target)


def _scans(axis: str) -> str:
    return f"""kernel.func @scans(%x: !kernel.buffer<f32, 6400>, %y: !kernel.buffer<f32, 6400>,
      %z: !kernel.buffer<i64, 6400>, %b: !kernel.buffer<i1, 6400>) target "cuda:90" {{
  kernel.for i0 in 0 to 64 map grid tile 2 {{
    %one = arith.constant 1.0 : f32
    %none = arith.constant 0.0 : f32
    kernel.scan [sum, argmax, any] r0 in 0 to 100 map {axis} {{
      %v = kernel.load %x[100*i0 + r0]
      %c = kernel.load %b[100*i0 + r0]
      %k = kernel.index r0
      kernel.yield %v, %v, %k, %c
    }} then {{
    ^bb0(%s: f32, %a: f32, %j: i64, %o: i1):
      %t = arith.addf %s, %a : f32
      kernel.store %t, %y[100*i0 + r0]
      kernel.store %j, %z[100*i0 + r0]
      kernel.store %o, %b[100*i0 + r0]
      kernel.yield
    }}
    kernel.scan custom init(%one, %none) r1 in 0 to 100 map {axis} {{
      %v = kernel.load %x[100*i0 + r1]
      kernel.yield %v, %v
    }} then {{
    ^bb0(%c: f32, %d: f32):
      kernel.store add %d, %y[100*i0 + r1]
      kernel.yield
    }} combine {{
    ^bb0(%a: f32, %b0: f32, %c: f32, %d: f32):
      %m = arith.mulf %a, %c : f32
      %n = arith.mulf %b0, %c : f32
      %k = arith.addf %n, %d : f32
      kernel.yield %m, %k
    }}
    kernel.yield
  }}
  kernel.yield
}}"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("axis", ["vector tile 128", "vector tile 32", "serial"])
def test_scans(axis: str, target: str) -> None:
    _compile(kernel_of(_scans(axis)), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("tile", ["tile 128", ""])
def test_memory(tile: str, target: str) -> None:
    """Atomics on what GPUs have them for, checks, masks, random numbers, casts, nests side by side."""
    text = f"""kernel.func @memory(%x: !kernel.buffer<f32, s0>, %i: !kernel.buffer<i64, s0>,
      %y: !kernel.buffer<f32, 512>, %d: !kernel.buffer<f64, 512>, %h: !kernel.buffer<bf16, 512>,
      %n: !kernel.buffer<i32, 512>, %u: !kernel.buffer<ui8, 512>) symbols (s0)
      errors ["IndexError: index out of range"] target "cuda:90" {{
  %k = arith.constant -0.0 : f32
  kernel.for i0 in 0 to s0 map grid {tile} {{
    %j = kernel.load %i[i0]
    %c = kernel.index 512
    %ok = arith.cmpi ult, %j, %c : i64
    kernel.assert %ok, 1
    %v = kernel.load %x[d0] (d0 = %j) if %ok else %k
    %b = scalar.philox %j, %c
    %w = scalar.cast %v : f32 to f64
    %g = scalar.narrow %v : f32 to bf16
    %e = scalar.cast %v : f32 to ui8
    kernel.store add atomic %v, %y[d0] (d0 = %j)
    kernel.store amax atomic %v, %y[d0] (d0 = %j) if %ok
    kernel.store amin atomic %w, %d[d0] (d0 = %j)
    kernel.store add atomic %w, %d[0]
    kernel.store add atomic %g, %h[d0] (d0 = %j)
    kernel.store amin atomic %b, %n[d0] (d0 = %j)
    kernel.store %e, %u[d0] (d0 = %j)
    kernel.yield
  }}
  kernel.for i1 in 0 to 512 map grid tile 64 {{
    %v = kernel.load %u[i1]
    %w = scalar.cast %v : ui8 to f32
    %s = math.copysign %w, %k : f32
    kernel.store %s, %y[i1]
    kernel.yield
  }}
  kernel.yield
}}"""
    kernel = kernel_of(text)
    _compile(kernel, target)
    _compile(kernel, target, wide=True)


def test_division_is_exact_and_nothing_is_contracted() -> None:
    text = """kernel.func @exact(%x: !kernel.buffer<f32, 512>, %y: !kernel.buffer<f32, 512>) target "cuda:90" {
  kernel.for i0 in 0 to 512 map grid tile 128 {
    %v = kernel.load %x[i0]
    %w = kernel.load %y[i0]
    %p = arith.mulf %v, %w : f32
    %s = arith.addf %p, %v : f32
    %q = arith.divf %s, %w : f32
    %r = math.sqrt %q : f32
    kernel.store %r, %y[i0]
    kernel.yield
  }
  kernel.yield
}"""
    ptx = compile_kernel(kernel_of(text), "cuda:90").asm["ptx"]
    assert "div.rn.f32" in ptx and "sqrt.rn.f32" in ptx and "fma.rn.f32" not in ptx


def test_denormals_survive_math_functions() -> None:
    text = _sum_of_all(["math.exp"], "f32", "tile 128")
    ptx = compile_kernel(kernel_of(text), "cuda:90").asm["ptx"]
    assert ".ftz" not in "".join(line for line in ptx.splitlines() if "mul" in line or "fma" in line)


def test_aligned_buffers_are_read_in_wide_accesses() -> None:
    text = """kernel.func @copy(%x: !kernel.buffer<bf16, 4096>, %y: !kernel.buffer<bf16, 4096>) target "cuda:90" {
  kernel.for i0 in 0 to 4096 map grid tile 1024 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}"""
    kernel = kernel_of(text)
    assert "ld.global.v4.b32" in compile_kernel(kernel, "cuda:90").asm["ptx"]
    apart = Variant(unaligned=frozenset({0, 1}))
    ptx = compile_variant(kernel, load_functions([kernel])[0], triton_target("cuda:90"), apart).asm["ptx"]
    assert "ld.global.b16" in ptx and ".v4" not in ptx


@pytest.mark.parametrize("name", ["cuda", "cuda:", "hip:90", "metal:1", "cuda:9x"])
def test_unknown_targets_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="unknown target"):
        triton_target(name)


def test_a_target_of_another_generator_is_refused() -> None:
    with pytest.raises(UserError, match="Triton makes no kernels for the target 'cpp'"):
        triton_target("cpp")


@pytest.mark.parametrize(("element", "to", "function"), [
    ("i8", "f32", "float_of_int8"), ("ui8", "f32", "float_of_uint8"), ("i8", "bf16", "half_of_int8"),
    ("i8", "f16", "half_of_int8"),
])  # fmt: skip
def test_bytes_become_floats_by_their_bits(element: str, to: str, function: str) -> None:
    """A processor converts 16 numbers in a cycle, but permutes the bytes of 64 words."""
    text = f"""kernel.func @op(%x: !kernel.buffer<{element}, 512>, %y: !kernel.buffer<{to}, 512>) target "cuda:90" {{
  kernel.for i0 in 0 to 512 map grid tile 512 {{
    %x0 = kernel.load %x[i0]
    %r = scalar.cast %x0 : {element} to {to}
    kernel.store %r, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""
    kernel = kernel_of(text)
    assert f"nvidia.{function}(" in kernel.source
    ptx = compile_kernel(kernel, "cuda:90").asm["ptx"]
    assert ptx.count("prmt.b32") >= 2 and "cvt.rn.f32" not in ptx
    assert "nvidia." not in kernel_of(text.replace("cuda:90", "hip:gfx942")).source
