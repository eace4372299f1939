"""`inductile-cost`: bytes, operations and a lower bound of the time of each kernel and call, from the IR alone.

inductile-cost graph.mlir                       # lowers the rest of the way first
inductile-cost graph.mlir --symbol s0=1024 --target cuda:90 --json
inductile-cost graph.mlir --eager               # aten level: each op called as it is, for comparison
inductile-cost backward.mlir --memory --held 'primals*'   # memory over time; other arguments die when they are freed
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from functools import partial

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ..dialects.aten import AtenOp, CallOp
from ..dialects.context import new_context
from ..dialects.machine import targets_of
from ..errors import UserError
from ..lowering.pipeline import attached, remaining_passes
from ..machines.roofline import Roofline, roofline_named
from ..passes.analysis.memory_profile import memory_profiles
from ..passes.analysis.program_costs import ProgramCost, Row, call_cost, program_costs
from ..passes.analysis.sizes import Sizes
from ..passes.manager import PassManager
from .diagnostics import add_effects_flag, parse_file, read_input, run_tool, write_output
from .memory_table import memory_as_dict, memory_table
from .opt import add_target_flag
from .plugins import load_plugin


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser(
        "inductile-cost", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("file", help="IR of any level, - for standard input")
    add_effects_flag(p)
    p.add_argument("--symbol", action="append", default=[], metavar="NAME=N", help="value of a symbol; else its hint")
    p.add_argument("--machine", help="bounds of another model: h200, cpu-core, or a .json file; else the target's")
    p.add_argument("--eager", action="store_true", help="do not lower: count each ATen op as a call")
    p.add_argument("--memory", action="store_true", help="memory over time, and what is alive at the peak, instead")
    p.add_argument(
        "--held", metavar="GLOB", help="with --memory: arguments that the caller keeps; else all not `given`"
    )
    add_target_flag(p)
    p.add_argument("--json", action="store_true", help="JSON instead of a table")
    return p


def eager_costs(module: ModuleOp, given: Mapping[str, int]) -> list[ProgramCost]:
    """The costs of functions at aten level when each op is called as it is."""
    found: list[ProgramCost] = []
    for function in module.ops:
        if not isinstance(function, func.FuncOp) or not function.body.blocks:
            continue
        sizes = Sizes.of_function(function, given)
        calls = [op for op in function.body.block.ops if isinstance(op, AtenOp | CallOp)]
        rows = [Row(op.target, "call", call_cost(op, sizes)) for op in calls]
        written = sum(row.cost.written for row in rows)
        found.append(ProgramCost(function.sym_name.data, rows, allocated=written))
    return found


def table(program: ProgramCost, machine: Roofline) -> str:
    """A program's costs for people."""
    lines = [f"{program.name} on {machine.name}", _line("", "times", "read", "written", "operations", "at least", "")]
    for row in program.rows:
        cost, seconds = row.cost, row.cost.seconds(machine)
        memory = cost.bytes / machine.bandwidth >= cost.operations / machine.operations
        figures = (_si(cost.read, "B"), _si(cost.written, "B"), _si(cost.operations, ""), _si(seconds, "s"))
        lines.append(_line(row.name, str(row.times), *figures, "memory" if memory else "arithmetic"))
    total = program.total
    figures = (_si(total.read, "B"), _si(total.written, "B"), _si(total.operations, ""))
    lines.append(
        _line("all", str(sum(r.times for r in program.rows)), *figures, _si(program.seconds(machine), "s"), "")
    )
    kept = f", kept between calls {_si(program.kept, 'B')}" if program.kept else ""
    lines.append(f"allocated {_si(program.allocated, 'B')}, at once at most {_si(program.peak, 'B')}{kept}")
    return "\n".join(lines) + "\n"


def _line(name: str, times: str, *figures: str) -> str:
    return f"  {name:48s} {times:>5s} " + " ".join(f"{figure:>11s}" for figure in figures)


def _si(value: float, unit: str) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "u")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}".rstrip()
    return f"{value / 1e-9:.3g} n{unit}" if value else f"0 {unit}".rstrip()


def as_dict(program: ProgramCost, machine: Roofline) -> dict[str, object]:
    """A program's costs for JSON; bytes, operations and seconds once each."""
    rows = [
        {
            "name": row.name, "kind": row.kind, "times": row.times, "read": row.cost.read, "written": row.cost.written,
            "operations": row.cost.operations, "seconds": row.cost.seconds(machine),
        }
        for row in program.rows
    ]  # fmt: skip
    return {
        "function": program.name, "machine": machine.name, "rows": rows, "allocated": program.allocated,
        "peak": program.peak, "kept": program.kept, "read": program.total.read, "written": program.total.written,
        "operations": program.total.operations, "seconds": program.seconds(machine),
    }  # fmt: skip


def _values(given: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in given:
        name, _, value = each.partition("=")
        if not value.isdigit():
            raise UserError(f"cannot read --symbol {each!r}", "write --symbol s0=1024")
        found[name] = int(value)
    return found


def _run(argv: Sequence[str] | None) -> int:
    args = build_parser().parse_args(argv)
    for plugin in args.load_pass_plugin:
        load_plugin(plugin)
    values = _values(args.symbol)
    machine = roofline_named(args.machine) if args.machine else None
    text, name = read_input(args.file)
    module = parse_file(new_context(), text, name, args.allow_effects)
    if args.eager and args.memory:
        raise UserError("--memory is that of a lowered program", "leave --eager out")
    passes = attached(args.target) if args.eager else remaining_passes(module, args.target)
    PassManager(passes).run(new_context(), module)
    programs = eager_costs(module, values) if args.eager else program_costs(module, values)
    machine = machine or Roofline.of(targets_of(module).main)
    if not programs:
        raise UserError(f"{name}: error: there is no function to cost", "give a func.func or a host.func")
    if args.memory:
        is_held = None if args.held is None else partial(fnmatch, pat=args.held)
        profiles = memory_profiles(module, values, is_held)
        as_json = json.dumps([memory_as_dict(p) for p in profiles], indent=2) + "\n" if args.json else ""
        write_output(None, as_json or "\n".join(map(memory_table, profiles)))
    elif args.json:
        write_output(None, json.dumps([as_dict(p, machine) for p in programs], indent=2) + "\n")
    else:
        write_output(None, "\n".join(table(p, machine) for p in programs))
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return run_tool(lambda: _run(argv))


if __name__ == "__main__":
    sys.exit(main())
