"""Reproducers: one file with IR, the pipeline to run on it, and what went wrong."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Sequence
from contextvars import Context as ContextVars
from importlib.metadata import version
from pathlib import Path

from xdsl.passes import ModulePass

from ..dialects.context import new_context
from ..dialects.format import HEADER, upgraded
from ..dialects.reading import Reader
from ..errors import PassError, UserError
from ..passes.manager import PassManager
from ..passes.printing import module_text
from ..records import dataclass
from .cache_root import cache_root
from .registry import parse_passes, pipeline_text

_HEADER = "// inductile reproducer"
#: seconds that a reproducer is kept whose path nobody said
_KEPT = 7 * 24 * 60 * 60


@dataclass(frozen=True)
class Replay:
    """What a reproducer asks for: passes, debug counters, and a way of verifying behind each pass."""

    passes: list[ModulePass]
    counters: str = ""
    verify_each: str | None = None


def write_reproducer(
    path: str | None,
    text: str,
    name: str,
    passes: Sequence[ModulePass],
    error: PassError,
    counters: str | None = None,
    verify_each: str | None = None,
) -> str:
    """Write the module as it was before the failing pass, and the rest of the pipeline; returns the path.

    The passes before it run again on a fresh parse of `text`. If they fail this time, or if counters are set, which
    count through all passes, the whole pipeline is kept.
    """
    names = [p.name for p in passes]
    position = names.index(error.pass_name) if error.pass_name in names and not counters else 0
    rest = passes
    if position:
        try:
            text, rest = _text_behind(text, name, passes[:position]), passes[position:]
        except Exception:  # the reproducer must not fail in turn; the original text still reproduces
            rest = passes
    return store_reproducer(path, text, rest, error, counters, verify_each)


def _text_behind(text: str, name: str, passes: Sequence[ModulePass]) -> str:
    """The module behind passes, run once more where nobody collects remarks."""
    context = new_context()
    module = Reader(context, text, name).parse_module()
    ContextVars().run(PassManager(passes, verify=False).run, context, module)
    return module_text(module, locations=True)


def store_reproducer(
    path: str | None,
    text: str,
    passes: Sequence[ModulePass],
    error: Exception,
    counters: str | None = None,
    verify_each: str | None = None,
) -> str:
    """Write a reproducer file for IR text and the passes that fail on it; returns its path.

    Where nobody says a path, it is kept for a week among those of the cache's folder.
    """
    reason = " ".join(str(error).split())[:500]
    header = [
        _HEADER,
        HEADER,
        f"// pipeline: {pipeline_text(passes)}",
        f"// error: {reason}",
        f"// versions: {', '.join(f'{name} {version(name)}' for name in ('inductile', 'torch', 'xdsl'))}, "
        f"python {platform.python_version()}",
    ]
    if counters:
        header.append(f"// counters: {counters}")
    if verify_each:
        header.append(f"// verify-each: {verify_each}")
    if path is None:
        path = _new_path()
    try:
        Path(path).write_text("\n".join([*header, upgraded(text)]) + "\n")
    except OSError as failure:
        raise UserError(f"{path}: error: cannot write the reproducer: {failure.strerror}") from failure
    return path


def _new_path() -> str:
    """A new file among the reproducers of the cache, of which old ones go; a temporary one where that takes none."""
    folder = cache_root() / "reproducers"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_old(folder)
        handle, path = tempfile.mkstemp(prefix="inductile-", suffix=".mlir", dir=folder)
    except OSError:
        handle, path = tempfile.mkstemp(prefix="inductile-", suffix=".mlir")
    os.close(handle)
    return path


def _remove_old(folder: Path) -> None:
    before = time.time() - _KEPT
    for each in folder.glob("inductile-*.mlir"):
        try:
            if each.lstat().st_mtime < before:
                each.unlink()
        except OSError:  # another process was quicker, or nothing may be removed here
            continue


def read_reproducer(text: str, name: str) -> Replay:
    """What a reproducer file asks for."""
    if not text.startswith(_HEADER):
        raise UserError(f"{name}: error: not a reproducer", "it starts with `// inductile reproducer`")
    fields = dict(line[3:].split(": ", 1) for line in text.splitlines()[1:8] if line.startswith("// ") and ": " in line)
    if "pipeline" not in fields:
        raise UserError(f"{name}: error: the reproducer names no pipeline")
    return Replay(parse_passes(fields["pipeline"]), fields.get("counters", ""), fields.get("verify-each"))
