"""The schedule of a kernel as a pipeline: its options, and where it goes on in a file that stands somewhere in it."""

from __future__ import annotations

import pytest

from inductile.dialects.context import new_context
from inductile.errors import UserError
from inductile.lowering.pipeline import named_passes, remaining_passes
from inductile.passes.kernel.choose_warps import KernelChooseWarps
from inductile.passes.kernel.tile import KernelTile
from inductile.passes.manager import PassManager
from inductile.passes.module.attach_target import AttachTarget

from .stages import parse

SUMS = """
kernel.func @sums(%x: !kernel.buffer<f32, 131072000>, %y: !kernel.buffer<f32, 4096>) {
  kernel.for i0 in 0 to 4096 {
    %s = kernel.reduce sum i1 in 0 to 32000 {
      %v = kernel.load %x[32000*i0 + i1]
      kernel.yield %v
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}
"""


def test_options_go_to_all_passes_that_have_them() -> None:
    passes = named_passes('schedule{target="cuda:90" per-thread=8 warps=2}')
    tile = next(p for p in passes if isinstance(p, KernelTile))
    warps = next(p for p in passes if isinstance(p, KernelChooseWarps))
    assert (tile.per_thread, warps.per_thread, warps.warps) == (8, 8, 2)
    assert passes[0] == AttachTarget("cuda:90")


@pytest.mark.parametrize("name", ["wraps", "level"])
def test_an_option_that_no_pass_has_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"no pass of the pipeline has an option '{name}'"):
        named_passes(f"schedule{{{name}=2}}")


@pytest.mark.parametrize("target", ["cpp", "cuda:90"])
def test_a_file_in_the_middle_of_the_schedule_goes_on_there(target: str) -> None:
    module = parse(SUMS)
    PassManager(named_passes("schedule", target, stop_after="kernel-choose-threads")).run(new_context(), module)
    module = parse(str(module))
    rest = remaining_passes(module)
    assert [p.name for p in rest[:1]] == ([] if target == "cpp" else ["kernel-privatize"])
    PassManager(rest).run(new_context(), module)
    assert remaining_passes(module) == []


@pytest.mark.parametrize("target", ["cpp", "cuda:90"])
@pytest.mark.parametrize("last", ["kernel-map", "kernel-vectorize", "kernel-tile"])
def test_a_file_with_a_mapping_goes_on_behind_it(target: str, last: str) -> None:
    whole, module = parse(SUMS), parse(SUMS)
    PassManager(named_passes("schedule", target)).run(new_context(), whole)
    PassManager(named_passes("schedule", target, stop_after=last)).run(new_context(), module)
    module = parse(str(module))
    PassManager(remaining_passes(module, target)).run(new_context(), module)
    assert str(module) == str(whole)


def test_the_schedule_is_what_it_was_when_it_runs_again() -> None:
    for target in ("cpp", "cuda:90"):
        module = parse(SUMS)
        PassManager(named_passes("schedule", target)).run(new_context(), module)
        once = str(module)
        PassManager(named_passes("schedule", target)).run(new_context(), module)
        assert str(module) == once
