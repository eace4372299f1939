"""Executable programs from modules at kernel + host level."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from ...dialects import host, kernel
from ...errors import UserError
from ...passes.common.functions import kernels_of
from .emit import HostEmitter
from .launchers import Launcher, generator_of, make_launcher

if TYPE_CHECKING:
    from ..config import Config

_NUMBERS = itertools.count()


class HostProgram:
    """A compiled `host.func`.

    source:  the Python text of the program
    sources: file name -> text, of the program and of its kernels
    run:     the generated function itself, which saves callers that are called often a frame
    checks:  what raises errors that kernels on a GPU have reported since, without waiting for it
    """

    def __init__(
        self,
        source: str,
        namespace: dict[str, Any],
        sources: Mapping[str, str],
        checks: Sequence[Callable[[], None]] = (),
    ) -> None:
        self.source = source
        self.checks = tuple(checks)
        self.sources = {"program.py": source, **sources}
        filename = f"<inductile program {next(_NUMBERS)}>"
        # tracebacks and debuggers show the generated lines
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        # all names and words of the text are our own; see HostEmitter
        exec(compile(source, filename, "exec"), namespace)
        self.run: Callable[[list[Any]], list[Any]] = namespace["run"]

    def __call__(self, args: list[Any]) -> list[Any]:
        """Run on a list of inputs, which is cleared; the list of outputs."""
        return self.run(args)


def build(
    module: ModuleOp,
    config: Config | None = None,
    references: Mapping[str, Any] | None = None,
    carriers: Collection[int] | None = None,
    checked: bool = False,
) -> HostProgram:
    """Compile the module's kernels and its one `host.func`.

    `references` holds what calls refer to beside the module; `carriers` are the positions of the inputs that may carry
    the negative or conjugate bit, None where each call has to look. A `checked` program checks what it does.
    Raises UserError when the module has not exactly
    one host function, UnsupportedError for what no code generator handles, and errors of the compilers.
    """
    functions = [op for op in module.ops if isinstance(op, host.FuncOp)]
    if len(functions) != 1:
        raise UserError(f"the module has {len(functions)} host functions", "keep the one that is to run")
    emitter = emitter_of(functions[0], module, config, references or {}, carriers, checked)
    source = emitter.source()
    sources = {name: text for launcher in emitter.launchers.values() for name, text in launcher.sources.items()}
    checks = [check for launcher in emitter.launchers.values() for check in getattr(launcher, "checks", ())]
    return HostProgram(source, emitter.constants.namespace, sources, checks)


def emitter_of(
    function: host.FuncOp,
    module: ModuleOp,
    config: Config | None,
    references: Mapping[str, Any],
    carriers: Collection[int] | None = None,
    checked: bool = False,
) -> HostEmitter:
    """The emitter of a host function, with the kernels compiled that it launches."""
    kernels = kernels_of(module)
    launchers = _compile(function, kernels, config, checked)
    if checked:
        from .checked import CheckedEmitter  # of files alone

        return CheckedEmitter(function, kernels, launchers, references, carriers)
    return HostEmitter(function, kernels, launchers, references, carriers)


def _compile(
    function: host.FuncOp, kernels: Mapping[str, kernel.FuncOp], config: Config | None, checked: bool
) -> dict[str, Launcher]:
    """Compile the kernels that the function launches, each by its code generator."""
    launched = {op.kernel.root_reference.data for op in function.walk() if isinstance(op, host.LaunchOp)}
    groups: dict[str, list[kernel.FuncOp]] = {}
    for name, each in kernels.items():
        if name in launched:
            groups.setdefault(generator_of(each), []).append(each)
    launchers = {generator: make_launcher(generator, config, checked) for generator in groups}
    for generator, group in groups.items():
        launchers[generator].compile(group)
    return launchers
