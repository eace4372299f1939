"""Programs compiled to plain C give what the interpreter gives: those of the kernel passes, and random ones.

Kernels by hand, and every scalar op, run in C beside C++ (`tests/backends/cpp`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from xdsl.dialects.builtin import ModuleOp

from inductile.backends.host import build
from inductile.dialects.context import new_context
from inductile.dialects.machine import set_targets
from inductile.errors import UserError
from inductile.lowering.pipeline import named_passes
from inductile.passes.manager import PassManager
from inductile.tools import opt
from inductile.tools import run as tool

from ...passes.kernel.random_programs import random_program
from ...passes.kernel.stages import inputs_of, parse, run

TESTS = Path(__file__).parents[2]
FILES = (
    TESTS / "filecheck" / "lowering" / "loop_to_kernel.mlir",
    TESTS / "passes" / "kernel" / "Inputs" / "programs.mlir",
)
SOFTMAX = """
func.func @softmax(%x: !aten.tensor<(s0)x70xf32>) -> !aten.tensor<(s0)x70xf32>
    attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2, hint = 5>]} {
  %y = aten._softmax(%x, dim = -1, half_to_float = false) : !aten.tensor<(s0)x70xf32>
  func.return %y : !aten.tensor<(s0)x70xf32>
}
"""


def _texts() -> Iterator[str]:
    for file in FILES:
        yield from file.read_text().split("// -----")
    yield from map(random_program, range(40))


def _lowered(text: str) -> ModuleOp:
    module = parse(text)
    set_targets(module, ["c"])
    PassManager(named_passes(start_at="lower-loop-to-kernel")).run(new_context(), module)
    return module


@pytest.mark.rotates(6)
@pytest.mark.parametrize("number", range(len(list(_texts()))))
def test_programs_in_c_give_what_the_interpreter_gives(number: int) -> None:
    text = list(_texts())[number]
    module = parse(text)
    inputs = inputs_of(module)
    expected = run(module, inputs)
    lowered = _lowered(text)
    assert "map parallel" not in str(lowered) and "map vector" not in str(lowered)
    copies = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t) for t in inputs]
    program = build(lowered, checked=number % 2 == 0)
    assert "kernels.cpp" not in program.sources
    results = [*program(list(copies)), *copies]
    for got, want in zip(results, expected, strict=True):
        torch.testing.assert_close(got, want, equal_nan=True)


def _tool(tmp_path: Path, text: str, *arguments: str) -> None:
    file = tmp_path / "program.mlir"
    file.write_text(text)
    assert tool.main([str(file), *arguments]) == 0


def test_tools_know_the_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for backend in ("reference", "c"):
        _tool(tmp_path, SOFTMAX, "--random", "0", "--backend", backend, "--full")
    first, second = capsys.readouterr().out.split("result 0: ")[1:]
    assert first.split("\n")[0] == second.split("\n")[0] == "float32[5, 70] strides [70, 1]"
    assert opt.main([str(tmp_path / "program.mlir"), "--pipeline", "default", "--target", "c", "-t", "c"]) == 0
    source = capsys.readouterr().out
    assert "int softmax_0(const float* restrict x, float* restrict y, int64_t s0) {" in source
    assert "for (int64_t i0 = 0; i0 < s0; ++i0) {" in source
    assert "#pragma" not in source and "template <" not in source and 'extern "C"' not in source


OUTSIDE = """
kernel.func @shifted(%x: !kernel.buffer<f32, n>, %y: !kernel.buffer<f32, n>) symbols (n) target "TARGET" {
  kernel.for i0 in 0 to n {
    %v = kernel.load %x[i0 + 3]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @program(%x: !aten.tensor<8xf32>) -> (!aten.tensor<8xf32>) {
  %y = host.empty : !aten.tensor<8xf32>
  host.launch @shifted(%x, %y) [8]
  host.return %y
}
"""


@pytest.mark.parametrize(
    ("target", "arguments", "message"),
    [
        ("c", (), "kernel @shifted accesses element 8 of x, which has 8"),
        ("cpp", (), "kernels for 'cpp' are written by cpp, not by c; write -t cpp"),
        ("c", ("--target", "cuda:90"), "kernels for 'cuda:90' are written by triton, not by c; write -t triton"),
    ],
)
def test_what_it_cannot_do_is_said(
    target: str, arguments: Sequence[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "program.mlir"
    file.write_text(OUTSIDE.replace("TARGET", target))
    assert tool.main([str(file), "--random", "0", "--backend", "c", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_no_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(UserError, match="CC names 'no-such-compiler', which is not there; install gcc, or unset CC"):
        build(_lowered(next(iter(_texts()))))
