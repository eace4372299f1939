"""Code generators by name. Other packages add theirs by the entry point group `inductile.generators`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.dialects.builtin import ModuleOp

from .. import extensions
from ..dialects import kernel
from ..dialects.machine import TARGETS, TargetsAttr
from ..errors import UserError
from ..lowering.registry import nearest
from ..machines import HOST, target_named
from ..passes.kernel.scheduled import family_of

if TYPE_CHECKING:
    from .config import Config
    from .host.launchers import Launcher

GROUP = "inductile.generators"

#: our own ones -> the package that is one
GENERATORS: dict[str, str] = {"cpp": ".cpp", "c": ".c", "triton": ".triton"}


class Generator(Protocol):
    """What a package or an object has to have, to write and launch the kernels of a family of targets."""

    def emit_source(self, module: ModuleOp) -> str:
        """The text of the kernels of a module that are scheduled for it, with what they need."""
        ...

    def make_launcher(self, config: Config | None = None, checked: bool = False) -> Launcher:
        """A launcher for the kernels of one program; `checked` kernels check what they do."""
        ...


def generators() -> tuple[str, ...]:
    """The names of all generators."""
    return (*GENERATORS, *extensions.loaders(GROUP))


def generator_named(name: str) -> Generator:
    """A generator. UserError, with the nearest name, where there is none."""
    if name in GENERATORS:
        found: Any = importlib.import_module(GENERATORS[name], __package__)
        return found
    load = extensions.loaders(GROUP).get(name)
    if load is None:
        hint = nearest(name, generators()) or f"known: {', '.join(generators())}"
        raise UserError(f"unknown generator {name!r}", hint)
    return load()


def load_generators(module: ModuleOp) -> None:
    """Import what writes and launches the kernels of a module's targets, so that their first emission is none of it.

    A generator that imports more than its package has a function `load` for this.
    """
    found = module.attributes.get(TARGETS)
    for _, target in found.data if isinstance(found, TargetsAttr) else ():
        family = target_named(target).family
        if family is not None and family.generator in GENERATORS:
            getattr(generator_named(family.generator), "load", lambda: None)()


def generator_of(function: kernel.FuncOp) -> str:
    """The code generator of a kernel's target: C++ when it has none."""
    family = family_of(function)
    return "cpp" if family is None else family.generator


def runs_on_host(function: kernel.FuncOp) -> bool:
    """Whether a kernel reads and writes the host's memory."""
    family = family_of(function)
    return family is None or family.device == HOST


def check_generator(name: str, target: str | None = None) -> None:
    """UserError for what is no code generator, or not the one of a target."""
    if "{" in name:
        problem = f"cannot read the generator {name!r}"
        raise UserError(problem, "the machine stands apart: --target cuda:90 -t triton")
    generator_named(name)
    if target and (right := target_named(target).family.generator) != name:
        raise UserError(f"kernels for {target!r} are written by {right}, not by {name}", f"write -t {right}")
