"""Which layouts fill the memory between their ends."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import f32

from inductile.dialects.aten.types import TensorType
from inductile.dialects.sym import as_expr
from inductile.passes.analysis.tensor_bytes import is_dense


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((2, 3), (3, 1), True),
        ((2, 3), (1, 2), True),
        ((2, 1, 3), (3, 77, 1), True),
        ((0, 3), (1, 1), True),
        ((2, 3), (4, 1), False),
        ((2, 3), (5, 0), False),  # as many elements as places between the ends, and five of these stand alone
    ],
)
def test_dense_layouts(shape: tuple[int, ...], strides: tuple[int, ...], expected: bool) -> None:
    sizes, steps = (tuple(map(as_expr, each)) for each in (shape, strides))
    assert is_dense(TensorType.get(sizes, f32, steps, "cpu")) is expected
