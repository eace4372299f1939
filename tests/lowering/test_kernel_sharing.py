"""Equal fusions are lowered once: what counts as equal, and that programs compute the same with and without it."""

from __future__ import annotations

import pytest
import torch
from xdsl.dialects.builtin import ModuleOp

from inductile.backends.reference import run_module
from inductile.dialects import host, kernel
from inductile.dialects.context import new_context
from inductile.lowering.loop_to_kernel import kernel_builder
from inductile.lowering.loop_to_kernel.convert import LowerLoopToKernel
from inductile.passes.counters import counting, parse_counters
from inductile.passes.verification import find_violation

from ..passes.kernel.stages import parse

T = "!aten.tensor<4x6xf32>"


def layer(name: str, x: str, y: str, combiner: str = "sum", size: int = 6) -> str:
    """A fusion that reads two tensors, one of them row by row."""
    return f"""
  {name} = loop.fusion (a0 in 4, a1 in 6) {{
    %e = loop.generate (i0 in 4, i1 in 6) on (a0, a1) {{
      %v = loop.load {x}[i0, i1]
      %r = loop.reduce {combiner} (r0 in {size}) {{
        %w = loop.load {y}[i0, r0]
        loop.yield %w
      }}
      %s = arith.addf %v, %r : f32
      loop.yield %s
    }} : {T}
    loop.yield %e
  }} : {T}"""


def program(*layers: str) -> ModuleOp:
    """A function of two tensors that returns the last layer."""
    last = layers[-1].partition(" = loop.fusion")[0].split()[-1]
    return parse(f"""
func.func @f(%x: {T}, %y: {T}) -> {T} {{{"".join(layers)}
  func.return {last} : {T}
}}""")


def lowered(module: ModuleOp) -> tuple[list[kernel.FuncOp], list[host.LaunchOp]]:
    """The kernels and the launches that a module becomes."""
    LowerLoopToKernel().apply(new_context(), module)
    assert find_violation(module) is None
    ops = list(module.walk())
    return [op for op in ops if isinstance(op, kernel.FuncOp)], [op for op in ops if isinstance(op, host.LaunchOp)]


def test_equal_fusions_are_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    build = kernel_builder.KernelBuilder.build

    def counted(self: kernel_builder.KernelBuilder) -> None:
        built.append("")
        build(self)

    monkeypatch.setattr(kernel_builder.KernelBuilder, "build", counted)
    layers = [layer("%h0", "%x", "%y"), *(layer(f"%h{k}", f"%h{k - 1}", "%y") for k in range(1, 24))]
    kernels, launches = lowered(program(*layers))
    assert len(built) == len(kernels) == 1
    assert len(launches) == 24
    assert {launch.kernel.root_reference.data for launch in launches} == {"sum_0"}


@pytest.mark.parametrize(
    "other",
    [
        layer("%b", "%a", "%a"),  # one value where the first reads two
        layer("%b", "%a", "%y", combiner="max"),
        layer("%b", "%a", "%y", size=5),
    ],
)
def test_different_fusions_stay_apart(other: str) -> None:
    kernels, launches = lowered(program(layer("%a", "%x", "%y"), other))
    assert len(kernels) == len(launches) == 2


def scan(name: str, source: str, start: str) -> str:
    """A fusion with a scan that starts at a constant from outside."""
    return f"""
  {name}_c = arith.constant {start} : f32
  {name} = loop.fusion (a0 in 4) {{
    %e = loop.scan custom init({name}_c) (i0 in 4, i1 in 6) along i1 on (a0, _) {{
      %v = loop.load {source}[i0, i1]
      loop.yield %v
    }} combine {{
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      loop.yield %s
    }} : {T}
    loop.yield %e
  }} : {T}"""


@pytest.mark.parametrize(("start", "count"), [("0.0", 1), ("-0.0", 2), ("1.0", 2)])
def test_constants_from_outside_count(start: str, count: int) -> None:
    kernels, launches = lowered(program(scan("%a", "%x", "0.0"), scan("%b", "%a", start)))
    assert len(kernels) == count
    assert len(launches) == 2


def test_results_are_those_of_kernels_of_their_own() -> None:
    layers = [layer("%a", "%x", "%y"), layer("%b", "%a", "%y"), layer("%c", "%b", "%b"), layer("%d", "%c", "%a")]
    inputs = [torch.randn(4, 6), torch.randn(4, 6)]
    found: list[torch.Tensor] = []
    for limits, kernels in (("", 2), ("lower-loop-to-kernel-count=0", 4)):
        module = program(*layers)
        with counting(parse_counters(limits)):
            assert len(lowered(module)[0]) == kernels
        found.append(run_module(module, inputs)[0])
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=0)
