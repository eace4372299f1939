"""The root module: lazy, without side effects, importable under any name."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import inductile

ROOT = Path(__file__).parents[1]
PUBLIC = [
    "Config", "autotune_backends", "backend", "debug", "explain", "list_mode_options", "list_options", "load_package",
    "package", "register_lowering",
]  # fmt: skip


def test_version_is_the_installed_one() -> None:
    assert inductile.__version__ == version("inductile")


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_resolves_and_is_kept(name: str) -> None:
    assert name in dir(inductile)
    value = getattr(inductile, name)
    assert value is not None
    assert vars(inductile)[name] is value


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'inductile' has no attribute 'nonsense'"):
        _ = inductile.nonsense


def test_without_an_installation_the_version_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "inductile").symlink_to(ROOT)
    script = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]; import inductile as i"
    command = [sys.executable, "-S", "-c", f"{script}; print(i.__version__, '__version__' in dir(i))"]
    done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.stdout == "0+unknown True\n", done.stderr


def test_import_under_another_name_works(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("elsewhere", ROOT / "__init__.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "elsewhere", module)
    spec.loader.exec_module(module)
    assert module.__version__ == inductile.__version__
    assert set(PUBLIC) <= set(dir(module))


def test_import_loads_no_other_package() -> None:
    script = "import sys; before = set(sys.modules); import inductile; print(*set(sys.modules) - before)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in result.stdout.split()}
    assert loaded - sys.stdlib_module_names == {"inductile"}


def test_options_say_why_something_is_off() -> None:
    options = inductile.list_options()
    assert "attention: rows of which every key is hidden" in options["patterns"]
    assert "fold-batch-norm" in options["pre_grad"].partition("off, and why")[2]
    assert "off, and why" not in options["pad_products"]
