"""`inductile-reduce`: what is left is small, valid, and still goes wrong in the same way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inductile.dialects.context import new_context
from inductile.tools.source import Source

from .commands import ADD, Done, faulty, opt, run, write

SOFTMAX = """\
func.func @f(
    %x: !aten.tensor<(s0)x48xbf16>, %w: !aten.tensor<48xf32>
) -> (!aten.tensor<(s0)x48xf32>, !aten.tensor<(s0)xf32>)
    attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2, hint = 12>]} {
  %0 = aten._to_copy(%x, dtype = torch.float32) : !aten.tensor<(s0)x48xf32>
  %1 = aten._softmax(%0, dim = -1, half_to_float = false) : !aten.tensor<(s0)x48xf32>
  %2 = aten.mul.Tensor(%1, %w) : !aten.tensor<(s0)x48xf32>
  %3 = aten.sum.dim_IntList(%2, dim = [1]) : !aten.tensor<(s0)xf32>
  %4 = aten.log(%3) : !aten.tensor<(s0)xf32>
  func.return %2, %4 : !aten.tensor<(s0)x48xf32>, !aten.tensor<(s0)xf32>
}
"""


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    return write(tmp_path, "softmax.mlir", SOFTMAX)


def ops(text: str) -> list[str]:
    """Names of the ops of a module, which has to be valid."""
    source = Source(text, "reduced")
    module = source.parse(new_context())
    source.verify(module)
    return [op.name for op in module.walk()][1:]


def test_a_wrong_answer(tmp_path: Path, softmax: Path) -> None:
    flags, small = faulty(tmp_path), tmp_path / "small.mlir"
    done = run("reduce", softmax, *flags, "-p", "lower-aten-to-loop,swap-sub,loop-inline", "-o", small)
    assert done.status == 0
    assert "goes wrong: swap-sub: answer, values\n" in done.err
    text = small.read_text()
    assert ops(text) in (["func.func", "aten._softmax", "func.return"], ["func.func", "aten.sub.Tensor", "func.return"])
    assert "s0" not in text
    assert "48" not in text
    assert opt(small, *flags, "-p", "lower-aten-to-loop,swap-sub", "--verify-each=numerics").status == 1


def test_a_crash_inside_a_body(tmp_path: Path, softmax: Path) -> None:
    lowered = write(tmp_path, "loop.mlir", opt(softmax, "-p", "lower-aten-to-loop,loop-inline,loop-fuse").out)
    assert lowered.read_text().count("\n") > 40
    done = run("reduce", lowered, *faulty(tmp_path), "-p", "swap-sub,crash")
    assert "goes wrong: crash: KeyError" in done.err
    assert ops(done.out) == []
    done = run("reduce", lowered, "--test", "grep -q math.exp")
    assert ops(done.out) == ["func.func", "loop.generate", "arith.constant", "math.exp", "loop.yield", "func.return"]


def test_kernels(tmp_path: Path, softmax: Path) -> None:
    tiled = write(tmp_path, "kernel.mlir", opt(softmax, "--pipeline", "default").out)
    done = run("reduce", tiled, "--test", "grep -q kernel.reduce.max")
    assert ops(done.out) == ["kernel.func", "kernel.reduce", "arith.constant", "kernel.yield", "kernel.yield"]
    assert "() {" in done.out  # no buffers, no symbols


def test_says_when_nothing_is_wrong(softmax: Path) -> None:
    done = run("reduce", softmax, "-p", "lower-aten-to-loop")
    assert (done.status, done.out) == (1, "")
    assert "nothing goes wrong with these passes" in done.err
    done = run("reduce", softmax, "--test", "false")
    assert "the command does not end with status 0 on the file itself" in done.err
    assert run("reduce", softmax).status == 1


def test_keeps_the_best_when_interrupted(tmp_path: Path, softmax: Path) -> None:
    small = tmp_path / "small.mlir"
    slow = "sh -c 'sleep 0.3; grep -q aten.log {}'"
    command = [sys.executable, "-m", "inductile.tools.reduce", str(softmax), "--test", slow, "-o", str(small)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not small.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; this is the smallest module so far" in err
    kept = small.read_text()
    assert "aten.log" in ops(kept)
    assert len(kept) < len(SOFTMAX)


def test_a_reproducer(tmp_path: Path, softmax: Path) -> None:
    flags, reproducer = faulty(tmp_path), tmp_path / "r.mlir"
    check = ("-p", "lower-aten-to-loop,swap-sub", "--verify-each=numerics", "--crash-reproducer", reproducer)
    assert opt(softmax, *flags, *check).status == 1
    done: Done = run("reduce", reproducer, *flags, "--run-reproducer")
    assert "arith.subf" in ops(done.out)
    assert len(ops(done.out)) <= 8


def test_the_counters_of_a_reproducer_hold(tmp_path: Path) -> None:
    """A module with two subtractions of which only the second one is swapped keeps both."""
    twice = ADD.replace("aten.relu(%0)", "aten.sub.Tensor(%0, %y, alpha = 1)")
    reproducer, flags = tmp_path / "r.mlir", faulty(tmp_path)
    failing = ("-p", "lower-aten-to-loop,swap-sub", "--debug-counter", "swap-sub-skip=1", "--verify-each=numerics")
    assert opt(write(tmp_path, "twice.mlir", twice), *flags, *failing, "--crash-reproducer", reproducer).status == 1
    done = run("reduce", reproducer, *flags, "--run-reproducer")
    assert done.status == 0
    assert ops(done.out).count("aten.sub.Tensor") == 2
