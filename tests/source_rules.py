"""The rules that the source tree keeps, each a function from the tree's root to a list of violations.

Imports are read from the syntax tree, so nothing is executed and an import inside a function counts too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import networkx as nx

LEVELS = ("machines", "dialects", "passes", "lowering", "backends", "tools")
"""The layers from the bottom up; a layer imports itself and what is below."""

HEAVY = frozenset({"torch", "sympy", "triton"})
"""Packages that cost seconds, or that not every machine has."""

PASS_LEVELS = ("module", "graph", "loop", "kernel", "host")

Name = tuple[str, ...]
"""A module of the package without the package's own name, e.g. ("passes", "loop", "fuse"); () is the root."""


@dataclass(frozen=True)
class Import:
    """One imported module: `target` is set for a module of the package, `external` for any other package."""

    line: int
    eager: bool
    """Runs when the importing module is imported: not in a function, not under `TYPE_CHECKING`."""
    only_types: bool = False
    """Never runs: it is under `TYPE_CHECKING`."""
    target: Name | None = None
    external: str = ""


@dataclass(frozen=True)
class Module:
    """A source file of the package."""

    name: Name
    path: Path
    imports: list[Import] = field(default_factory=list)

    @property
    def level(self) -> int:
        """Index into LEVELS; -1 for modules in the root, which every layer may import."""
        return level_of(self.name)

    @property
    def is_border(self) -> bool:
        """Whether torch may be imported at top level: it is `lowering/fx_*` or in `backends/`."""
        return self.name[:1] == ("backends",) or (
            self.name[:1] == ("lowering",) and self.name[1:2] != () and self.name[1].startswith("fx_")
        )


def level_of(name: Name) -> int:
    return LEVELS.index(name[0]) if name and name[0] in LEVELS else -1


@dataclass(frozen=True)
class Tree:
    """The package whose root folder is `root`."""

    root: Path

    @cached_property
    def modules(self) -> dict[Name, Module]:
        paths = [path for path in sorted(self.root.glob("*.py")) if path.name != "setup.py"]
        for level in LEVELS:
            paths += sorted((self.root / level).rglob("*.py"))
        modules = {name: Module(name, path) for path in paths if (name := self._name(path)) is not None}
        for module in modules.values():
            module.imports.extend(_imports(module, modules))
        return modules

    def _name(self, path: Path) -> Name:
        parts = path.relative_to(self.root).with_suffix("").parts
        return parts[:-1] if parts[-1] == "__init__" else parts

    def where(self, module: Module, line: int) -> str:
        return f"{module.path.relative_to(self.root)}:{line}"


def upward_imports(tree: Tree) -> list[str]:
    """Imports of a layer above, of the package by its absolute name, and eager ones in the root module."""
    found: list[str] = []
    for module in tree.modules.values():
        for each in module.imports:
            where = tree.where(module, each.line)
            if each.external == "inductile":
                found.append(f"{where}: imports inductile by name; write it relative")
            elif each.target is not None and level_of(each.target) > module.level and module.name:
                found.append(f"{where}: imports {'.'.join(each.target)}, which is above it")
            elif each.target is not None and each.eager and not module.name:
                found.append(f"{where}: the root module must stay lazy")
    return found


def heavy_imports(tree: Tree) -> list[str]:
    """Top-level imports of torch and the like outside the border to torch."""
    return [
        f"{tree.where(module, each.line)}: imports {each.external} at top level"
        for module in tree.modules.values()
        for each in module.imports
        if each.eager and each.external in HEAVY and not module.is_border
    ]


def heavy_chains(tree: Tree) -> list[str]:
    """Modules outside the border whose import loads torch through others, with the chain that does it."""
    heavy = {
        name
        for name, module in tree.modules.items()
        if any(each.eager and each.external in HEAVY for each in module.imports)
    }
    found: list[str] = []
    for name, module in tree.modules.items():
        chain = [] if module.is_border or name in heavy else _chain(tree, name, heavy)
        if chain:
            found.append(" -> ".join(".".join(step) or "__init__" for step in chain))
    return found


