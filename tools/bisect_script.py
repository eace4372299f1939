"""`inductile-bisect model.py`: a script that ends with a status other than 0 when compiled by inductile.

The script runs once with a trace. Each of its graphs is bisected in the reference backend, on the inputs of the
script. When no pass changes an answer there, the script runs again and again with rewrites switched off by debug
counters; and when that does not help either, compiled code is compared with the reference backend.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from ..errors import InductileError, UserError
from ..lowering.registry import parse_passes
from ..passes.printing import spelled_out
from ..records import dataclass
from .bisect import EXIT_FOUND, EXIT_NOTHING, oracle_maker, report
from .bisection import Bisection, first_bad


@dataclass
class Script:
    """A script and how to run it; each run leaves a trace in a numbered folder."""

    command: Sequence[str]
    folder: Path
    timeout: float
    _statuses: dict[str, tuple[int, Path]] = field(default_factory=dict)

    @property
    def runs(self) -> int:
        """How often the script ran."""
        return len(self._statuses)

    def status(self, limits: Mapping[str, int]) -> int:
        """Exit status with some counters limited; what is known is not asked for again."""
        return self._run(debug_counter(limits))[0]

    def trace(self, limits: Mapping[str, int]) -> Path:
        """The trace of a run with some counters limited."""
        return self._run(debug_counter(limits))[1]

    def _run(self, counters: str) -> tuple[int, Path]:
        if counters not in self._statuses:
            trace = self.folder / str(self.runs)
            environment = os.environ | {
                "INDUCTILE_TRACE": str(trace),
                "INDUCTILE_TRACE_INPUTS": "1",
                "INDUCTILE_WATCH": f"--pass-statistics --debug-counter={counters}",
            }
            try:
                done = subprocess.run(self.command, env=environment, capture_output=True, timeout=self.timeout)
                status = done.returncode
            except subprocess.TimeoutExpired:
                status = 124
            self._statuses[counters] = status, trace
        return self._statuses[counters]


def debug_counter(limits: Mapping[str, int]) -> str:
    """Counts of counters as `--debug-counter` takes them."""
    return ",".join(f"{name}-count={count}" for name, count in limits.items())


def bisect_script(args: argparse.Namespace) -> int:
    """Bisect what a script compiles and print what is found."""
    if args.test or args.passes or args.pipeline:
        raise UserError("a script is its own test and chooses its own passes", "leave --test, -p and --pipeline out")
    with tempfile.TemporaryDirectory(prefix="inductile-bisect-") as folder:
        script = Script([sys.executable, args.file, *args.arguments], Path(folder), args.timeout)
        status = script.status({})
        if status == 0:
            print(f"{args.file} ends with status 0: nothing goes wrong", file=sys.stderr)
            return EXIT_NOTHING
        print(f"{args.file} ends with status {status}", file=sys.stderr)
        found = _in_graphs(args, script.trace({})) or _by_counters(script) or _in_compiled_code(script)
        print(f"{script.runs} runs of the script", file=sys.stderr)
    print(found or "no graph, rewrite or kernel of inductile was found to go wrong")
    return EXIT_FOUND if found else EXIT_NOTHING


def _graphs(trace: Path) -> list[Path]:
    """The folders of the graphs of a run, in the order of their compilation."""
    folders = [path.parent for path in trace.glob("*/pipeline.txt")]
    return sorted(folders, key=lambda folder: int(folder.name.rpartition("_")[2]))


def _in_graphs(args: argparse.Namespace, trace: Path) -> str | None:
    """Bisect each graph in the reference backend."""
    for folder in _graphs(trace):
        inputs = folder / "inputs"
        args.input = [str(inputs)] if inputs.is_dir() else []
        passes = parse_passes((folder / "pipeline.txt").read_text().strip())
        source = folder / "000-input.mlir"
        try:
            finding = Bisection(source.read_text(), source.name, passes, oracle_maker(args), True).run()
        except InductileError as error:
            print(f"{folder.name} cannot be judged in the reference backend: {error}", file=sys.stderr)
            continue
        if finding is not None:
            return f"graph {folder.name}\n{report(finding, passes)}"
        print(f"{folder.name}: no pass changes an answer in the reference backend", file=sys.stderr)
    return None


def _by_counters(script: Script) -> str | None:
    """Switch rewrites off until the script is content."""
    asked = _asked(script.trace({}))
    names = list(asked)
    if not names or script.status(dict.fromkeys(names, 0)) != 0:
        return None

    def wrong_with(count: int) -> bool:
        return script.status(dict.fromkeys(names[count:], 0)) != 0

    position = first_bad(0, len(names), wrong_with) - 1
    guilty, later = names[position], dict.fromkeys(names[position + 1 :], 0)

    def wrong_at(count: int) -> bool:
        return script.status({guilty: count} | later) != 0

    number = first_bad(0, asked[guilty], wrong_at)
    traces = [script.trace({guilty: count} | later) for count in (number - 1, number)]
    return "\n".join([
        f"guilty rewrite: {guilty}, number {number} of {asked[guilty]}",
        f"  with it:    INDUCTILE_WATCH=--debug-counter={guilty}-count={number}",
        f"  without it: INDUCTILE_WATCH=--debug-counter={guilty}-count={number - 1}",
        *_changes(guilty, *traces),
    ])  # fmt: skip


def _counted(trace: Path) -> list[Path]:
    """The folders of all graphs whose rewrites were counted: Dynamo's first, then in the order of compilation."""
    folders = [path.parent for path in trace.glob("*/counters.json")]
    return sorted(folders, key=lambda folder: (_kind(folder) != "dynamo", int(folder.name.rpartition("_")[2])))


