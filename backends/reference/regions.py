"""Calls of higher-order operators whose bodies are functions of the module, by their definition.

Loops run the body once a row or step and stack what it returns. A branch runs one body. Bodies are interpreted as
functions are: each run has symbols and values of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...dialects.aten import CallOp, Reference, TensorType
from ...passes.analysis.region_calls import Function, functions_by_name, runs_functions
from ..limits import STEPS_OF_RUN
from .binding import bind_symbols
from .errors import InputError
from .program import Program
from .tensors import mismatch, same_strides

Run = Callable[[Sequence[Any]], list[Any]]
Results = list[Any]


def module_of(op: Operation) -> ModuleOp | None:
    """The module that an op is in."""
    found: Operation | None = op
    while found is not None and not isinstance(found, ModuleOp):
        found = found.parent_op()
    return found


def region_call(program: Program, op: CallOp, value_of: Callable[[Any], Any]) -> Results | None:
    """The results of a call whose bodies are functions of the module; None for any other call.

    `value_of` gives the value of an argument of the call.
    """
    module = module_of(op) if op.target in _MEANINGS else None
    functions = {} if module is None else functions_by_name(module)
    if not runs_functions(op, functions):
        return None

    def body(name: str) -> Run:
        return lambda given: _run(program, functions[name], given)

    return _MEANINGS[op.target](*(body(a) if isinstance(a, Reference) else value_of(a) for a in op.args()))


def _run(program: Program, function: Function, given: Sequence[Any]) -> Results:
    """Interpret a function on values of the program that calls it, in the layouts that it declares."""
    declared = cast("Any", function.properties.get("symbols", function.attributes.get("symbols")))
    program.machine.count_steps(STEPS_OF_RUN)
    inner = program.enter(bind_symbols([symbol.data for symbol in getattr(declared, "data", ())], given))
    block = function.regions[0].block
    if len(block.args) != len(given):
        raise InputError(f"@{function.sym_name.data} takes {len(block.args)} values, {len(given)} are given")
    for argument, value in zip(block.args, given, strict=True):
        kind = argument.type
        if isinstance(kind, TensorType):
            dtype = program.machine.precision.stored(kind.element)
            problem = mismatch(value, inner.shape(kind), None, dtype, kind.device)
            if problem:
                raise InputError(f"argument {argument.index} of @{function.sym_name.data}, {kind}, {problem}")
            if not same_strides(value, inner.strides(kind)):
                value = inner.place(program.current or function, value, kind)
        inner.values[argument] = value
    return inner.run(block)


def _cond(predicate: Any, taken: Run, other: Run, operands: Sequence[Any]) -> Results:
    return _copies((taken if predicate else other)(operands))


def _invoke(body: Run, _: str, *operands: Any) -> Results:
    return _copies(body(operands))


def _steps(condition: Run, body: Run, carried: Sequence[Any], additional: Sequence[Any]) -> Iterator[Results]:
    """The carried values behind each run of a loop's body."""
    values = list(carried)
    while condition([*values, *additional])[0]:
        values = body([*values, *additional])
        yield values


def _while_loop(condition: Run, body: Run, carried: Sequence[Any], additional: Sequence[Any]) -> Results:
    return _copies([list(carried), *_steps(condition, body, carried, additional)][-1])


def _while_loop_stack(condition: Run, body: Run, carried: Sequence[Any], additional: Sequence[Any]) -> Results:
    steps = list(_steps(condition, body, carried, additional)) or [list(carried)]
    return [torch.stack(column) for column in zip(*steps, strict=True)]


def _scan(body: Run, init: Sequence[Any], xs: Sequence[torch.Tensor], additional: Sequence[Any]) -> Results:
    carry, rows = list(init), []
    for k in range(_length(xs)):
        results = body([*carry, *(x[k] for x in xs), *additional])
        carry = results[: len(init)]
        rows.append(results[len(init) :])
    return [*_copies(carry), *(torch.stack(column) for column in zip(*rows, strict=True))]


def _map(body: Run, xs: Sequence[torch.Tensor], additional: Sequence[Any]) -> Results:
    rows = [body([*(x[k] for x in xs), *additional]) for k in range(_length(xs))]
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def _associative_scan(body: Run, xs: Sequence[torch.Tensor], additional: Sequence[Any]) -> Results:
    rows = [[x[0] for x in xs]]
    for k in range(1, _length(xs)):
        rows.append(body([*rows[-1], *(x[k] for x in xs), *additional]))
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def _length(xs: Sequence[torch.Tensor]) -> int:
    """How many rows there are. InputError for none: what a body would return of a row is not known."""
    if not xs or not xs[0].ndim or not len(xs[0]) or any(len(x) != len(xs[0]) for x in xs):
        raise InputError(f"a loop over the rows of tensors of the sizes {[list(x.shape) for x in xs]}")
    return len(xs[0])


def _copies(values: Sequence[Any]) -> Results:
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in values]


_MEANINGS: dict[str, Callable[..., Results]] = {
    "higher_order::cond": _cond,
    "higher_order::invoke_subgraph": _invoke,
    "higher_order::while_loop": _while_loop,
    "higher_order::while_loop_stack_output": _while_loop_stack,
    "higher_order::scan": _scan,
    "higher_order::map_impl": _map,
    "higher_order::associative_scan": _associative_scan,
}