def _chain(tree: Tree, start: Name, goals: set[Name]) -> list[Name]:
    """The shortest chain of eager imports from `start` to one of `goals`, [] when there is none."""
    before: dict[Name, Name | None] = {start: None}
    queue = [start]
    for name in queue:
        if name in goals:
            chain: list[Name] = []
            step: Name | None = name
            while step is not None:
                chain.append(step)
                step = before[step]
            return chain[::-1]
        module = tree.modules.get(name)
        eager = [each.target for each in module.imports if each.eager and each.target] if module else []
        # a module's packages are imported before it
        packages = [name[:length] for length in range(1, len(name))]
        for following in [*eager, *packages]:
            if following not in before:
                before[following] = name
                queue.append(following)
    return []


#: modules of classes whose methods are in other modules, which build on them
_SPREAD = {("dialects", "sym", "polynomial"), ("dialects", "kernel", "loops")}


def import_cycles(tree: Tree) -> list[str]:
    """Modules of passes and dialects that import each other, in functions too, and folders of passes that do."""
    modules, folders = nx.DiGraph(), nx.DiGraph()
    for name, module in tree.modules.items():
        for target in (each.target for each in module.imports if each.target and not each.only_types):
            if name[:1] in (("dialects",), ("passes",)) and target != name and name not in _SPREAD:
                modules.add_edge(name, target)
            if name[:1] == target[:1] == ("passes",) and len(name) > 2 and len(target) > 2 and name[:2] != target[:2]:
                folders.add_edge(name[:2], target[:2])
    found = [
        " <-> ".join(sorted(".".join(name) for name in cycle))
        for graph in (modules, folders)
        for cycle in nx.strongly_connected_components(graph)
        if len(cycle) > 1
    ]
    return sorted(found)


