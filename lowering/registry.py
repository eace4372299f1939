"""Finds passes by name.

The name says where the code is: `loop-fuse` is in `passes/loop/fuse.py`. Only lowerings, which cross levels, are
listed by hand. Nothing is imported until it is asked for, xDSL neither: options are read without it.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from .. import extensions
from ..errors import UserError
from .option_values import check_values, with_floats

if TYPE_CHECKING:
    from xdsl.passes import ModulePass
    from xdsl.utils.arg_spec import ArgSpec, ParameterListType

_ROOT = Path(__file__).parent.parent
_PACKAGE = __name__.rpartition(".")[0].rpartition(".")[0]
_NO_PASS = "inductile-opt --list-passes names them all; a file of yours is loaded by --load-pass-plugin"
_NAME_LINE = re.compile(r'^    name(?:: ClassVar\[str\])? = "([a-z0-9-]+)"', re.MULTILINE)
_PASS_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")

#: passes that lead from one level to the next
LOWERINGS: dict[str, str] = {
    "lower-aten-to-loop": "lowering.aten_to_loop",
    "lower-loop-to-kernel": "lowering.loop_to_kernel",
}


@cache
def _own_passes() -> dict[str, str]:
    """Pass name -> module below the package, found from the file names."""
    found = dict(LOWERINGS)
    for folder in ("module", "graph", "loop", "kernel", "host"):
        for file in sorted((_ROOT / "passes" / folder).glob("*.py")):
            names = _NAME_LINE.findall(file.read_text())
            found.update((name, f"passes.{folder}.{file.stem}") for name in names)
    return found


@cache
def module_of_pass(name: str) -> str:
    """The module of one of our passes, below the package; nothing for another name."""
    return _own_passes().get(name, "")


def _named_like(name: str) -> str:
    """The module that a pass of this name is in if there is one, without a look inside; nothing where no file is."""
    if name in LOWERINGS:
        return LOWERINGS[name]
    folder, _, rest = name.partition("-")
    stem = rest.replace("-", "_")
    is_file = _PASS_NAME.fullmatch(name) and (_ROOT / "passes" / folder / f"{stem}.py").is_file()
    return f"passes.{folder}.{stem}" if is_file else ""


@cache
def _load(name: str, module_name: str) -> type[ModulePass]:
    found = _find(name, module_name)
    if found is None:
        raise LookupError(f"{module_name} holds no pass named {name}")
    return found


@cache
def _find(name: str, module_name: str) -> type[ModulePass] | None:
    """The pass of this name in a module."""
    from xdsl.passes import ModulePass

    module = importlib.import_module(f"{_PACKAGE}.{module_name}")
    for value in vars(module).values():  # names first: whether a class derives from an abstract one is slow to find out
        if isinstance(value, type) and vars(value).get("name") == name and issubclass(value, ModulePass):
            return value
    return None


def register_pass(module_pass: type[ModulePass]) -> None:
    """Make a pass known in this process, as a plugin file does."""
    if module_pass.name in _own_passes():
        raise UserError(f"the pass name {module_pass.name!r} is taken", "give the plugin's pass another name")
    extensions.add("inductile.passes", module_pass.name, module_pass)


def available_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Every pass by name, as functions that import it; the form that xDSL's `Universe` wants."""
    own = {name: partial(_load, name, module) for name, module in _own_passes().items()}
    return {**extensions.loaders("inductile.passes"), **own}


def nearest(word: str, known: Iterable[str]) -> str:
    """`, did you mean 'x'?` for the most similar known word, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else ""


def pass_class(name: str) -> type[ModulePass]:
    """The class of a pass; UserError with the nearest name when there is none."""
    module = _named_like(name)
    found = _find(name, module) if module else None
    if found is not None:
        return found
    known = available_passes()
    if name not in known:
        raise UserError(f"unknown pass {name!r}", nearest(name, known) or _NO_PASS)
    return known[name]()


def parse_passes(text: str) -> list[ModulePass]:
    """Passes of a pipeline string `a,b{option=1}`.

    Raises UserError for an unknown pass, an unknown option or text that is no pipeline.
    """
    return [_build(spec) for spec in parse_specs(text)]


def parse_specs(text: str) -> tuple[ArgSpec, ...]:
    """Names and options of a pipeline string. Raises UserError for text that is none."""
    if not text.strip():
        return ()
    from xdsl.utils.arg_spec import parse_pipeline
    from xdsl.utils.exceptions import ArgSpecParseError

    try:
        return tuple(parse_pipeline(text))
    except (Exception, ArgSpecParseError) as error:  # xDSL's error derives from BaseException
        lines = [line.strip() for line in str(error).splitlines() if line.strip(" ^")]
        raise UserError(f"cannot read the pipeline {text!r} ({lines[-1]})", "write pass,pass{option=1}") from error


def with_options(passes: Iterable[ModulePass], options: Mapping[str, ParameterListType]) -> list[ModulePass]:
    """Passes with options, each for all passes that have one of its name. Raises UserError for one that none has."""
    from xdsl.utils.arg_spec import ArgSpec

    given = {name.replace("-", "_"): value for name, value in options.items()}
    result: list[ModulePass] = []
    known: set[str] = set()
    for each in passes:
        own = given.keys() & _options_of(type(each))
        known |= _options_of(type(each))
        spec = each.spec()
        changed = ArgSpec(spec.name, spec.parameters | {name: given[name] for name in own})
        result.append(_build(changed) if own else each)
    if unknown := given.keys() - known:
        name = min(unknown).replace("_", "-")
        raise UserError(f"no pass of the pipeline has an option {name!r}", nearest(name, known) or "see --list-passes")
    return result


def _options_of(cls: type[ModulePass]) -> set[str]:
    return {field.name for field in fields(cls)}


def _build(spec: ArgSpec) -> ModulePass:
    cls = pass_class(spec.name)
    try:
        if not spec.parameters:  # reading options costs far more than the rest
            return cls()
        made = cls.from_spec(with_floats(cls, spec))
    except Exception as error:
        options = ", ".join(name.replace("_", "-") for name in sorted(_options_of(cls))) or "none"
        raise UserError(f"pass {spec.name!r}: {error}", f"its options are: {options}") from error
    if spec.name in _own_passes():
        check_values(made)
    return made


def pipeline_text(passes: Iterable[ModulePass]) -> str:
    """The string that `parse_passes` reads back."""
    return ",".join(str(p) for p in passes)


__all__ = [
    "LOWERINGS", "available_passes", "nearest", "parse_passes", "parse_specs", "pass_class", "pipeline_text",
    "register_pass", "with_options",
]  # fmt: skip
