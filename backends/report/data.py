"""What the report shows of a module: texts with remarks on their lines, graphs, kernels with their code and cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects import host, kernel
from ...dialects.aten import AtenOp, CallOp
from ...dialects.machine import targets_of
from ...machines import GpuTarget, Target, target_named
from ...machines.roofline import Roofline
from ...passes.analysis.functions import kernels_of
from ...passes.analysis.launches import written_by
from ...passes.analysis.program_costs import Cost, program_costs
from ...passes.kernel.scheduled import family_of
from ...passes.printing import module_text, text_and_lines
from ...passes.remarks import Remark
from .lines import LineTable
from .locations import Place, Places
from .recordings import parts_block

Json = dict[str, Any]


def text_block(module: ModuleOp, remarks: Sequence[Remark], places: Places, table: LineTable) -> Json:
    """The module's lines, the first place of the op on each, and the remarks, on a line where the op still stands."""
    text, lines = text_and_lines(module)
    split = text.split("\n")
    at: list[Place | None] = [None] * len(split)
    for op, (first, _) in lines.items():
        found = places.of(op)
        if found and at[first] is None:
            at[first] = found[0]
    return {**table.block(split, at), "remarks": [remark_block(remark, lines) for remark in remarks]}


def remark_block(remark: Remark, lines: Mapping[Operation, tuple[int, int]]) -> Json:
    """A remark, with the line of the op that it is about where it has one."""
    subject = remark.subject() if remark.subject is not None else None
    where = lines.get(subject) if subject is not None else None
    return {
        "kind": remark.kind, "pass": remark.pass_name, "op": remark.op, "location": remark.location,
        "reason": remark.reason, "suggestion": remark.suggestion,
        "figures": {name: str(value) for name, value in remark.figures.items()},
        "line": None if where is None else where[0],
    }  # fmt: skip


def graph_block(module: ModuleOp, places: Places) -> list[Json]:
    """The ops of each function and which of them feed which: nodes with label, kind, type, inputs and places."""
    functions = [op for op in module.ops if isinstance(op, func.FuncOp | host.FuncOp) and op.body.blocks]
    kernels = kernels_of(module)
    return [{"name": f.sym_name.data, "nodes": _nodes(f.body.blocks[0], kernels, places)} for f in functions]


def _nodes(block: Block, kernels: Mapping[str, kernel.FuncOp], places: Places) -> list[Json]:
    nodes: list[Json] = []
    makers: dict[SSAValue, int] = {}

    def add(label: str, kind: str, inputs: Sequence[SSAValue], made: Sequence[SSAValue], op: Operation | None) -> None:
        number = len(nodes)
        feeding = sorted({makers[value] for value in inputs if value in makers})
        shown = str(made[0].type).removeprefix("!aten.tensor") if made else ""
        where = places.of(op) if op is not None else []
        nodes.append({"label": label, "kind": kind, "type": shown, "inputs": feeding, "at": where})
        makers.update(dict.fromkeys(made, number))

    for argument, name in zip(block.args, argument_names(block), strict=True):
        if argument.first_use is not None:
            add(name, "argument", (), (argument,), None)
    for op in block.ops:
        if isinstance(op, host.FreeOp | host.EmptyOp):
            continue
        if isinstance(op, host.LaunchOp):
            add(
                op.kernel.root_reference.data,
                "kernel",
                op.operands,
                written_by(op, kernels.get(op.kernel.root_reference.data)),
                op,
            )
        elif op.has_trait(IsTerminator):
            add("return", "return", op.operands, (), op)
        else:
            inside = [value for inner in op.walk() for value in inner.operands] if op.regions else op.operands
            is_view = isinstance(op, host.ViewOp) or (isinstance(op, AtenOp) and op.schema.is_view)
            add(op.name, "view" if is_view else "op", inside, (*op.results, *_overwritten(op)), op)
    return nodes


def argument_names(block: Block) -> list[str]:
    """The arguments of a function as its text names them: hints that repeat have numbers."""
    seen: dict[str, int] = {}
    names: list[str] = []
    for argument in block.args:
        hint = argument.name_hint
        if hint is None:
            names.append(f"%{argument.index}")
            continue
        names.append(f"%{hint}_{seen[hint]}" if hint in seen else f"%{hint}")
        seen[hint] = seen.get(hint, 0) + 1
    return names


