"""Executable programs from modules at kernel + host level."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from ...dialects import host, kernel
from ...dialects.raw import ops_in
from ...errors import UserError
from ...passes.analysis.functions import called, kernels_of
from ..generators import generator_named, generator_of
from .emit import HostEmitter
from .executable import HostProgram
from .gpu import is_gpu
from .kept import KeptResults
from .launchers import Launcher

if TYPE_CHECKING:
    from ..config import Config


def build(
    module: ModuleOp,
    config: Config | None = None,
    references: Mapping[str, Any] | None = None,
    carriers: Collection[int] | None = None,
    checked: bool = False,
    ahead: bool = False,
) -> HostProgram:
    """Compile the module's kernels and its one `host.func`.

    `references` holds what calls refer to beside the module; `carriers` are the positions of the inputs that may carry
    the negative or conjugate bit, None where each call has to look. A `checked` program checks what it does.
    One that is made `ahead` runs in other processes, and perhaps on no device of this machine.
    Raises UserError when the module has not exactly
    one host function, UnsupportedError for what no code generator handles, and errors of the compilers.
    """
    functions = [op for op in module.ops if isinstance(op, host.FuncOp)]
    inner = called(module)
    outer = [function for function in functions if function.sym_name.data not in inner]
    if len(outer) != 1:
        raise UserError(f"the module has {len(outer)} host functions", "keep the one that is to run")
    launchers = _compile(functions, kernels_of(module), config, checked, ahead)
    made = _Programs(module, launchers, references or {}, checked)
    emitter = made.emitter(outer[0], carriers)
    source = emitter.source()
    inside = {name: made.program(name) for name in emitter.parts}
    sources = {f"{name}.py": part.source for name, part in made.programs.items()}
    sources |= {name: text for launcher in launchers.values() for name, text in launcher.sources.items()}
    checks = [check for launcher in launchers.values() for check in getattr(launcher, "checks", ())]
    watched = emitter.watched_source()
    recorded = emitter.recorded_source() if is_gpu(emitter.device) else ""
    parts = {name: part for name, part in inside.items() if name not in made.kept}
    namespace = emitter.constants.namespace
    return HostProgram(
        source, namespace, sources, checks, parts, emitter.parts, watched, made.kept, launchers, recorded=recorded
    )


class _Programs:
    """The programs of the functions that others call, each made once: parts, kept functions, and bodies."""

    def __init__(
        self, module: ModuleOp, launchers: Mapping[str, Launcher], references: Mapping[str, Any], checked: bool
    ) -> None:
        self.module, self.launchers, self.references, self.checked = module, launchers, references, checked
        self.functions = {op.sym_name.data: op for op in module.ops if isinstance(op, host.FuncOp)}
        self.programs: dict[str, HostProgram] = {}
        self.kept: dict[str, KeptResults] = {}

    def emitter(self, function: host.FuncOp, carriers: Collection[int] | None, is_a_body: bool = False) -> HostEmitter:
        """The emitter of a function of the module."""
        return _emitter(
            function, self.module, self.launchers, self.references, carriers, self.checked, self.functions, is_a_body
        )

    def program(self, name: str) -> HostProgram:
        """The program of a function, with those that it calls. What it is given was looked at by the caller."""
        found = self.programs.get(name)
        if found is None:
            function = self.functions[name]
            emitter = self.emitter(function, (), function.recorded is None and function.kept is None)
            source = emitter.source()
            inside = {each: self.program(each) for each in emitter.parts}
            parts = {each: part for each, part in inside.items() if each not in self.kept}
            kept = {each: self.kept[each] for each in inside if each in self.kept}
            found = HostProgram(source, emitter.constants.namespace, {}, (), parts, emitter.parts, kept=kept)
            self.programs[name] = found
            if function.kept is not None:
                self.kept[name] = KeptResults(name, found.run, found)
        return found


def emitter_of(
    function: host.FuncOp,
    module: ModuleOp,
    config: Config | None,
    references: Mapping[str, Any],
    carriers: Collection[int] | None = None,
    checked: bool = False,
) -> HostEmitter:
    """The emitter of a host function, with the kernels compiled that it launches."""
    launchers = _compile([function], kernels_of(module), config, checked)
    functions = [op.sym_name.data for op in module.ops if isinstance(op, host.FuncOp)]
    return _emitter(function, module, launchers, references, carriers, checked, functions)


def _emitter(
    function: host.FuncOp,
    module: ModuleOp,
    launchers: Mapping[str, Launcher],
    references: Mapping[str, Any],
    carriers: Collection[int] | None,
    checked: bool,
    functions: Collection[str] = (),
    is_a_body: bool = False,
) -> HostEmitter:
    kernels = kernels_of(module)
    if checked:
        from .checked import CheckedEmitter  # of files alone

        return CheckedEmitter(function, kernels, launchers, references, carriers, functions, is_a_body)
    return HostEmitter(function, kernels, launchers, references, carriers, functions, is_a_body)


def _compile(
    functions: Sequence[host.FuncOp],
    kernels: Mapping[str, kernel.FuncOp],
    config: Config | None,
    checked: bool,
    ahead: bool = False,
) -> dict[str, Launcher]:
    """Compile the kernels that functions launch, each by its code generator."""
    ops = (op for function in functions for op in ops_in(function))
    launched = {op.kernel.root_reference.data for op in ops if isinstance(op, host.LaunchOp)}
    groups: dict[str, list[kernel.FuncOp]] = {}
    for name, each in kernels.items():
        if name in launched:
            groups.setdefault(generator_of(each), []).append(each)
    launchers = {name: generator_named(name).make_launcher(config, checked) for name in groups}
    for launcher in launchers.values() if ahead else ():
        getattr(launcher, "prepare_for_files", lambda: None)()  # what runs on this machine alone needs nothing
    for generator, group in groups.items():
        launchers[generator].compile(group)
    return launchers
