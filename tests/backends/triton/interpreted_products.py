"""Products as nests on matrix units, in Triton's interpreter, against float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree

from inductile.backends.host import build
from inductile.backends.reference import run_module
from inductile.backends.triton import emit
from inductile.backends.triton.offline import OfflineBackend
from inductile.dialects.context import new_context
from inductile.dialects.kernel import DESCRIPTOR
from inductile.lowering.pipeline import named_passes
from inductile.passes.manager import PassManager

from ...passes.kernel.stages import on_gpu
from .products import TILES, TOLERANCE, Tensor, for_cpu, lowered, program
from .support import parse

DTYPES = tuple(TOLERANCE)


def _matrix(*shape: int, dtype: torch.dtype, seed: int, transposed: bool = False) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if not transposed:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randn(*shape[:-2], shape[-1], shape[-2], generator=generator).to(dtype).mT


def _check(text: str, arguments: Sequence[Any], exact: Tensor, dtype: torch.dtype, options: str = TILES) -> None:
    """Run a program, which has a product on matrix units, in both interpreters."""
    module = lowered(text, options)
    assert any("tl.dot(" in kernel.source for kernel in emit(module))
    (got,) = build(for_cpu(module))(list(arguments))
    (meant,) = run_module(for_cpu(module), list(arguments))
    for found in (got, meant):
        assert found.shape == exact.shape and found.dtype == dtype
        torch.testing.assert_close(found.double(), exact, rtol=TOLERANCE[dtype], atol=20 * TOLERANCE[dtype])


@pytest.mark.parametrize("transposed", [(False, True), (True, False)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(32, 64, 32), (50, 37, 70), (9, 40, 200)])
def test_mm(sizes: tuple[int, int, int], dtype: torch.dtype, transposed: tuple[bool, bool]) -> None:
    rows, columns, depth = sizes
    left = _matrix(rows, depth, dtype=dtype, seed=0, transposed=transposed[0])
    right = _matrix(depth, columns, dtype=dtype, seed=1, transposed=transposed[1])
    text = program("aten.mm()", [left, right], (rows, columns))
    _check(text, [left, right], left.double() @ right.double(), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bias(dtype: torch.dtype) -> None:
    bias, left = _matrix(40, dtype=dtype, seed=2), _matrix(30, 50, dtype=dtype, seed=0)
    right = _matrix(50, 40, dtype=dtype, seed=1, transposed=True)
    text = program("aten.addmm(, beta = 2, alpha = 0.5)", [bias, left, right], (30, 40))
    _check(text, [bias, left, right], 2 * bias.double() + 0.5 * (left.double() @ right.double()), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transposed", [False, True])
def test_batched(dtype: torch.dtype, transposed: bool) -> None:
    left = _matrix(3, 20, 24, dtype=dtype, seed=0)
    right = _matrix(3, 24, 35, dtype=dtype, seed=1, transposed=transposed)
    text = program("aten.bmm()", [left, right], (3, 20, 35))
    _check(text, [left, right], left.double() @ right.double(), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_of_the_depth(dtype: torch.dtype) -> None:
    """They are summed beside each other, and then with the bias."""
    bias, left = _matrix(40, dtype=dtype, seed=2), _matrix(9, 384, dtype=dtype, seed=0)
    right = _matrix(384, 40, dtype=dtype, seed=1, transposed=True)
    text = program("aten.addmm()", [bias, left, right], (9, 40))
    first, second = emit(lowered(text, f"{TILES} depth-parts=3"))
    assert "range(0, 128, " in first.source and "tl.dot(" not in second.source
    exact = bias.double() + left.double() @ right.double()
    _check(text, [bias, left, right], exact, dtype, f"{TILES} depth-parts=3")


@pytest.mark.parametrize("dtype", DTYPES)
def test_tiles_behind_whole_waves(dtype: torch.dtype) -> None:
    """12 x 14 tiles for 132 processors: 9 rows of tiles, and 46 rows in smaller tiles."""
    bias, left = _matrix(440, dtype=dtype, seed=2), _matrix(190, 96, dtype=dtype, seed=0)
    right = _matrix(96, 440, dtype=dtype, seed=1, transposed=True)
    text = program("aten.addmm()", [bias, left, right], (190, 440))
    options = f"{TILES} last-rows=16 last-columns=16 last-depth=32"
    (found,) = emit(lowered(text, options))
    assert found.source.count("tl.dot(") == 2
    _check(text, [bias, left, right], bias.double() + left.double() @ right.double(), dtype, options)


@pytest.mark.parametrize("transposed", [(False, True), (True, False)])
@pytest.mark.parametrize("depth", [64, 200])
def test_boxes(transposed: tuple[bool, bool], depth: int) -> None:
    """A copy engine brings factors that lie either way, zeros beyond the depth, and the matrices of a batch."""
    left = _matrix(3, 40, depth, dtype=torch.float16, seed=0, transposed=transposed[0])
    right = _matrix(3, depth, 48, dtype=torch.float16, seed=1, transposed=transposed[1])
    options = f"{TILES} boxes=true"
    for dims, sizes in ((1, (40, 48)), (3, (3, 40, 48))):
        factors = [left, right] if dims == 3 else [left[1].clone(), right[1].clone()]
        text = program("aten.bmm()" if dims == 3 else "aten.mm()", factors, sizes)
        (kernel,) = emit(lowered(text, options))
        # rows along the depth end with it, but behind columns along it lies the matrix of the next product
        whole = depth == 64 or dims == 1 or transposed[1]
        assert kernel.source.count("tl.make_tensor_descriptor(") * DESCRIPTOR == kernel.descriptor_bytes
        assert kernel.descriptor_bytes == (2 * DESCRIPTOR if whole else 0)
        _check(text, factors, factors[0].double() @ factors[1].double(), torch.float16, options)


@pytest.mark.parametrize("boxes", ["true", "false"])
def test_programs_take_tiles_in_turns(boxes: str) -> None:
    """There are more tiles than programs, and a loop of a program runs through those that it has."""
    left, right = (_matrix(*sizes, 32, dtype=torch.float16, seed=k) for k, sizes in enumerate(((200,), (400,))))
    text = program("aten.mm()", [left, right.t()], (200, 400))
    options = f"{TILES} resident=1 boxes={boxes}"
    (kernel,) = emit(lowered(text, options))
    assert kernel.programs({}) == 132 and "in tl.range(tl.program_id(0), 169, 132, flatten=True)" in kernel.source
    _check(text, [left, right.t()], left.double() @ right.double().t(), torch.float16, options)


@pytest.mark.parametrize("depth", [0, 1, 16, 45])
@pytest.mark.parametrize("rows", [0, 1, 21])
def test_dynamic_sizes(rows: int, depth: int) -> None:
    """The very same kernel serves other sizes, also none."""
    text = on_gpu("""
