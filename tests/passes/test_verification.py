"""A violation is found in an op whose like has passed before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation
from xdsl.parser import Parser

from inductile.dialects.context import new_context
from inductile.passes.verification import find_violation

LOOP = """
func.func @f(%x: !aten.tensor<4x8xf32>) -> !aten.tensor<4x8xf32> {
  %y = loop.fusion (a0 in 4 | a1 in 8) {
    %a = loop.generate (i0 in 4, i1 in 8) on (a0, a1) {
      %v = loop.load %x[i0, i1]
      %w = math.exp %v : f32
      loop.yield %w
    } : !aten.tensor<4x8xf32>
    %b = loop.generate (i0 in 4, i1 in 8) on (a0, a1) {
      %v = loop.load %a[i0, i1]
      %r = loop.reduce sum (r0 in 8) {
        %t = loop.load %x[i0, r0]
        loop.yield %t
      }
      %w = arith.addf %v, %r : f32
      loop.yield %w
    } : !aten.tensor<4x8xf32>
    loop.yield %b
  } : !aten.tensor<4x8xf32>
  func.return %y : !aten.tensor<4x8xf32>
}
"""

#: two kernels that differ in their names alone
KERNELS = "".join(
    f"""
kernel.func @{name}(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) {{
  kernel.for i0 in 0 to 8 {{
    %a = kernel.load %x[i0]
    kernel.store %a, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""
    for name in ("one", "two")
)


def parse(text: str) -> ModuleOp:
    module = Parser(new_context(), text).parse_module()
    assert find_violation(module) is None
    return module


def named(module: ModuleOp, name: str) -> list[Operation]:
    return [op for op in module.walk() if op.name == name]


def end_without_a_terminator(module: ModuleOp) -> None:
    last = named(module, "loop.yield")[0]
    last.detach()
    last.erase()


def go_on_behind_a_terminator(module: ModuleOp) -> None:
    first = named(module, "math.exp")[0]
    block = first.parent_block()
    assert block is not None
    last = block.last_op
    assert last is not None
    last.detach()
    block.insert_op_before(last, first)
    last.operands = [named(module, "loop.load")[0].results[0]]


def read_off_the_point(module: ModuleOp) -> None:
    load = named(module, "loop.load")[1]
    load.properties["map"] = named(module, "loop.load")[2].properties["map"]


def use_a_value_of_another_kernel(module: ModuleOp) -> None:
    one, two = named(module, "kernel.func")
    store = next(op for op in two.walk() if op.name == "kernel.store")
    store.operands[1] = one.regions[0].block.args[1]


@pytest.mark.parametrize(
    ("text", "spoil", "reason"),
    [
        (LOOP, end_without_a_terminator, "not a terminator"),
        (LOOP, go_on_behind_a_terminator, "must be the last operation"),
        (LOOP, read_off_the_point, "not at the point of its producer"),
        (KERNELS, use_a_value_of_another_kernel, "is not defined before it"),
    ],
)
def test_a_violation_in_ops_like_valid_ones_is_found(text: str, spoil: Callable[[ModuleOp], None], reason: str) -> None:
    module = parse(text)
    spoil(module)
    violation = find_violation(module)
    assert violation is not None
    assert reason in violation.reason


@pytest.mark.parametrize(
    ("valid", "wrong", "reason"),
    [
        ("loop.yield %w", "loop.yield %v, %w", "1 results, the body yields 2 values"),
        ("loop.reduce sum", "loop.reduce [sum, sum]", "take 2 values"),
    ],
)
def test_what_a_body_yields_is_part_of_what_is_remembered(valid: str, wrong: str, reason: str) -> None:
    parse(LOOP)
    violation = find_violation(Parser(new_context(), LOOP.replace(valid, wrong, 1)).parse_module())
    assert violation is not None
    assert reason in violation.reason


#: two calls of one function, by the level
CALLS = {
    "func": """
func.func private @g(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> { func.return %x : !aten.tensor<4xf32> }
func.func @f(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %y = func.call @g(%x) : (!aten.tensor<4xf32>) -> !aten.tensor<4xf32>
  %z = func.call @g(%y) : (!aten.tensor<4xf32>) -> !aten.tensor<4xf32>
  func.return %z : !aten.tensor<4xf32>
}
""",
    "host": """
host.func @g(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) { host.return %x }
host.func @f(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>) {
  %y = host.call @g(%x) : !aten.tensor<4xf32>
  %z = host.call @g(%y) : !aten.tensor<4xf32>
  host.return %z
}
""",
}


@pytest.mark.parametrize("level", list(CALLS))
def test_calls_that_passed_before_are_held_against_the_function(level: str) -> None:
    module = parse(CALLS[level])
    callee = next(op for op in module.ops)
    callee.detach()
    violation = find_violation(module)
    assert violation is not None and violation.op in named(module, f"{level}.call")
    head, *lines = CALLS[level].strip().splitlines()
    other = Parser(new_context(), "\n".join([head.replace("<4x", "<5x"), *lines])).parse_module()
    violation = find_violation(other)
    assert violation is not None and violation.op is named(other, f"{level}.call")[0]


def test_calls_that_passed_before_are_held_against_kept_results() -> None:
    module = parse(CALLS["host"])
    function = next(op for op in module.ops)
    function.properties["kept"] = UnitAttr()
    violation = find_violation(module)
    assert violation is not None and "kept" in violation.reason
