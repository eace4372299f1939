"""Which compiled variant a launch goes through, with Triton's function replaced by a recorder."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from inductile.backends.triton.bound import BoundKernel, variant_of
from inductile.backends.triton.devices import closest
from inductile.backends.triton.launch import TritonLauncher
from inductile.backends.triton.targets import target_named

from .support import kernel_of

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
    """Stands for a kernel that Triton has compiled."""

    function = packed_metadata = None

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def run(self, *arguments: Any) -> None:
        self.calls.append(arguments)


class Function:
    """Stands for Triton's function; every call through it compiles."""

    def __init__(self) -> None:
        self.compiled: list[Compiled] = []
        self.options: dict[str, Any] = {}

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def call(*arguments: Any, **options: Any) -> Compiled:
            self.options = options
            self.compiled.append(Compiled())
            return self.compiled[-1]

        return call


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> BoundKernel:
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 7, raising=False)
    return BoundKernel(kernel_of(TEXT), target_named("cuda:90"), Function())


def _launch(bound: BoundKernel, size: int, offset: int = 0) -> int:
    x, y = torch.zeros(4 * size + offset)[offset:], torch.zeros(4 * size)
    bound._launch(0, (4 * size + 63) // 64, False, (x, y, size))
    return len(bound._function.compiled)


def test_like_arguments_share_a_variant(bound: BoundKernel) -> None:
    assert _launch(bound, 32) == 1
    assert _launch(bound, 64) == 1
    (compiled,) = bound._function.compiled
    ((programs, _, _, stream, *rest),) = compiled.calls
    assert (programs, stream) == (4, 7)
    assert rest[-3] == 64 and rest[-2] == 64  # the size, then the tile
    assert bound._function.options["num_warps"] == 4 and bound._function.options["enable_fp_fusion"] is False


def test_other_divisibility_or_alignment_is_another_variant(bound: BoundKernel) -> None:
    assert _launch(bound, 32) == 1
    assert _launch(bound, 33) == 2
    assert _launch(bound, 1) == 3
    assert _launch(bound, 32, offset=1) == 4
    assert _launch(bound, 32, offset=1) == 5  # what is not aligned always asks Triton
    assert _launch(bound, 33) == 5


def test_what_makes_a_variant() -> None:
    assert variant_of(1) != variant_of(3) == variant_of(5)
    assert variant_of(16) == variant_of(32) != variant_of(17)
    assert variant_of(1 << 31) != variant_of(16)


def test_a_program_names_its_launch() -> None:
    """Grid and width of indices are computed from the values that the program passes."""
    from inductile.backends.host.constants import Constants
    from inductile.backends.host.launchers import Launch
    from inductile.dialects import kernel

    from .support import parse

    (function,) = (op for op in parse(TEXT).ops if isinstance(op, kernel.FuncOp))
    launcher = TritonLauncher()
    launcher.compile([function])
    launch = Launch(function, (), ("x", "y"), (), ("2*n",))
    (line,) = launcher.write([launch], Constants())
    assert line == "launch0((((2*n) + 15) // 16), max(4*(2*n), 0) > 0x7FFFFFFF, x, y, 2*n)  # copy"


def test_a_number_in_the_cpus_memory_is_moved() -> None:
    from inductile.backends.host.constants import Constants
    from inductile.backends.host.launchers import Launch
    from inductile.dialects import host, kernel

    from .support import parse

    program = """
host.func @f(%x: !aten.tensor<4xf32>, %y: !aten.tensor<4xf32, device = "cuda:0">) symbols [] {
  host.launch @copy(%x, %y) [1]
  host.return
}"""
    functions = {op.name: op for op in parse(TEXT + program).ops}
    function, main = functions["kernel.func"], functions["host.func"]
    assert isinstance(function, kernel.FuncOp) and isinstance(main, host.FuncOp)
    launcher, constants = TritonLauncher(), Constants()
    launcher.compile([function])
    (line,) = launcher.write([Launch(function, main.body.block.args, ("x", "y"), (), ("1",))], constants)
    assert "x.to(device0), y, 1)" in line
    assert constants.namespace["device0"] == torch.device("cuda:0")


@pytest.mark.parametrize(
    ("capability", "target"), [(70, "cuda:80"), (80, "cuda:80"), (86, "cuda:80"), (120, "cuda:100")]
)
def test_unknown_cards_are_taken_for_the_closest_older_one(capability: int, target: str) -> None:
    assert closest(capability) == target
