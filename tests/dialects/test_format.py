"""The version of the format of IR: where it is written, and what is said of files of other versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductile.dialects import format as ir_format
from inductile.dialects.context import new_context
from inductile.dialects.format import FORMAT, HEADER, format_of
from inductile.dialects.reading import Reader
from inductile.errors import UserError
from inductile.lowering.reproducer import read_reproducer, store_reproducer
from inductile.tools import opt

TEXT = "func.func @f(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {\n  func.return %x : !aten.tensor<4xf32>\n}\n"


def _read(text: str) -> str:
    return str(Reader(new_context(), text, "x.mlir").parse_module())


@pytest.mark.parametrize("head", ["", f"{HEADER}\n", f"// mine\n\n{HEADER}\n// more\n"])
def test_text_of_this_version_is_read(head: str) -> None:
    assert format_of(head + TEXT) == FORMAT
    assert _read(head + TEXT) == _read(TEXT)


def test_only_the_comments_in_front_say_a_version() -> None:
    assert format_of(f"{TEXT}// inductile format: 99\n") == FORMAT


def test_a_newer_version_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.mlir"
    file.write_text(f"// inductile format: {FORMAT + 1}\n{TEXT}// -----\nnew.op\n")
    assert opt.main([str(file), "--split-input-file"]) == 1
    assert capsys.readouterr().err == (
        f"{file}: error: the file has format {FORMAT + 1}, and this version of inductile reads {FORMAT}; "
        "read it with the inductile that wrote it, or a newer one\n"
    )


@pytest.mark.parametrize("word", ["", "1.5", "-1", "one", "²", "9" * 5000])
def test_what_is_no_version_is_told(word: str) -> None:
    with pytest.raises(UserError, match="is no version of the format of IR"):
        _read(f"// inductile format: {word}\n{TEXT}")


def test_an_older_version_is_refused_or_upgraded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"// inductile format: 0\n{TEXT.replace('func.func', 'func.graph')}"
    with pytest.raises(UserError, match="the file has format 0, which is no longer read; write it again"):
        _read(text)
    monkeypatch.setattr(ir_format, "UPGRADES", {0: lambda old: old.replace("func.graph", "func.func")})
    assert _read(text) == _read(TEXT)


def test_files_say_their_version_and_standard_output_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, written, tree = tmp_path / "x.mlir", tmp_path / "y.mlir", tmp_path / "tree"
    file.write_text(TEXT)
    assert opt.main([str(file), "-p", "graph-dce", "-o", str(written), f"--print-ir-tree-dir={tree}"]) == 0
    assert opt.main([str(written)]) == 0
    assert not capsys.readouterr().out.startswith("//")
    for each in (written, *tree.iterdir()):
        assert each.read_text().startswith(f"{HEADER}\nbuiltin.module")


def test_a_reproducer_says_its_version(tmp_path: Path) -> None:
    path = store_reproducer(str(tmp_path / "r.mlir"), TEXT, [], ValueError("broken"), "a-count=1", "ir")
    text = Path(path).read_text()
    assert format_of(text) == FORMAT and text.splitlines()[1] == HEADER
    assert (read_reproducer(text, path).counters, read_reproducer(text, path).verify_each) == ("a-count=1", "ir")
