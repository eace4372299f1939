"""Bytes and operations read from the IR, against counting by hand and by enumeration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from inductile.dialects import kernel
from inductile.dialects.context import new_context
from inductile.errors import UserError
from inductile.lowering.pipeline import named_passes
from inductile.machines.roofline import roofline_named
from inductile.passes.analysis.footprint import elements, iterations
from inductile.passes.analysis.loops import Loop
from inductile.passes.analysis.program_costs import Cost, ProgramCost, kernel_cost, program_costs
from inductile.passes.manager import PassManager


def parse(text: str) -> ModuleOp:
    return Parser(new_context(), text).parse_module()


def costs(text: str, **symbols: int) -> ProgramCost:
    """The costs behind the default pipeline."""
    module = parse(text)
    PassManager(named_passes()).run(new_context(), module)
    return program_costs(module, symbols)[0]


def kernel_of(body: str, parameters: str = "%x: !kernel.buffer<f32, 10000>", symbols: str = "(n)") -> kernel.FuncOp:
    module = parse(f"kernel.func @k({parameters}) symbols {symbols} {{ {body} kernel.yield }}")
    (function,) = module.ops
    assert isinstance(function, kernel.FuncOp)
    return function


LOOPS = [
    "kernel.for i0 in 0 to 7 {{ kernel.for i1 in 0 to 5 {{ {} kernel.yield }} kernel.yield }}",
    "kernel.for i0 in 0 to 4 {{ kernel.for i1 in 8*i0 to min(n, 8*i0 + 8) {{ {} kernel.yield }} kernel.yield }}",
    "kernel.for i0 in 2 to 9 {{ kernel.for i1 in i0 to 9 {{ {} kernel.yield }} kernel.yield }}",
    "kernel.for i0 in 0 to 3 {{ kernel.for i1 in 5 to 5 {{ {} kernel.yield }} kernel.yield }}",
]
INDICES = ["i0", "i1", "5*i0 + i1", "i0 + i1", "2*i0 + 3*i1", "i1 floordiv 3", "10*(i1 mod 4) + i0", "7", "4*i0 + 2*i1"]


def enumerate_points(loops: Sequence[Loop], values: dict[str, int]) -> Iterator[dict[str, int]]:
    if not loops:
        yield values
        return
    low, high = (int(e.data.evaluate(values)) for e in (loops[0].lo, loops[0].hi))
    for number in range(low, high):
        yield from enumerate_points(loops[1:], {**values, loops[0].axis.data: number})


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("index", INDICES)
def test_elements_and_iterations_are_counted_exactly_or_from_above(loop: str, index: str) -> None:
    function = kernel_of(loop.format(f"%v = kernel.load %x[{index}]"))
    loops = [op for op in function.walk() if isinstance(op, Loop)]
    (load,) = [op for op in function.walk() if isinstance(op, kernel.LoadOp)]
    points = list(enumerate_points(loops, {"n": 30}))
    wanted = len({int(load.map.data[0].evaluate(point)) for point in points})
    assert iterations(loops, {"n": 30}) == len(points)
    counted = elements(load.map.data[0], loops, {"n": 30})
    independent = loop in (LOOPS[0], LOOPS[3]) or not {"i0", "i1"} <= load.map.data[0].free_symbols
    gaps = index == "2*i0 + 3*i1"  # two coefficients neither of which divides the other
    assert counted == wanted if independent and not gaps else wanted <= counted <= len(points) + 100


def test_what_a_kernel_reads_of_its_own_does_not_count() -> None:
    body = """
      kernel.for i0 in 0 to n {
        %a = kernel.load %x[i0]  %b = kernel.load %x[i0]  %c = arith.addf %a, %b : f32
        %e = math.exp %c : f32
        kernel.store %e, %y[i0]
        %d = kernel.load %y[i0]  kernel.store %d, %z[0]
        kernel.yield }"""
    buffers = ", ".join(f"%{name}: !kernel.buffer<f32, n>" for name in "xyz")
    assert kernel_cost(kernel_of(body, buffers), {"n": 100}) == Cost(400, 404, 100 + 1600)


SOFTMAX = """
func.func @f(%x: !aten.tensor<(s0)x4096xbf16>) -> !aten.tensor<(s0)x4096xbf16>
    attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2, hint = 16>]} {
  %0 = aten._softmax(%x, dim = -1, half_to_float = false) : !aten.tensor<(s0)x4096xbf16>
  func.return %0 : !aten.tensor<(s0)x4096xbf16>
}
"""


def test_a_fused_softmax_reads_and_writes_once() -> None:
    assert [(row.cost.read, row.cost.written) for row in costs(SOFTMAX).rows] == [(2 * 16 * 4096, 2 * 16 * 4096)]
    larger = costs(SOFTMAX, s0=1000)
    assert larger.total.bytes == 2 * 2 * 1000 * 4096
    assert larger.allocated == 2 * 1000 * 4096
    seconds = larger.seconds(roofline_named("cuda:90"))
    assert seconds == pytest.approx(2 * 2 * 1000 * 4096 / 3.0e12 + 5e-6)


INDEX_COPY = """
func.func @step(%cache: !aten.tensor<1x8x1024x64xf32>, %at: !aten.tensor<1xi64>, %new: !aten.tensor<1x8x1x64xf32>)
    -> !aten.tensor<f32> {
  %0 = aten.index_copy(%cache, %at, %new, dim = 2) : !aten.tensor<1x8x1024x64xf32>
  %1 = aten.copy_(%cache, %0) : !aten.tensor<1x8x1024x64xf32>
  %2 = aten.sum(%new) : !aten.tensor<f32>
  func.return %2 : !aten.tensor<f32>
}
"""


def test_a_step_of_a_cache_moves_only_the_new_tokens() -> None:
    program = costs(INDEX_COPY)
    new = 4 * 8 * 64
    assert program.total.written <= new + 4 * 1024
    assert program.total.read <= 2 * new + 4 * 1024
    assert all(row.kind == "kernel" for row in program.rows)


def test_a_matrix_product() -> None:
    text = """
    func.func @f(%x: !aten.tensor<64x32xf32>, %y: !aten.tensor<32x16xf32>) -> !aten.tensor<64x16xf32> {
      %0 = aten.mm(%x, %y) : !aten.tensor<64x16xf32>
      func.return %0 : !aten.tensor<64x16xf32>
    }"""
    (row,) = costs(text).rows
    assert (row.name, row.kind, row.cost) == (
        "aten.mm",
        "call",
        Cost(4 * (64 * 32 + 32 * 16), 4 * 64 * 16, 2 * 64 * 32 * 16),
    )


def test_machines_are_data(tmp_path: Path) -> None:
    path = tmp_path / "slow.json"
    path.write_text('{"name": "slow", "bandwidth": 1e6, "operations": 1e6}')
    assert Cost(500, 500, 3000).seconds(roofline_named(str(path))) == pytest.approx(3e-3)
    with pytest.raises(UserError, match="unknown machine 'h1000'"):
        roofline_named("h1000")
    path.write_text("{}")
    with pytest.raises(UserError, match="give name, bandwidth, operations, launch"):
        roofline_named(str(path))
