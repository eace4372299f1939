"""The report page: its data, and what a browser makes of it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from xdsl.parser import Parser

from inductile.backends.report import Report
from inductile.backends.report.neighbours import introduce
from inductile.backends.report.statements import functions_of
from inductile.dialects.context import new_context

from ..browser import Browser, find_chromium
from .commands import faulty, opt, run, write
from .gpt2_text import gpt2_text

SOFTMAX = """\
func.func @f(%x: !aten.tensor<8x48xf32>, %w: !aten.tensor<48x16xf32>) -> !aten.tensor<8x16xf32> {
  %0 = aten.relu(%x) : !aten.tensor<8x48xf32> loc("model.py":3:0)
  %1 = aten._softmax(%0, dim = -1, half_to_float = false) : !aten.tensor<8x48xf32> loc("model.py":4:0)
  %2 = aten.mm(%1, %w) : !aten.tensor<8x16xf32> loc("model.py":8:0)
  %3 = aten.exp(%2) : !aten.tensor<8x16xf32> loc("model.py":8:0)
  func.return %3 : !aten.tensor<8x16xf32>
}
"""
MODEL = """\
import torch
def f(x, w):
    x = torch.relu(x)  # </script><img src=x onerror="document.title='broken in'"><!--<script>
    y = torch.softmax(x, -1)
    if x.dim() == 3:
        y = torch.sum(y, 0)
    z = w
    return (y @ w).exp()
