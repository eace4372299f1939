"""`inductile-bisect`: find the pass, and the one rewrite of it, with which something goes wrong.

    inductile-bisect graph.mlir --pipeline default                 # the answer changes, on random inputs
    inductile-bisect graph.mlir -p "loop-inline,loop-fuse" --input x.npy --input y.npy
    inductile-bisect graph.mlir --pipeline default --test "grep -q loop.fusion"
    inductile-bisect reproducer.mlir --run-reproducer
    inductile-bisect model.py                                      # a script that ends with another status than 0

With --test, a command that ends with a status other than 0 on the module's file says that it is wrong, as for
`git bisect run`. Without, an answer that differs from that of the module in front of all passes does.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .. import extensions
from ..errors import UserError, replay_command
from ..lowering.registry import pipeline_text
from ..lowering.reproducer import read_reproducer, store_reproducer
from ..passes.printing import spelled_out
from .bisection import Bisection, Finding
from .diagnostics import add_effects_flag, read_input, run_tool, write_output
from .listing import source_file
from .opt import add_pipeline_flags, choose_passes
from .oracles import AnswerOracle, CommandOracle, Oracle
from .plugins import load_plugin

_CONTEXT = 3
EXIT_FOUND, EXIT_NOTHING = 0, 1


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        "inductile-bisect", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("file", help="IR of any level, or a Python script that uses torch.compile")
    p.add_argument("arguments", nargs="*", help="arguments of the script")
    add_pipeline_flags(p)
    add_effects_flag(p)
    p.add_argument("--run-reproducer", action="store_true", help="FILE is a reproducer: bisect what it says")
    add_oracle_flags(p)
    p.add_argument("-o", "--output", metavar="FILE", help="where the module in front of the guilty pass goes")
    return p


def add_oracle_flags(p: argparse.ArgumentParser) -> None:
    """Add the flags that say what wrong means."""
    p.add_argument("--test", metavar="COMMAND", help="command to judge a module's file; {} stands for it")
    p.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="of one run of the command")
    p.add_argument("--input", action="append", default=[], metavar="X.npy", help="inputs to compare on, in order")
    p.add_argument("--seed", type=int, default=0, help="of random inputs to compare on")


def oracle_maker(args: argparse.Namespace) -> Callable[[ModuleOp], Oracle]:
    """What makes the oracle that the flags ask for, from the module in front of all passes."""

    def make(original: ModuleOp) -> Oracle:
        if args.test:
            return CommandOracle(args.test, args.timeout)
        if not args.input:
            return AnswerOracle(original, args.seed)
        from ..backends.arrays import load_arrays

        return AnswerOracle(original, args.seed, load_arrays(args.input, original))

    return make


def report(finding: Finding, passes: Sequence[ModulePass]) -> str:
    """What was found, for people: pass, rewrite, remarks, the ops before and after."""
    guilty = finding.module_pass
    lines = [
        f"guilty pass: {guilty} (number {finding.position + 1} of {len(passes)}, {source_file(type(guilty))})",
        f"  {finding.problem}",
    ]
    if finding.application is not None:
        a = finding.application
        lines.append(f"guilty rewrite: {a.counter}, number {a.number} of {a.total}")
        lines.append(f"  with it:    --debug-counter={a.counter}-count={a.number}")
        lines.append(f"  without it: --debug-counter={a.counter}-count={a.number - 1}")
    else:
        lines.append(
            "guilty rewrite: not found, the pass goes wrong when its counters refuse every rewrite, or has none"
        )
    lines += [f"  {remark}" for remark in finding.remarks]
    return "\n".join([*lines, "", *_diff(finding.before, finding.behind)]) + "\n"


def _diff(before: str, behind: str) -> list[str]:
    names = ("before", "behind")
    one, other = (spelled_out(text).split("\n") for text in (before, behind))
    return list(difflib.unified_diff(one, other, *names, n=_CONTEXT, lineterm=""))


def bisect_file(args: argparse.Namespace, path: str) -> int:
    """Bisect an IR file and print what is found."""
    text, name = read_input(path)
    passes = read_reproducer(text, name).passes if args.run_reproducer else choose_passes(args)
    inputs = Path(f"{name}.inputs")
    if args.run_reproducer and not args.input and inputs.is_dir():
        args.input = [str(inputs)]
    if not passes:
        raise UserError("there are no passes to bisect", "name them with -p or --pipeline")
    started = time.perf_counter()
    bisection = Bisection(text, name, passes, oracle_maker(args), args.allow_effects)
    finding = bisection.run()
    spent = f"{bisection.runs} pass runs, {time.perf_counter() - started:.1f} s"
    if finding is None:
        print(f"nothing goes wrong in {len(passes)} passes ({spent})", file=sys.stderr)
        return EXIT_NOTHING
    write_output(None, report(finding, passes))
    print(spent, file=sys.stderr)
    if args.output:
        rest = [finding.module_pass]
        store_reproducer(args.output, finding.input, rest, RuntimeError(finding.problem), finding.counters)
        command = replay_command(args.output, extensions.plugin_files(p.name for p in rest))
        print(f"replay it with: {command}  # {pipeline_text(rest)}", file=sys.stderr)
    return EXIT_FOUND


def _run(argv: Sequence[str] | None) -> int:
    args = build_parser().parse_args(argv)
    for plugin in args.load_pass_plugin:
        load_plugin(plugin)
    if args.file.endswith(".py"):
        from .bisect_script import bisect_script

        return bisect_script(args)
    if args.arguments:
        raise UserError(f"{args.arguments[0]}: error: one IR file at a time", "arguments are for scripts")
    return bisect_file(args, args.file)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return run_tool(lambda: _run(argv))


if __name__ == "__main__":
    sys.exit(main())
