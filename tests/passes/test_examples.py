"""The examples of the FileCheck tests compute the same before and after each of their passes, on numbers.

Those of the loop level have `loop/test_whole.py`. Kernels that nothing launches get a program that launches them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from math import prod
from pathlib import Path

import pytest

from inductile.dialects import kernel
from inductile.dialects.context import new_context
from inductile.dialects.reading import Reader

from ..tools.commands import run

FOLDER = Path(__file__).parents[1] / "filecheck" / "passes"
_RUN = re.compile(r"^// RUN: inductile-opt %s ([^|\n]*)", re.MULTILINE)
_SIZES = re.compile(r"tensor<((?:\d+x)+)[a-z]|buffer<\w+, (\d+)")
#: most elements of a tensor: the interpreter goes element by element
MOST = 1 << 13
#: flags that are about what is printed
_LEFT_OUT = ("--verify-each", "--remarks", "--split-input-file", "--print", "2>&1")
#: examples that have another answer by right
OTHERWISE = {
    "graph/fold_affine_narrow": "a weight of 16 bits is rounded once more when a channel's scale is folded into it",
    "kernel/bound_steps": "steps whose weights are 0 are left out, where 0 times infinity was NaN",
}


def _parts(path: Path) -> Iterator[str]:
    yield from re.split(r"^// -----.*$", path.read_text(), flags=re.MULTILINE)


def _largest(text: str) -> int:
    shapes = (tensor.removesuffix("x").split("x") if tensor else [buffer] for tensor, buffer in _SIZES.findall(text))
    return max((prod(map(int, shape)) for shape in shapes), default=0)


def _cases() -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for path in sorted(each for level in ("graph", "host", "kernel") for each in (FOLDER / level).glob("*.mlir")):
        name = f"{path.parent.name}/{path.stem}"
        if _RUN.search(path.read_text()) is None or name in OTHERWISE:
            continue
        found += [(name, number) for number, part in enumerate(_parts(path)) if 0 < _largest(part) <= MOST]
    return found


def _launched(text: str) -> str:
    """The text with a program for each kernel, where it has no function at all."""
    if "func.func" in text.replace("kernel.func", "") or "host.func" in text:
        return text
    if re.search(r"^builtin.module", text, re.MULTILINE):
        pytest.skip("kernels inside of a module of their own")
    module = Reader(new_context(), text).parse_module()
    on_gpu = re.search(r"--target (cuda|hip)", text) is not None
    return text + "".join(_program(op, on_gpu) for op in module.ops if isinstance(op, kernel.FuncOp))


def _program(function: kernel.FuncOp, on_gpu: bool) -> str:
    if function.target is not None:
        on_gpu = function.target.data.startswith(("cuda", "hip"))
    device = ', device = "cuda:0"' if on_gpu else ""
    if function.symbols.data:
        pytest.skip("a kernel with symbols, which nothing launches")
    arguments = [argument.type for argument in function.body.block.args]
    types = [f"!aten.tensor<{each.extent}x{each.element}{device}>" for each in arguments]  # pyright: ignore
    given = ", ".join(f"%b{k}: {each}" for k, each in enumerate(types))
    names = ", ".join(f"%b{k}" for k in range(len(types)))
    name = function.sym_name.data
    return f"host.func @run_{name}({given}) -> () {{\n  host.launch @{name}({names})\n  host.return\n}}\n"


@pytest.mark.rotates(3)
@pytest.mark.parametrize(("name", "number"), _cases())
def test_examples_compute_the_same(name: str, number: int, tmp_path: Path) -> None:
    path = FOLDER / f"{name}.mlir"
    command = _RUN.search(path.read_text())
    assert command is not None
    words = shlex.split(re.sub(r"--verify-each (ir|numerics)", "", command[1]))
    flags = [each for each in words if not each.startswith(_LEFT_OUT)]
    source = tmp_path / "example.mlir"
    text = _launched(list(_parts(path))[number])
    source.write_text(text)
    done = run("opt", source, *flags, "--verify-each=numerics", "-o", tmp_path / "out.mlir")
    if "no meaning to compare with" in done.err:  # it reads what was never written, or lacks a barrier
        pytest.skip(done.err)
    assert done.status == 0, done.err
