"""What an installation contains, and that what it promises to other programs is there."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from .source_rules import LEVELS, Tree

ROOT = Path(__file__).parents[1]
DATA = (".txt", ".mlir", ".h", ".css", ".js")


VERSION = "97.1.2"
#: files of the package that lie beside its levels
BESIDE = ("py.typed", "__init__.py", "errors.py", "extensions.py", "records.py")
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", *BESIDE)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An sdist and the wheel that is built from it, of a copy of the tree with a tag, more data and a deep package."""
    for tool in ("build", "setuptools_scm"):
        pytest.importorskip(tool, reason="`pip install build setuptools-scm` runs the tests of the package")
    source = tmp_path_factory.mktemp("source")
    for name in FILES:
        shutil.copy(ROOT / name, source)
    for folder in (*LEVELS, "tests"):
        if (ROOT / folder).is_dir():
            shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    deep = source / "dialects" / "some" / "deep"
    deep.mkdir(parents=True)
    for folder in (deep.parent, deep):
        (folder / "__init__.py").touch()
    for name in ("table.txt", "case.mlir", "lib.h"):
        (deep / name).touch()
    (source / "notes.txt").touch()
    author = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    for command in (("init", "-q"), ("add", "-A"), (*author, "commit", "-qm", "all"), ("tag", f"v{VERSION}")):
        subprocess.run(["git", *command], cwd=source, check=True, capture_output=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, env=_environment())
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return source / "dist" / f"inductile-{VERSION}.tar.gz", source / "dist" / f"inductile-{VERSION}-py3-none-any.whl"


def _environment() -> dict[str, str]:
    """Without what leads to the checkout, or says which version it has."""
    hidden = ("PYTHONPATH", "SETUPTOOLS_SCM_PRETEND_VERSION", "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_INDUCTILE")
    return {name: value for name, value in os.environ.items() if name not in hidden and not name.startswith("GIT_")}


@pytest.fixture(scope="module")
def wheel(distributions: tuple[Path, Path]) -> set[str]:
    """The files of the wheel."""
    with zipfile.ZipFile(distributions[1]) as archive:
        return set(archive.namelist())


def test_sdist_has_what_git_has_and_its_version(distributions: tuple[Path, Path]) -> None:
    with tarfile.open(distributions[0]) as archive:
        names = set(archive.getnames())
        told = archive.extractfile(f"inductile-{VERSION}/PKG-INFO")
        assert told is not None and f"Version: {VERSION}" in told.read().decode()
    wanted = {"README.md", "notes.txt", "tests/test_packaging.py", "dialects/some/deep/case.mlir"}
    assert {f"inductile-{VERSION}/{name}" for name in wanted} <= names


def test_the_changelog_has_a_section_for_each_release() -> None:
    done = subprocess.run(["git", "tag", "--list", "v*"], cwd=ROOT, capture_output=True, text=True)
    text = (ROOT / "CHANGELOG.md").read_text()
    sections = re.findall(r"^## \[([^\]]+)\](?: - \d{4}-\d\d-\d\d)?$", text, re.MULTILINE)
    assert sections == re.findall(r"^## \[?([^\]\s]+)", text, re.MULTILINE), (
        "a heading is not `## [1.2.3] - 2026-01-31`"
    )
    assert sections[0] == "Unreleased" and len(set(sections)) == len(sections)
    assert {tag.removeprefix("v") for tag in done.stdout.split()} <= set(sections)


INSTALLED = """
import importlib.metadata, sys
import inductile
assert inductile.__file__.startswith(sys.prefix), inductile.__file__
assert inductile.__version__ == importlib.metadata.version("inductile") == sys.argv[1], inductile.__version__
del sys.modules["inductile"]
import torch
x = torch.randn(7)
torch.testing.assert_close(torch.compile(lambda x: x.exp() + 1, backend="inductile")(x), x.exp() + 1)
assert sys.modules["inductile.backends.torch_compile"].__file__.startswith(sys.prefix)
print("all right")
"""


def test_installed_in_an_environment_of_its_own(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    """Of ours it has the wheel alone; what we need is lent by this environment, so that nothing is fetched."""
    place = tmp_path / "environment"
    venv.create(place, symlinks=True)
    python = place / "bin" / "python"
    install = ("install", "--quiet", "--no-deps", "--no-index", "--no-compile", str(distributions[1]))
    command = [sys.executable, "-m", "pip", "--python", str(python), *install]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment())
    assert done.returncode == 0, done.stderr
    (site,) = place.glob("lib/python3*/site-packages")
    lent = {str(Path(str(importlib.util.find_spec(name).origin)).parents[1]) for name in ("torch", "xdsl", "sympy")}  # pyright: ignore[reportOptionalMemberAccess]
    (site / "lent.pth").write_text("".join(f"{each}\n" for each in sorted(lent)))
    done = subprocess.run(
        [python, "-c", INSTALLED, VERSION], cwd=tmp_path, capture_output=True, text=True, env=_environment()
    )
    assert (done.returncode, done.stdout) == (0, "all right\n"), done.stderr
    script = [place / "bin" / "inductile-opt", "--list-passes"]
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, env=_environment())
    assert done.returncode == 0 and "loop-fuse" in done.stdout, done.stderr


def test_wheel_has_every_module_and_data_file(wheel: set[str]) -> None:
    files = [module.path.relative_to(ROOT) for module in Tree(ROOT).modules.values()]
    files += [path.relative_to(ROOT) for level in LEVELS for path in (ROOT / level).rglob("*") if path.suffix in DATA]
    assert {f"inductile/{file}" for file in files} <= wheel
    added = ("__init__.py", "table.txt", "case.mlir", "lib.h")
    assert {f"inductile/dialects/some/deep/{name}" for name in added} <= wheel
    assert "inductile/py.typed" in wheel


def test_wheel_has_nothing_else(wheel: set[str]) -> None:
    def belongs(name: str) -> bool:
        top, *inside = Path(name).parts
        if top.endswith(".dist-info"):
            return True
        package = inside[0] in LEVELS or inside in ([each] for each in BESIDE)
        return top == "inductile" and package

    assert [name for name in sorted(wheel) if not belongs(name)] == []


POINTS = [
    point
    for group in ("console_scripts", "torch_dynamo_backends", "xdsl.universe")
    for point in entry_points(group=group)
    if point.value.startswith("inductile.")
]


def test_entry_points_are_declared() -> None:
    names = {(point.group, point.name) for point in POINTS}
    assert {
        ("console_scripts", "inductile-opt"),
        ("console_scripts", "inductile-run"),
        ("console_scripts", "inductile-package"),
        ("console_scripts", "inductile-bisect"),
        ("console_scripts", "inductile-reduce"),
        ("console_scripts", "inductile-cost"),
        ("console_scripts", "inductile-gui"),
        ("torch_dynamo_backends", "inductile"),
        ("xdsl.universe", "inductile"),
    } <= names


@pytest.mark.parametrize("point", POINTS, ids=lambda point: f"{point.group}:{point.name}")
def test_entry_point_loads(point: EntryPoint) -> None:
    assert point.load() is not None