func.func @f(%x: !aten.tensor<(s0)x(s1)xf32>, %w: !aten.tensor<(s1)x40xf32>) -> !aten.tensor<(s0)x40xf32>
    attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 0, hint = 64>,
                           #sym.symbol<s1, arg = 0, dim = 1, min = 0, hint = 64>]} {
  %0 = aten.mm(%x, %w) : !aten.tensor<(s0)x40xf32>
  func.return %0 : !aten.tensor<(s0)x40xf32>
}""")
    left, right = _matrix(rows, depth, dtype=torch.float32, seed=0), _matrix(depth, 40, dtype=torch.float32, seed=1)
    _check(text, [left, right], left.double() @ right.double(), torch.float32)


def _linear(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.linear(x, w, b)


def _activation(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.gelu(F.linear(x, w, b), approximate="tanh")


def _residual(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    first = x[:, :1] + 1
    return first + F.linear(x, w) * 0.5 + b


def _gated(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """Two products of one input, and what is done with both."""
    return F.silu(F.linear(x, w, b)) * F.linear(x, w.flip(0))


def _computed(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """Factors that are computed where they are multiplied, one of which is no zero beyond the depth."""
    return (2 - x) @ (w.relu() + 1).t() + b


def _scores(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """Heads, of which the keys are read transposed, and a scale and a mask behind the product."""
    heads = [y.unflatten(-1, (3, -1)).transpose(0, 1) for y in (x, w)]
    scores = heads[0] @ heads[1].transpose(-1, -2) * 0.25
    return scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -1e4) + b


def _three(x: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    """Products that do not depend on one another share a launch, each with tiles of its own."""
    return F.linear(x, w, b), x @ w[:12].t(), w @ w.t()


FUNCTIONS = (_linear, _activation, _residual, _gated, _computed, _scores, _three)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_around_a_product(function: Callable[..., Any], dtype: torch.dtype) -> None:
    """What is done with a product, and what its factors are computed from, is in one kernel with it."""
    inputs = [_matrix(*shape, dtype=dtype, seed=k) for k, shape in enumerate([(19, 42), (35, 42), (35,)])]
    _check_function(function, inputs)


@pytest.mark.parametrize("scales", [torch.float32, torch.bfloat16])
def test_quantised_weights(scales: torch.dtype) -> None:
    """Weights of 8 bits become numbers of 16 where they are multiplied."""

    def function(w: Tensor, scale: Tensor, x: Tensor) -> Tensor:
        return F.linear(x, (w.to(scale.dtype) * scale).to(x.dtype))

    generator = torch.Generator().manual_seed(3)
    weight = torch.randint(-128, 128, (35, 42), generator=generator, dtype=torch.int8)
    scale = _matrix(35, 1, dtype=scales, seed=2) / 64
    _check_function(function, [weight, scale, _matrix(19, 42, dtype=torch.bfloat16, seed=0)])


def _check_function(function: Callable[..., Any], inputs: Sequence[Tensor]) -> None:
    backend = OfflineBackend(["cuda:90"], "cuda:0", {"loop_products": True})
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(function, backend=backend)(*inputs)
        exact = pytree.tree_leaves(function(*(x.double() if x.is_floating_point() else x for x in inputs)))
    ((_, kernel),) = backend.kernels
    assert "tl.dot(" in kernel.source
    ((_, _, module),) = backend.modules
    dtype = inputs[-1].dtype
    for results in (build(for_cpu(module))(list(inputs)), run_module(for_cpu(module), list(inputs))):
        for found, wanted in zip(results, exact, strict=True):
            error = (found.double() - wanted).norm() / wanted.norm()
            assert found.shape == wanted.shape and found.dtype == dtype and error < 2 * TOLERANCE[dtype]


def test_integers_and_their_scales() -> None:
    """Products of integers are exact, and scaled where they are summed."""
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randint(-128, 128, (rows, 200), dtype=torch.int8, generator=generator) for rows in (33, 40))
    scales = _matrix(33, 1, dtype=torch.float32, seed=2), _matrix(40, dtype=torch.float32, seed=3)
    t = 'device = "cuda:0"'
    text = f"""func.func @f(%x: !aten.tensor<33x200xi8, {t}>, %w: !aten.tensor<40x200xi8, {t}>,
        %r: !aten.tensor<33x1xf32, {t}>, %c: !aten.tensor<40xf32, {t}>) -> !aten.tensor<33x40xf32, {t}> {{
      %0 = aten.t(%w) : !aten.tensor<200x40xi8, strides = [1, 200], {t}>
      %1 = aten._int_mm(%x, %0) : !aten.tensor<33x40xi32, {t}>
      %2 = aten._to_copy(%1, dtype = torch.float32) : !aten.tensor<33x40xf32, {t}>
      %3 = aten.mul.Tensor(%2, %r) : !aten.tensor<33x40xf32, {t}>
      %4 = aten.mul.Tensor(%3, %c) : !aten.tensor<33x40xf32, {t}>
      func.return %4 : !aten.tensor<33x40xf32, {t}>
    }}"""
    (kernel,) = emit(lowered(text))
    assert "out_dtype=tl.int32" in kernel.source
    exact = left.double() @ right.double().t() * scales[0].double() * scales[1].double()
    _check(text, [left, right, *scales], exact, torch.float32)


@pytest.mark.parametrize(("rows", "columns"), [(1, 48), (2, 48), (16, 48), (33, 44)])
def test_integers_that_the_library_refuses(rows: int, columns: int) -> None:
    """Without an option: of few rows, or of columns that are no multiple of 8."""
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randint(-128, 128, (n, 200), dtype=torch.int8, generator=generator) for n in (rows, columns))
    t = 'device = "cuda:0"'
    module = parse(f"""func.func @f(%x: !aten.tensor<{rows}x200xi8, {t}>, %w: !aten.tensor<{columns}x200xi8, {t}>)
        -> !aten.tensor<{rows}x{columns}xi32, {t}> {{
      %0 = aten.t(%w) : !aten.tensor<200x{columns}xi8, strides = [1, 200], {t}>
      %1 = aten._int_mm(%x, %0) : !aten.tensor<{rows}x{columns}xi32, {t}>
      func.return %1 : !aten.tensor<{rows}x{columns}xi32, {t}>
    }}""")
    PassManager(named_passes("default", "cuda:90")).run(new_context(), module)
    (kernel,) = emit(module)
    assert ("out_dtype=tl.int32" in kernel.source) == (rows > 1)
    (got,) = build(for_cpu(module))([left, right])
    assert torch.equal(got.double(), left.double() @ right.double().t())


@pytest.mark.parametrize("weights", ["i8", "f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize("rows", [2, 7, 16])
def test_few_rows_and_a_weight_of_8_bits(rows: int, weights: str) -> None:
    """Numbers are multiplied as they are, exactly, and the sums are scaled: nothing is rounded in between."""
    left = _matrix(rows, 600, dtype=torch.bfloat16, seed=0)
    weight = torch.randint(-128, 128, (48, 600), dtype=torch.int8, generator=torch.Generator().manual_seed(1))
    if weights != "i8":
        weight = weight.float().to(torch.float8_e4m3fn if "E4" in weights else torch.float8_e5m2)
    scales = _matrix(48, dtype=torch.bfloat16, seed=2)
    made, t = '!aten.tensor<600x48xbf16, strides = [1, 600], device = "cuda:0">', 'device = "cuda:0"'
    text = f"""func.func @f(%x: !aten.tensor<{rows}x600xbf16, {t}>, %w: !aten.tensor<48x600x{weights}, {t}>,
        %s: !aten.tensor<48xbf16, {t}>) -> !aten.tensor<{rows}x48xbf16, {t}> {{
      %0 = aten.t(%w) : {made.replace("bf16", weights)}
      %1 = aten._to_copy(%0, dtype = torch.bfloat16) : {made}
      %2 = aten.mul.Tensor(%1, %s) : {made}
      %3 = aten.mm(%x, %2) : !aten.tensor<{rows}x48xbf16, {t}>
      func.return %3 : !aten.tensor<{rows}x48xbf16, {t}>
    }}"""
    made_weight = weight.double() * scales.double()[:, None]
    _check(text, [left, weight, scales], left.double() @ made_weight.t(), torch.bfloat16, "")


@pytest.mark.parametrize(("rows", "columns"), [((), ()), ((50, 1), (1, 48))])
@pytest.mark.parametrize("kinds", [("float8_e4m3fn", "float8_e4m3fn"), ("float8_e5m2", "float8_e4m3fn")])
@pytest.mark.parametrize("fast", ["true", "false"])
def test_floats_of_8_bits(fast: str, kinds: tuple[str, str], rows: tuple[int, ...], columns: tuple[int, ...]) -> None:
    """With scales of a side or of each row of it, and a bias, by the library's own op."""
    left = (2 * _matrix(50, 96, dtype=torch.float32, seed=0)).to(getattr(torch, kinds[0]))
    right = _matrix(48, 96, dtype=torch.float32, seed=1).to(getattr(torch, kinds[1])).t()
    scales = torch.rand(rows, generator=torch.Generator().manual_seed(2)), torch.rand(columns) + 0.5
    bias = _matrix(48, dtype=torch.bfloat16, seed=3)
    text = program(
        f"aten._scaled_mm(, out_dtype = torch.bfloat16, use_fast_accum = {fast})",
        [left, right, *scales, bias],
        (50, 48),
        torch.bfloat16,
    )
    exact = (left.double() @ right.double()) * scales[0].double() * scales[1].double() + bias.double()
    assert ("max_num_imprecise_acc" in emit(lowered(text))[0].source) == (fast == "false")
    _check(text, [left, right, *scales, bias], exact, torch.bfloat16)
