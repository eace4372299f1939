"""Which compiled variant a launch goes through, with compilation replaced by a recorder."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inductile.backends.host.emit import HostEmitter
from inductile.backends.host.gpu import gpu
from inductile.backends.triton import TritonKernel
from inductile.backends.triton import bound as bound_module
from inductile.backends.triton.bound import BoundKernel, DeviceKernel, Status
from inductile.backends.triton.kernel import MAX_INDEX
from inductile.backends.triton.launch import TritonLauncher
from inductile.backends.triton.native import launcher_of
from inductile.backends.triton.source import emit_source
from inductile.backends.triton.targets import TritonTarget, triton_target
from inductile.backends.triton.variants import Variant, divisible_arguments, likely_variant, signature_of, variant_of
from inductile.dialects import host, kernel
from inductile.lowering.fx_machines import name_of
from inductile.machines import TARGETS, Family, GpuTarget, TritonNeeds

from .support import kernel_of, parse

TEXT = """kernel.func @copy(%x: !kernel.buffer<f32, 4*s0>, %y: !kernel.buffer<f32, 4*s0>) symbols (s0)
    target "cuda:90" {
  kernel.for i0 in 0 to 4*s0 map grid tile 64 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}"""


class Compiled:
    """Stands for a kernel that Triton has compiled for a variant."""

    function, packed_metadata = 99, (4, 1, 0)

    def __init__(self, source: TritonKernel, variant: Variant, **metadata: Any) -> None:
        defaults = {
            "name": "copy",
            "num_warps": 4,
            "shared": 64,
            "num_ctas": 1,
            "global_scratch_size": 0,
            "profile_scratch_size": 0,
        }
        self.metadata = SimpleNamespace(**(defaults | metadata))
        self.metadata_group = {"copy.json": "copy.json", "copy.cubin": "/cache/copy.cubin"}
        self.src = SimpleNamespace(signature=signature_of(source, variant))
        self.calls: list[tuple[Any, ...]] = []

    def run(self, *arguments: Any) -> None:
        self.calls.append(arguments)


@dataclass
class Bound:
    """A kernel on device 0 whose compiles are recorded."""

    kernel: DeviceKernel
    compiled: dict[Variant, Compiled]
    calls: list[tuple[Any, ...]]

    def launch(self, size: int, address: int = 64) -> int:
        self.kernel(7, (4 * size + 63) // 64, False, address, 128, size)
        return len(self.compiled)


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Bound:
    compiled: dict[Variant, Compiled] = {}
    calls: list[tuple[Any, ...]] = []

    def compile_variant(source: TritonKernel, function: Any, target: Any, variant: Variant) -> Compiled:
        compiled[variant] = Compiled(source, variant)
        compiled[variant].calls = calls
        return compiled[variant]

    monkeypatch.setattr(bound_module, "compile_variant", compile_variant)
    for name in ("_FastCudaLauncher", "_StaticCudaLauncher"):
        monkeypatch.delattr(torch._C, name, raising=False)
    return Bound(BoundKernel(kernel_of(TEXT), triton_target("cuda:90")).on(0), compiled, calls)


def test_like_arguments_share_a_variant(bound: Bound) -> None:
    assert bound.launch(32) == 1
    assert bound.launch(64) == 1
    assert bound.launch(33) == 2  # no multiple of 16
    assert bound.launch(1) == 2
    assert bound.launch(1 << 33) == 3  # wider than 32 bits
    assert [call[0] for call in bound.calls] == [2, 4, 3, 1, 1 << 29]


def test_an_address_without_alignment_is_another_variant(bound: Bound) -> None:
    assert bound.launch(32) == 1
    assert bound.launch(32, address=4) == 2
    assert bound.launch(32, address=20) == 2
    assert [variant.unaligned for variant in bound.compiled] == [frozenset(), frozenset({0})]


def test_a_launch_of_no_programs_does_nothing(bound: Bound) -> None:
    bound.launch(0)
    assert not bound.calls


def test_what_code_may_rely_on() -> None:
    source = kernel_of(TEXT)
    variant = variant_of(False, (16, 8), (32,))
    assert divisible_arguments(source, variant) == [0, 2]
    assert signature_of(source, variant)["s0"] == "i32"
    assert signature_of(source, variant_of(False, (16, 16), (1 << 31,)))["s0"] == "i64"
    known = dataclasses.replace(source, divisors={"s0": 48})
    assert likely_variant(source).integers == ((False, True),)
    assert likely_variant(known).integers == ((True, True),)


def test_the_cheapest_launcher_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, tuple[Any, ...]]] = []

    class Static:
        loaded: tuple[int, ...] = (42, 10, 0)  # in newer torch, the module comes first

        @classmethod
        def _load_kernel(cls, *arguments: Any) -> tuple[int, ...]:
            calls.append(("loaded", arguments))
            return cls.loaded

        @staticmethod
        def _launch_kernel(*arguments: Any) -> None:
            calls.append(("static", arguments))

    class Fast:
        def __init__(self, *arguments: Any) -> None:
            calls.append(("made", arguments))

        def __call__(self, *arguments: Any) -> None:
            calls.append(("fast", arguments))

    source = kernel_of(TEXT)
    compiled: Any = Compiled(source, likely_variant(source))
    monkeypatch.delattr(torch._C, "_FastCudaLauncher", raising=False)
    monkeypatch.setattr(torch._C, "_StaticCudaLauncher", Static, raising=False)
    launcher_of(compiled, 1)(3, 1, 1, 7, 64, 128, 5)
    loaded = ("loaded", ("/cache/copy.cubin", "copy", 64, 1))
    assert calls == [loaded, ("static", (42, 3, 1, 1, 4, 64, "OOiOO", (64, 128, 5, None, None), 7))]
    Static.loaded = (7, 42, 10, 0)
    calls.clear()
    monkeypatch.setattr(torch._C, "_FastCudaLauncher", Fast, raising=False)
    launcher_of(compiled, 1)(3, 1, 1, 7, 64, 128, 5)
    assert calls == [loaded, ("made", (42, 4, 64, "OOi", 2)), ("fast", (3, 1, 1, 7, 64, 128, 5))]
    assert not compiled.calls


@pytest.mark.parametrize("metadata", [{"num_ctas": 2}, {"global_scratch_size": 64}, {"launch_cooperative_grid": True}])
def test_what_is_not_plain_goes_through_triton(metadata: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch._C, "_StaticCudaLauncher", None, raising=False)
    source = kernel_of(TEXT)
    compiled: Any = Compiled(source, likely_variant(source), **metadata)
    launcher_of(compiled, 1)(3, 1, 1, 7, 64, 128, 5)
    (call,) = compiled.calls
    assert call == (3, 1, 1, 7, 99, (4, 1, 0), None, None, None, 64, 128, 5, None, None)


def test_an_error_is_raised_once() -> None:
    status = Status(["IndexError: index out of range"])
    status.check()
    status.word.fill_(1)
    with pytest.raises(IndexError):
        status.check()
    status.check()


def _program(text: str) -> tuple[str, dict[str, Any]]:
    """The Python text of a host function that launches the kernel above, and what it refers to, as without a GPU."""
    functions = {op.name: op for op in parse(TEXT + text).ops}
    function, main = functions["kernel.func"], functions["host.func"]
    assert isinstance(function, kernel.FuncOp) and isinstance(main, host.FuncOp)
    launcher = TritonLauncher()
    launcher.compile([function])
    emitter = HostEmitter(main, {"copy": function}, {"triton": launcher}, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TritonTarget, "is_here", False)
        return emitter.source(), emitter.constants.namespace


GPU = 'device = "cuda:0"'


def test_a_program_names_its_launch() -> None:
    """Grid and width of indices are computed from the values that the program passes; only addresses are needed."""
    source, _ = _program(f"""
