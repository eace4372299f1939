"""`inductile-run`: backends agree, files in and out, and what it says without a compiler."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

from .commands import ADD, opt, run, write


@pytest.fixture
def add(tmp_path: Path) -> Path:
    return write(tmp_path, "add.mlir", ADD)


@pytest.mark.parametrize("stop", ["graph-dce", "loop-fuse", "host-free"])
def test_every_level_runs_on_files(tmp_path: Path, add: Path, stop: str) -> None:
    level = write(tmp_path, "level.mlir", opt(add, "--pipeline", "default", "--stop-after", stop).out)
    inputs = [numpy.arange(12, dtype=numpy.float32).reshape(4, 3), numpy.full((4, 3), 5, numpy.float32)]
    flags: list[str | Path] = []
    for number, value in enumerate(inputs):
        numpy.save(tmp_path / f"{number}.npy", value)
        flags += ["--input", tmp_path / f"{number}.npy"]
    for backend in ("reference", "cpp"):
        done = run("run", level, "--backend", backend, *flags, "--output", tmp_path / "out.npy")
        assert (done.status, done.err) == (0, "")
        assert "result 0: float32[4, 3] strides [3, 1]" in done.out
        numpy.testing.assert_array_equal(numpy.load(tmp_path / "out.npy"), numpy.maximum(inputs[0] - inputs[1], 0))


@pytest.mark.parametrize(
    ("compiler", "path", "message"),
    [
        ("", "/nonexistent", "error: no C++ compiler found; install the package g++, or let the environment variable"),
        ("no-such-compiler", None, "error: CXX names 'no-such-compiler', which is not there; install g++, or unset"),
        ("/bin/false", None, "error: no working C++ compiler (/bin/false --version"),
        (
            "'g++",
            None,
            'error: CXX is "\'g++", which is no command line (No closing quotation); write it',
        ),
        ("/bin/echo", None, "error: the C++ compiler failed on "),
    ],
)
def test_without_a_compiler_there_is_one_message(
    tmp_path: Path, add: Path, monkeypatch: pytest.MonkeyPatch, compiler: str, path: str | None, message: str
) -> None:
    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CXX", compiler)
    if path is not None:
        monkeypatch.setenv("PATH", path)
    done = run("run", add, "--backend", "cpp")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(message)
    assert done.err.count("error: ") == 1
    assert run("run", add).status == 0  # the reference backend needs none


def test_made_up_inputs_are_ordinary_unless_special_ones_are_asked_for(add: Path) -> None:
    ordinary, special = (
        run("run", add, "--random", "1", "--full"),
        run("run", add, "--random", "1", "--full", "--special"),
    )
    assert "nan" not in ordinary.out
    assert "nan" in special.out


RAISING = """func.func @f(%x: !aten.tensor<4xf32>, %n: index) -> !aten.tensor<4xf32> {
  CALL
  func.return %0 : !aten.tensor<4xf32>
}
"""


@pytest.mark.parametrize("backend", ["reference", "cpp"])
@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            '%0 = aten.call "aten::select_copy.int"(%x, 0, 7) : !aten.tensor<4xf32>',
            "the program raises IndexError: select()",
        ),
        ('%0 = aten.call "aten::nothing"(%x) : !aten.tensor<4xf32>', "this torch has no operator aten::nothing"),
        ('%0 = aten.call "aten::exp"() : !aten.tensor<4xf32>', "the program raises RuntimeError: aten::exp() is"),
    ],
    ids=["refused", "unknown", "arguments"],
)
def test_what_an_operator_raises_the_program_raises(tmp_path: Path, backend: str, call: str, told: str) -> None:
    done = run("run", write(tmp_path, "raises.mlir", RAISING.replace("CALL", call)), "--backend", backend)
    assert done.status == 1
    assert told in done.err


def test_what_the_interpreter_raises_is_a_fault_of_ours(add: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inductile.backends.reference import program

    def fail(*_: object) -> None:
        raise ValueError("a fault")

    monkeypatch.setattr(program.Program, "execute", fail)
    done = run("run", add)
    assert done.status == 70
    assert "ValueError: a fault (a bug" in done.err
