"""What an installation contains, and that what it promises to other programs is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from .source_rules import LEVELS, Tree

ROOT = Path(__file__).parents[1]
DATA = (".txt", ".mlir", ".h", ".css", ".js")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files of a wheel built from a copy of the tree, to which data and a deep package are added."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "setup.py", "LICENSE", "py.typed", "__init__.py", "errors.py", "extensions.py"):
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
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", "wheels", "."],
        cwd=source,
        check=True,
        capture_output=True,
    )
    (built,) = (source / "wheels").glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return set(archive.namelist())


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
        package = inside[0] in LEVELS or inside in (["__init__.py"], ["errors.py"], ["extensions.py"], ["py.typed"])
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
