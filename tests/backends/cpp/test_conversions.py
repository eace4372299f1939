"""Casts between all dtypes that kernels compute with, against `Tensor.to`."""

from __future__ import annotations

import pytest
import torch

from .programs import element_text, run_kernel

pytestmark = pytest.mark.usefixtures("target")

DTYPES = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.bool, torch.int8, torch.uint8, torch.int16,
    torch.int32, torch.int64,
)  # fmt: skip
INTEGERS = [0, 1, -1, 2, -2, 7, -7, 100, -100, 3, -3, 5, 64, -64, 31, 8, 9, 33, 127, -128, 1000, 40000, 2**31 - 1]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.9, -2.9, 1e-40, 100.25, -100.25, 65504.0, 1.0 + 2**-9,
          1.0 + 3 * 2**-9, 1e-8, 6e-8, -3e-5]  # fmt: skip
SPECIAL = [float("inf"), float("-inf"), float("nan"), 1e30, -1e6]


def pointwise(name: str, element: str, buffers: list[str], body: str) -> str:
    """A kernel with a body for each element %a of a vector, which stores to buffers %y0, %y1, ... of some dtypes."""
    stored = "".join(f", %y{k}: !kernel.buffer<{each}, n>" for k, each in enumerate(buffers))
    return f"""
kernel.func @{name}(%x: !kernel.buffer<{element}, n>{stored}) symbols (n) {{
  kernel.for i0 in 0 to n map vector {{
    %a = kernel.load %x[i0]
    {body}
    kernel.yield
  }}
  kernel.yield
}}"""


def cast_to_all(source: torch.dtype) -> str:
    """A kernel that stores one vector as every dtype."""
    element = element_text(source)
    casts = [
        f"%r{k} = scalar.cast %a : {element} to {element_text(target)}\n    kernel.store %r{k}, %y{k}[i0]"
        for k, target in enumerate(DTYPES)
    ]
    return pointwise("cast", element, [element_text(target) for target in DTYPES], "\n    ".join(casts))


def inputs(source: torch.dtype) -> torch.Tensor:
    if source == torch.bool:
        return torch.tensor([True, False] * 9)
    if source.is_floating_point:
        return torch.tensor(FLOATS + SPECIAL, dtype=torch.float64).to(source)
    return torch.tensor(INTEGERS).to(source)


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_casts(source: torch.dtype) -> None:
    x = inputs(source)
    outputs = run_kernel(
        cast_to_all(source), x, *(torch.empty(len(x), dtype=t) for t in DTYPES), len(x), outputs=len(DTYPES)
    )
    for target, got in zip(DTYPES, outputs, strict=True):
        want, compared = x.to(target), torch.ones(len(x), dtype=torch.bool)
        if source.is_floating_point and not target.is_floating_point and target != torch.bool:
            # out of range of the target, eager's scalar and vector code differ
            compared = (x.double().abs() < 127) & ((x >= 0) | (target != torch.uint8))
        torch.testing.assert_close(got[compared], want[compared], rtol=0, atol=0, equal_nan=True, msg=f"{target}: {x}")
        if target.is_floating_point:
            assert torch.equal(torch.signbit(got)[want == 0], torch.signbit(want)[want == 0])


def test_floats_out_of_range_wrap_like_eager() -> None:
    """300.0 as a byte is 44, -1.5 is 255: the integer part, wrapped."""
    x = torch.tensor([-1.5, 2.9, 300.0, -0.5, 70000.0])
    outputs = run_kernel(
        cast_to_all(torch.float32), x, *(torch.empty(5, dtype=t) for t in DTYPES), 5, outputs=len(DTYPES)
    )
    found = dict(zip(DTYPES, outputs, strict=True))
    assert found[torch.uint8].tolist() == [255, 2, 44, 0, 112]
    assert found[torch.int8].tolist() == [-1, 2, 44, 0, 112]
    assert found[torch.int32].tolist() == [-1, 2, 300, 0, 70000]


@pytest.mark.parametrize("source", [torch.float32, torch.float64])
def test_bytes_of_large_floats_are_those_of_their_integers(source: torch.dtype) -> None:
    """From 2^31 on a float32 has no low byte, so that 32 bits do for it; a float64 has."""
    x = torch.tensor([2.0**31, 3e9, 3000000257.0, -3e9 - 1, 2.0**62, 2.0**70, float("inf"), float("nan")], dtype=source)
    outputs = run_kernel(cast_to_all(source), x, *(torch.empty(8, dtype=t) for t in DTYPES), 8, outputs=len(DTYPES))
    assert torch.equal(dict(zip(DTYPES, outputs, strict=True))[torch.uint8], x.to(torch.int64).to(torch.uint8))


def test_no_sign_of_a_zero_comes_back_from_integers() -> None:
    """GCC would read the conversions there and back as one truncation, which keeps the sign of -0.5."""
    kinds = [(sign, width) for sign in "su" for width in (8, 16, 32, 64)]
    body = "\n    ".join(
        f"%i{k} = arith.fpto{sign}i %a : f32 to i{width}\n    "
        f"%b{k} = arith.{sign}itofp %i{k} : i{width} to f32\n    "
        f"kernel.store %b{k}, %y{k}[i0]"
        for k, (sign, width) in enumerate(kinds)
    )
    text = pointwise("there_and_back", "f32", ["f32"] * len(kinds), body)
    x = torch.tensor([-0.5, -0.0, 0.5, 2.9, 100.0] * 8)
    for got in run_kernel(text, x, *(torch.empty(len(x)) for _ in kinds), len(x), outputs=len(kinds)):
        assert torch.equal(got, x.trunc())
        assert not torch.signbit(got).any()
