"""Functions of a module, and what their symbols are known to be."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...dialects import kernel
from ...dialects.raw import ops_of
from ...dialects.sym import Ranges, SymbolAttr
from .region_calls import referenced

_NO_SYMBOLS: ArrayAttr[SymbolAttr] = ArrayAttr([])


def functions(module: ModuleOp) -> Iterator[tuple[FuncOp, Block]]:
    """The functions of a module that have a body, each with its one block."""
    for op in module.ops:
        if isinstance(op, FuncOp) and (block := op.body.blocks.first) is not None:
            yield op, block


def first_function(module: ModuleOp) -> FuncOp:
    """The function of a module that stands for one graph."""
    return next(op for op in module.ops if isinstance(op, FuncOp))


def kernels_of(module: ModuleOp) -> dict[str, kernel.FuncOp]:
    """The kernels of a module by name."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, kernel.FuncOp)}


def called(module: ModuleOp) -> set[str]:
    """Names of the functions, at any level, that another one calls."""
    return set().union(*_callees(module).values())


def bodies(module: ModuleOp) -> set[str]:
    """Names of the functions, at any level, that arguments of calls refer to: bodies of higher-order operators."""
    functions = [op for op in module.ops if op.name in ("func.func", "host.func")]
    ops = (op for function in functions for block in function.regions[0].blocks for op in ops_of(block))
    named = set().union(*(referenced(op) for op in ops if op.name == "aten.call"))
    return named & {cast(StringAttr, function.properties["sym_name"]).data for function in functions}


def reached(module: ModuleOp, name: str) -> set[str]:
    """The name of a function, at any level, and those of what it calls, directly or not."""
    callees = _callees(module)
    found: set[str] = set()
    waiting = {name}
    while waiting:
        found |= waiting
        waiting = set().union(*(callees.get(each, ()) for each in waiting)) - found
    return found


def _callees(module: ModuleOp) -> dict[str, set[str]]:
    """For each function with a body, at any level, the names of those that it calls."""
    names = {
        function: cast(StringAttr, function.properties["sym_name"]).data
        for function in module.ops
        if function.name in ("func.func", "host.func")
    }
    known = set(names.values())
    return {
        name: {
            callee
            for block in function.regions[0].blocks
            for op in ops_of(block)
            if op.name in _CALLS
            for callee in _called_by(op)
            if callee in known
        }
        for function, name in names.items()
    }


_CALLS = frozenset({"func.call", "host.call", "aten.call"})


def _called_by(op: Operation) -> Collection[str]:
    """The names that a call calls, or hands to an operator that calls them."""
    if op.name == "aten.call":
        return referenced(op)
    return (cast(SymbolRefAttr, op.properties["callee"]).root_reference.data,)


def call_cycle(module: ModuleOp) -> str | None:
    """The name of a function that calls itself, directly or through others; None where there is none."""
    callees = _callees(module)
    done: set[str] = set()

    def visit(name: str, around: frozenset[str]) -> str | None:
        if name in around:
            return name
        if name in done:
            return None
        found = next(filter(None, (visit(each, around | {name}) for each in sorted(callees[name]))), None)
        done.add(name)
        return found

    return next(filter(None, (visit(name, frozenset()) for name in callees)), None)


def calls_of(function: FuncOp) -> list[CallOp]:
    """The calls of a private function; nobody else calls a public one."""
    module = function.parent_op()
    if function.sym_visibility is None or not isinstance(module, ModuleOp):
        return []
    name = function.sym_name.data
    return [
        op
        for _, block in functions(module)
        for op in ops_of(block)
        if type(op) is CallOp and op.callee.root_reference.data == name
    ]


def elsewhere(value: SSAValue) -> Iterator[SSAValue]:
    """The values that a value is on the other side of calls: operands and arguments, returned values and results.

    What a declaration takes and gives has no other side.
    """
    owner = value.owner
    if isinstance(owner, Block):
        function = owner.parent_op()
        if isinstance(function, FuncOp):
            number = cast(BlockArgument, value).index
            yield from (call.operands[number] for call in calls_of(function))
    elif type(owner) is CallOp:
        block = _callee(owner).body.blocks.first
        if block is not None and block.last_op is not None:
            yield block.last_op.operands[cast(OpResult, value).index]
    for use in value.uses:
        user = use.operation
        if type(user) is CallOp:
            block = _callee(user).body.blocks.first
            if block is not None:
                yield block.args[use.index]
        elif type(user) is ReturnOp:
            yield from (call.results[use.index] for call in calls_of(cast(FuncOp, user.parent_op())))


def is_handed_in(value: SSAValue) -> bool:
    """Whether a value is an argument of a private function or a result of a call: another function makes it.

    What a kept function takes and gives lies in memory.
    """
    owner = value.owner
    if type(owner) is CallOp:
        return "kept" not in owner.attributes
    return isinstance(owner, Block) and _is_layer(owner.parent_op())


def is_handing_over(op: Operation) -> bool:
    """Whether an op gives its operands to another function: a call, or the end of a private function."""
    if type(op) is not ReturnOp:
        return type(op) is CallOp and "kept" not in op.attributes
    return _is_layer(op.parent_op())


def _is_layer(function: Operation | None) -> bool:
    """Whether something is a private function that runs in each call."""
    return isinstance(function, FuncOp) and function.sym_visibility is not None and "kept" not in function.attributes


def header_problem(function: FuncOp) -> str | None:
    """What is wrong with what a function says of itself and its arguments; None when nothing is."""
    visibility = function.sym_visibility
    if visibility is not None and visibility.data != "private":
        return f"is {visibility.data!r}: a function is private, or says nothing and is public"
    marks, types = function.arg_attrs, function.function_type.inputs.data
    if marks is not None and len(marks.data) != len(types):
        return f"{len(marks.data)} arguments have attributes, and it takes {len(types)}"
    return None


def _callee(call: CallOp) -> FuncOp:
    module = call.parent_op()
    while module is not None and type(module) is not ModuleOp:
        module = module.parent_op()
    name = cast(SymbolRefAttr, call.properties["callee"]).root_reference.data
    block = None if module is None else module.regions[0].first_block
    for op in ops_of(block) if block is not None else ():  # xDSL's look-up asks each for its traits
        if type(op) is FuncOp and cast(StringAttr, op.properties["sym_name"]).data == name:
            return op
    raise LookupError(f"there is no function @{name}")


def symbol_ranges(function: FuncOp) -> Ranges:
    """What the `symbols` attribute of a function says; passes over equal symbols share what was derived."""
    symbols = function.attributes.get("symbols", _NO_SYMBOLS)
    return _ranges(cast("ArrayAttr[SymbolAttr]", symbols))


@lru_cache(maxsize=16)
def _ranges(symbols: ArrayAttr[SymbolAttr]) -> Ranges:
    return Ranges.of_symbols(s.data for s in symbols.data)
