"""Lifetimes that are kept up to date are those that are found anew."""

from __future__ import annotations

from inductile.dialects import host
from inductile.dialects.context import new_context
from inductile.dialects.raw import ops_of
from inductile.dialects.reading import Reader
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


def test_merged_lifetimes_are_those_found_anew() -> None:
    module = Reader(new_context(), _TEXT).parse_module()
    block = next(op for op in module.ops if isinstance(op, host.FuncOp)).body.block
    ops = ops_of(block)
    old, fresh = ops[3].results[0], ops[4].results[0]
    kept = Lifetimes(block)
    assert kept.roots(ops[6].results[0]) == {fresh}
    kept.merge(fresh, old)
    fresh.replace_all_uses_with(old)
    block.erase_op(ops[4])
    anew, left = Lifetimes(block), ops_of(block)
    assert kept.values == anew.values
    assert {value: ops[last] for value, last in kept.last.items()} == {v: left[last] for v, last in anew.last.items()}
    for value in anew.values:
        assert kept.roots(value) == anew.roots(value)
        assert kept.escapes(value) == anew.escapes(value)
    assert kept.roots(ops[6].results[0]) == {ops[0].results[0]}