def names_of_devices(tree: Tree) -> list[str]:
    """Names of devices and kinds of targets in passes and lowering, which ask `machines` instead.

    What a machine is good at stands in its description, how eager computes on a device in `machines/eager.py`. The
    debug counters name our code generators, which are no machines.
    """
    found: list[str] = []
    for module in tree.modules.values():
        if module.name[:1] not in (("passes",), ("lowering",)) or module.name == ("passes", "counters"):
            continue
        for node in ast.walk(ast.parse(module.path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _DEVICE.fullmatch(node.value):
                found.append(f"{tree.where(module, node.lineno)}: says {node.value!r}; ask machines")
    return found


_DEVICE = re.compile(r"(?:cpu|cuda|hip|xpu|mps|meta|cpp|triton)(?::\w*)?")


def compared_devices(tree: Tree) -> list[str]:
    """Comparisons with the name of a torch device, anywhere but in `machines`: `is_gpu` and `in_host_memory` ask."""
    found: list[str] = []
    for module in tree.modules.values():
        if module.name[:1] == ("machines",):
            continue
        for node in ast.walk(ast.parse(module.path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                parts = [
                    each for side in (node.left, *node.comparators) for each in (side, *ast.iter_child_nodes(side))
                ]
                names = [each.value for each in parts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
                devices = [name for name in names if _TORCH_DEVICE.fullmatch(name)]
                found += [
                    f"{tree.where(module, node.lineno)}: compares with {name!r}; ask machines" for name in devices
                ]
    return found


_TORCH_DEVICE = re.compile(r"(?:cpu|cuda|hip|xpu|mps|meta)(?::\w*)?")


def misnamed_passes(tree: Tree) -> list[str]:
    """Passes that do not lie in the file that their name tells, and pass files without a `.mlir` test."""
    found: list[str] = []
    for module in tree.modules.values():
        if module.name[:1] != ("passes",) or len(module.name) != 3 or module.name[1] not in PASS_LEVELS:
            continue
        names = _pass_names(ast.parse(module.path.read_text(encoding="utf-8")))
        expected = "-".join(module.name[1:]).replace("_", "-")
        if names and names != [expected]:
            found.append(f"{tree.where(module, 1)}: holds {', '.join(names)} instead of {expected}")
        test = Path("tests", "filecheck", *module.name).with_suffix(".mlir")
        if names and not (tree.root / test).is_file():
            found.append(f"{tree.where(module, 1)}: has no test {test}")
    return found


def _pass_names(source: ast.Module) -> list[str]:
    """The `name = "..."` of each class that derives from a class named like a pass."""
    return [
        value.value
        for node in source.body
        if isinstance(node, ast.ClassDef) and any(ast.unparse(base).endswith("Pass") for base in node.bases)
        for target, value in _assignments(node)
        if target == "name" and isinstance(value, ast.Constant) and isinstance(value.value, str)
    ]


def _assignments(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr | None]]:
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            yield ast.unparse(statement.targets[0]), statement.value
        elif isinstance(statement, ast.AnnAssign):
            yield ast.unparse(statement.target), statement.value


def answers_given_twice(tree: Tree) -> list[str]:
    """Functions of passes that are named as one of `passes/analysis`, in another module there or outside of it.

    What may be asked of a program is answered there, once; a function that answers something else has another name.
    """
    found: list[str] = []
    answers: dict[str, Name] = {}
    modules = [module for module in tree.modules.values() if module.name[:1] == ("passes",)]
    for module in sorted(modules, key=lambda module: (module.name[1:2] != ("analysis",), module.name)):
        source = ast.parse(module.path.read_text(encoding="utf-8"))
        for node in (each for each in source.body if isinstance(each, ast.FunctionDef)):
            name, is_private, is_answer = node.name.lstrip("_"), node.name[0] == "_", module.name[1:2] == ("analysis",)
            if name in answers and name not in _OF_TWO_LEVELS and not (is_answer and is_private):
                found.append(f"{tree.where(module, node.lineno)}: {node.name} is also in {'.'.join(answers[name])}")
            elif is_answer and not is_private:
                answers[name] = module.name
    return found


#: what `passes/loop` asks of bodies of nests under the name that kernels are asked under
_OF_TWO_LEVELS = frozenset({"axes_around", "device_of", "substitute_axes"})


def packageless_folders(tree: Tree) -> list[str]:
    """Folders with code that lack an `__init__.py`: they would be missing from the wheel."""
    folders = {
        folder.relative_to(tree.root)
        for module in tree.modules.values()
        for folder in module.path.parents
        if folder.is_relative_to(tree.root)
    }
    return [str(folder) for folder in sorted(folders) if not (tree.root / folder / "__init__.py").exists()]


def _imports(module: Module, modules: dict[Name, Module]) -> Iterator[Import]:
    package = module.name if module.path.name == "__init__.py" else module.name[:-1]
    for node, eager in _walk(ast.parse(module.path.read_text(encoding="utf-8"), module.path), eager=True):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, eager is True, external=alias.name.partition(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield Import(node.lineno, eager is True, external=(node.module or "").partition(".")[0])
        elif isinstance(node, ast.ImportFrom):
            above = len(package) - (node.level - 1)
            base = (*package[: max(above, 0)], *(node.module.split(".") if node.module else ()))
            for alias in node.names:
                inner = (*base, alias.name)
                target = inner if inner in modules else base
                yield Import(node.lineno, eager is True, eager is None, target)


def _walk(node: ast.AST, eager: bool) -> Iterator[tuple[ast.AST, bool | None]]:
    """Every node below `node`, with whether it runs when the module is imported; None where it never runs."""
    for child in ast.iter_child_nodes(node):
        inside = eager and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.body:
                yield statement, None
            for statement in child.orelse:
                yield statement, inside
                yield from _walk(statement, inside)
            continue
        yield child, inside
        yield from _walk(child, inside)
