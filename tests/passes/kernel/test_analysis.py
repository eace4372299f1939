"""The analyses that kernel passes decide by."""

from __future__ import annotations

import pytest

from inductile.dialects import kernel
from inductile.dialects.sym import parse_text
from inductile.passes.analysis.aliasing import may_overwrite
from inductile.passes.analysis.dependences import keeps_apart
from inductile.passes.analysis.nests import Nest, work_of_op
from inductile.passes.analysis.sizes import Sizes
from inductile.passes.kernel.transforms import block_range, linearise

from .stages import parse


def _kernel(body: str, buffers: str = "", symbols: str = "") -> kernel.FuncOp:
    module = parse(f"kernel.func @k({buffers}) {symbols} {{ {body} kernel.yield }}")
    function = module.body.block.first_op
    assert isinstance(function, kernel.FuncOp)
    return function


BUFFERS = "%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>"


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        # the same place, read before
        ("kernel.for i in 0 to 8 { %v = kernel.load %x[i] kernel.store %v, %y[i] kernel.yield }", True),
        # two axes that make up one place
        (
            "kernel.for i in 0 to 8 { kernel.for j in 0 to 8 { %v = kernel.load %x[8*i + j]"
            " kernel.store %v, %y[8*i + j] kernel.yield } kernel.yield }",
            True,
        ),
        # rows: all of a row is read before it is written
        (
            "kernel.for i in 0 to 8 {"
            " %m = kernel.reduce sum j in 0 to 8 { %v = kernel.load %x[8*i + j] kernel.yield %v }"
            " kernel.for j in 0 to 8 { kernel.store %m, %y[8*i + j] kernel.yield } kernel.yield }",
            True,
        ),
        # a row that reaches into the next one
        (
            "kernel.for i in 0 to 7 {"
            " %m = kernel.reduce sum j in 0 to 9 { %v = kernel.load %x[8*i + j] kernel.yield %v }"
            " kernel.for j in 0 to 8 { kernel.store %m, %y[8*i + j] kernel.yield } kernel.yield }",
            False,
        ),
        # everything is read before anything is written
        (
            "%m = kernel.reduce sum j in 0 to 64 { %v = kernel.load %x[-j + 63] kernel.yield %v }"
            " kernel.for j in 0 to 64 { kernel.store %m, %y[j] kernel.yield }",
            True,
        ),
        # read behind the write
        (
            "kernel.for i in 0 to 8 { %c = arith.constant 1.0 : f32 kernel.store %c, %y[i]"
            " %v = kernel.load %x[i] kernel.store %v, %y[i] kernel.yield }",
            False,
        ),
        # another place
        ("kernel.for i in 0 to 8 { %v = kernel.load %x[i + 1] kernel.store %v, %y[i] kernel.yield }", False),
        # a place that is loaded
        (
            "kernel.for i in 0 to 8 { %v = kernel.load %x[i] %n = kernel.index 7"
            " kernel.store %v, %y[d0] (d0 = %n) kernel.yield }",
            False,
        ),
        # the result is read too
        (
            "kernel.for i in 0 to 8 { %v = kernel.load %x[i] kernel.store %v, %y[i] %w = kernel.load %y[i]"
            " kernel.yield }",
            False,
        ),
    ],
)
def test_may_overwrite(body: str, allowed: bool) -> None:
    assert may_overwrite(_kernel(body, BUFFERS), 0, 1) is allowed


@pytest.mark.parametrize(
    ("index", "size", "apart"),
    [
        ("64*d0 + i", "64", True),
        ("64*d0 + i", "65", False),
        ("64*d0 + 2*i + 5", "32", True),
        ("64*d0 + 2*i", "33", False),
        ("64*d0 + i", "s0", False),
        ("s0*d0 + i", "s0", True),
        ("s0*s1*d0 + i + 7", "s0", True),
        ("s1*d0 + i", "s0", False),
        ("i", "s0", True),
        ("d0", "4", False),
        ("d0 + i", "4", False),
    ],
)
def test_keeps_apart(index: str, size: str, apart: bool) -> None:
    function = _kernel(
        f"kernel.for i in 0 to {size} {{ %n = kernel.index 3 %v = arith.constant 1.0 : f32"
        f" kernel.store add atomic %v, %y[{index}] (d0 = %n) kernel.yield }}",
        BUFFERS,
        "symbols (s0, s1)",
    )
    loop = function.body.block.first_op
    assert isinstance(loop, kernel.ForOp)
    store = next(op for op in loop.body.block.ops if isinstance(op, kernel.StoreOp))
    assert keeps_apart(store, loop) is apart


def test_strides_know_on_which_axes_loaded_indices_depend() -> None:
    function = _kernel(
        "kernel.for i in 0 to 8 { kernel.for j in 0 to 8 { %n = kernel.load %p[i]"
        " %v = kernel.load %x[8*d0 + j] (d0 = %n) kernel.store %v, %y[8*i + j] kernel.yield } kernel.yield }",
        f"{BUFFERS}, %p: !kernel.buffer<i64, 8>",
    )
    loop = function.body.block.first_op
    assert isinstance(loop, kernel.ForOp)
    gather = next(a for a in Nest.of(loop).accesses if a.varying)
    assert gather.varying == {"i"}
    assert gather.stride("i") is None
    assert str(gather.stride("j")) == "1"


def test_work_counts_iterations_and_takes_hints() -> None:
    function = _kernel(
        "kernel.for i in 0 to s0 { %v = kernel.load %x[i] kernel.store %v, %y[i] kernel.yield }",
        BUFFERS,
        "symbols (s0)",
    )
    loop = function.body.block.first_op
    assert loop is not None
    assert work_of_op(loop, Sizes({"s0": 10})) == 20
    assert work_of_op(loop, Sizes({"s0": 1000})) == 2000


def test_blocks_cover_a_range_exactly() -> None:
    blocks, within = block_range(("i", parse_text("0"), parse_text("n")), 8, {"i"})
    seen = []
    for n in (0, 1, 7, 8, 9, 40):
        covered: list[int] = []
        for block in range(blocks[2].evaluate({"n": n})):
            env = {"n": n, blocks[0]: block}
            covered += range(within[1].evaluate(env), within[2].evaluate(env))
        seen.append(covered == list(range(n)))
    assert seen == [True] * 6


def test_one_axis_enumerates_several_in_order() -> None:
    ranges = [
        ("a", parse_text("0"), parse_text("2")),
        ("b", parse_text("0"), parse_text("n")),
        ("c", parse_text("0"), parse_text("5")),
    ]
    (name, _, size), values = linearise(ranges, set())
    points = [tuple(values[axis].evaluate({"n": 3, name: k}) for axis in "abc") for k in range(size.evaluate({"n": 3}))]
    assert points == [(a, b, c) for a in range(2) for b in range(3) for c in range(5)]
