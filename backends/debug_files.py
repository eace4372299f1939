"""Files of torch's debug folder that need more than a text: a script that runs, and a picture."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ..dialects import host, kernel
from ..passes.analysis.functions import called, kernels_of
from ..passes.analysis.launches import written_by
from ..passes.printing import file_text

if TYPE_CHECKING:
    from .trace import Trace

_OUTPUT_CODE = '''"""What inductile made of the graph {title}. `python output_code.py` runs the IR beside it."""

from pathlib import Path

from inductile.tools.run import main

FOLDER = Path(__file__).parent
{texts}

if __name__ == "__main__":
    inputs = sorted(FOLDER.glob("inputs/*.npy"), key=lambda path: int(path.stem))
    given = [word for path in inputs for word in ("--input", str(path))] or ["--random", "0"]
    flags = ["--function", "{entry}", "--backend", "cpp", "--unchecked", "--allow-effects"]
    raise SystemExit(main([str(FOLDER / "{final}"), *flags, *given]))
'''


def write_output_code(trace: Trace, module: ModuleOp, sources: Mapping[str, str]) -> None:
    """Write `output_code.py`, which shows the program and its kernels and runs by itself; and the IR that it runs.

    Its inputs are those of the first call where they were saved, else random ones.
    """
    from .report.data import kernel_code

    final = "program.mlir"
    trace.write(final, file_text(module, locations=True))
    kernels = [each.sym_name.data for each in module.ops if isinstance(each, kernel.FuncOp)]
    shown = {"PROGRAM": sources.get("program.py", "")}
    shown |= {f"KERNEL_{number}": kernel_code(name, sources) for number, name in enumerate(kernels)}
    texts = "\n".join(f"{name} = {_literal(text)}" for name, text in shown.items())
    inner = called(module)
    names = [each.sym_name.data for each in module.ops if isinstance(each, host.FuncOp)]
    entry = next(name for name in names if name not in inner)
    trace.write("output_code.py", _OUTPUT_CODE.format(title=trace.folder.name, texts=texts, final=final, entry=entry))


def _literal(text: str) -> str:
    """A text as Python writes it, in lines where it can be."""
    return repr(text) if "'''" in text else f"r'''\n{text.rstrip()}\n'''"


def write_diagram(trace: Trace, module: ModuleOp) -> None:
    """Write `graph_diagram.dot`, and `graph_diagram.svg` where Graphviz is installed."""
    trace.write("graph_diagram.dot", dot_of(module))
    if shutil.which("dot") is not None:
        command = ["dot", "-Tsvg", "graph_diagram.dot", "-o", "graph_diagram.svg"]
        subprocess.run(command, cwd=trace.folder, check=False, capture_output=True)


def dot_of(module: ModuleOp) -> str:
    """The final program as a graph for Graphviz: launches and calls are boxes, values between them arrows."""
    from .report.data import argument_names

    kernels = kernels_of(module)
    lines = ["digraph {", "  node [shape=box, fontname=monospace]"]
    for function in [op for op in module.ops if isinstance(op, host.FuncOp)]:
        name = function.sym_name.data
        block = function.body.block
        makers: dict[SSAValue, str] = {}
        for argument, text in zip(block.args, argument_names(block), strict=True):
            if argument.first_use is not None:
                makers[argument] = f"{name}_arg{argument.index}"
                lines.append(f"  {makers[argument]} [label={json.dumps(text)}, shape=oval]")
        for number, op in enumerate(block.ops):
            if isinstance(op, host.FreeOp | host.EmptyOp):
                continue
            node = f"{name}_{number}"
            lines.append(f"  {node} [label={json.dumps(_label(op))}]")
            feeding = dict.fromkeys(makers[operand] for operand in op.operands if operand in makers)
            lines += [f"  {maker} -> {node}" for maker in feeding]
            makers.update(dict.fromkeys(_written(op, kernels), node))
    return "\n".join([*lines, "}"]) + "\n"


def _written(op: Operation, kernels: Mapping[str, kernel.FuncOp]) -> list[SSAValue]:
    """Values that readers behind an op get from it."""
    if isinstance(op, host.LaunchOp):
        return list(written_by(op, kernels.get(op.kernel.root_reference.data)))
    return [*op.results]


def _label(op: Operation) -> str:
    if isinstance(op, host.LaunchOp):
        return f"launch {op.kernel.root_reference.data}"
    return str(getattr(op, "target", getattr(op, "name", "")))
