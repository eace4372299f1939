"""Loading passes from a Python file, for quick tries; installed packages use the entry point `inductile.passes`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from xdsl.passes import ModulePass

from .. import extensions
from ..errors import UserError
from ..lowering.levels import check_level
from ..lowering.pre_grad import PRE_GRAD
from ..lowering.registry import register_pass
from ..machines import Target
from ..machines.lookup import GROUP
from ..passes.graph.patterns import PATTERNS


def load_plugin(path: str) -> list[str]:
    """Import a Python file and register the passes it defines; returns their names.

    Targets that it defines are known then, too. A file without either must at least register a pattern or a pass on
    Dynamo's graph. The file is code and runs with
    the user's rights, unlike IR files.
    """
    file = Path(path)
    spec = importlib.util.spec_from_file_location(f"inductile_plugin_{file.stem}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise UserError(f"cannot load the plugin {path}", "give a Python file that defines passes")
    before = _registered()
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and inspect look modules up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"the plugin {path} fails on import: {type(error).__name__}: {error}") from error
    targets = [value for value in vars(module).values() if isinstance(value, Target)]
    for target in targets:
        extensions.add(GROUP, target.name, target)
    passes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, ModulePass) and value.__module__ == module.__name__
    ]
    if not passes and not targets and _registered() == before:
        hint = "derive a class from xdsl.passes.ModulePass, register a pattern, or describe a target"
        raise UserError(f"the plugin {path} defines no pass", hint)
    for module_pass in passes:
        check_level(module_pass)
        register_pass(module_pass)
    names = [p.name for p in passes]
    extensions.add_plugin_file(path, names)
    return names


def _registered() -> list[int]:
    """The patterns and passes on Dynamo's graph that are known, which a file registers itself."""
    return [id(each) for each in (*PATTERNS, *PRE_GRAD.values())]
