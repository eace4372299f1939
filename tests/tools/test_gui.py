"""`inductile-gui`, where its library is installed, and the lexer."""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from .commands import ADD, run, write


def test_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xdsl.interactive.app", None)
    done = run("gui", write(tmp_path, "add.mlir", ADD))
    assert done.status == 1
    assert "pip install 'inductile[gui]'" in done.err


def test_applies_passes(tmp_path: Path) -> None:
    pytest.importorskip("textual")
    from inductile.tools.gui import build_app, build_parser

    path = write(tmp_path, "add.mlir", ADD)
    app = build_app(build_parser().parse_args([str(path), "-p", "lower-aten-to-loop,loop-inline"]))

    async def look() -> tuple[object, str]:
        async with app.run_test() as pilot:
            await pilot.pause()
            return app.current_module, app.output_text_area.text

    module, text = asyncio.run(look())
    assert isinstance(module, ModuleOp), module
    assert text.count("loop.generate") == 1
    assert "arith.subf" in text


def test_lexer_knows_every_character_of_our_files() -> None:
    pygments = pytest.importorskip("pygments")
    from pygments.token import Error

    from inductile.tools.lexer import InductileLexer

    files = list((Path(__file__).parents[1] / "filecheck" / "passes").rglob("*.mlir"))
    assert len(files) > 10
    for file in files:
        text = file.read_text()
        tokens = list(pygments.lex(text, InductileLexer(ensurenl=False, stripnl=False)))
        assert "".join(value for _, value in tokens) == text
        assert [value for kind, value in tokens if kind is Error and value.isascii() and value != "`"] == []


def test_lexer_is_found() -> None:
    points = {point.name: point.value for point in entry_points(group="pygments.lexers")}
    assert points.get("inductile") == "inductile.tools.lexer:InductileLexer"
