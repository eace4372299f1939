"""Schedules by hand: transformations keep what kernels compute, or are refused; a pinned schedule is kept."""

from __future__ import annotations

from random import Random

import pytest
import torch
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from inductile.backends.reference import run_module
from inductile.dialects import kernel
from inductile.dialects.context import new_context
from inductile.errors import UserError
from inductile.lowering.pipeline import named_passes
from inductile.passes.analysis.dependences import carried_dependence
from inductile.passes.analysis.loops import Loop, loops_in
from inductile.passes.kernel import schedules
from inductile.passes.kernel.apply_schedule import KernelApplySchedule
from inductile.passes.kernel.transforms import set_mapping
from inductile.passes.manager import PassManager
from inductile.passes.pinned_schedules import PinnedSchedules
from inductile.passes.remarks import collecting

from .stages import check_stages, parse

PRODUCT = """
func.func @product(%a: !aten.tensor<10x12xf32>, %b: !aten.tensor<12x40xf32>) -> !aten.tensor<10x40xf32> {
  %y = loop.fusion (a0 in 10, a1 in 40 | a2 in 12) {
    %t = loop.generate (i0 in 10, i1 in 40) on (a0, a1) {
      %s = loop.reduce sum (r0 in 12) on (a2) {
        %u = loop.load %a[i0, r0]
        %v = loop.load %b[r0, i1]
        %p = arith.mulf %u, %v : f32
        loop.yield %p
      }
      loop.yield %s
    } : !aten.tensor<10x40xf32>
    loop.yield %t
  } : !aten.tensor<10x40xf32>
  func.return %y : !aten.tensor<10x40xf32>
}
"""
MATCH = '%i, %j, %k = transform.match kernel "sum*" loops 3'
SCRIPTS = {
    "blocks": "%a, %b, %c, %d = transform.tile %i, %j sizes [4, 16]  transform.vectorize %d lanes 8",
    "strips": "%a, %b = transform.tile %k sizes [5]  transform.vectorize %b lanes 4",
    "order": "%a, %b = transform.interchange %i, %j order [1, 0]  transform.parallelize %a",
    "unrolled": "%a = transform.unroll %j factor 3",
    "jammed": """%a = transform.unroll_and_jam %i factor 4
      %l = transform.inside %a
      transform.vectorize %l lanes 8  transform.parallelize %a grain 2""",
    "rolled": "transform.vectorize %k lanes 4  transform.pin %i",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_schedule_keeps_the_answer(name: str) -> None:
    text = f"{PRODUCT}\ntransform.sequence {{\n{MATCH}\n{SCRIPTS[name]}\n}}"
    assert "kernel-apply-schedule" in check_stages(
        text, ("kernel-stream-results", "kernel-apply-schedule", "host-free")
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_pinned_stays_to_the_end(name: str) -> None:
    module = parse(f"{PRODUCT}\ntransform.sequence {{\n{MATCH}\n{SCRIPTS[name]}\n}}")
    with collecting() as remarks:
        passes = named_passes(start_at="lower-loop-to-kernel")
        PassManager(passes, [PinnedSchedules()]).run(new_context(), module)
    assert [str(each) for each in remarks if "pinned schedule is not kept" in each.reason] == []


KEPT = """
kernel.func @scale(%x: !kernel.buffer<f32, 65536>, %y: !kernel.buffer<f32, 65536>) {
  kernel.for i0 in 0 to 256MAPPING {
    kernel.for i1 in 0 to 256 {
      %v = kernel.load %x[256*i1 + i0]
      kernel.store %v, %y[256*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
"""


@pytest.mark.parametrize("target", ["cpp", "cuda:90"])
def test_a_pinned_nest_of_a_file_is_left_alone(target: str) -> None:
    module = parse(KEPT.replace("MAPPING", " pinned"))
    PassManager(named_passes("default", target, start_at="kernel-deduplicate")).run(new_context(), module)
    loops = list(loops_in(_kernel(module).body.block))
    assert [(each.axis.data, str(each.hi.data), each.mapping.data, each.tile) for each in loops] == [
        ("i0", "256", "serial", None),
        ("i1", "256", "serial", None),
    ]
    free = parse(KEPT.replace("MAPPING", ""))
    PassManager(named_passes("default", target, start_at="kernel-deduplicate")).run(new_context(), free)
    assert any(each.mapping.data != "serial" for each in loops_in(_kernel(free).body.block))


class _Serialise(ModulePass):
    """A pass of somebody who does not look at pins."""

    name = "kernel-serialise"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run every reduction one element after the other."""
        for each in op.walk():
            if isinstance(each, kernel.ReduceOp):
                set_mapping(each, "serial")


def test_a_schedule_that_is_not_kept_is_told_of() -> None:
    text = f"{PRODUCT.replace('12', '4096')}\ntransform.sequence {{\n{MATCH}\ntransform.vectorize %k lanes 4096\n}}"
    module = parse(text)
    with collecting() as remarks:
        passes = named_passes(start_at="lower-loop-to-kernel")
        PassManager([*passes, _Serialise()], [PinnedSchedules()]).run(new_context(), module)
    (told,) = [each for each in remarks if "pinned" in each.reason]
    assert (told.kind, told.pass_name) == ("missed", "kernel-serialise")
    assert "i2 in 0 to 4096 map vector tile 4096 is now i2 in 0 to 4096" in told.reason


def _kernel(module) -> kernel.FuncOp:
    return next(op for op in module.ops if isinstance(op, kernel.FuncOp))


def _index(random: Random, axes: int) -> str:
    strides = random.choice(([16, 4, 1], [1, 4, 16], [4, 1, 2], [16, 1, 4], [0, 4, 1]))
    return " + ".join([f"{strides[n]}*i{n}" for n in range(axes)] + [str(random.choice((0, 1, 3, 4, 5, 16, 21)))])


def _random_nest(random: Random) -> str:
    """A nest of two or three loops that reads and writes one buffer, and maybe a local one."""
    axes = random.choice((2, 3))
    lines = ["kernel.func @k(%y: !kernel.buffer<f32, 128>, %x: !kernel.buffer<f32, 128>) {"]
    for axis in range(axes):
        low = random.choice((0, 0, 1))
        lines.append(f"kernel.for i{axis} in {low} to {random.choice((3, 4))} {{")
    lines += [
        f"%v = kernel.load %y[{_index(random, axes)}]",
        f"%u = kernel.load %x[{_index(random, axes)}]",
        "%h = arith.constant 0.5 : f32",
        "%m = arith.mulf %v, %h : f32",
        "%s = arith.addf %m, %u : f32",
        f"kernel.store %s, %y[{_index(random, axes)}]",
    ]
    lines += ["kernel.yield", "}"] * axes
    return "\n".join([*lines, "kernel.yield", "}"])


HOST = """
host.func @f(%y: !aten.tensor<128xf32>, %x: !aten.tensor<128xf32>) -> (!aten.tensor<128xf32>) {
  host.launch @k(%y, %x)
  host.return %y
}
"""


def _transform(random: Random, loops: list[Loop]) -> None:
    kind = random.choice(("interchange", "tile", "strip", "unroll", "jam"))
    if kind == "interchange":
        schedules.interchange(loops, random.sample(range(len(loops)), len(loops)))
    elif kind == "tile":
        schedules.tile(loops, [random.choice((2, 3)) for _ in loops])
    elif kind == "strip":
        schedules.tile([random.choice(loops)], [2])
    elif kind == "unroll":
        schedules.unroll(random.choice(loops), 2)
    else:
        schedules.unroll_and_jam(loops[random.randrange(len(loops) - 1)], 2)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_accepted_computes_the_same(seed: int) -> None:
    random = Random(seed)
    text = _random_nest(random) + HOST
    inputs = [torch.arange(128.0) % 7, torch.arange(128.0) % 5]
    (expected,) = run_module(parse(text), [each.clone() for each in inputs])
    module = parse(text)
    before = str(module)
    try:
        _transform(random, list(loops_in(_kernel(module).body.block)))
    except schedules.IllegalTransformError:
        assert str(module) == before
        return
    module.verify()
    (actual,) = run_module(parse(str(module)), [each.clone() for each in inputs])
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("seed", range(20))
def test_loops_without_a_dependence_run_in_any_order(seed: int) -> None:
    """What lanes and threads may do: iterations of the outermost loop, from the last to the first, make the same."""
    random = Random(1000 + seed)
    text = _random_nest(random) + HOST
    module = parse(text)
    outer = next(iter(loops_in(_kernel(module).body.block)))
    if carried_dependence(outer) is not None:
        return
    lo, hi = outer.lo.data.as_int(), outer.hi.data.as_int()
    assert lo is not None and hi is not None
    inputs = [torch.arange(128.0) % 7, torch.arange(128.0) % 5]
    (expected,) = run_module(module, [each.clone() for each in inputs])
    backwards = text.replace("*i0 +", f"*({lo + hi - 1} - i0) +")
    (actual,) = run_module(parse(backwards), [each.clone() for each in inputs])
    assert torch.equal(actual, expected)


def test_the_random_nests_are_of_both_kinds() -> None:
    refused = 0
    for seed in range(60):
        random = Random(seed)
        module = parse(_random_nest(random) + HOST)
        try:
            _transform(random, list(loops_in(_kernel(module).body.block)))
        except schedules.IllegalTransformError:
            refused += 1
    assert 10 <= refused <= 50


def test_a_script_that_fails_names_its_op() -> None:
    module = parse(PRODUCT)
    PassManager(named_passes(start_at="lower-loop-to-kernel", stop_after="kernel-collapse")).run(new_context(), module)
    script = parse(f"transform.sequence {{\n{MATCH}\n%a, %b = transform.interchange %j, %k order [1, 0]\n}}")
    for op in list(script.body.block.ops):
        op.detach()
        module.body.block.add_op(op)
    with pytest.raises(UserError, match=r"transform\.interchange fails: kernel\.for i1 of @sum_0: .*not right inside"):
        KernelApplySchedule().apply(new_context(), module)