def _overwritten(op: Operation) -> list[SSAValue]:
    if isinstance(op, host.CopyOp):
        return [op.target]
    return [op.operands[0]] if op.name == "aten.copy_" else []


def program_block(module: ModuleOp, sources: Mapping[str, str], places: Places) -> Json:
    """Kernels with IR, code, places and cost; ATen calls, those of each cost apart; all sources; the roofline."""
    machine = Roofline.of(_target(module))
    costs: dict[str, Counter[Cost]] = {}
    for program in program_costs(module):
        for row in program.rows:
            costs.setdefault(row.name, Counter())[row.cost] += row.times
    kernels: list[Json] = []
    for function in module.ops:
        if isinstance(function, kernel.FuncOp):
            name = function.sym_name.data
            found = costs.pop(name, Counter())
            kernels.append({
                "name": name, "times": found.total(), "ir": module_text(function), "at": places.below(function),
                "code": kernel_code(name, sources), **_figures(_mean(found), machine),
            })  # fmt: skip
    places_of_calls = _places_of_calls(module, places)
    calls = [
        {"name": name, "times": times, "at": places_of_calls.get(name, []), **_figures(cost, machine)}
        for name, found in costs.items()
        for cost, times in found.items()
    ]
    ceiling = {"name": machine.name, "bandwidth": machine.bandwidth, "operations": machine.operations}
    parts = parts_block(module)
    return {"kernels": kernels, "calls": calls, "sources": dict(sources), "machine": ceiling, "parts": parts}


def compiled_kernels(module: ModuleOp) -> dict[str, dict[str, int]]:
    """What a compiler says of the kernels for a GPU; see `figures_of` of the Triton backend."""
    families = [family_of(each) for each in module.ops if isinstance(each, kernel.FuncOp)]
    if all(family is None or family.triton is None for family in families):
        return {}
    from ..triton.figures import figures_of  # imports torch

    return figures_of(module)


def _places_of_calls(module: ModuleOp, places: Places) -> dict[str, list[Place]]:
    """Op -> the places where ATen is called for it."""
    found: dict[str, set[Place]] = {}
    for function in module.ops:
        if isinstance(function, host.FuncOp):
            for op in function.body.block.ops:
                if isinstance(op, AtenOp | CallOp):
                    found.setdefault(op.target, set()).update(places.of(op))
    return {name: sorted(where) for name, where in found.items()}


def _mean(costs: Counter[Cost]) -> Cost:
    """The cost of one launch of a kernel, which its sizes decide; rounded down."""
    total = sum((cost * times for cost, times in costs.items()), Cost())
    times = max(costs.total(), 1)
    return Cost(total.read // times, total.written // times, total.operations // times)


def _figures(cost: Cost, machine: Roofline) -> Json:
    return {
        "read": cost.read, "written": cost.written, "operations": cost.operations, "seconds": cost.seconds(machine),
    }  # fmt: skip


def _target(module: ModuleOp) -> Target:
    """What most of the work is scheduled for: a GPU, if some kernel is."""
    names = [op.target.data for op in module.ops if isinstance(op, kernel.FuncOp) and op.target is not None]
    found = [target_named(name) for name in names]
    return next((each for each in found if isinstance(each, GpuTarget)), targets_of(module).main)


def kernel_code(name: str, sources: Mapping[str, str]) -> str:
    """The function of a kernel in the generated sources, with the comment above it; nothing when it is not found."""
    for text in sources.values():
        lines = text.split("\n")
        start = next((k for k, line in enumerate(lines) if re.match(rf"(extern .*|def )\b{name}\(", line)), None)
        if start is None:
            continue
        is_python = lines[start].startswith("def ")
        end = next((k for k in range(start + 1, len(lines)) if _ends(lines[k], is_python)), len(lines))
        while start and re.match(r"//|#|@", lines[start - 1]):
            start -= 1
        return "\n".join(lines[start : end if is_python else end + 1]).rstrip()
    return ""


def _ends(line: str, is_python: bool) -> bool:
    return bool(line) and not line[0].isspace() and line[0] != ")" if is_python else line == "}"
