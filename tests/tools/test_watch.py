"""The watching flags of `inductile-opt` inside torch.compile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from inductile.errors import UserError


def halve(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) / 2


def compile_and_run(**options: str) -> None:
    torch.compiler.reset()
    x = torch.randn(5, 3)
    torch.testing.assert_close(torch.compile(halve, backend="inductile", options=dict(options))(x), halve(x))


def test_flags_as_an_option(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    flags = f"--print-ir-after=loop-fuse --timing --remarks=loop-inline --print-ir-tree-dir={tmp_path}"
    compile_and_run(watch=flags, verify_each="numerics")
    err = capfd.readouterr().err
    assert err.count("// -----// IR Dump After loop-fuse (loop-fuse) //----- //") == 1
    assert "remark: [loop-inline] passed: loop.generate: inlined" in err
    assert "  Total Execution Time: " in err
    (folder,) = tmp_path.iterdir()
    assert (folder / "000-input.mlir").is_file()


def test_flags_from_the_environment(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("INDUCTILE_WATCH", "--pass-statistics")
    compile_and_run(debug_counter="loop-inline-count=0")
    assert "(S)      0 num-loop-inline - Rewrites made, 1 refused by its counter" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--tim", "cannot read the flags: unrecognized arguments: --tim"),
        ("--print-ir-after=loop-fus", "unknown pass 'loop-fus'; did you mean 'loop-fuse'?"),
    ],
)
def test_wrong_flags_are_told(flags: str, message: str) -> None:
    from torch._dynamo.exc import BackendCompilerFailed

    with pytest.raises((UserError, BackendCompilerFailed), match=re.escape(message)):
        compile_and_run(watch=flags)
