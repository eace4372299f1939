"""Lines through whole numbers, and tables of what bodies compute of an axis, against other ways to get them."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from xdsl.ir import SSAValue
from xdsl.parser import Parser

from inductile.backends.reference.precision import Precision
from inductile.backends.reference.scalars import CMPF, evaluate
from inductile.dialects.context import new_context
from inductile.dialects.loop import GenerateOp
from inductile.dialects.sym import Ranges, symbol
from inductile.passes.loop._axis_tables import AxisTables
from inductile.passes.loop._digital_lines import line_through

AXIS = symbol("i0")


def values(expr: object, points: int) -> np.ndarray:
    assert expr is not None
    return np.broadcast_to(expr.evaluate({"i0": np.arange(points)}), (points,))  # pyright: ignore


@pytest.mark.parametrize("seed", range(300))
def test_lines_are_found(seed: int) -> None:
    rng = random.Random(seed)
    points, a, b, c = rng.randint(1, 200), rng.randint(-40, 40), rng.randint(-100, 100), rng.randint(1, 40)
    table = (a * np.arange(points) + b) // c
    if rng.random() < 0.5:
        table = np.maximum(table, rng.randint(-100, 100))
    if rng.random() < 0.5:
        table = np.minimum(table, max(rng.randint(-100, 100), int(table.min())))
    assert (values(line_through(table, AXIS), points) == table).all()


@pytest.mark.parametrize("table", [[0, 1, 0], [0, 1, 4, 9, 16], [0, 0, 1, 5, 5, 6], [1 << 40, 0], [0, 2, 2, 4, 4, 9]])
def test_others_have_no_line(table: list[int]) -> None:
    assert line_through(np.array(table), AXIS) is None


def test_the_simplest_line_is_taken() -> None:
    i = np.arange(128)
    assert str(line_through(i // 2, AXIS)) == "i0 floordiv 2"
    assert str(line_through(np.maximum((i - 1) // 2, 0), AXIS)) == "max(i0 - 1, 0) floordiv 2"
    assert str(line_through(63 - i // 4, AXIS)) == str(63 - AXIS // 4)
    assert str(line_through(np.minimum(i, 63), AXIS)) == "min(i0, 63)"
    assert str(line_through(np.full(5, 7), AXIS)) == "7"


def bits(x: torch.Tensor) -> torch.Tensor:
    """Bytes of numbers, one NaN like another."""
    return torch.where(x.isnan(), 7.5, x).view(torch.uint8) if x.is_floating_point() else x


BODY = """
%i = loop.index 3*i0 - 9
%j = scalar.cast %i : i64 to i32
%n = arith.constant 7 : i32
%d = scalar.floordivi %j, %n : i32
%m = scalar.remainderi %j, %n : i32
%r = arith.remsi %j, %n : i32
%big = arith.constant 1000000007 : i32
%wrapped = arith.muli %j, %big : i32
%smaller = arith.minsi %d, %m : i32
%larger = arith.maxsi %d, %r : i32
%f = scalar.cast %i : i64 to f32
%g = scalar.cast %wrapped : i32 to f64
%h = scalar.cast %g : f64 to f32
%third = arith.constant 3.3333334e-01 : f32
%p = arith.mulf %f, %third : f32
%q = arith.divf %p, %h : f32
%s = arith.subf %p, %q : f32
%t = arith.addf %s, %third : f32
%neg = arith.negf %t : f32
%u = math.floor %neg : f32
%v = math.ceil %p : f32
%w = math.trunc %p : f32
%e = math.roundeven %p : f32
%abs = math.absf %p : f32
%nan = arith.divf %f, %f : f32
%up = arith.maximumf %p, %third : f32
%down = arith.minimumf %nan, %third : f32
%c = arith.cmpf ogt, %p, %third : f32
%o = arith.select %c, %p, %f : f32
%k = scalar.cast %o : f32 to i64
%b = arith.cmpi sle, %d, %m : i32
%both = arith.andi %b, %c : i1
%either = arith.ori %b, %c : i1
%one = arith.xori %b, %c : i1
%bit = scalar.cast %one : i1 to f32
%some = scalar.cast %p : f32 to i1
"""
ORDERED, UNORDERED = (tuple(kind + p for p in ("eq", "gt", "ge", "lt", "le", "ne")) for kind in "ou")
COMPARED = ("false", *ORDERED, "ord", *UNORDERED, "uno", "true")


def test_tables_are_what_the_reference_computes() -> None:
    compared = "".join(f"%is_{p} = arith.cmpf {p}, %nan, %p : f32\n" for p in COMPARED)
    text = f"%x = loop.generate (i0 in 50) {{ {BODY} {compared} loop.yield %t }} : !aten.tensor<50xf32>"
    (nest,) = Parser(new_context(), text).parse_module().ops
    assert isinstance(nest, GenerateOp) and len(CMPF) == len(COMPARED)
    ranges = Ranges.of_axes(nest.axes.data)
    index = nest.body.block.first_op
    assert index is not None
    tables = AxisTables({index.results[0]: AXIS * 3 - 9})
    lanes: dict[SSAValue, torch.Tensor] = {index.results[0]: 3 * torch.arange(50) - 9}
    for op in list(nest.body.block.ops)[1:-1]:
        if op.name == "arith.constant":
            lanes[op.results[0]] = torch.from_numpy(tables.table(op.results[0], ranges))
            continue
        args = tuple(lanes[operand].expand(50) for operand in op.operands)
        (expected,) = evaluate(op, args, Precision(), lambda *_: None)
        lanes[op.results[0]] = expected
        table = tables.table(op.results[0], ranges)
        assert table is not None, op
        found = torch.from_numpy(np.broadcast_to(table, (50,)).copy())
        assert found.dtype == expected.dtype and torch.equal(bits(found), bits(expected)), op
