"""A hook of mkdocs: the reference of passes and dialects, generated from docstrings."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from xdsl.ir import Operation

from inductile.dialects.context import DIALECTS
from inductile.lowering.pipeline import phases
from inductile.lowering.registry import available_passes
from inductile.tools.listing import source_file


def passes() -> str:
    """Every pass: its level, file, options and docstring, in the order of the default pipeline, then the others."""
    known = available_passes()
    order = [re.sub(r"\{.*", "", name) for phase in phases() for name in re.split(r",(?![^{]*\})", phase.passes)]
    names = [*dict.fromkeys(name for name in order if name in known), *sorted(set(known) - set(order))]
    lines = ["# Passes", "", "In the order of the default pipeline; behind them those that it does not run.", ""]
    for name in names:
        cls = known[name]()
        lines += [f"## {name}", "", f"Level {getattr(cls, 'level', '-')}, in `{source_file(cls)}`.", ""]
        lines += [*_code(inspect.getdoc(cls) or ""), ""]
        options = [f"- `{field.name.replace('_', '-')}`" for field in fields(cls)]
        lines += ["Options:", "", *options, ""] if options else []
    return "\n".join(lines)


def dialects() -> str:
    """Every op of our dialects with its docstring; `aten` has an op for each overload, so only its shape is told."""
    lines = ["# Dialects", ""]
    for name, load in DIALECTS.items():
        dialect = load()
        lines += [f"## {name}", ""]
        if name == "aten":
            lines += ["One op for each ATen overload, made when a file names it: see [the IR](../ir.md).", ""]
        for op in sorted(dialect.operations, key=lambda each: each.name):
            lines += [f"### {op.name}", "", *_code(_doc(op)), ""]
    return "\n".join(lines)


def _doc(op: type[Operation]) -> str:
    return inspect.cleandoc(op.__doc__ or "")


def _code(text: str) -> list[str]:
    """Docstrings are laid out by hand, so they are shown as they are."""
    return ["```text", text, "```"] if text else []


def on_files(files: Any, config: Any) -> Any:
    """Called by mkdocs when it has found the files of the site."""
    from mkdocs.structure.files import File

    for name, text in (("passes", passes()), ("dialects", dialects())):
        files.append(File.generated(config, str(Path("reference") / f"{name}.md"), content=text))
    return files