"""
#: a name, a path and a source that try to be markup
EVIL = """</script><img src=x onerror="document.title='broken in'"><!--<script>"""
CHROMIUM = find_chromium()
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    model = write(folder, "model.py", MODEL)
    source = write(folder, "softmax.mlir", SOFTMAX.replace("model.py", str(model)))
    path = folder / "index.html"
    assert opt(source, "--pipeline", "default", "--report", path, "-t", "cpp", "--verify-each").status == 0
    return path


@pytest.fixture(scope="module")
def changed_page(page: Path) -> Path:
    """The same graph without a pass and with another op: what it is compared with."""
    text = (page.parent / "softmax.mlir").read_text().replace("aten.exp(", "aten.tanh(")
    source, path = write(page.parent, "changed.mlir", text), page.parent / "changed.html"
    assert opt(source, "--pipeline", "default", "--report", path, "-t", "cpp").status == 0
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert CHROMIUM is not None
    browser = Browser(CHROMIUM)
    yield browser
    browser.close()


@pytest.fixture
def view(browser: Browser) -> Iterator[Browser]:
    """The browser, in which no script of a page may fail."""
    browser.errors.clear()
    yield browser
    assert browser.errors == []


def blocks(page: Path) -> list[dict[str, Any]]:
    found = re.findall(r'<script type="application/json" class="block">(.*)</script>', page.read_text())
    return [json.loads(text) for text in found]


def lowering_of(page: Path) -> int:
    """The number of the stage behind `lower-aten-to-loop`."""
    return next(number for number, each in enumerate(passes_of(page), 1) if each["name"] == "lower-aten-to-loop")


def passes_of(page: Path) -> list[dict[str, Any]]:
    return [block for block in blocks(page) if block["block"] == "pass"]


def test_every_pass_has_its_block(page: Path) -> None:
    found = blocks(page)
    kinds = [block["block"] for block in found]
    assert kinds[:2] == ["title", "input"]
    passes = [block for block in found if block["block"] == "pass"]
    assert passes[0]["name"] == "graph-canonicalize"
    assert passes[-1]["name"] == "host-free"
    assert kinds.count("verify") == len(passes)
    assert 10 < sum("lines" in block for block in passes) < len(passes) / 2  # the others changed nothing
    (program,) = [block for block in found if block["block"] == "program"]
    softmax = next(kernel for kernel in program["kernels"] if "exp" in kernel["ir"] and "max" in kernel["ir"])
    assert (softmax["read"], softmax["written"], softmax["times"]) == (4 * 8 * 48, 4 * 8 * 48, 1)
    assert softmax["at"] == [[0, 3], [0, 4]]
    assert f"{softmax['name']}(" in softmax["code"]
    assert [(call["name"], call["at"]) for call in program["calls"]] == [("aten.mm", [[0, 8]])]
    remarks = [remark for block in found for remark in block.get("remarks", ())]
    assert any(r["pass"] == "loop-inline" and r["kind"] == "passed" and r["line"] is None for r in remarks)
    assert any(r["pass"] == "lower-aten-to-loop" and r["line"] is not None for r in remarks)


def test_calls_of_different_cost_are_apart(tmp_path: Path) -> None:
    text = """func.func @f(%x: !aten.tensor<8x48xf32>, %w: !aten.tensor<48x48xf32>, %v: !aten.tensor<48x4xf32>)
      -> !aten.tensor<8x4xf32> {
  %0 = aten.mm(%x, %w) : !aten.tensor<8x48xf32>
  %1 = aten.mm(%0, %w) : !aten.tensor<8x48xf32>
  %2 = aten.mm(%1, %v) : !aten.tensor<8x4xf32>
  func.return %2 : !aten.tensor<8x4xf32>
}"""
    path = tmp_path / "index.html"
    assert opt(write(tmp_path, "f.mlir", text), "--pipeline", "default", "--report", path).status == 0
    (program,) = [block for block in blocks(path) if block["block"] == "program"]
    calls = [(call["name"], call["times"], call["operations"]) for call in program["calls"]]
    assert calls == [("aten.mm", 2, 2 * 8 * 48 * 48), ("aten.mm", 1, 2 * 8 * 4 * 48)]


def test_a_page_repeats_no_line(page: Path) -> None:
    new = [line for block in blocks(page) for line in block.get("new", ())]
    assert len(new) == len(set(new))


def test_no_network(page: Path) -> None:
    text = page.read_text()
    assert set(re.findall(r"https?://[^\"']*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", text)
    assert "default-src 'none'" in text


def test_statements() -> None:
    (function,) = functions_of(MODEL)
    assert (function.first, function.last) == (2, 8)
    assert function.statements == [(3, 3), (4, 4), (5, 5), (6, 6), (8, 8)]
    inner = "        'says'\n        def g():\n            return g()\n        a = 1\n"
    nested = f"class A:\n    @wrap\n    def f(self):\n{inner}"
    assert [(f.first, f.last, f.statements) for f in functions_of(nested)] == [(2, 7, [(6, 6)])]
    assert functions_of("no python at all (") == []


@needs_browser
def test_stages(page: Path, view: Browser) -> None:
    view.open(page, "stages")
    passes = passes_of(page)
    changed = sum("lines" in block for block in passes)
    assert view.count(".list .entry") == changed + 1
    assert view.text(".head h2") == f"{lowering_of(page)} lower-aten-to-loop"
    assert view.count(".l.added") > 10
    assert view.count(".l.removed") == 3  # relu, softmax and exp
    assert "missed: aten.mm is a library's" in view.text(".rows .remark.missed")
    view.run("document.querySelector('.list > button').click()")
    assert view.count(".list .entry") == len(passes) + 1
    view.go(f"stages/{lowering_of(page)}/0")
    assert "builtin.module" in view.text(".l.hit")


@needs_browser
def test_keys(page: Path, view: Browser) -> None:
    changed = [number for number, each in enumerate(passes_of(page), 1) if "lines" in each]
    after = next(number for number in changed if number > lowering_of(page))
    view.open(page, "stages")
    view.press("j")
    assert view.run("location.hash") == f"#stages/{after}"
    view.press("k")
    assert view.run("location.hash") == f"#stages/{lowering_of(page)}"
    view.press("4")
    assert view.run("document.body.dataset.tab") == "kernels"
    view.press("/")
    view.type("SOFTMAX 48")
    found = view.text(".results")
    assert "aten._softmax" in found
    assert "Lines of stages" in found
    view.press("ArrowDown")
    view.press("Enter")
    assert view.run("document.querySelector('.results').hidden")
    assert view.run("location.hash").startswith("#s")
    view.press("/")
    view.type(" relu torch")
    assert view.text(".results mark") == ""  # no line has all words


@needs_browser
def test_kernels(page: Path, view: Browser) -> None:
    view.open(page, "kernels")
    rows = view.run("[...document.querySelectorAll('#tab-kernels table')[0].rows].map(row => row.innerText)")
    assert re.match(r"softmax_\d+\s+1\s+1.54 kB\s+1.54 kB\s", rows[1])
    assert view.count("circle") == 3
    view.go("kernels/softmax_0")
    assert "math.exp" in view.text("#kernel-softmax_0 pre")
    assert "launched once, from model.py:3, model.py:4" in view.text("#kernel-softmax_0 summary")
    view.run("[...document.querySelectorAll('th button')].find(each => each.innerText === 'written').click()")
    assert view.run("document.querySelector('th[aria-sort]').innerText").startswith("written")


@needs_browser
def test_source_marks_what_was_skipped(page: Path, view: Browser) -> None:
    view.open(page, "source/0:4")
    assert "# </script><img" in view.text("#src-0-3")
    assert view.run("document.querySelector('#src-0-4').className") == "src used hit"
    assert "softmax_0" in view.text("#src-0-4 .chips")
    states = view.run("[5, 6, 7, 8].map(line => document.getElementById(`src-0-${line}`).className.trim())")
    assert states == ["src skipped", "src skipped", "src", "src used"]
    view.go("graph")
    assert view.count(".node") >= 10
    assert view.screenshot().startswith(b"\x89PNG")


@needs_browser
def test_no_text_is_markup(tmp_path: Path, view: Browser) -> None:
    name = json.dumps(EVIL)
    text = SOFTMAX.replace('"model.py":3', f"{name}:3").replace("@f(", "@evil(").replace("%x", "%onerror")
    source, path = write(tmp_path, f"{EVIL.replace('/', '|')[:60]}.mlir", text), tmp_path / "index.html"
    assert opt(source, "-p", "lower-aten-to-loop,loop-dce", "--report", path).status == 0
    for tab in ("overview", "stages/1", "graph", "kernels", "source", "compare"):
        view.open(path, tab)
        assert view.run("document.body.dataset.ready") == "true"
        assert view.count("img") == 0
        assert view.run("document.title").endswith(".mlir")
    view.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
    view.run("new Promise((done) => setTimeout(done, 50))")
    assert view.run("document.title").endswith(".mlir")  # the policy would stop what got through
    assert "Content Security Policy" in "".join(view.errors)
    view.errors.clear()


def test_a_failing_pass_leaves_a_page(tmp_path: Path) -> None:
    path, source = tmp_path / "index.html", write(tmp_path, "softmax.mlir", SOFTMAX)
    done = opt(source, *faulty(tmp_path), "-p", "lower-aten-to-loop,crash,loop-dce", "--report", path)
    assert done.status == 70
    kinds = [block["block"] for block in blocks(path)]
    assert kinds == ["title", "input", "source", "graph", "pass", "verify", "error"]
    path.write_text(path.read_text()[:-200])  # as if it had been killed while writing
    assert len(blocks(path)) == 6


@needs_browser
def test_a_page_that_ends_early(page: Path, tmp_path: Path, view: Browser) -> None:
    path = write(tmp_path, "index.html", page.read_text()[: -len(page.read_text()) // 8])
    view.open(path, "stages")
    assert view.run("document.body.dataset.ready") == "true"
    assert "lower-aten-to-loop" in view.text(".list")


@needs_browser
def test_compare(page: Path, changed_page: Path, tmp_path: Path, view: Browser) -> None:
    path = tmp_path / "compare.html"
    done = run("report", page, changed_page, "-o", path)
    assert (done.status, done.out.strip()) == (0, str(path))
    view.open(path)
    assert view.run("document.body.dataset.tab") == "compare"
    kernels = view.text("#compare-kernels")
    assert re.search(r"exp_0\s+only before", kernels)
    assert re.search(r"tanh_0\s+only after", kernels)
    assert re.search(r"softmax_0\s+same", kernels)
    assert view.count(".comparing .l.removed") > 0
    assert "math.exp" in view.text(".rows.left")
    assert "math.tanh" in view.text(".rows.right")
    view.run("[...document.querySelectorAll('button')].find(each => each.innerText === 'first that differs').click()")
    assert "aten.tanh" in view.text(".rows.right .added")
    view.open(page, "compare")
    view.choose_file("#other", changed_page)
    view.wait_for("#compare-figures")
    assert re.search(r"time in passes\s+\S+ m?s\s+\S+ m?s\s+[+−]", view.text("#compare-figures"))


def test_compare_complains(page: Path, tmp_path: Path) -> None:
    for arguments, problem in (
        ((tmp_path, page), "is no trace of a graph"),
        ((write(tmp_path, "x.html", "<p>"), page), "is no page of a graph"),
        ((page, page, "-o", tmp_path / "none" / "x.html"), "cannot write"),
    ):
        done = run("report", *arguments)
        assert done.status == 1
        assert problem in done.err
    for name in ("forward_0", "backward_1"):
        (tmp_path / "trace" / name).mkdir(parents=True)
        (tmp_path / "trace" / name / "index.html").write_text(page.read_text())
    assert "choose one with --graph: backward_1, forward_0" in run("report", tmp_path / "trace", page).err
    out = tmp_path / "out.html"
    assert run("report", tmp_path / "trace", page, "--graph", "forward_0", "-o", out).status == 0
    assert out.read_text().count('class="other"') == len(blocks(page))


@needs_browser
def test_a_gpt2_opens_within_two_seconds(tmp_path: Path, view: Browser) -> None:
    source, path = write(tmp_path, "gpt2.mlir", gpt2_text(12, "gpt2.py")), tmp_path / "index.html"
    assert opt(source, "--pipeline", "default", "--report", path, "-t", "cpp").status == 0
    assert path.stat().st_size < 1_000_000
    view.open(path)  # the first page of a browser waits for more than itself
    assert view.open(path, "stages") < 2
    for number in (13, 33):
        started = time.perf_counter()
        view.go(f"stages/{number}")
        assert time.perf_counter() - started < 2
        assert view.count(".rows .l") < 200  # lines out of sight are no elements
    last = view.run("data.columns[33].lines.length")
    view.go(f"stages/33/{last - 1}")
    assert view.text(".l.hit .n") == str(last)


@needs_browser
def test_lines_of_another_graph_are_not_skipped(tmp_path: Path, view: Browser) -> None:
    model = write(tmp_path, "model.py", MODEL)
    pages: list[Path] = []
    for name, line in (("inference_0", 3), ("inference_1", 6)):
        text = f"""func.func @f(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {{
  %0 = aten.relu(%x) : !aten.tensor<4xf32> loc("{model}":{line}:0)
  func.return %0 : !aten.tensor<4xf32>
}}"""
        (tmp_path / name).mkdir()
        report = Report(tmp_path / name / "index.html", name, reached={(str(model), line)})
        report.before_run(Parser(new_context(), text).parse_module())
        introduce(report)
        pages.append(report.path)
    for page, states in zip(pages, (["used", "elsewhere"], ["elsewhere", "used"]), strict=True):
        view.open(page, "source")
        found = view.run("[3, 6].map(line => document.getElementById(`src-0-${line}`).className)")
        assert found == [f"src {state}" for state in states]
        assert view.run("document.getElementById('src-0-4').className") == "src skipped"
        assert view.count(".src.elsewhere a") == 1


@needs_browser
def test_differences_lead_from_one_text_to_the_other(page: Path, view: Browser) -> None:
    view.open(page, "overview")
    wrong = view.run("""(() => {
      let seed = 1, wrong = 0;
      const random = (n) => { seed = (seed * 48271) % 2147483647; return seed % n; };
      for (let k = 0; k < 300; k++) {
        const a = Array.from({ length: random(60) }, () => random(2 + random(80)));
        const edited = a.filter(() => random(5)).flatMap((x) => (random(6) ? [x] : [x, random(99)]));
        const b = k % 3 ? edited : a.map(() => random(40));
        const left = [], right = [];
        for (const [kind, i, j] of difference(a, b)) {
          if (kind !== "+") left.push(i);
          if (kind !== "-") right.push(kind === "=" ? j : i);
          if (kind === "=" && a[i] !== b[j]) wrong++;
        }
        if (left.some((i, at) => i !== at) || left.length !== a.length) wrong++;
        if (right.some((j, at) => j !== at) || right.length !== b.length) wrong++;
      }
      return wrong;
    })()""")
    assert wrong == 0


PARTS = """\
kernel.func @k(%x: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f32, 4>) target "cuda:90" {
  kernel.for i0 in 0 to 4 map grid tile 4 { %v = kernel.load %x[i0]  kernel.store %v, %y[i0]  kernel.yield }
  kernel.yield
}
host.func @f(%x: !aten.tensor<4xf32, device = "cuda:0">) -> (!aten.tensor<(u0)x1xi64, device = "cuda:0">) \
symbols [#sym.symbol<u0>] {
  %a = host.empty : !aten.tensor<4xf32, device = "cuda:0">
  host.launch @k(%x, %a)
  %b = host.empty : !aten.tensor<4xf32, device = "cuda:0">
  host.launch @k(%a, %b)
  %n = aten.nonzero(%b) binds [u0] : !aten.tensor<(u0)x1xi64, device = "cuda:0">
  host.return %n
}
"""


@needs_browser
def test_kernels_for_a_gpu(tmp_path: Path, view: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {"k": {"registers": 17, "spills": 8, "shared": 64, "warps": 4}}
    monkeypatch.setattr("inductile.backends.triton.figures.figures_of", lambda module: figures)
    source, path = write(tmp_path, "parts.mlir", PARTS), tmp_path / "index.html"
    passes = "host-split-parts{cudagraphs=true least=2}"
    done = opt(source, "-p", passes, "--report", path, "-t", "triton", "-o", tmp_path / "k.py")
    assert done.status == 0, done.err
    view.open(path, "kernels")
    table = view.text("#tab-kernels table").split("\n")
    assert table[0].split()[-5:] == ["registers", "spills", "shared", "warps", "share"]
    assert table[1].split()[-4:] == ["17", "8", "64", "4"]
    assert "recorded: f_part_0 2 launches and calls" in view.text(".part.recorded")
    assert "k × 2" in view.text(".part.recorded")
    assert "aten.nonzero: " in view.text(".part:not(.recorded)")
    assert "cuda:90 allows" in view.text("#tab-kernels")


@needs_browser
def test_light_and_dark(page: Path, view: Browser) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    colours: list[str] = []
    for scheme in ("light", "dark"):
        view.prefer(scheme)
        view.open(page)
        colours.append(view.run(ground))
    view.prefer("light")
    assert colours[0] != colours[1]
    view.run("document.querySelector('[aria-label=\"light or dark\"]').click()")
    assert view.run(ground) == colours[1]
    view.run("localStorage.clear()")
