"""A host program that runs: its text, and the objects that the text names."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import CodeType
from typing import TYPE_CHECKING, Any

from .allocations import at
from .arena import keep_freed_memory
from .regions import Region

if TYPE_CHECKING:
    from .kept import KeptResults
    from .launchers import Launcher

_NUMBERS = itertools.count()


def _in_file(code: CodeType, filename: str) -> CodeType:
    """The same code under another name of a file."""
    inner = tuple(_in_file(each, filename) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=filename, co_consts=inner)


def _show(filename: str, source: str) -> None:
    """Let tracebacks and debuggers show the generated lines."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)


class HostProgram:
    """A compiled `host.func`.

    source:  the Python text of the program
    sources: file name -> text, of the program and of its kernels
    run:     the generated function itself, which saves callers that are called often a frame
    parts:   the programs that it calls, by name
    kept:    those that it calls whose results are kept from call to call, by name
    checks:  what raises errors that kernels on a GPU have reported since, without waiting for it
    called:  the names in the text of the parts
    watched: the text with a region of a profile around each launch
    recorded: the text with a frame of its own around each allocation; empty on the CPU, whose memory has no history
    launchers: what compiled the kernels, by code generator
    code:    what Python makes of the text; made here where it is not given, under whatever name of a file
    """

    def __init__(
        self,
        source: str,
        namespace: dict[str, Any],
        sources: Mapping[str, str],
        checks: Sequence[Callable[[], None]] = (),
        parts: Mapping[str, HostProgram] | None = None,
        called: Mapping[str, str] | None = None,
        watched: str = "",
        kept: Mapping[str, KeptResults] | None = None,
        launchers: Mapping[str, Launcher] | None = None,
        code: CodeType | None = None,
        recorded: str = "",
    ) -> None:
        keep_freed_memory()
        self.source = source
        self.watched = watched
        self.recorded = recorded
        self.parts = dict(parts or {})
        self.kept = dict(kept or {})
        self.called = dict(called or {})
        self.launchers = dict(launchers or {})
        self.objects = dict(namespace)
        """What the text names, by name, apart from the parts."""
        self._namespace = namespace
        runs = {**{name: part.run for name, part in self.parts.items()}, **self.kept}
        namespace.update({variable: runs[name] for name, variable in self.called.items()})
        self.checks = tuple(checks)
        self.sources = {"program.py": source, **sources}
        filename = f"<inductile program {next(_NUMBERS)}>"
        _show(filename, source)
        # all names and words of the text are our own; see HostEmitter
        self.code = compile(source, filename, "exec") if code is None else _in_file(code, filename)
        exec(self.code, namespace)
        self.run: Callable[[list[Any]], list[Any]] = namespace["run"]

    def __call__(self, args: list[Any]) -> list[Any]:
        """Run on a list of inputs, which is cleared; the list of outputs."""
        return self.run(args)

    def run_watched(self, nvtx: bool) -> Callable[[list[Any]], list[Any]]:
        """The program with a region of a profile around each launch."""
        if "run_watched" not in self._namespace:
            self._namespace["region"] = partial(Region, nvtx=nvtx)
            exec(compile(self.watched, "<inductile program, watched>", "exec"), self._namespace)
        return self._namespace["run_watched"]

    def run_recorded(self) -> Callable[[list[Any]], list[Any]]:
        """The program with a frame of its own around each allocation."""
        if "run_recorded" not in self._namespace:
            filename = f"{self.code.co_filename[:-1]}, recorded>"
            _show(filename, self.recorded)
            self._namespace["at"] = at
            exec(compile(self.recorded, filename, "exec"), self._namespace)
        return self._namespace["run_recorded"]

    def call_instead(self, name: str, run: Callable[[list[Any]], Any]) -> None:
        """Let the program call this instead of one of its parts."""
        self._namespace[self.called[name]] = run
