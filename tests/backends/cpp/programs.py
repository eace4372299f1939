"""What the tests of C++ and C share: IR text to a program that runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.parser import Parser

from inductile.backends.c.language import C
from inductile.backends.c_like.emit import KernelSource
from inductile.backends.c_like.emit import emit_kernel as emit_serial
from inductile.backends.c_like.library import compile_kernels
from inductile.backends.cpp.emit import emit_kernel
from inductile.backends.host import HostProgram, build
from inductile.dialects import kernel
from inductile.dialects.aten import torch_name
from inductile.dialects.context import new_context
from inductile.passes.kernel.assign_accumulators import KernelAssignAccumulators
from inductile.passes.kernel.place_locals import KernelPlaceLocals


class Target:
    """What kernels are for; the fixture `target` sets it."""

    name = "cpp"


def parse(text: str) -> ModuleOp:
    """A verified module for the target, in which reductions have their accumulators, and local buffers their places."""
    context = new_context()
    module = Parser(context, text).parse_module()
    module.verify()
    for function in module.ops:
        if isinstance(function, kernel.FuncOp):
            function.properties["target"] = StringAttr(Target.name)
    KernelAssignAccumulators().apply(context, module)
    KernelPlaceLocals().apply(context, module)
    module.verify()
    return module


def emit(text: str) -> KernelSource:
    """The source of the one kernel in a text."""
    (function,) = (op for op in parse(text).ops if isinstance(op, kernel.FuncOp))
    return emit_kernel(function) if Target.name == "cpp" else emit_serial(function, C)


def compile_together(texts: Iterable[str]) -> None:
    """Fill the compile cache with many kernels at once, which is much quicker than one by one."""
    compile_kernels([emit(text) for text in texts])


def with_host(text: str, outputs: int = 1, symbols: str = "") -> str:
    """The kernel text and a host function that launches it on flat tensors; the last `outputs` buffers are returned.

    Symbols of the kernel become integer arguments of the program, behind the tensors.
    """
    (function,) = (op for op in parse(text).ops if isinstance(op, kernel.FuncOp))
    types = [argument.type for argument in function.body.block.args]
    tensors = [f"!aten.tensor<({t.data.extent})x{t.data.element}>" for t in types]  # pyright: ignore
    names = [s.data for s in function.symbols]
    arguments = [f"%b{k}: {t}" for k, t in enumerate(tensors)] + [f"%{n}: index" for n in names]
    declared = ", ".join(f"#sym.symbol<{n}, arg = {len(tensors) + k}>" for k, n in enumerate(names))
    results = tensors[len(tensors) - outputs :]
    returned = [f"%b{k}" for k in range(len(tensors) - outputs, len(tensors))]
    buffers = [f"%b{k}" for k in range(len(tensors))]
    return f"""{text}
host.func @program({", ".join(arguments)}) -> ({", ".join(results)}) symbols [{declared}] {{
  host.launch @{function.sym_name.data}({", ".join(buffers)}) [{", ".join(names)}]
  host.return {", ".join(returned)}
}}"""


def run_kernel(text: str, *inputs: Any, outputs: int = 1) -> Any:
    """Run a kernel on tensors (flattened, written in place) and integers; its last buffers."""
    program = build(parse(with_host(text, outputs)))
    results = program([x.reshape(-1) if isinstance(x, torch.Tensor) else x for x in inputs])
    return results[0] if outputs == 1 else results


def program(text: str) -> HostProgram:
    """A program of a text that holds its host function."""
    return build(parse(text))


def element_text(dtype: torch.dtype) -> str:
    """How IR spells a dtype."""
    from inductile.dialects.aten import element_type

    element = element_type(str(dtype).removeprefix("torch."))
    assert torch_name(element)
    return str(element)
