"""What other installed packages add, through entry points; `docs/plugins.md` shows a whole package.

| group                  | an entry point is                                                                         |
|------------------------|-------------------------------------------------------------------------------------------|
| `inductile.passes`     | a pass class; the name is that of the pass                                                |
| `inductile.pipelines`  | a tuple of `Phase`s, or a function that returns one; the name is that of the pipeline     |
| `inductile.dialects`   | a function that returns an xDSL `Dialect`; the name is that of the dialect                |
| `inductile.lowerings`  | a mapping from `aten.name.overload` to a `Rule`, or from `ns::name` to a call's lowering  |
| `inductile.reference`  | a mapping from a class of scalar ops to its meaning, a function of tensors                |
| `inductile.cpp`        | a mapping from a class of scalar ops to C++, `"{0} / (1 + {1})"` or an emitter's rule     |
| `inductile.c`          | the same for plain C                                                                      |
| `inductile.triton`     | a mapping from a class of scalar ops to Triton, likewise                                  |
| `inductile.targets`    | a description, several, or a function that returns them; the name says nothing            |
| `inductile.generators` | a `Generator`, a module as a rule; the name is the one behind `-t`                        |

Nothing is loaded before somebody asks for its group. Imports nothing of the package but the errors.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from .errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = (
    "inductile.passes", "inductile.pipelines", "inductile.dialects", "inductile.lowerings", "inductile.reference",
    "inductile.cpp", "inductile.triton", "inductile.targets",
)  # fmt: skip
"""The groups of that table."""

_added: dict[str, dict[str, Callable[[], Any]]] = {}
_plugin_files: dict[str, str] = {}


@cache
def _installed(group: str) -> dict[str, EntryPoint]:
    if not adding(tuple(sys.path)) and not any(map(os.path.isfile, sys.path)):
        return {}  # no package says so, and there is no archive that only importlib.metadata reads
    return {point.name: point for point in _all_entry_points().select(group=group)}


_GROUP = re.compile(rb"^\s*\[inductile\.", re.MULTILINE)
_ABOUT = (".dist-info", ".egg-info")


@cache
def adding(path: tuple[str, ...]) -> tuple[str, ...]:
    """The installed packages that add something, by what lies beside them in the folders of a path.

    `importlib.metadata` takes ten times as long, for more.
    """
    return tuple(name for folder in dict.fromkeys(path) for name in _adding(folder or "."))


def _adding(folder: str) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in sorted(name for name in names if name.endswith(_ABOUT)):
        try:
            with open(os.path.join(folder, name, "entry_points.txt"), "rb", buffering=0) as file:
                if _GROUP.search(file.read()):
                    yield name.rpartition(".")[0]
        except OSError:
            continue


@cache
def _all_entry_points() -> Any:
    """Those of all packages: each look reads a file of each package that is installed."""
    from importlib.metadata import entry_points

    return entry_points()


def add(group: str, name: str, value: object) -> None:
    """Add to a group in this process, as a plugin file does that is not installed."""
    _added.setdefault(group, {})[name] = lambda: value
    table.cache_clear()


def added_groups() -> frozenset[str]:
    """The groups that something was added to in this process."""
    return frozenset(group for group, members in _added.items() if members)


def add_plugin_file(path: str, passes: Iterable[str]) -> None:
    """Note the file that passes of this process come from, for commands that are to be typed elsewhere."""
    _plugin_files.update(dict.fromkeys(passes, path))


def plugin_files(passes: Iterable[str]) -> tuple[str, ...]:
    """The files that these passes come from; none for those of packages."""
    return tuple(dict.fromkeys(_plugin_files[name] for name in passes if name in _plugin_files))


def loaders(group: str) -> dict[str, Callable[[], Any]]:
    """The objects of a group by name, as functions that load them.

    They raise UserError, naming package and reason, for one that does not load.
    """
    installed = {name: partial(_load, point) for name, point in _installed(group).items()}
    return {**installed, **_added.get(group, {})}


def _load(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        package = point.dist.name if point.dist is not None else "?"
        what = f"{point.group} {point.name!r} of the package {package}"
        raise UserError(
            f"{what} does not load: {type(error).__name__}: {error}", f"mend {package} or uninstall it"
        ) from error


@cache
def table(group: str) -> Mapping[Any, Any]:
    """The mappings of a group as one."""
    merged: dict[Any, Any] = {}
    for load in loaders(group).values():
        merged.update(load())
    return merged