host.func @f(%x: !aten.tensor<(8*n)xf32, {GPU}>, %n: index) -> (!aten.tensor<(8*n)xf32, {GPU}>)
    symbols [#sym.symbol<n, arg = 1>] {{
  %y = host.empty : !aten.tensor<(8*n)xf32, {GPU}>
  host.launch @copy(%x, %y) [2*n]
  host.return %y
}}""")
    wide = f"max(4*(2*s0), 0) > {MAX_INDEX}"
    assert (
        f"    return (\n        (8*s0,),\n        (((2*s0) + 15) // 16),\n        {wide},\n        2*s0,\n    )"
        in source
    )
    assert "c0, c1, c2, c3, = sizes(s0)" in source
    assert "launch0(stream, c1, c2, a0.data_ptr(), t2.data_ptr(), c3)  # copy" in source
    assert "\n@on_device(device0)\ndef run(args):" in source
    assert "stream = current_stream(index0)" in source and "empty_gpu(c0, (1,), dtype0)" in source


@pytest.mark.parametrize(("size", "waits"), [(512, False), (65536, True)])
def test_a_run_of_launches_ends_at_an_allocation_that_freed_memory_can_serve(size: int, waits: bool) -> None:
    source, _ = _program(f"""
host.func @f(%x: !aten.tensor<{size}xf32, {GPU}>) -> (!aten.tensor<{size}xf32, {GPU}>) symbols [] {{
  %y = host.empty : !aten.tensor<{size}xf32, {GPU}>
  host.launch @copy(%x, %y) [{size // 4}]
  host.free %x
  %z = host.empty : !aten.tensor<{size}xf32, {GPU}>
  host.launch @copy(%y, %z) [{size // 4}]
  host.free %y
  host.return %z
}}""")
    allocation, launch = source.index("t2 = empty_gpu("), source.index("launch0(stream")
    assert (launch < source.index("del a0") < allocation) if waits else (allocation < launch < source.index("del a0"))


def test_a_number_in_the_cpus_memory_is_moved() -> None:
    source, namespace = _program(f"""
host.func @f(%x: !aten.tensor<4xf32>, %y: !aten.tensor<4xf32, {GPU}>) symbols [] {{
  host.launch @copy(%x, %y) [1]
  host.return
}}""")
    assert "moved0 = to_device(a0, device0)" in source and "del moved0" in source
    assert "moved0.data_ptr(), a1.data_ptr(), 1)" in source
    assert namespace["device0"] == torch.device("cuda:0")


def test_a_kernel_on_another_device_runs_on_its_stream() -> None:
    other = 'device = "cuda:1"'
    source, namespace = _program(f"""
host.func @f(%w: !aten.tensor<4xf32, {GPU}>, %v: !aten.tensor<4xf32, {GPU}>, %u: !aten.tensor<4xf32, {GPU}>,
    %x: !aten.tensor<4xf32, {other}>) -> (!aten.tensor<4xf32, {other}>) symbols [] {{
  %y = host.empty : !aten.tensor<4xf32, {other}>
  host.launch @copy(%x, %y) [1]
  host.launch @copy(%w, %v) [1]
  host.return %y
}}""")
    assert "with guard(device0): launch0(current_stream(1), " in source
    assert "    launch1(stream, " in source
    assert "empty_strided((4,), (1,), dtype=dtype0, device=device0)" in source
    assert namespace["launch0"].device == 1 and namespace["launch1"].device == 0


@pytest.mark.parametrize(
    ("properties", "target"),
    [
        ({"major": 8, "minor": 6}, "cuda:86"),
        ({"major": 9, "minor": 4, "gcnArchName": "gfx942:sramecc+:xnack-"}, "hip:gfx942"),
    ],
)
def test_a_card_is_compiled_for_its_own_architecture(properties: dict[str, Any], target: str) -> None:
    assert name_of("cuda", SimpleNamespace(**properties)) == target


def test_another_kind_of_gpu_needs_its_descriptors_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A description is entered; text, allocation, stream and guard then follow from torch's device type."""
    family = Family("xpu", "xpu", "triton", triton=TritonNeeds("xpu", str, lambda properties: properties.architecture))
    monkeypatch.setitem(TARGETS, "xpu:bmg", GpuTarget("xpu:bmg", family, processors=160))
    assert name_of("xpu", SimpleNamespace(architecture="bmg")) == "xpu:bmg"
    monkeypatch.setattr(f"{__name__}.TEXT", TEXT.replace("cuda:90", "xpu:bmg"))
    source, namespace = _program("""
host.func @f(%x: !aten.tensor<4xf32, device = "xpu:1">) -> (!aten.tensor<4xf32, device = "xpu:1">) symbols [] {
  %y = host.empty : !aten.tensor<4xf32, device = "xpu:1">
  host.launch @copy(%x, %y) [1]
  host.return %y
}""")
    assert "launch0(stream, " in source and "t1 = empty_gpu((4,), (1,), dtype0)" in source
    assert namespace["device0"] == torch.device("xpu:1") and namespace["empty_gpu"] is gpu("xpu").empty
    assert "def copy(" in emit_source(parse(TEXT))


FIXED = """kernel.func @copy(%x: !kernel.buffer<f32, 64>, %y: !kernel.buffer<f32, 64>) target "cuda:90" {
  kernel.for i0 in 0 to 64 map grid tile 32 {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}"""


def _present(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the machine had a GPU."""
    monkeypatch.setattr(TritonTarget, "is_here", property(lambda target: True))
    monkeypatch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())


def test_launches_that_differ_in_nothing_take_a_short_way(bound: Bound, monkeypatch: pytest.MonkeyPatch) -> None:
    _present(monkeypatch)
    device = BoundKernel(kernel_of(FIXED), triton_target("cuda:90")).on(0)
    entry = device.entry()
    assert entry is not device and entry is device.entry()
    assert list(bound.compiled) == [Variant()]
    entry(7, 2, False, 64, 128)
    assert [call[:11] for call in bound.calls] == [(2, 1, 1, 7, 99, (4, 1, 0), None, None, None, 64, 128)]
    entry(7, 2, False, 68, 128)  # another variant
    assert list(bound.compiled) == [Variant(), Variant(unaligned=frozenset({0}))]
    assert bound.calls[1][9:11] == (68, 128)
    assert bound.kernel.entry() is bound.kernel  # its size decides


def test_a_variant_is_loaded_once(bound: Bound, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Any] = []
    whole = bound_module.load
    monkeypatch.setattr(bound_module, "load", lambda *arguments: loads.append(arguments[0]) or whole(*arguments))
    _present(monkeypatch)
    for text in (FIXED, TEXT):
        device = BoundKernel(kernel_of(text), triton_target("cuda:90")).on(0)
        for _ in range(3):
            device.entry()
    assert len(loads) == 2
