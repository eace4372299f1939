"""The flags that watch a run of passes, in MLIR's spelling, shared by `inductile-opt` and torch.compile."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..errors import UserError
from .counters import counting, parse_counters
from .instrumentation import PrintIR, PrintTree
from .manager import Instrumentation
from .pass_statistics import Statistics
from .pinned_schedules import PinnedSchedules
from .remarks import Remark, collecting
from .remarks_yaml import remarks_yaml
from .timing import Timing

#: flag -> (value when none is given, values that may follow as a word of their own)
OPTIONAL_VALUES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "--timing": ("text", ("text", "json")),
    "--remarks": ("", ()),
    "--verify-each": ("ir", ("ir", "numerics")),
}


def spell_out(argv: Sequence[str]) -> list[str]:
    """Flags whose value was left out get it, so that `--timing FILE` does not take the file for a value."""
    result: list[str] = []
    for position, word in enumerate(argv):
        default, words = OPTIONAL_VALUES.get(word, (None, ()))
        follows = argv[position + 1] if position + 1 < len(argv) else ""
        result.append(word if default is None or follows in words else f"{word}={default}")
    return result


def add_flags(group: argparse._ArgumentGroup) -> None:  # pyright: ignore[reportPrivateUsage]
    """Add the flags to a parser; its arguments go through `spell_out` first."""
    flag = group.add_argument
    flag("--print-ir-before", metavar="PASSES", type=_names, default=(), help="dump before these passes")
    flag("--print-ir-after", metavar="PASSES", type=_names, default=(), help="dump behind these passes")
    flag("--print-ir-before-all", action="store_true", help="dump before every pass")
    flag("--print-ir-after-all", action="store_true", help="dump behind every pass")
    flag("--print-ir-after-change", action="store_true", help="dump behind a pass only if it changed something")
    flag("--print-ir-after-failure", action="store_true", help="dump what a failing pass left")
    flag("--print-ir-tree-dir", metavar="DIR", help="write NNN-pass.mlir files")
    flag("--print-locations", action="store_true", help="print loc(...) behind ops")
    flag("--timing", metavar="text|json", choices=("text", "json"), help="seconds of each pass and verifier run")
    flag("--pass-statistics", action="store_true", help="ops and rewrites of each pass")
    flag("--remarks", metavar="REGEX", type=regex, help="print remarks of the passes that match")
    flag("--remarks-output", metavar="FILE.yaml", help="write all remarks as YAML, one document a remark")
    flag("--debug-counter", metavar="LIST", default="", help="switch rewrites off: NAME-skip=N,NAME-count=N")


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def regex(text: str) -> re.Pattern[str]:
    """The pattern that a flag gives."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression ({error})") from error


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UserError(f"cannot read the flags: {message}", "they are those of `inductile-opt --help` for watching")


def parse_flags(text: str) -> argparse.Namespace:
    """Flags from one string, as the option `watch` of torch.compile gives them; UserError for others."""
    parser = _Parser("watch", add_help=False, allow_abbrev=False)
    add_flags(parser.add_argument_group())
    return parser.parse_args(spell_out(shlex.split(text)))


class Watch:
    """What a set of flags asks for: instrumentations, remarks and counters while active, reports at the end.

        with Watch(args) as watch:
            PassManager(passes, watch.instrumentations).run(context, module)

    Reports go to standard error when the block is left, whether it failed or not. `passes` are the names of those
    that run, to find misspelt ones; with `append` the file of remarks is continued; with `collect` and
    `count` somebody else wants remarks, or how often counters were asked.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        passes: Sequence[str] = (),
        append: bool = False,
        collect: bool = False,
        count: bool = False,
    ) -> None:
        self._args = args
        self._append = append
        self._collect = collect
        self._count = count or bool(args.debug_counter) or args.pass_statistics
        self._stack = ExitStack()
        self.remarks: list[Remark] = []
        self.timing = Timing() if args.timing else None
        self.statistics = Statistics() if args.pass_statistics else None
        for wanted in (*args.print_ir_before, *args.print_ir_after):
            if passes and wanted not in passes:
                raise UserError(f"no pass {wanted!r} runs", f"those that run: {', '.join(dict.fromkeys(passes))}")

    @property
    def wants_remarks(self) -> bool:
        """Whether somebody will read remarks."""
        return self._collect or self._args.remarks is not None or bool(self._args.remarks_output)

    @property
    def instrumentations(self) -> list[Instrumentation]:
        """Watchers for a `PassManager`; new printers each time, since one module runs through them."""
        args = self._args
        before = None if args.print_ir_before_all else args.print_ir_before
        every = args.print_ir_after_all or (args.print_ir_after_change and not args.print_ir_after)
        after = None if every else args.print_ir_after
        watchers: list[Instrumentation] = []
        if before is None or before or after is None or after or args.print_ir_after_failure:
            watchers.append(
                PrintIR(before, after, args.print_ir_after_change, args.print_ir_after_failure, args.print_locations)
            )
        if args.print_ir_tree_dir:
            watchers.append(PrintTree(Path(args.print_ir_tree_dir), args.print_locations))
        if self.wants_remarks:
            watchers.append(PinnedSchedules())
        return [*watchers, *filter(None, (self.timing, self.statistics))]

    def __enter__(self) -> Watch:
        if self.wants_remarks:
            self.remarks = self._stack.enter_context(collecting())
        if self._count:
            self._stack.enter_context(counting(parse_counters(self._args.debug_counter)))
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()
        self._report()

    def _report(self) -> None:
        if self.timing is not None:
            print(self.timing.json() if self._args.timing == "json" else self.timing.text(), file=sys.stderr)
        if self.statistics is not None:
            print(self.statistics.text(), file=sys.stderr)
        if self._args.remarks is not None:
            for remark in self.remarks:
                if self._args.remarks.search(remark.pass_name):
                    print(remark, file=sys.stderr)
        if self._args.remarks_output:
            _write(self._args.remarks_output, remarks_yaml(self.remarks), "a" if self._append else "w")


def _write(path: str, text: str, mode: str) -> None:
    try:
        with Path(path).open(mode) as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"{path}: error: cannot write it: {error.strerror}") from error
