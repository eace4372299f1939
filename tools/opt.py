"""`inductile-opt`: run passes on IR files of any level.

    inductile-opt softmax.mlir -p "loop-eliminate-views,loop-fuse"
    inductile-opt softmax.mlir --pipeline default --stop-after loop-fuse
    inductile-opt softmax.mlir --pipeline default -t cpp
    inductile-opt product.mlir --pipeline default --transform schedule.mlir -o scheduled.mlir
    inductile-opt softmax.mlir --pipeline default --target cuda:90 -t triton
    inductile-opt --print-pipeline default

The module alone goes to standard output; dumps, timing and remarks go to standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .. import extensions
from ..dialects.context import new_context
from ..dialects.format import HEADER
from ..errors import InductileError, PassError, UserError
from ..lowering.levels import LevelWarning
from ..lowering.pipeline import attached, cut, named_passes
from ..lowering.registry import parse_passes, pipeline_text
from ..lowering.reproducer import read_reproducer, write_reproducer
from ..passes.manager import Instrumentation, PassManager
from ..passes.printing import module_text
from ..passes.watching import Watch, add_flags, spell_out
from .diagnostics import add_effects_flag, print_error, read_input, run_tool, write_output
from .listing import list_passes, print_pipeline
from .plugins import load_plugin
from .script import Script, read_script
from .source import Source, split_source

if TYPE_CHECKING:
    from ..backends.report import Report

SPLIT_MARK = "// -----"


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser("inductile-opt", description=(__doc__ or "").partition("\n\n")[0])
    p.add_argument("file", nargs="?", default="-", help="IR of any level, - for standard input")
    add_pipeline_flags(p)
    p.add_argument("-t", "--emit", metavar="GENERATOR", help="emit source: cpp, c or triton")
    p.add_argument("--transform", metavar="SCRIPT", help="a schedule by hand (docs/schedules.md)")
    p.add_argument("-o", "--output", help="output file instead of standard output")
    info = p.add_argument_group("information")
    info.add_argument("--print-pipeline", nargs="?", const="default", metavar="NAME", help="show a named pipeline")
    info.add_argument("--list-passes", action="store_true", help="name, level, one line and file of every pass")
    info.add_argument("--dump-pass-pipeline", action="store_true", help="print the pipeline that runs")
    text = p.add_argument_group("text")
    text.add_argument("--split-input-file", action="store_true", help=f"treat parts between {SPLIT_MARK!r} alone")
    text.add_argument("--print-op-generic", action="store_true", help="generic syntax")
    watching = p.add_argument_group("watching")
    add_flags(watching)
    watching.add_argument("--report", metavar="FILE.html", help="a page with the IR behind each pass, remarks, code")
    _add_checking(p.add_argument_group("checking"))
    return p


def add_target_flag(p: argparse.ArgumentParser) -> None:
    """Add the flag that says for which machine, else what the file says, or the usual one; and that of descriptions."""
    p.add_argument("--target", help="the machine: cpp, cuda:90, hip:gfx942, ... (docs/targets.md)")
    p.add_argument(
        "--load-pass-plugin", action="append", default=[], metavar="FILE.py", help="Python file with passes or targets"
    )


def add_pipeline_flags(p: argparse.ArgumentParser) -> None:
    """Add the flags that say which passes run; `choose_passes` reads them."""
    p.add_argument("-p", "--passes", default="", help='pipeline, e.g. "loop-fuse,kernel-tile{step=4096}"')
    p.add_argument("--pipeline", metavar="NAME", help="a named pipeline (see --print-pipeline)")
    p.add_argument("--start-at", metavar="PASS", help="begin at this pass")
    p.add_argument("--stop-after", metavar="PASS", help="end behind this pass")
    add_target_flag(p)


def _add_checking(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    flag = group.add_argument
    flag("--no-verify", action="store_true", help="do not verify the input or the result")
    flag(
        "--verify-each", metavar="ir|numerics", choices=("ir", "numerics"),
        help="verify behind each pass; `numerics` also runs the module before and after and compares",
    )  # fmt: skip
    flag("--input", action="append", default=[], metavar="X.npy", help="inputs of --verify-each=numerics, in order")
    flag("--seed", type=int, default=0, help="of the random inputs of --verify-each=numerics")
    flag("--verify-diagnostics", action="store_true", help="check `// expected-error {{...}}` comments")
    flag("--crash-reproducer", metavar="FILE", help="where a failing pass leaves its reproducer")
    add_effects_flag(group)
    flag("--run-reproducer", action="store_true", help="FILE is a reproducer: run what it says")


def choose_passes(args: argparse.Namespace) -> list[ModulePass]:
    """The passes that the command line asks for; the one that attaches the target comes first."""
    if args.pipeline and args.passes:
        raise UserError("--pipeline and --passes exclude each other", "give one of them")
    if args.pipeline:
        return named_passes(args.pipeline, args.target, args.start_at, args.stop_after)
    if not args.passes and (args.start_at or args.stop_after):
        raise UserError("--start-at and --stop-after cut a pipeline", "give it by --pipeline or --passes")
    passes = cut(parse_passes(args.passes), args.start_at, args.stop_after) if args.passes else []
    return [*attached(args.target), *passes]


class _Run:
    """One command: the same passes over each part of a file."""

    def __init__(
        self, args: argparse.Namespace, passes: Sequence[ModulePass], watch: Watch, script: Script | None = None
    ) -> None:
        self.args = args
        self.script = script
        self.passes = passes
        self.watch = watch

    def output(self, source: Source) -> str:
        """Parse, verify and transform one module, and print it, or the code made of it; leaves a reproducer on
        failure."""
        args = self.args
        context = new_context()
        with self._span("(parse)"):
            module = source.parse(context)
        if self.script is not None:
            self.script.add_to(module, context, self.passes)
        if not args.no_verify:
            with self._span("(verify)"):
                source.verify(module)
        if self.watch.wants_remarks or args.verify_diagnostics:
            source.locate_ops()
        report = self._report(source)
        chosen = [LevelWarning()] if args.passes or args.start_at else []
        watchers = [*chosen, *self.watch.instrumentations, *filter(None, (report,)), *self._numerics(module)]
        manager = PassManager(self.passes, watchers, verify_each=bool(args.verify_each), verify=not args.no_verify)
        try:
            manager.run(context, module)
        except PassError as error:
            if args.verify_diagnostics:
                raise
            where = self._reproducer(source, error)
            plugins = extensions.plugin_files(p.name for p in self.passes)
            raise PassError(error.pass_name, error.reason, where, plugins) from error
        with self._span("(output)"):
            text = self._emit(module)
        if report is not None:
            report.add_program(module, {f"source of {args.emit}": text} if args.emit else {})
        return text

    def _span(self, name: str) -> AbstractContextManager[Any]:
        return nullcontext() if self.watch.timing is None else self.watch.timing.span(name)

    def _report(self, source: Source) -> Report | None:
        if not self.args.report:
            return None
        from ..backends.report import Report

        return Report(Path(self.args.report), source.name, self.watch.remarks)

    def _numerics(self, module: ModuleOp) -> list[Instrumentation]:
        if self.args.verify_each != "numerics":
            return []
        from ..backends.arrays import load_arrays  # imports torch
        from ..backends.numerics import NumericCheck

        given = load_arrays(self.args.input, module) if self.args.input else None
        return [NumericCheck(seed=self.args.seed, inputs=given, timing=self.watch.timing)]

    def _reproducer(self, source: Source, error: PassError) -> str:
        path, counters = self.args.crash_reproducer, self.args.debug_counter
        return write_reproducer(
            path, source.text, source.name, self.passes, error, counters or None, self.args.verify_each
        )

    def _emit(self, module: ModuleOp) -> str:
        if not self.args.emit:
            text = module_text(module, self.args.print_locations, self.args.print_op_generic) + "\n"
            return text if self.args.output in (None, "-") else f"{HEADER}\n{text}"
        from ..backends.targets import emit_source

        return emit_source(self.args.emit, module)

    def all(self, parts: Sequence[Source]) -> int:
        """Every part in turn; one that fails does not keep the others from being treated."""
        if self.args.verify_diagnostics:
            from .expected import check_diagnostics

            return check_diagnostics([(part, lambda part=part: self.output(part)) for part in parts])
        if len(parts) == 1:
            write_output(self.args.output, self.output(parts[0]))
            return 0
        outputs: list[str] = []
        failed = 0
        for part in parts:
            try:
                outputs.append(self.output(part))
            except InductileError as error:
                print_error(error)
                failed = 1
        write_output(self.args.output, f"{SPLIT_MARK}\n".join(outputs))
        return failed


def _run(argv: Sequence[str] | None) -> int:
    args = build_parser().parse_args(spell_out(sys.argv[1:] if argv is None else argv))
    for plugin in args.load_pass_plugin:
        load_plugin(plugin)
    if args.list_passes:
        write_output(args.output, list_passes())
        return 0
    if args.print_pipeline:
        write_output(args.output, print_pipeline(args.print_pipeline, args.target))
        return 0
    text, name = read_input(args.file)
    if args.run_reproducer:
        passes = _replay(args, text, name)
    else:
        passes = choose_passes(args)
    script = None
    if args.transform:
        script = read_script(args.transform)
        passes = script.passes(passes)
    if args.dump_pass_pipeline:
        print(pipeline_text(passes), file=sys.stderr)
    allow = args.allow_effects
    whole = [Source(text, name, allow_effects=allow)]
    parts = split_source(text, name, SPLIT_MARK, allow) if args.split_input_file else whole
    if args.emit:
        from ..backends.generators import check_generator

        check_generator(args.emit, args.target)
    with Watch(args, [p.name for p in passes], collect=bool(args.report)) as watch:
        return _Run(args, passes, watch, script).all(parts)


def _replay(args: argparse.Namespace, text: str, name: str) -> list[ModulePass]:
    """The passes of a reproducer; what else it says goes into `args` where the command line is silent."""
    replay = read_reproducer(text, name)
    args.debug_counter = args.debug_counter or replay.counters
    args.verify_each = args.verify_each or replay.verify_each
    inputs = Path(f"{name}.inputs")
    if not args.input and inputs.is_dir():
        args.input = [str(inputs)]
    return replay.passes


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return run_tool(lambda: _run(argv))


if __name__ == "__main__":
    sys.exit(main())
