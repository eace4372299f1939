"""`inductile-bisect` on files and scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ..warm.python import python
from .commands import FAULTY_PASSES, faulty, opt, run, run_scripts_here, write

CHAIN = """\
func.func @f(%x: !aten.tensor<4x3xf32>, %y: !aten.tensor<4x3xf32>) -> !aten.tensor<4x3xf32> {
  %0 = aten.sub.Tensor(%x, %x, alpha = 1) : !aten.tensor<4x3xf32>
  %1 = aten.sub.Tensor(%x, %y, alpha = 1) : !aten.tensor<4x3xf32> loc("model.py":7:0)
  %2 = aten.relu(%1) : !aten.tensor<4x3xf32>
  %3 = aten.sub.Tensor(%2, %2, alpha = 1) : !aten.tensor<4x3xf32>
  %4 = aten.mul.Tensor(%3, %0) : !aten.tensor<4x3xf32>
  %5 = aten.add.Tensor(%4, %2, alpha = 1) : !aten.tensor<4x3xf32>
  func.return %5 : !aten.tensor<4x3xf32>
}
"""
PASSES = "lower-aten-to-loop,loop-cse,swap-sub,loop-inline,loop-fuse,lower-loop-to-kernel"

SCRIPT = """\
import torch
import inductile.backends.compiled as compiled

{setup}

def f(x, y):
    return torch.relu(x - y) * x.sum(1, keepdim=True)