def _kind(folder: Path) -> str:
    return folder.name.rpartition("_")[0]


def _asked(trace: Path) -> dict[str, int]:
    """How often each counter was asked at most in one graph; counters start anew in each."""
    asked: dict[str, int] = {}
    for folder in _counted(trace):
        for name, count in json.loads((folder / "counters.json").read_text()).items():
            asked[name] = max(asked.get(name, 0), count)
    return asked


def _pairs(without: Path, having: Path) -> list[tuple[Path, Path]]:
    """The folders of the same graphs in two runs: the n-th of a kind is the n-th of that kind."""
    others = _counted(without)
    pairs: list[tuple[Path, Path]] = []
    for folder in _counted(having):
        same = next((other for other in others if _kind(other) == _kind(folder)), None)
        if same is not None:
            others.remove(same)
            pairs.append((same, folder))
    return pairs


def _is_counter_of(counter: str, file: Path) -> bool:
    """Whether a file holds what the pass left whose counter this is; a pass may have several."""
    module_pass = file.stem.partition("-")[2]
    return counter == module_pass or counter.startswith(f"{module_pass}-")


def _changes(guilty: str, without: Path, having: Path) -> list[str]:
    """The first pass of each graph that left another module, as differences of text."""
    lines: list[str] = []
    for other, folder in _pairs(without, having):
        for behind in sorted(each for each in folder.glob("[0-9]*-*") if _is_counter_of(guilty, each)):
            before = other / behind.name
            if not before.is_file() or before.read_text() == behind.read_text():
                continue
            pair = (spelled_out(before.read_text()).splitlines(), spelled_out(behind.read_text()).splitlines())
            lines += [
                "",
                f"graph {folder.name}, behind {guilty}:",
                *difflib.unified_diff(*pair, "without", "with", n=3, lineterm=""),
            ]
            break
    return lines


def _in_compiled_code(script: Script) -> str | None:
    """Compare the code of each graph with its last IR in the reference backend."""
    for folder in _graphs(script.trace({})):
        problem = _code_problem(folder)
        if problem:
            sources = ", ".join(sorted(p.name for p in folder.iterdir() if p.suffix in (".cpp", ".py")))
            return f"graph {folder.name}: the code generators go wrong, not the passes ({sources})\n  {problem}"
    return None


def _code_problem(folder: Path) -> str | None:
    from ..backends.arrays import load_arrays
    from ..backends.reference.compare import Outcome, clone_inputs, observe, outcome_differences
    from ..backends.targets import run_compiled
    from ..dialects.context import new_context
    from .diagnostics import parse_file

    inputs, files = folder / "inputs", sorted(folder.glob("[0-9]*.mlir"))
    if not inputs.is_dir() or not files:
        return None
    try:
        text = files[-1].read_text()
        module = parse_file(new_context(), text, files[-1].name, True)
        given = load_arrays([str(inputs)], module)
        expected = observe(module, given)
        found: list[str] = []
        for checked in (True, False):  # the code of torch.compile itself, once the checked one has run without a fault
            module = parse_file(new_context(), text, files[-1].name, True)
            own = clone_inputs(given)
            results = run_compiled(module, own, checked=checked)
            found = found or outcome_differences(expected, Outcome(results, own, wide=False))
    except InductileError as error:
        print(f"{folder.name} cannot be run from its file: {error}", file=sys.stderr)
        return None
    return "; ".join(found[:3]) or None
