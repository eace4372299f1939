"""The layering of the source tree, its sizes, and the cost of importing it."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from . import source_rules as rules
from .source_rules import HEAVY, Tree

ROOT = Path(__file__).parents[1]
RULES = [
    rules.upward_imports,
    rules.heavy_imports,
    rules.heavy_chains,
    rules.import_cycles,
    rules.misnamed_passes,
    rules.names_of_devices,
    rules.compared_devices,
    rules.answers_given_twice,
    rules.packageless_folders,
]


@pytest.fixture(scope="module")
def tree() -> Tree:
    return Tree(ROOT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_holds(tree: Tree, rule: Callable[[Tree], list[str]]) -> None:
    assert len(tree.modules) > 10
    assert rule(tree) == []


def test_no_file_is_too_long(tree: Tree) -> None:
    paths = [module.path for module in tree.modules.values()]
    for folder in ("tests", "examples", "benchmarks", "docs"):
        paths += (ROOT / folder).rglob("*.py")
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in paths}
    assert {name: length for name, length in lengths.items() if length > 800} == {}


def test_files_are_small(tree: Tree) -> None:
    lengths = [len(module.path.read_text().splitlines()) for module in tree.modules.values()]
    assert statistics.median(lengths) < 170


def test_importing_all_but_the_border_loads_nothing_heavy(tree: Tree) -> None:
    names = [".".join(("inductile", *name)) for name, module in tree.modules.items() if not module.is_border]
    script = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print(sorted(set(sys.modules) & {set(HEAVY)!r}))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("[]\n", "")


BAD_TREE = {
    "__init__.py": "from .errors import E",
    "errors.py": "E = 1",
    "dialects/__init__.py": "",
    "dialects/a.py": "from __future__ import annotations\ndef f():\n    from ..passes import loop\n",
    "dialects/b.py": "from . import c\nif TYPE_CHECKING:\n    from . import d\n",
    "dialects/c.py": "def f():\n    from .b import g\n",
    "dialects/d.py": "from . import b\n",
    "passes/__init__.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n",
    "passes/loop/__init__.py": "",
    "passes/loop/fuse.py": "class P(ModulePass):\n    name = 'loop-fusion'\n",
    "passes/loop/tile_all.py": "class P(ModulePass):\n    name = 'loop-tile-all'\n",
    "passes/analysis/__init__.py": "",
    "passes/analysis/a.py": "def live(): ...\ndef cost(): ...\n",
    "passes/analysis/b.py": "def _live(): ...\ndef cost(): ...\n",
    "passes/loop/_reuse.py": "def _live(): ...\ndef reused(): ...\n",
    "lowering/__init__.py": "",
    "lowering/fx_import.py": "import torch\nfrom ..dialects import a\n",
    "lowering/pipeline.py": "import torch.fx\nfrom ..errors import E\n",
    "backends/cpp/emit.py": "import sympy\nimport inductile\n",
    "tools/__init__.py": "from ..backends.cpp import emit\n",
    "tools/opt.py": "def main():\n    import torch\n",
    "passes/loop/_cost.py": "def f(t):\n    return t.device == 'cpu' or t.startswith('cuda:') or t in ('xpu',)\n",
    "lowering/eager.py": "WIDE = {'cpu': 64}\nHELP = 'for the cpu'\n",
    "tests/filecheck/passes/loop/fuse.mlir": "",
}


def test_the_rules_find_what_they_forbid(tmp_path: Path) -> None:
    for name, text in BAD_TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    bad = Tree(tmp_path)
    assert rules.upward_imports(bad) == [
        "__init__.py:1: the root module must stay lazy",
        "dialects/a.py:3: imports passes.loop, which is above it",
        "backends/cpp/emit.py:2: imports inductile by name; write it relative",
    ]
    assert rules.heavy_imports(bad) == ["lowering/pipeline.py:1: imports torch at top level"]
    assert rules.heavy_chains(bad) == [
        "tools -> backends.cpp.emit",
        "tools.opt -> tools -> backends.cpp.emit",
    ]
    assert rules.import_cycles(bad) == ["dialects.b <-> dialects.c"]
    assert rules.misnamed_passes(bad) == [
        "passes/loop/fuse.py:1: holds loop-fusion instead of loop-fuse",
        "passes/loop/tile_all.py:1: has no test tests/filecheck/passes/loop/tile_all.mlir",
    ]
    assert rules.names_of_devices(bad) == [
        "passes/loop/_cost.py:2: says 'cpu'; ask machines",
        "passes/loop/_cost.py:2: says 'cuda:'; ask machines",
        "passes/loop/_cost.py:2: says 'xpu'; ask machines",
        "lowering/eager.py:1: says 'cpu'; ask machines",
    ]
    assert rules.compared_devices(bad) == [
        "passes/loop/_cost.py:2: compares with 'cpu'; ask machines",
        "passes/loop/_cost.py:2: compares with 'xpu'; ask machines",
    ]
    assert rules.answers_given_twice(bad) == [
        "passes/analysis/b.py:2: cost is also in passes.analysis.a",
        "passes/loop/_reuse.py:1: _live is also in passes.analysis.a",
    ]
    assert rules.packageless_folders(bad) == ["backends", "backends/cpp"]
