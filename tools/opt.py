"""`inductile-opt`: run passes on IR files of any level.

    inductile-opt softmax.mlir -p "loop-eliminate-views,loop-fuse"
    inductile-opt softmax.mlir --pipeline default --stop-after loop-fuse
    inductile-opt softmax.mlir --pipeline default -t cpp
    inductile-opt --print-pipeline default

The module alone goes to standard output; dumps, timing and remarks go to standard error.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..dialects.context import new_context
from ..errors import PassError, UserError
from ..lowering.pipeline import cut, named_passes
from ..lowering.registry import parse_passes, pipeline_text
from ..lowering.reproducer import read_reproducer, write_reproducer
from ..passes.counters import counting, parse_counters
from ..passes.instrumentation import PrintIR, PrintTree, Statistics, Timing, module_text
from ..passes.manager import Instrumentation, PassManager
from ..passes.remarks import Remark, collecting
from .diagnostics import parse_file, read_input, run_tool, verify_module, write_output
from .listing import list_passes, print_pipeline
from .plugins import load_plugin

SPLIT_MARK = "// -----\n"


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser("inductile-opt", description=(__doc__ or "").partition("\n\n")[0])
    p.add_argument("file", nargs="?", default="-", help="IR of any level, - for standard input")
    p.add_argument("-p", "--passes", default="", help='pipeline, e.g. "loop-fuse,kernel-tile{target=cpp}"')
    p.add_argument("--pipeline", metavar="NAME", help="a named pipeline (see --print-pipeline)")
    p.add_argument("--start-at", metavar="PASS", help="with --pipeline: begin at this pass")
    p.add_argument("--stop-after", metavar="PASS", help="with --pipeline: end behind this pass")
    p.add_argument("-t", "--target", help='emit source: cpp, triton{target="cuda:90"}, ...')
    p.add_argument("-o", "--output", help="output file instead of standard output")
    info = p.add_argument_group("information")
    info.add_argument("--print-pipeline", nargs="?", const="default", metavar="NAME", help="show a named pipeline")
    info.add_argument("--list-passes", action="store_true", help="name, level, one line and file of every pass")
    info.add_argument("--dump-pass-pipeline", action="store_true", help="print the pipeline that runs")
    text = p.add_argument_group("text")
    text.add_argument(
        "--split-input-file", action="store_true", help=f"treat parts between {SPLIT_MARK.strip()!r} alone"
    )
    text.add_argument("--print-op-generic", action="store_true", help="generic syntax")
    text.add_argument("--print-locations", action="store_true", help="print loc(...) behind ops")
    _add_debugging(p.add_argument_group("debugging"))
    return p


def _add_debugging(debug: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    debug.add_argument("--no-verify", action="store_true", help="do not verify the input or the result")
    debug.add_argument(
        "--verify-each", nargs="?", const="ir", choices=("ir", "numerics"),
        help="verify behind each pass; `numerics` also runs the module before and after and compares",
    )  # fmt: skip
    debug.add_argument("--verify-diagnostics", action="store_true", help="check `// expected-error {{...}}` comments")
    debug.add_argument("--print-ir-before", metavar="PASSES", help="dump before these passes")
    debug.add_argument("--print-ir-after", metavar="PASSES", help="dump behind these passes")
    debug.add_argument("--print-ir-before-all", action="store_true", help="dump before every pass")
    debug.add_argument("--print-ir-after-all", action="store_true", help="dump behind every pass")
    debug.add_argument("--print-ir-after-change", action="store_true", help="dump behind passes that changed something")
    debug.add_argument("--print-ir-after-failure", action="store_true", help="dump what a failing pass was given")
    debug.add_argument("--print-ir-tree-dir", metavar="DIR", help="write NN-pass.mlir files")
    debug.add_argument("--timing", nargs="?", const="text", choices=("text", "json"), help="seconds of each pass")
    debug.add_argument("--pass-statistics", action="store_true", help="ops behind each pass")
    debug.add_argument("--remarks", nargs="?", const="", metavar="REGEX", help="print remarks of matching passes")
    debug.add_argument("--debug-counter", metavar="LIST", help="NAME-skip=N,NAME-count=N")
    debug.add_argument("--crash-reproducer", metavar="FILE", help="where a failing pass leaves its reproducer")
    debug.add_argument("--run-reproducer", action="store_true", help="FILE is a reproducer: run what it says")
    debug.add_argument(
        "--load-pass-plugin", action="append", default=[], metavar="FILE.py", help="Python file with passes"
    )
    debug.add_argument("--seed", type=int, default=0, help="random inputs of --verify-each=numerics")


def choose_passes(args: argparse.Namespace) -> list[ModulePass]:
    """The passes that the command line asks for."""
    if args.pipeline and args.passes:
        raise UserError("--pipeline and --passes exclude each other", "give one of them")
    if args.pipeline:
        return named_passes(args.pipeline, _target_name(args.target), args.start_at, args.stop_after)
    return cut(parse_passes(args.passes), args.start_at, args.stop_after) if args.passes else []


def _target_name(target: str | None) -> str:
    """Target of the tiling passes for an emitter spec: `triton{target="cuda:90"}` tiles for cuda:90."""
    if target is None:
        return "cpp"
    inside = re.search(r'target="?([\w:]+)"?', target)
    return inside.group(1) if inside else target.partition("{")[0]


def instrumentations(args: argparse.Namespace) -> list[Instrumentation]:
    """The watchers that the command line asks for."""
    names = lambda value: tuple(filter(None, (value or "").split(",")))  # noqa: E731
    before = None if args.print_ir_before_all else names(args.print_ir_before)
    after_all = args.print_ir_after_all or args.print_ir_after_change
    after = None if after_all else names(args.print_ir_after)
    watchers: list[Instrumentation] = []
    if before is None or before or after is None or after or args.print_ir_after_failure:
        watchers.append(
            PrintIR(before, after, args.print_ir_after_change, args.print_ir_after_failure, args.print_locations)
        )
    if args.print_ir_tree_dir:
        watchers.append(PrintTree(Path(args.print_ir_tree_dir), args.print_locations))
    if args.timing:
        watchers.append(Timing())
    if args.pass_statistics:
        watchers.append(Statistics())
    if args.verify_each == "numerics":
        from ..backends.numerics import NumericCheck  # imports torch

        watchers.append(NumericCheck(seed=args.seed))
    return watchers


def run_passes(args: argparse.Namespace, passes: Sequence[ModulePass], text: str, name: str) -> ModuleOp:
    """Parse, verify and transform one module; on failure leave a reproducer."""
    context = new_context()
    module = parse_file(context, text, name)
    if not args.no_verify:
        verify_module(module, name)
    watchers = instrumentations(args)
    manager = PassManager(passes, watchers, verify_each=bool(args.verify_each), verify=not args.no_verify)
    try:
        manager.run(context, module)
    except PassError as error:
        where = write_reproducer(args.crash_reproducer, text, name, passes, error, args.debug_counter)
        raise PassError(error.pass_name, error.reason, where) from error
    finally:
        report(args, watchers)
    return module


def report(args: argparse.Namespace, watchers: Sequence[Instrumentation]) -> None:
    """Print what the watchers gathered, on standard error."""
    for watcher in watchers:
        if isinstance(watcher, Timing):
            print(watcher.json() if args.timing == "json" else watcher.text(), file=sys.stderr)
        elif isinstance(watcher, Statistics):
            print(watcher.text(), file=sys.stderr)


def emit(args: argparse.Namespace, module: ModuleOp) -> str:
    """The module as text, or as source of the chosen target."""
    if not args.target:
        return module_text(module, args.print_locations, args.print_op_generic) + "\n"
    from ..backends.targets import emit_source

    return emit_source(args.target, module)


def process(args: argparse.Namespace, passes: Sequence[ModulePass], text: str, name: str) -> str:
    """Output text for one input module."""
    return emit(args, run_passes(args, passes, text, name))


def _run(argv: Sequence[str] | None) -> int:
    args = build_parser().parse_args(argv)
    for plugin in args.load_pass_plugin:
        load_plugin(plugin)
    if args.list_passes:
        write_output(args.output, list_passes())
        return 0
    if args.print_pipeline:
        write_output(args.output, print_pipeline(args.print_pipeline, _target_name(args.target)))
        return 0
    text, name = read_input(args.file)
    if args.run_reproducer:
        passes, args.debug_counter = read_reproducer(text, name)
    else:
        passes = choose_passes(args)
    if args.dump_pass_pipeline:
        print(pipeline_text(passes), file=sys.stderr)
    with ExitStack() as stack:
        remarks = stack.enter_context(collecting()) if args.remarks is not None else []
        if args.debug_counter:
            stack.enter_context(counting(parse_counters(args.debug_counter)))
        try:
            return _run_parts(args, passes, text, name)
        finally:
            print_remarks(args.remarks, remarks)


def _run_parts(args: argparse.Namespace, passes: Sequence[ModulePass], text: str, name: str) -> int:
    parts = text.split(SPLIT_MARK) if args.split_input_file else [text]
    if args.verify_diagnostics:
        from .expected import check_diagnostics

        return check_diagnostics([(part, lambda part=part: process(args, passes, part, name)) for part in parts], name)
    write_output(args.output, SPLIT_MARK.join(process(args, passes, part, name) for part in parts))
    return 0


def print_remarks(pattern: str | None, remarks: Sequence[Remark]) -> None:
    """Print the remarks whose pass matches a regular expression, on standard error."""
    if pattern is None:
        return
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise UserError(f"--remarks {pattern!r} is no regular expression ({error})") from error
    for remark in remarks:
        if wanted.search(remark.pass_name):
            print(remark, file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return run_tool(lambda: _run(argv))


if __name__ == "__main__":
    sys.exit(main())
