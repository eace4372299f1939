"""`inductile-package`: a file of torch.export becomes a package, which is described and run."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
import torch

from inductile.tools import package, run


def test_made_inspected_and_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = torch.nn.Linear(4, 3)
    example = torch.randn(2, 4)
    exported = torch.export.export(module, (example,), dynamic_shapes=({0: torch.export.Dim("n", max=64)},))
    source, made = tmp_path / "model.pt2", tmp_path / "model.pt2i"
    torch.export.save(exported, source)
    assert package.main(["make", str(source), "-o", str(made)]) == 0
    assert package.main(["inspect", str(made), "--sources"]) == 0
    shown = capsys.readouterr().out
    assert "input: float32[" in shown and "weights.bin" in shown and "def run(args)" in shown
    x, result = tmp_path / "x.npy", tmp_path / "y.npy"
    given = torch.randn(5, 4)
    numpy.save(x, given.numpy())
    for tool, first in ((package, ["run"]), (run, [])):
        assert tool.main([*first, str(made), "--input", str(x), "--output", str(result)]) == 0
        torch.testing.assert_close(torch.from_numpy(numpy.load(result)), module(given).detach())
    assert run.main([str(made), "--random", "1"]) == 0
    assert "result 0: float32[2, 3]" in capsys.readouterr().out
    for tool, first in ((package, ["run"]), (run, [])):
        assert tool.main([*first, str(made), "--random", "1", "--time", "3"]) == 0
        assert "ms, the median of 3 runs" in (told := capsys.readouterr().out) and "result" not in told
    numpy.save(x, given.double().numpy())
    assert run.main([str(made), "--input", str(x)]) == 1
    assert "is float64[5, 4], the package takes input: float32[" in capsys.readouterr().err


def test_what_is_no_file_of_an_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("no zip")
    for name in ("text", "none"):
        assert package.main(["make", str(tmp_path / name), "-o", str(tmp_path / "x")]) == 1
        assert package.main(["inspect", str(tmp_path / name)]) == 1
    assert capsys.readouterr().err.count("error: ") >= 4
    assert package.main(["make", str(tmp_path / "none"), "-o", "x"]) == 1
    assert (
        capsys.readouterr().err
        == f"{tmp_path / 'none'}: error: cannot read it: No such file or directory; name a file of torch.export.save\n"
    )
    assert package.main(["make", "model.pt2", "-o", "x", "--import", "no_such_module"]) == 1
    assert "--import no_such_module: error: No module named" in capsys.readouterr().err
