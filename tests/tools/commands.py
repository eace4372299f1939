"""Running the command lines inside the test process, and passes with faults for them to find."""

from __future__ import annotations

import importlib
import io
import itertools
import runpy
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

ADD = """\
func.func @f(%x: !aten.tensor<4x3xf32>, %y: !aten.tensor<4x3xf32>) -> !aten.tensor<4x3xf32> {
  %0 = aten.sub.Tensor(%x, %y, alpha = 1) : !aten.tensor<4x3xf32>
  %1 = aten.relu(%0) : !aten.tensor<4x3xf32>
  func.return %1 : !aten.tensor<4x3xf32>
}
"""

#: passes of a plugin file; `swap-sub` swaps the operands of every subtraction, if its counter lets it
FAULTY_PASSES = '''
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.passes import ModulePass

from inductile.errors import UserError
from inductile.passes.counters import counter


@dataclass(frozen=True)
class SwapSub(ModulePass):
    """Swap the operands of subtractions."""

    name = "swap-sub"
    level = "loop"

    def apply(self, ctx, op):
        for each in op.walk():
            if isinstance(each, arith.SubfOp) and counter("swap-sub"):
                each.operands = each.operands[::-1]


@dataclass(frozen=True)
class Crash(ModulePass):
    """Fail as a bug does."""

    name = "crash"

    def apply(self, ctx, op):
        raise KeyError("no such thing")


@dataclass(frozen=True)
class Complain(ModulePass):
    """Fail as for a user's mistake."""

    name = "complain"

    def apply(self, ctx, op):
        raise UserError("the input is odd", "make it even")


@dataclass(frozen=True)
class UseBeforeDefinition(ModulePass):
    """Move the first op of each function to its end."""

    name = "use-before-definition"

    def apply(self, ctx, op):
        for function in op.ops:
            first, last = function.body.block.first_op, function.body.block.last_op
            first.detach()
            last.parent.insert_op_before(first, last)
'''


@dataclass(frozen=True)
class Done:
    """What a command left."""

    status: int
    out: str
    err: str


def run(tool: str, *arguments: str | Path) -> Done:
    """Run `inductile.tools.<tool>` with arguments."""
    out, err = io.StringIO(), io.StringIO()
    main = importlib.import_module(f"inductile.tools.{tool}").main
    with redirect_stdout(out), redirect_stderr(err):
        status = main([str(a) for a in arguments])
    return Done(status, out.getvalue(), err.getvalue())


def run_scripts_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `inductile-bisect` run its scripts inside this process, where torch is loaded already.

    A script finds Dynamo and what a process counts as in a fresh one; what it registers goes with it.
    """
    from inductile.tools import bisect_script

    def run_here(command: Sequence[str], *, env: Mapping[str, str], **_: object) -> SimpleNamespace:
        import torch

        from inductile.backends import compiled, pre_grad, trace
        from inductile.lowering.pre_grad import PRE_GRAD

        torch._dynamo.reset()
        compiled.REPORTS.clear()
        known = dict(PRE_GRAD)
        with pytest.MonkeyPatch.context() as patch:
            for module in (pre_grad, trace):
                patch.setattr(module, "_numbers", itertools.count())
            patch.setattr(sys, "argv", list(command[1:]))
            for name, value in env.items():
                patch.setenv(name, value)
            try:
                runpy.run_path(command[1], run_name="__main__")
            except Exception:
                traceback.print_exc()
                return SimpleNamespace(returncode=1)
            finally:
                for name in PRE_GRAD.keys() - known:
                    del PRE_GRAD[name]
        return SimpleNamespace(returncode=0)

    processes = SimpleNamespace(run=run_here, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr(bisect_script, "subprocess", processes)


def opt(*arguments: str | Path) -> Done:
    """Run `inductile-opt`."""
    return run("opt", *arguments)


def write(folder: Path, name: str, text: str) -> Path:
    """A file with a text."""
    path = folder / name
    path.write_text(text)
    return path


def faulty(folder: Path) -> Sequence[str]:
    """Arguments that load `FAULTY_PASSES`."""
    return ("--load-pass-plugin", str(write(folder, "faulty_passes.py", FAULTY_PASSES)))
