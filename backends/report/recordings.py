"""The parts of a program that a CUDA graph records, and what runs between them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...dialects import host
from ...dialects.aten import AtenOp, CallOp
from ...passes.analysis.functions import kernels_of
from ...passes.host._capturable import obstacles

Json = dict[str, Any]


def parts_block(module: ModuleOp) -> list[Json]:
    """The parts of the first program in order, empty where nothing is recorded by itself.

    A recorded part has a name and how often it launches or calls what; another one has its steps, each with the reason
    for which it cannot be recorded, which is empty where recording it would not pay.
    """
    functions = [op for op in module.ops if isinstance(op, host.FuncOp)]
    recorded = {each.sym_name.data: each for each in functions if each.recorded is not None}
    if not recorded:
        return []
    program = next(each for each in functions if each.recorded is None)
    reasons = {each.op: each.reason for each in obstacles(program, kernels_of(module))}
    parts: list[Json] = []
    for op in program.body.block.ops:
        name = _name(op)
        if isinstance(op, host.CallOp) and name in recorded:
            parts.append({"recorded": True, "name": name, "steps": _counted(recorded[name])})
        elif name:
            if not parts or parts[-1]["recorded"]:
                parts.append({"recorded": False, "steps": []})
            parts[-1]["steps"].append([name, reasons.get(op, "")])
    return parts


def _counted(function: host.FuncOp) -> list[tuple[str, int]]:
    """What a part launches and calls, and how often."""
    return list(Counter(name for op in function.body.block.ops if (name := _name(op))).items())


def _name(op: Operation) -> str:
    """What a step runs; empty for an op that only says where memory is."""
    if isinstance(op, host.LaunchOp):
        return op.kernel.root_reference.data
    if isinstance(op, host.CallOp):
        return op.callee.root_reference.data
    if isinstance(op, AtenOp | CallOp):
        return op.target
    return op.name if isinstance(op, host.CopyOp) else ""
