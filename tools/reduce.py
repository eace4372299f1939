"""`inductile-reduce`: shrink an IR file as long as something stays wrong with it.

    inductile-reduce graph.mlir -p "loop-inline" -o small.mlir     # the pass crashes, or changes the answer
    inductile-reduce reproducer.mlir --run-reproducer -o small.mlir
    inductile-reduce graph.mlir --test "sh -c '! inductile-run {} --random 0'" -o small.mlir

What goes wrong has to stay the same: the same pass, and the same exception, or an answer that differs in the same way.
With --test, a command that ends with status 0 on a module's file says that it is still interesting; `{}` stands for
the file. Every file that is tested or written is valid. -o always holds the smallest module found so far, so that the
command may be interrupted at any time.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextvars import Context as ContextVars
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from ..dialects.context import new_context
from ..dialects.format import HEADER, PREFIX
from ..errors import PassError, UserError
from ..lowering.reproducer import Replay, read_reproducer
from ..passes.counters import counting, parse_counters
from ..passes.manager import Instrumentation, PassManager
from ..passes.printing import module_text
from ..records import dataclass
from .diagnostics import EXIT_INTERRUPTED, add_effects_flag, read_input, run_tool, write_output
from .opt import add_pipeline_flags, choose_passes
from .oracles import run_on_text, split_command
from .plugins import load_plugin
from .reduction import bodies, numbers, structure
from .reduction.engine import Reduction, Size, Strategy
from .source import Source

#: in order: what takes most away first, and what makes the test itself cheap early
STRATEGIES: tuple[Strategy, ...] = (
    structure.DROP_FUNCTIONS,
    structure.DROP_RETURNED,
    structure.RETURN_EARLIER,
    structure.REMOVE_FOR_ARGUMENT,
    structure.DROP_RESULTS,
    structure.DROP_ARGUMENTS,
    structure.REMOVE_FOR_OPERAND,
    bodies.DISSOLVE,
    bodies.UNROLL,
    numbers.FIX_SYMBOLS,
    numbers.SHRINK_SIZES,
    bodies.RUN_ONCE,
    bodies.UNMASK,
    bodies.MAKE_SERIAL,
    bodies.DROP_PROPERTIES,
    bodies.DROP_BUFFERS,
    bodies.DROP_KERNEL_SYMBOLS,
    numbers.PLAIN_DTYPES,
    numbers.PLAIN_CONSTANTS,
)
_DIFFERENCE = re.compile(r"it changes the answer: (?:(?:result|input) \d+(?: afterwards)?: )?(\w+)")


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        "inductile-reduce", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("file", help="IR of any level")
    add_pipeline_flags(p)
    add_effects_flag(p)
    p.add_argument("--run-reproducer", action="store_true", help="FILE is a reproducer: its passes go wrong")
    p.add_argument("--test", metavar="COMMAND", help="command to test a module's file, instead of passes")
    p.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="of one run of the command")
    p.add_argument("--seed", type=int, default=0, help="of the random inputs on which answers are compared")
    p.add_argument("-o", "--output", metavar="FILE", help="output file instead of standard output")
    return p


@dataclass(frozen=True)
class Failure:
    """What goes wrong in a run of passes: where, and in which way."""

    pass_name: str
    kind: str

    @property
    def needs_answers(self) -> bool:
        """Whether the module has to be run to see it."""
        return self.kind.startswith("answer")

    def __str__(self) -> str:
        return f"{self.pass_name}: {self.kind}"


def failure_of(module: ModuleOp, replay: Replay, seed: int, answers: bool) -> Failure | None:
    """Run passes over a module, with counters from the start; what goes wrong first."""
    watchers: list[Instrumentation] = []
    if answers:
        from ..backends.numerics import NumericCheck

        watchers.append(NumericCheck(seed))
    manager = PassManager(replay.passes, watchers, verify_each=True)

    def run() -> None:
        with counting(parse_counters(replay.counters)):
            manager.run(new_context(), module)

    try:
        ContextVars().run(run)
    except PassError as error:
        return Failure(error.pass_name, _kind(error))
    except UserError:  # a module without a meaning, or a pass that does not take it
        return None
    return None


def _kind(error: PassError) -> str:
    if error.__cause__ is not None:
        return type(error.__cause__).__name__
    difference = _DIFFERENCE.match(error.reason)
    return f"answer, {difference[1]}" if difference else "module does not verify"


def make_test(args: argparse.Namespace, source: Source, module: ModuleOp) -> Callable[[ModuleOp], bool]:
    """What says whether a module is still interesting; UserError when the first one is not."""
    if args.test:
        command = split_command(args.test)

        def run_command(candidate: ModuleOp) -> bool:
            return run_on_text(command, module_text(candidate) + "\n", args.timeout) == 0

        if run_on_text(command, source.text, args.timeout) != 0:
            raise UserError(f"{source.name}: error: the command does not end with status 0 on the file itself")
        return run_command
    replay = read_reproducer(source.text, source.name) if args.run_reproducer else Replay(choose_passes(args))
    if not replay.passes:
        raise UserError("nothing says what is wrong", "name passes with -p, or a command with --test")
    wanted = failure_of(module.clone(), replay, args.seed, False) or failure_of(module, replay, args.seed, True)
    if wanted is None:
        raise UserError(f"{source.name}: error: nothing goes wrong with these passes", "give --test a command")
    print(f"goes wrong: {wanted}", file=sys.stderr)

    def same_failure(candidate: ModuleOp) -> bool:
        return failure_of(candidate, replay, args.seed, wanted.needs_answers) == wanted

    return same_failure


def _head(text: str) -> str:
    """The comments at the head of a file: what a reproducer says, which holds for what is left of it too."""
    lines = itertools.takewhile(lambda line: line.startswith("//"), text.splitlines(keepends=True))
    return "".join(f"{HEADER}\n" if line.startswith(PREFIX) else line for line in lines)


def _keeper(output: str | None, head: str) -> Callable[[str, str], None]:
    """What stores each smaller module; a file is replaced as a whole, so that it is never half written."""

    def keep(text: str, strategy: str) -> None:
        lines = text.count("\n") + 1
        print(f"  {lines} lines, {len(text)} characters: {strategy}", file=sys.stderr)
        if output and output != "-":
            partial = f"{output}.partial"
            write_output(partial, head + text + "\n")
            os.replace(partial, output)

    return keep


def _terminate(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _run(argv: Sequence[str] | None) -> int:
    args = build_parser().parse_args(argv)
    for plugin in args.load_pass_plugin:
        load_plugin(plugin)
    text, name = read_input(args.file)
    source = Source(text, name, allow_effects=args.allow_effects)
    module = source.parse(new_context())
    source.verify(module)
    before = Size.of(module)
    test = make_test(args, source, module.clone())
    head = _head(text) if args.run_reproducer else f"{HEADER}\n" if args.output else ""
    reduction = Reduction(text, name, test, _keeper(args.output, head))
    started = time.perf_counter()
    status = 0
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        reduction.run(STRATEGIES, pairs=(structure.REMOVE_FOR_OPERAND,))
    except KeyboardInterrupt:
        print("interrupted; this is the smallest module so far", file=sys.stderr)
        status = EXIT_INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, previous)
    after = Size.of(Source(reduction.text, name).parse(new_context()))
    seconds = time.perf_counter() - started
    print(f"{before} -> {after} ({reduction.tests} tests, {seconds:.1f} s)", file=sys.stderr)
    if not args.output or not Path(args.output).exists():
        write_output(args.output, head + reduction.text.removeprefix(head) + "\n")
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return run_tool(lambda: _run(argv))


if __name__ == "__main__":
    sys.exit(main())
