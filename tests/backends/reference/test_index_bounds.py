"""Integers that are made up as indices are in range at every level."""

from __future__ import annotations

import pytest
from xdsl.parser import Parser

from inductile.backends.reference.index_bounds import IndexBounds
from inductile.backends.reference.run import find_function
from inductile.dialects.context import new_context

SCALAR = "%x: !aten.tensor<f32>, %i: !aten.tensor<1xi64>"
BAGS = "%g: !aten.tensor<2x4xf32>, %i: !aten.tensor<6xi64>, %b: !aten.tensor<6xi64>, %c: !aten.tensor<2xi64>"


@pytest.mark.parametrize(
    ("arguments", "call", "bounds"),
    [
        (SCALAR, "%y = aten.index_select(%x, %i, dim = 0) : !aten.tensor<f32>", {1: "1"}),
        (SCALAR, "%y = aten.take(%x, %i) : !aten.tensor<1xf32>", {1: "1"}),
        (
            "%x: !aten.tensor<3x5xf32>, %i: !aten.tensor<1xi64>",
            "%y = aten.take(%x, %i) : !aten.tensor<1xf32>",
            {1: "15"},
        ),
        (
            BAGS,
            "%y = aten._embedding_bag_dense_backward(%g, %i, %b, %c, %c, none, num_weights = 10,"
            " scale_grad_by_freq = false, mode = 1) : !aten.tensor<10x4xf32>",
            {1: "10", 2: "2", 3: "10"},
        ),
    ],
)
def test_bounds_of_arguments(arguments: str, call: str, bounds: dict[int, str]) -> None:
    text = f"func.func @f({arguments}) -> () {{ {call} func.return }}"
    module = Parser(new_context(), text).parse_module()
    found = IndexBounds(module, find_function(module, None)).found
    assert {number: ", ".join(map(str, each)) for number, each in found.items()} == bounds
