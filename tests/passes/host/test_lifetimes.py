"""Lifetimes that are kept up to date are those that are found anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Block, Operation

from inductile.dialects import host
from inductile.dialects.aten.types import type_of
from inductile.dialects.context import new_context
from inductile.dialects.raw import ops_of
from inductile.dialects.reading import Reader
from inductile.dialects.sym import SymAttr
from inductile.passes.analysis.lifetimes import Lifetimes

_TEXT = """
kernel.func @k(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {
  kernel.for i0 in 0 to 8 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @f(%a: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>) symbols [] {
  %b = host.empty : !aten.tensor<8xf32>
  host.launch @k(%a, %b)
  %v = host.view %b offset 0 : !aten.tensor<2x4xf32>
  %w = host.view %v offset 0 : !aten.tensor<8xf32>
  %c = host.empty : !aten.tensor<8xf32>
  host.launch @k(%w, %c)
  %z = host.view %c offset 0 : !aten.tensor<4x2xf32>
  %d = host.empty : !aten.tensor<8xf32>
  host.launch @k(%z, %d)
  %e = host.empty : !aten.tensor<8xf32>
  host.launch @k(%d, %e)
  host.return %e
}
"""


def _host_block() -> Block:
    module = Reader(new_context(), _TEXT).parse_module()
    return next(op for op in module.ops if isinstance(op, host.FuncOp)).body.block


def test_merged_lifetimes_are_those_found_anew() -> None:
    block = _host_block()
    ops = ops_of(block)
    old, fresh = ops[3].results[0], ops[4].results[0]
    kept = Lifetimes(block)
    assert kept.roots(ops[6].results[0]) == {fresh}
    kept.merge(fresh, old, ops[5])
    fresh.replace_all_uses_with(old)
    block.erase_op(ops[4])
    _assert_as_anew(kept, block, ops)
    assert kept.roots(ops[6].results[0]) == {ops[0].results[0]}


def test_so_are_those_of_memory_that_is_viewed_from_then_on() -> None:
    """A launch writes over %c, whose result others read through a new view of it."""
    block = _host_block()
    ops = ops_of(block)
    old, fresh, launch = ops[4].results[0], ops[7].results[0], ops[8]
    kept = Lifetimes(block)
    view = host.ViewOp.of(old, SymAttr.of(0), type_of(fresh), launch.location)
    block.insert_op_before(view, launch)
    fresh.replace_all_uses_with(view.out)
    kept.merge(fresh, view.out, launch)
    block.erase_op(ops[7])
    launch.operands = (ops[6].results[0],)
    _assert_as_anew(kept, block, [view if op is launch else op for op in ops], also={view: launch})
    assert kept.roots(view.out) == {old}


def _assert_as_anew(
    kept: Lifetimes, block: Block, ops: Sequence[Operation], also: Mapping[Operation, Operation] = {}
) -> None:
    """`ops` are those at the positions of `kept`; an op of `also` counts as the one that it stands in front of."""
    anew, left = Lifetimes(block), ops_of(block)

    def at(op: Operation) -> Operation:
        return next((made for made, user in also.items() if user is op), op)

    assert sorted(map(id, kept.values)) == sorted(map(id, anew.values))
    found = {value: ops[last] for value, last in kept.last.items()}
    assert found == {value: at(left[last]) for value, last in anew.last.items()}
    for value in anew.values:
        assert kept.roots(value) == anew.roots(value)
        assert kept.escapes(value) == anew.escapes(value)