x, y = torch.randn(5, 3), torch.randn(5, 3)
got = torch.compile(f, backend="inductile", options={options})(x, y)
{check}
"""
WRONG_ANSWER = SCRIPT.format(
    setup="from inductile.tools.plugins import load_plugin\nload_plugin({plugin!r})",
    options="{{'insert': {{'after:loop-cse': 'swap-sub'}}}}",
    check="torch.testing.assert_close(got, f(x, y))",
)
FUSED_TOO_MUCH = SCRIPT.format(setup="", options={}, check="assert sum(compiled.REPORTS[0].kernels.values()) != 1")


def test_finds_pass_and_rewrite_by_the_answer(tmp_path: Path) -> None:
    flags, found = faulty(tmp_path), tmp_path / "found.mlir"
    done = run("bisect", write(tmp_path, "chain.mlir", CHAIN), *flags, "-p", PASSES, "-o", found)
    assert done.status == 0
    assert "guilty pass: swap-sub (number 3 of 6, faulty_passes.py)\n  the answer changes: result 0: values" in done.out
    # the first subtraction gives 0 either way
    assert "guilty rewrite: swap-sub, number 2 of 3\n" in done.out
    changed = [line for line in done.out.splitlines() if line[:2] in ("+ ", "- ")]
    assert [line.split("= ")[1] for line in changed] == [
        'arith.subf %4, %5 : f32 loc("model.py":7:0)', 'arith.subf %5, %4 : f32 loc("model.py":7:0)',
    ]  # fmt: skip
    replayed = opt(found, *flags, "--run-reproducer", "--verify-each=numerics")
    assert (replayed.status, "pass 'swap-sub' failed: it changes the answer" in replayed.err) == (1, True)
    assert run("bisect", found, *flags, "--run-reproducer").status == 0
    small = tmp_path / "small.mlir"
    assert run("reduce", found, *flags, "--run-reproducer", "-o", small).status == 0
    replayed = opt(small, *flags, "--run-reproducer", "--verify-each=numerics")  # what is left is a reproducer as well
    assert (replayed.status, "pass 'swap-sub' failed: it changes the answer" in replayed.err) == (1, True)


def test_says_when_nothing_goes_wrong(tmp_path: Path) -> None:
    done = run("bisect", write(tmp_path, "chain.mlir", CHAIN), "-p", "lower-aten-to-loop,loop-inline,loop-fuse")
    assert (done.status, done.out) == (1, "")
    assert "nothing goes wrong in 3 passes" in done.err


def test_a_command_as_oracle(tmp_path: Path) -> None:
    path = write(tmp_path, "chain.mlir", CHAIN)
    at_most_4_nests = "sh -c 'test $(grep -c loop.generate {}) -ge 4'"
    done = run("bisect", path, "-p", "lower-aten-to-loop,loop-inline,loop-dce", "--test", at_most_4_nests)
    assert done.status == 1  # already wrong in front: no nest at all
    assert "it goes wrong in front of all passes: the command ends with status 1" in done.err
    lowered = write(tmp_path, "loop.mlir", opt(path, "-p", "lower-aten-to-loop").out)
    done = run("bisect", lowered, "-p", "loop-cse,loop-inline,loop-dce", "--test", at_most_4_nests)
    assert "guilty pass: loop-inline (number 2 of 3, passes/loop/inline.py)" in done.out
    assert "guilty rewrite: loop-inline, number 3 of 5" in done.out
    assert "[loop-inline] passed: loop.generate: inlined" in done.out


def test_a_crashing_pass_is_guilty(tmp_path: Path) -> None:
    path = write(tmp_path, "chain.mlir", CHAIN)
    done = run("bisect", path, *faulty(tmp_path), "-p", "lower-aten-to-loop,crash,loop-dce")
    assert "guilty pass: crash (number 2 of 3, faulty_passes.py)\n  KeyError: 'no such thing'\n" in done.out
    done = run("bisect", path, *faulty(tmp_path), "-p", "graph-cse,use-before-definition,lower-aten-to-loop")
    assert "guilty pass: use-before-definition" in done.out


@pytest.mark.slow
def test_a_script_with_a_wrong_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", python())
    plugin = write(tmp_path, "faulty_passes.py", FAULTY_PASSES)
    script = write(tmp_path, "model.py", WRONG_ANSWER.format(plugin=str(plugin)))
    done = run("bisect", script, "--load-pass-plugin", plugin)
    assert done.status == 0
    assert done.out.startswith("graph inference_0\nguilty pass: swap-sub (")
    assert f'{script}":8:0' in done.out
    assert "1 runs of the script" in done.err


def test_a_script_with_another_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_scripts_here(monkeypatch)
    done = run("bisect", write(tmp_path, "model.py", FUSED_TOO_MUCH))
    assert done.status == 0
    assert "guilty rewrite: loop-" in done.out
    assert "no pass changes an answer in the reference backend" in done.err


def test_wrong_code_is_told_from_wrong_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy

    from inductile.backends import targets
    from inductile.tools.bisect_script import _code_problem

    write(tmp_path, "000-input.mlir", opt(write(tmp_path, "chain.txt", CHAIN), "-p", "lower-aten-to-loop").out)
    (tmp_path / "inputs").mkdir()
    for number in range(2):
        numpy.save(tmp_path / "inputs" / f"{number}.npy", numpy.ones((4, 3), numpy.float32))
    assert _code_problem(tmp_path) is None
    monkeypatch.setattr(targets, "run_compiled", lambda module, inputs, checked=False: [inputs[0].clone()])
    assert _code_problem(tmp_path) == "result 0: values at [0, 0]: 0.0 -> 1.0 (12 of 12 elements)"


def test_a_script_whose_graph_is_changed_before_autograd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_scripts_here(monkeypatch)
    setup = """\
from inductile.lowering.fx_pre_grad import register_pre_grad
from inductile.passes.counters import counter

def swap_subtractions(graph, inputs):
    for node in graph.graph.find_nodes(op="call_function", target=operator.sub):
        if counter("swap-subtractions"):
            node.args = node.args[::-1]

import operator
register_pre_grad("swap-subtractions", "Swaps operands that must not be swapped.", swap_subtractions)
"""
    script = SCRIPT.format(
        setup=setup,
        options="{'pre_grad': 'remove-identities,swap-subtractions'}",
        check="torch.testing.assert_close(got, f(x, y))",
    ).replace("torch.relu(x - y)", "torch.relu((x - x) + (x - y))")
    done = run("bisect", write(tmp_path, "model.py", script))
    assert done.status == 0
    # the first subtraction gives 0 either way
    assert "guilty rewrite: swap-subtractions, number 2 of 2\n" in done.out
    assert "graph dynamo_0, behind swap-subtractions:" in done.out
    assert [line.split("= ")[1].split(";")[0] for line in done.out.splitlines() if line[:2] in ("+ ", "- ")] == [
        "l_x_ - l_y_", "l_y_ - l_x_",
    ]  # fmt: skip
