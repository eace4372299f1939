"""`run_module`: the entry of the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Attribute, Block

from ...dialects import host
from ...dialects.aten.types import TensorType
from ...dialects.sym import SymbolAttr
from ...lowering.fx_private import without_modes
from ...passes.analysis.functions import called, kernels_of
from .. import limits
from . import aten, loop
from . import host as host_
from . import program as program_
from .binding import Border, bind_symbols, check_inputs
from .errors import InputError, InterpretationError, describe
from .frame import Machine
from .host import HostProgram
from .precision import Precision, torch_dtype
from .program import Handlers, Program

Function = func.FuncOp | host.FuncOp


def functions(module: ModuleOp) -> dict[str, Function]:
    """The functions of a module that can be run, by name: `func.func` and `host.func` with a body."""
    found: dict[str, Function] = {}
    for op in module.body.block.ops:
        if isinstance(op, Function) and op.body.blocks:
            found[op.sym_name.data] = op
    return found


def entries(module: ModuleOp) -> dict[str, Function]:
    """The functions of a module that can be run and that no other one calls, by name."""
    inner = called(module)
    return {name: function for name, function in functions(module).items() if name not in inner}


def find_function(module: ModuleOp, name: str | None) -> Function:
    """The named function, or the only one that no other calls. Raises InputError when there is none or several."""
    found = functions(module)
    outer = entries(module)
    if name is None and len(outer) == 1:
        return next(iter(outer.values()))
    if name is None or name not in found:
        names = ", ".join(f"@{n}" for n in found) or "none"
        wanted = "one function" if name is None else f"@{name}"
        raise InputError(f"the module does not have {wanted} to run", f"functions are: {names}")
    return found[name]


def declarations(function: Function) -> list[SymbolAttr]:
    """The symbols that a function declares."""
    if isinstance(function, host.FuncOp):
        return list(function.symbols.data)
    declared = function.attributes.get("symbols")
    return [s for s in declared.data if isinstance(s, SymbolAttr)] if isinstance(declared, ArrayAttr) else []


def run_module(
    module: ModuleOp,
    inputs: Sequence[torch.Tensor | int],
    function: str | None = None,
    *,
    check_bounds: bool = True,
    wide: bool = False,
    strict: bool = True,
    references: Mapping[str, Any] | None = None,
) -> list[Any]:
    """Interpret a function of any level on tensors and ints, and return its results.

    Inputs are mutated as the program says. Results are tensors with the strides of the result types, and Python
    numbers. `check_bounds` reports accesses outside of tensors and buffers, `strict` reads of memory that nothing
    wrote. `wide` computes f16, bf16 and f32 in float64, rounding only where the program casts and in results.
    `references` are the graphs and objects that calls name.

    Raises InputError for inputs that do not fit, InterpretationError for a program that has no meaning, and what
    the program itself raises.
    """
    with without_modes():
        return _run(
            find_function(module, function),
            module,
            inputs,
            Machine(Precision(wide), check_bounds, strict, limits.steps_of_files()),
            references or {},
        )


def check_arguments(module: ModuleOp, inputs: Sequence[torch.Tensor | int]) -> None:
    """Raise InputError unless the inputs fit the one function that a module has to run."""
    chosen = find_function(module, None)
    symbols = bind_symbols([s.data for s in declarations(chosen)], inputs)
    check_inputs([a.type for a in chosen.body.blocks[0].args], inputs, symbols)


def _run(
    chosen: Function,
    module: ModuleOp,
    inputs: Sequence[torch.Tensor | int],
    machine: Machine,
    references: Mapping[str, Any],
) -> list[Any]:
    block = chosen.body.blocks[0]
    symbols = bind_symbols([s.data for s in declarations(chosen)], inputs)
    check_inputs([a.type for a in block.args], inputs, symbols)
    program = _program(module, chosen, machine, symbols, references)
    if not machine.precision.wide:
        return _execute(program, block, inputs)
    border = Border()
    entered = [border.enter(v) if isinstance(v, torch.Tensor) else v for v in inputs]
    results = _execute(program, block, entered)
    border.write_back()
    return [_leave(border, v, kind) for v, kind in zip(results, _result_types(chosen), strict=True)]


def _program(
    module: ModuleOp,
    function: Function,
    machine: Machine,
    symbols: dict[str, int],
    references: Mapping[str, Any],
) -> Program:
    if not isinstance(function, host.FuncOp):
        return Program(machine, HANDLERS, symbols, references=references)
    kernels = kernels_of(module)
    return HostProgram(machine, HANDLERS, symbols, references=references, kernels=kernels)


def _call(program: Program, op: func.CallOp | host.CallOp) -> None:
    """Run `func.call` or `host.call`: the callee has symbols and values of its own."""
    block = op.parent
    module = block.parent_op() if block is not None else None
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    callee = functions(module).get(op.callee.root_reference.data) if module is not None else None
    if callee is None:
        raise InterpretationError(f"{describe(op)}: there is no such function")
    inputs = [program.tensor(v) if isinstance(v.type, TensorType) else program.values[v] for v in op.operands]
    symbols = bind_symbols([s.data for s in declarations(callee)], inputs)
    inner = program.enter(symbols)
    body = callee.body.blocks[0]
    inner.values.update(zip(body.args, inputs, strict=True))
    program.receive(op, inner.run(body), (), writes=False)


CALLS: Handlers = {func.CallOp: _call, host.CallOp: _call}
HANDLERS: Handlers = {**program_.HANDLERS, **aten.HANDLERS, **loop.HANDLERS, **host_.HANDLERS, **CALLS}


def _execute(program: Program, block: Block, inputs: Sequence[Any]) -> list[Any]:
    program.values.update(zip(block.args, inputs, strict=True))
    with torch.no_grad():
        return program.run(block)


def _leave(border: Border, value: Any, kind: Attribute) -> Any:
    return border.leave(value, torch_dtype(kind.element)) if isinstance(kind, TensorType) else value


def _result_types(function: Function) -> Sequence[Attribute]:
    return function.function_type.outputs.data
