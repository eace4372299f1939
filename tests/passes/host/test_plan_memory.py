"""Programs whose temporaries on a GPU lie in a pool: the same program, on the CPU, computes what it did."""

from __future__ import annotations

import torch
from xdsl.parser import Parser

from inductile.backends.host import build
from inductile.dialects import host
from inductile.dialects.context import new_context
from inductile.lowering.pipeline import named_passes
from inductile.lowering.registry import parse_passes
from inductile.passes.printing import module_text

N = 3000


def _program() -> str:
    """Temporaries of two types, some of which live beside others, and one that an ATen op reads."""
    on = ', device = "cuda:0"'
    kernel = f"""
    kernel.func @k(%x: !kernel.buffer<f32, {N}>, %y: !kernel.buffer<f32, {N}>) {{
      kernel.for i0 in 0 to {N} {{
        %v = kernel.load %x[i0]
        %w = arith.negf %v : f32
        kernel.store %w, %y[i0]
        kernel.yield
      }}
      kernel.yield
    }}"""
    t = f"!aten.tensor<{N}xf32{on}>"
    return f"""{kernel}
    host.func @f(%x: {t}) -> ({t}) {{
      %a = host.empty : {t}
      host.launch @k(%x, %a)
      %b = host.empty : {t}
      host.launch @k(%a, %b)
      %c = host.empty : {t}
      host.launch @k(%b, %c)
      %d = host.empty : !aten.tensor<{N}xf64{on}>
      host.copy %c to %d
      %e = aten.exp(%d) : !aten.tensor<{N}xf64{on}>
      %g = host.empty : {t}
      host.copy %e to %g
      %h = aten.add.Tensor(%g, %c) : {t}
      %r = host.empty : {t}
      host.launch @k(%h, %r)
      host.return %r
    }}"""


def test_a_pool_on_a_gpu_changes_no_value() -> None:
    module = Parser(new_context(), _program()).parse_module()
    for each in named_passes(start_at="host-plan-memory"):
        each.apply(new_context(), module)
    empties = [op for op in module.walk() if isinstance(op, host.EmptyOp)]
    (pool,) = [op for op in empties if not op.pool and any(isinstance(u.operation, host.EmptyOp) for u in op.out.uses)]
    assert sum(bool(op.pool) for op in empties) == 5 and pool.kept is None
    program = build(Parser(new_context(), module_text(module).replace(', device = "cuda:0"', "")).parse_module())
    x = torch.randn(N)
    torch.testing.assert_close(program([x])[0], -((-x).double().exp().float() - x))


def test_a_recorded_program_keeps_its_allocations() -> None:
    module = Parser(new_context(), _program()).parse_module()
    for each in parse_passes("host-plan-memory{cudagraphs=true}"):
        each.apply(new_context(), module)
    assert not any(isinstance(op, host.EmptyOp) and op.pool for op in module.walk())
