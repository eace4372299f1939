"""Programs that are divided into parts compute what they did; a recorder sees the parts in order.

There is no GPU: programs are split as on one, then run on the CPU with a stand-in for what records.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from inductile.backends.host import HostProgram, build
from inductile.dialects import host
from inductile.dialects.context import new_context
from inductile.passes.host._capturable import obstacles
from inductile.passes.host.free import HostFree
from inductile.passes.host.split_parts import HostSplitParts
from inductile.passes.manager import PassManager
from inductile.passes.remarks import collecting

CUDA = ', device = "cuda:0"'
T = f"!aten.tensor<(s0)xf32{CUDA}>"
KERNELS = """
kernel.func @add(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, n>, %z: !kernel.buffer<f32, n>) symbols (n) {
  kernel.for i0 in 0 to n {
    %a = kernel.load %x[i0]
    %b = kernel.load %y[i0]
    %c = arith.addf %a, %b : f32
    kernel.store %c, %z[i0]
    kernel.yield
  }
  kernel.yield
}
"""


def parsed(text: str) -> ModuleOp:
    module = Parser(new_context(), text).parse_module()
    module.verify()
    return module


def split(text: str, least: int = 1, constants: int = 0) -> ModuleOp:
    module = parsed(text)
    PassManager([HostSplitParts(cudagraphs=True, least=least, constants=constants), HostFree()]).run(
        new_context(), module
    )
    module.verify()
    return module


def on_cpu(module: ModuleOp) -> HostProgram:
    return build(parsed(str(module).replace(CUDA, "")))


def random_program(seed: int) -> str:
    """Launches, ATen calls, writes to an argument, views, and calls that wait for the device, at random."""
    choose = random.Random(seed)
    values, lines, waits = ["%x", "%y"], [], 0
    for number in range(choose.randint(6, 16)):
        one, two, kind = choose.choice(values), choose.choice(values), choose.random()
        new = f"%v{number}"
        if kind < 0.4:
            lines += [f"{new} = host.empty : {T}", f"host.launch @add({one}, {two}, {new}) [s0]"]
        elif kind < 0.55:
            lines.append(f"{new} = aten.sin({one}) : {T}")
        elif kind < 0.65:
            lines.append(f"{new} = host.view {one} offset 0 : {T}")
        elif kind < 0.75:
            lines.append(f"host.launch @add({one}, {two}, %y) [s0]" if one != "%y" != two else f"host.copy {one} to %y")
            continue
        elif kind < 0.8:
            lines.append(f"host.copy {one} to %y")
            continue
        else:  # the host waits for the device; the result has the argument's size, of which torch knows nothing
            waits += 1
            picked = f"!aten.tensor<(u{waits})xf32{CUDA}>"
            mask = f"!aten.tensor<(s0)xi1{CUDA}>"
            lines += [
                f"%m{number} = aten.isfinite({one}) : {mask}",
                f"%u{number} = aten.masked_select({one}, %m{number}) binds [u{waits}] : {picked}",
                f"{new} = aten.add.Tensor({one}, {two}) : {T}",
            ]
        values.append(new)
    results = choose.sample(values[2:], min(3, len(values) - 2))
    bound = "".join(f", #sym.symbol<u{k}, min = 0>" for k in range(1, waits + 1))
    head = f"host.func @f(%x: {T}, %y: {T}) -> ({', '.join([T] * len(results))})"
    body = "\n  ".join([*lines, f"host.return {', '.join(results)}"])
    return f"{KERNELS}{head} symbols [#sym.symbol<s0, arg = 0, dim = 0>{bound}] {{\n  {body}\n}}"


@pytest.mark.parametrize("seed", range(8))
def test_parts_compute_what_the_program_did(seed: int) -> None:
    text = random_program(seed)
    module = split(text)
    for function in module.ops:
        if isinstance(function, host.FuncOp) and function.recorded is not None:
            assert not list(obstacles(function, {}))
    whole, parts = on_cpu(parsed(text)), on_cpu(module)
    for size in (3, 5):
        x, y = torch.randn(size), torch.randn(size)
        expected, got = [x, y.clone()], [x, y.clone()]
        for left, right in zip(whole(list(expected)), parts(list(got)), strict=True):
            torch.testing.assert_close(right, left, rtol=0, atol=0)
        torch.testing.assert_close(got[1], expected[1], rtol=0, atol=0)


PROGRAM = f"""{KERNELS}
host.func @f(%x: {T}, %y: {T}) -> ({T}, {T}) symbols [#sym.symbol<s0, arg = 0, dim = 0>, #sym.symbol<u1>] {{
  %a = host.empty : {T}
  host.launch @add(%x, %y, %a) [s0]
  %n = aten.nonzero(%a) binds [u1] : !aten.tensor<(u1)x1xi64{CUDA}>
  %b = host.empty : {T}
  host.launch @add(%x, %x, %b) [s0]
  %k = aten.sum(%n) : !aten.tensor<i64{CUDA}>
  %c = aten.add.Tensor(%b, %k) : {T}
  host.return %a, %c
}}"""


def test_a_recorder_sees_the_parts_in_order() -> None:
    with collecting() as remarks:
        program = on_cpu(split(PROGRAM))
    assert sorted(program.parts) == ["f_part_0", "f_part_1"]
    told = [(r.kind, r.reason) for r in remarks if r.pass_name == "host-split-parts"]
    assert ("missed", "runs between recorded parts: its sizes depend on data") in told
    assert any(kind == "passed" and "2 recorded, 2 run, 1 recorded" in reason for kind, reason in told)
    seen: list[tuple[str, int]] = []
    for name, part in program.parts.items():

        def record(args: list[Any], name: str = name, part: HostProgram = part) -> Any:
            seen.append((name, len(args)))
            results = part.run(args)
            assert not args  # a recorder frees what it is given
            return results

        program.call_instead(name, record)
    x, y = torch.randn(4), torch.randn(4)
    a, c = program([x, y])
    torch.testing.assert_close(a, x + y)
    torch.testing.assert_close(c, 2 * x + torch.arange(4).sum())
    assert [name for name, _ in seen] == ["f_part_0", "f_part_1"]


def test_a_program_without_obstacles_stays_whole() -> None:
    text = f"""{KERNELS}
host.func @f(%x: {T}) -> ({T}) symbols [#sym.symbol<s0, arg = 0, dim = 0>] {{
  %a = host.empty : {T}
  host.launch @add(%x, %x, %a) [s0]
  host.return %a
}}"""
    assert not any(isinstance(op, host.FuncOp) and op.recorded is not None for op in split(text).ops)
    with_number = text.replace("@f(%x: ", "@f(%n: !aten.tensor<f32>, %x: ").replace("arg = 0", "arg = 1")
    assert any(isinstance(op, host.FuncOp) and op.recorded is not None for op in split(with_number).ops)


def test_a_constant_of_the_cpu_is_no_obstacle_to_a_recording_of_all() -> None:
    text = f"""
host.func @f(%x: {T}, %c: !aten.tensor<f32>) -> ({T}) symbols [#sym.symbol<s0, arg = 0, dim = 0>] {{
  %a = aten.sin(%x) : {T}
  %b = aten.mul.Tensor(%a, %c) : {T}
  host.return %b
}}"""
    for constants in (0, 1):
        functions = [op for op in split(text, constants=constants).ops if isinstance(op, host.FuncOp)]
        assert len(functions) == 2 - constants
