"""The report page: its data, and what a browser makes of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .commands import faulty, opt, write

SOFTMAX = """\
func.func @f(%x: !aten.tensor<8x48xf32>, %w: !aten.tensor<48x16xf32>) -> !aten.tensor<8x16xf32> {
  %0 = aten.relu(%x) : !aten.tensor<8x48xf32> loc("model.py":3:0)
  %1 = aten._softmax(%0, dim = -1, half_to_float = false) : !aten.tensor<8x48xf32> loc("model.py":4:0)
  %2 = aten.mm(%1, %w) : !aten.tensor<8x16xf32> loc("model.py":5:0)
  %3 = aten.exp(%2) : !aten.tensor<8x16xf32> loc("model.py":5:0)
  func.return %3 : !aten.tensor<8x16xf32>
}
"""
MODEL = """\
import torch
def f(x, w):
    x = torch.relu(x)  # </script>
    y = torch.softmax(x, -1)
    return (y @ w).exp()
"""
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")


@pytest.fixture
def page(tmp_path: Path) -> Path:
    model = write(tmp_path, "model.py", MODEL)
    source = write(tmp_path, "softmax.mlir", SOFTMAX.replace("model.py", str(model)))
    path = tmp_path / "index.html"
    assert opt(source, "--pipeline", "default", "--report", path, "-t", "cpp", "--verify-each").status == 0
    return path


def blocks(page: Path) -> list[dict[str, Any]]:
    found = re.findall(r'<script type="application/json" class="block">(.*)</script>', page.read_text())
    return [json.loads(text) for text in found]


def dom(page: Path, tab: str) -> str:
    """The document as a browser leaves it after running the page's script."""
    assert CHROMIUM is not None
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom")
    done = subprocess.run([CHROMIUM, *flags, f"file://{page}#{tab}"], capture_output=True, text=True, timeout=120)
    assert 'data-ready="true"' in done.stdout, done.stderr[-2000:]
    return done.stdout.partition('<div id="app">')[2].partition("<script")[0]


def test_every_pass_has_its_block(page: Path) -> None:
    found = blocks(page)
    kinds = [block["block"] for block in found]
    assert kinds[:2] == ["title", "input"]
    names = [block["name"] for block in found if block["block"] == "pass"]
    assert names[0] == "graph-canonicalize"
    assert names[-1] == "host-free"
    assert kinds.count("verify") == len(names)
    (program,) = [block for block in found if block["block"] == "program"]
    softmax = next(kernel for kernel in program["kernels"] if "exp" in kernel["ir"] and "max" in kernel["ir"])
    assert (softmax["read"], softmax["written"], softmax["times"]) == (4 * 8 * 48, 4 * 8 * 48, 1)
    assert softmax["at"] == [[0, 3], [0, 4]]
    assert f"{softmax['name']}(" in softmax["code"]
    remarks = [remark for block in found for remark in block.get("remarks", ())]
    assert any(r["pass"] == "loop-inline" and r["kind"] == "passed" and r["line"] is None for r in remarks)
    assert any(r["pass"] == "lower-aten-to-loop" and r["line"] is not None for r in remarks)


def test_no_network(page: Path) -> None:
    text = page.read_text()
    assert set(re.findall(r"https?://[^\"']*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", text)


@needs_browser
def test_passes_in_a_browser(page: Path) -> None:
    shown = dom(page, "passes")
    number = sum(block["block"] == "pass" for block in blocks(page))
    assert shown.count('id="pass-') == number + 1
    assert 'class="l added"' in shown
    assert 'class="l removed"' in shown
    assert re.search(r'class="remark missed"><b>missed:</b>[^<]*aten.mm has no lowering', shown)


@needs_browser
def test_the_other_tabs_in_a_browser(page: Path, tmp_path: Path) -> None:
    shown = dom(page, "source/0:4")
    assert shown.count('class="node"') >= 10
    assert 'class="src used hit" id="src-0-4"' in shown
    assert "# &lt;/script&gt;" in shown
    assert re.search(r"launched once, from </span><a>model.py:3</a>, <a>model.py:4</a>", shown)
    assert '<circle cx="' in shown
    assert CHROMIUM is not None
    picture = tmp_path / "shot.png"
    flags = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", f"--screenshot={picture}")
    subprocess.run([CHROMIUM, *flags, f"file://{page}#graph"], capture_output=True, timeout=120, check=True)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_failing_pass_leaves_a_page(tmp_path: Path) -> None:
    path, source = tmp_path / "index.html", write(tmp_path, "softmax.mlir", SOFTMAX)
    done = opt(source, *faulty(tmp_path), "-p", "lower-aten-to-loop,crash,loop-dce", "--report", path)
    assert done.status == 70
    kinds = [block["block"] for block in blocks(path)]
    assert kinds == ["title", "input", "source", "graph", "pass", "verify", "error"]
    if CHROMIUM is not None:
        path.write_text(path.read_text()[:-200])  # as if it had been killed while writing
        assert "lower-aten-to-loop" in dom(path, "passes")
