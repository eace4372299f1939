"""The example package, installed: each of its entry points is found and does its work."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest

from ..warm.python import python

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_pass"

SOFTSIGN = (EXAMPLE / "softsign.mlir").read_text()

TORCH = """
import my_pass.torch_op, torch
from inductile.backends.compiled import REPORTS

def check(f, x, **options):
    torch.compiler.reset()
    REPORTS.clear()
    torch.testing.assert_close(torch.compile(f, backend="inductile", options=options)(x), f(x), equal_nan=True)
    (report,) = REPORTS
    assert not report.aten_calls, report.aten_calls
    return "\\n".join(report.sources.values())

composed = lambda x: torch.nn.functional.softsign(x) + 1
own = lambda x: torch.ops.my_pass.softsign(x) + 1
x = torch.tensor([-0.0, 1.5, -2.0, float("inf"), float("nan"), 3.0])
marker = "(1.0f + __builtin_fabsf("
assert marker not in check(composed, x)
assert marker in check(composed, x, insert={"after:loop-cse": "my-fuse-softsign"})
assert marker in check(composed, x, pipeline="my-pipeline", verify_each="numerics")
assert marker not in check(composed, x, pipeline="my-pipeline", debug_counter="my-fuse-softsign-count=0")
assert marker in check(own, x)
assert marker in check(own, x.bfloat16())
assert "1.0 + __builtin_fabs(" in check(own, x.double())
print("all right")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package installed in it, as by `pip install`."""
    source = tmp_path_factory.mktemp("source") / "my_pass"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    target = tmp_path_factory.mktemp("site")
    install = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(target))
    subprocess.run([sys.executable, *install, str(source)], check=True, capture_output=True)
    return target


def run(installed: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Python with the package on its path, in front of what is there."""
    paths = [str(installed), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run([python(), *map(str, arguments)], capture_output=True, text=True, env=environment)


def opt(installed: Path, *arguments: str | Path) -> str:
    done = run(installed, "-m", "inductile.tools.opt", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_command_line(installed: Path, tmp_path: Path) -> None:
    source = tmp_path / "softsign.mlir"
    source.write_text(SOFTSIGN)
    assert "my-fuse-softsign                     loop                   fuse_softsign.py" in opt(
        installed, "--list-passes"
    )
    assert "loop-inline,loop-cse,my-fuse-softsign" in opt(installed, "--print-pipeline", "my-pipeline")
    loop = opt(installed, source, "-p", "lower-aten-to-loop,loop-inline,loop-cse,my-fuse-softsign,loop-dce")
    assert "my.softsign %1 : f32" in loop
    (tmp_path / "loop.mlir").write_text(loop)
    pipeline: Sequence[str] = (
        "--pipeline",
        "my-pipeline",
        "--verify-each=numerics",
        "--start-at",
        "loop-eliminate-views",
    )
    assert "__builtin_fabsf" in opt(installed, tmp_path / "loop.mlir", *pipeline, "-t", "cpp")
    source.write_text(SOFTSIGN.replace("xf32>", 'xf32, device = "cuda:0">'))
    triton = opt(installed, source, "--pipeline", "my-pipeline", "--target", "cuda:90", "-t", "triton")
    assert "tl.div_rn(x_value, 1.0 + tl.abs(x_value))" in triton


def test_a_target(installed: Path, tmp_path: Path) -> None:
    source = tmp_path / "softsign.mlir"
    source.write_text(SOFTSIGN)
    ir = opt(installed, source, "--pipeline", "default", "--target", "xpu:bmg")
    assert 'machine.targets = #machine.targets<cpu = "cpp", xpu = "xpu:bmg">' in ir
    assert 'target "xpu:bmg"' in ir and 'device = "xpu:0"' in ir
    triton = opt(installed, source, "--pipeline", "my-pipeline", "--target", "xpu:bmg", "-t", "triton")
    assert "tl.div_rn(x_value, 1.0 + tl.abs(x_value))" in triton and "nvidia" not in triton
    wrong = run(installed, "-m", "inductile.tools.opt", source, "--target", "xpu:bmx")
    assert (wrong.returncode, wrong.stderr) == (1, "error: unknown target 'xpu:bmx'; did you mean 'xpu:bmg'?\n")


def test_a_generator(installed: Path, tmp_path: Path) -> None:
    """It is found by its name, writes kernels for its own target alone, and runs them."""
    source, ours, eager = tmp_path / "softsign.mlir", tmp_path / "ours.npy", tmp_path / "reference.npy"
    source.write_text(SOFTSIGN)
    text = opt(installed, source, "--pipeline", "default", "--target", "my-c", "-t", "my-c")
    assert text.startswith("/* written by my_pass */\n") and "for (" in text
    tool = (installed, "-m", "inductile.tools.run", source, "--random", "0")
    assert run(*tool, "--backend", "cpp", "--target", "my-c", "--output", ours).returncode == 0
    assert run(*tool, "--output", eager).returncode == 0
    numpy.testing.assert_allclose(numpy.load(ours), numpy.load(eager), rtol=1e-6)
    wrong = run(installed, "-m", "inductile.tools.opt", source, "--target", "cpp", "-t", "my-c")
    assert wrong.stderr == "error: kernels for 'cpp' are written by cpp, not by my-c; write -t cpp\n"


def test_commands_of_the_readme(installed: Path) -> None:
    block = (EXAMPLE / "README.md").read_text().partition("```sh\n")[2].partition("```")[0]
    first, *commands = block.splitlines()
    assert first == "cd examples/my_pass && pip install ."
    assert len(commands) == 7
    for command in commands:
        tool, *arguments = shlex.split(command, comments=True)
        given = [EXAMPLE / each if each.endswith(".mlir") else each for each in arguments]
        done = run(installed, "-m", tool.replace("-", ".tools.", 1), *given)
        assert done.returncode == 0 and done.stdout, (command, done.stderr)


def test_torch_compile(installed: Path) -> None:
    done = run(installed, "-c", TORCH)
    assert (done.returncode, done.stdout) == (0, "all right\n"), done.stderr


def test_what_does_not_load_is_named(installed: Path, tmp_path: Path) -> None:
    broken = tmp_path / "site"
    shutil.copytree(installed, broken)
    (broken / "my_pass" / "fuse_softsign.py").write_text("raise ImportError('no such thing')")
    done = run(broken, "-m", "inductile.tools.opt", "-p", "my-fuse-softsign", "-")
    assert done.returncode == 1
    wanted = (
        "inductile.passes 'my-fuse-softsign' of the package inductile-my-pass does not load: ImportError: no such thing"
    )
    assert wanted in done.stderr
