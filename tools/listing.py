"""What `--list-passes` and `--print-pipeline` print."""

from __future__ import annotations

import inspect
from pathlib import Path

from xdsl.passes import ModulePass

from ..lowering.pipeline import attached, phases
from ..lowering.pre_grad import PRE_GRAD, pre_grad_names
from ..lowering.registry import available_passes, parse_passes

_ROOT = Path(__file__).parent.parent


def source_file(cls: type[ModulePass]) -> str:
    """The file that a pass is in, inside the package if it is there."""
    try:
        file = Path(inspect.getsourcefile(cls) or "?")
    except (TypeError, OSError):
        return "?"
    return str(file.relative_to(_ROOT)) if file.is_relative_to(_ROOT) else file.name


def _row(name: str, cls: type[ModulePass], shown: str = "") -> str:
    source = source_file(cls)
    doc = (inspect.getdoc(cls) or inspect.getdoc(inspect.getmodule(cls)) or "").partition("\n")[0]
    return f"  {shown or name:36s} {getattr(cls, 'level', '-'):22s} {source}\n      {doc}"


def _pre_grad_row(name: str) -> str:
    found = PRE_GRAD[name]
    return f"  {name:36s} {found.level:22s} {found.module.replace('.', '/')}.py\n      {found.purpose}"


def list_passes() -> str:
    """Every pass: name, level, source file and one line of documentation."""
    rows = {name: _row(name, load()) for name, load in available_passes().items()}
    rows |= {name: _pre_grad_row(name) for name in PRE_GRAD}
    return "\n".join(rows[name] for name in sorted(rows)) + "\n"


def print_pipeline(name: str, target: str | None = None) -> str:
    """Every phase of a named pipeline: each pass with its level, source file and one line of documentation.

    For a target the pass that attaches it stands first.
    """
    first = attached(target)
    lines = [_row(each.name, type(each), str(each)) for each in first]
    whole = [str(each) for each in first]
    for phase in phases(name):
        lines.append(f"{phase.name}: {phase.purpose}")
        if phase.graph == "dynamo":
            lines += [_pre_grad_row(each) for each in pre_grad_names(phase.passes)]
            continue
        for module_pass in parse_passes(phase.passes):
            lines.append(_row(module_pass.name, type(module_pass), str(module_pass)))
            if phase.graph == "functional":
                whole.append(str(module_pass))
    return "\n".join([*lines, "", "as one string, for a functional graph:", ",".join(whole)]) + "\n"
