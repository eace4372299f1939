"""Descriptions of machines: found by name, carried by modules, and added by others."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.parser import Parser

from inductile import extensions
from inductile.backends.targets import emit_source
from inductile.dialects.context import new_context
from inductile.dialects.machine import TARGETS as ATTRIBUTE
from inductile.dialects.machine import set_targets, target_at, targets_of
from inductile.errors import UnsupportedError, UserError
from inductile.lowering.pipeline import named_passes
from inductile.lowering.registry import available_passes
from inductile.machines import (
    TARGETS,
    CpuTarget,
    Family,
    GpuTarget,
    TritonNeeds,
    default_target,
    eager,
    library_of,
    target_named,
)
from inductile.machines.costs import COSTS, cost_of
from inductile.machines.lookup import GROUP
from inductile.machines.roofline import Roofline
from inductile.passes.manager import PassManager
from inductile.passes.verification import find_violation

SOFTMAX = """
func.func @f(%x: !aten.tensor<128x512xf32>) -> !aten.tensor<128x512xf32> {
  %0 = aten._softmax(%x, dim = -1, half_to_float = false) : !aten.tensor<128x512xf32>
  func.return %0 : !aten.tensor<128x512xf32>
}
"""


def parse(text: str) -> ModuleOp:
    return Parser(new_context(), text).parse_module()


@pytest.mark.parametrize(
    ("name", "like"),
    [
        ("cuda:70", "cuda:75"), ("cuda:87", "cuda:86"), ("cuda:103", "cuda:100"), ("cuda:121", "cuda:120"),
        ("hip:gfx906", "hip:gfx90a"), ("hip:gfx950", "hip:gfx942"), ("hip:gfx1030", "hip:gfx1100"),
    ],
)  # fmt: skip
def test_an_architecture_that_is_not_described_is_like_the_closest(name: str, like: str) -> None:
    assert target_named(name) == dataclasses.replace(TARGETS[like], name=name)


def test_what_was_measured_on_one_machine_is_not_said_of_another() -> None:
    like = target_named("cuda:91")
    assert isinstance(like, GpuTarget) and like.processors == 132 and not like.products and not like.attention


@pytest.mark.parametrize(
    ("name", "near"),
    [("cuda90", "cuda:90"), ("cuda:", "cuda:"), ("cuda:9x", "cuda:"), ("hip:90", "hip:"), ("cpp:avx3", "cpp:avx")],
)
def test_an_unknown_target_is_answered_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(UserError, match=f"unknown target '{name}'; did you mean '{near}"):
        target_named(name)


def test_descriptions_are_whole() -> None:
    for target in TARGETS.values():
        assert Roofline.of(target).bandwidth > 1e9 and target.model, target.name
        assert isinstance(target, CpuTarget) == (target.family.generator in ("cpp", "c"))
        assert target.name.partition(":")[0] == target.family.name
        if isinstance(target, GpuTarget):
            assert target.family.triton is not None
            for size in (target.warp, target.warps, target.vector_bytes, target.sector_bytes, target.line_bytes):
                assert size & (size - 1) == 0, target.name
            assert target.threads % target.warp == 0, target.name


def test_costs_order_as_hardware_does() -> None:
    add, divide, function = (cost_of(f"{name}") for name in ("arith.addf", "arith.divf", "math.exp"))
    assert add.work < divide.work < function.work and add.weight < divide.weight < function.weight
    assert cost_of("arith.constant").work == 0 and cost_of("another.op").operations == 1
    assert all(name.partition(".")[0] in ("arith", "kernel", "loop", "math", "scalar") for name in COSTS)


def test_a_module_says_its_targets() -> None:
    module = parse(SOFTMAX)
    assert targets_of(module).main.name == "cpp"
    set_targets(module, ["hip:gfx942", "cpp:avx2"])
    (function,) = module.ops
    assert target_at(function, "cuda:1").name == "hip:gfx942" and target_at(function, "cpu").name == "cpp:avx2"
    assert targets_of(module).main.name == "hip:gfx942" and targets_of(module).host.name == "cpp:avx2"
    assert targets_of(parse(str(module))).data == targets_of(module).data
    assert target_at(function, "meta").name == "hip:gfx942"


def test_a_module_without_targets_is_for_the_usual_ones() -> None:
    module = parse(SOFTMAX.replace("xf32>", 'xf32, device = "cuda:0">'))
    assert targets_of(module).main.name == "cuda:90"
    module.attributes[ATTRIBUTE] = StringAttr("cuda:90")
    assert "write machine.targets = " in str(find_violation(module))
    with pytest.raises(UserError, match=r"write machine\.targets = "):
        targets_of(module)


def test_what_nothing_compiles_for() -> None:
    with pytest.raises(UnsupportedError, match="no kernels can be made for the device mps"):
        default_target("mps:0")
    assert not library_of("mps").adds_bias_apart
    assert eager("cpu").variances_in_double and not eager("cuda:1").variances_in_double


def test_options_of_passes_leave_the_target_to_the_module() -> None:
    loaded = {name: load() for name, load in available_passes().items()}
    named = {name: cls.__dataclass_fields__.get("target") for name, cls in loaded.items()}
    assert {name for name, field in named.items() if field is not None and field.default} == {"module-attach-target"}


def test_a_description_is_all_that_another_gpu_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    family = Family("xpu", "xpu", "triton", "bmg|pvc", triton=TritonNeeds("xpu", str, lambda properties: None))
    monkeypatch.setattr(extensions, "_added", {GROUP: {"xpu": lambda: lambda: [GpuTarget("xpu:bmg", family)]}})
    module = parse(SOFTMAX)
    PassManager(named_passes("default", "xpu:bmg")).run(new_context(), module)
    assert targets_of(module).main.name == "xpu:bmg"
    source = emit_source("triton", module)
    assert "tl.reduce(x_value, 0, prelude.maximum)" in source and "nvidia" not in source
    with pytest.raises(UserError, match="did you mean 'xpu:bmg'"):
        named_passes("default", "xpu:bmx")


def test_an_entry_point_that_gives_something_else_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "_added", {GROUP: {"mine": lambda: ["xpu:bmg"]}})
    with pytest.raises(UserError, match=r"inductile\.targets 'mine' gives 'xpu:bmg', which is no target"):
        target_named("xpu:bmg")


def test_a_plugin_file_may_describe_a_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inductile.tools.plugins import load_plugin

    monkeypatch.setattr(extensions, "_added", {})
    path = tmp_path / "h20.py"
    path.write_text(
        "from dataclasses import replace\n"
        "from inductile.machines import target_named\n"
        'H20 = replace(target_named("cuda:90"), name="cuda:90h20", processors=78)\n'
    )
    load_plugin(str(path))
    assert getattr(target_named("cuda:90h20"), "processors", 0) == 78
