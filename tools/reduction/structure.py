"""Strategies that drop functions, ops, results and arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    FloatAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects import host, kernel
from ...dialects.aten.types import TensorType
from ...dialects.loop import FusionOp, GenerateOp, yielded
from ...dialects.sym import SymbolAttr
from ...records import dataclass

Function = func.FuncOp | host.FuncOp


@dataclass(frozen=True)
class Sites:
    """A strategy made of a function that lists sites and one that rewrites a single one, False when it cannot."""

    name: str
    find: Callable[[ModuleOp], Iterable[object]]
    rewrite: Callable[[object], bool]

    def sites(self, module: ModuleOp) -> int:
        """How many sites a module has."""
        return sum(1 for _ in self.find(module))

    def apply(self, module: ModuleOp, first: int, last: int) -> ModuleOp | None:
        """Rewrite some of them in place; a site that cannot be is left."""
        chosen = list(self.find(module))[first:last]
        done = [self.rewrite(site) for site in chosen]
        return module if any(done) else None


def functions(module: ModuleOp) -> list[Function]:
    """The functions with a body that take and return tensors."""
    return [op for op in module.ops if isinstance(op, Function) and op.body.blocks]


def _top_level(module: ModuleOp) -> list[Operation]:
    return list(module.ops)


def _erase(op: object) -> bool:
    assert isinstance(op, Operation)
    op.detach()
    op.erase(safe_erase=False)
    return True


def removable_ops(module: ModuleOp) -> list[Operation]:
    """Ops that may go, last first: those without uses come before what they use."""
    inside = [op for op in module.walk() if not isinstance(op, ModuleOp | Function | kernel.FuncOp)]
    return [op for op in reversed(inside) if not op.has_trait(IsTerminator) and op.parent is not None]


def remove_for_operand(op: object) -> bool:
    """Remove an op; its results become values of the same types that it reads."""
    assert isinstance(op, Operation)
    return _remove(op, lambda result: next((v for v in values_read(op) if v.type == result.type), None))


def values_read(op: Operation) -> list[SSAValue]:
    """Operands of an op, and values from around that the ops inside of it use."""
    inside = set(op.walk())
    found: dict[SSAValue, None] = {}
    for inner in inside:
        for value in inner.operands:
            owner = value.owner
            maker = owner.parent_op() if isinstance(owner, Block) else owner
            if maker not in inside:
                found[value] = None
    return sorted(found, key=lambda v: (isinstance(v, BlockArgument), str(v.name_hint)))


def remove_for_argument(op: object) -> bool:
    """Remove an op; its results become new arguments of the function, inside of bodies simple constants."""
    assert isinstance(op, Operation)
    return _remove(op, lambda result: _new_source(op, result))


def _remove(op: Operation, find: Callable[[SSAValue], SSAValue | None]) -> bool:
    if op.parent is None:  # inside of an op that was removed
        return False
    new = [find(result) if result.first_use is not None else result for result in op.results]
    if any(value is None for value in new):
        return False
    for result, value in zip(op.results, new, strict=True):
        if value is not None and value is not result:
            result.replace_all_uses_with(value)
    return _erase(op)


def _new_source(op: Operation, result: SSAValue) -> SSAValue | None:
    if isinstance(result.type, TensorType | IndexType):
        function = op.parent_op()
        while function is not None and not isinstance(function, Function):
            function = function.parent_op()
        return None if function is None else _new_argument(function, result.type)
    constant = simplest_constant(result.type)
    block = op.parent
    if constant is None or isinstance(op, arith.ConstantOp) or block is None:
        return None
    block.insert_op_before(constant, op)
    return constant.results[0]


def _new_argument(function: Function, kind: Attribute) -> SSAValue:
    block = function.body.block
    argument = block.insert_arg(kind, len(block.args))
    refresh_type(function)
    return argument


def simplest_constant(kind: Attribute) -> arith.ConstantOp | None:
    """A constant 1 of a scalar type."""
    if isinstance(kind, IntegerType):
        return arith.ConstantOp(IntegerAttr(1, kind))
    return arith.ConstantOp(FloatAttr(1.0, kind)) if isinstance(kind, AnyFloat) else None


def refresh_type(function: Function) -> None:
    """Make a function's type that of its body."""
    block = function.body.block
    last = block.last_op
    assert last is not None
    kind = FunctionType.from_lists([a.type for a in block.args], [v.type for v in last.operands])
    function.properties["function_type"] = kind


def _terminators(module: ModuleOp) -> list[tuple[Operation, int]]:
    """(terminator, operand) of each value that a function returns, last first."""
    found: list[tuple[Operation, int]] = []
    for function in functions(module):
        last = function.body.block.last_op
        if last is not None:
            found += [(last, k) for k in reversed(range(len(last.operands)))]
    return found


def _drop_returned(site: object) -> bool:
    last, number = site  # pyright: ignore[reportGeneralTypeIssues]
    last.operands = [v for k, v in enumerate(last.operands) if k != number]
    function = last.parent_op()
    if isinstance(function, func.FuncOp) and function.res_attrs is not None:
        function.res_attrs = ArrayAttr([a for k, a in enumerate(function.res_attrs.data) if k != number])
    refresh_type(function)
    return True


def _read_instead(module: ModuleOp) -> list[tuple[Operation, int, int]]:
    """(terminator, operand, which value the producer of the operand reads) of each that may be returned instead."""
    sites: list[tuple[Operation, int, int]] = []
    for last, number in _terminators(module):
        owner = last.operands[number].owner
        if isinstance(owner, Operation):
            sites += [(last, number, k) for k in range(len(values_read(owner)))]
    return sites


def _return_what_is_read(site: object) -> bool:
    last, number, which = site  # pyright: ignore[reportGeneralTypeIssues]
    owner = last.operands[number].owner
    values = values_read(owner) if isinstance(owner, Operation) else []
    if which >= len(values) or isinstance(values[which], BlockArgument):
        return False
    last.operands = [values[which] if k == number else v for k, v in enumerate(last.operands)]
    refresh_type(last.parent_op())
    return True


def _unused_results(module: ModuleOp) -> list[tuple[Operation, int]]:
    """(op, result) of each unused result of an op with several, of which its body yields one for each."""
    nests = (op for op in module.walk() if isinstance(op, GenerateOp | FusionOp) and len(op.results) > 1)
    return [(op, k) for op in nests for k in reversed(range(len(op.results))) if op.results[k].first_use is None]


def _drop_result(site: object) -> bool:
    op, number = site  # pyright: ignore[reportGeneralTypeIssues]
    keep = [k for k in range(len(op.results)) if k != number]
    body = op.body
    last = body.block.last_op
    last.operands = [yielded(body)[k] for k in keep]
    new = type(op).create(
        operands=list(op.operands),
        result_types=[op.results[k].type for k in keep],
        properties=dict(op.properties),
        regions=[op.detach_region(region) for region in list(op.regions)],
        location=op.location,
    )
    op.parent.insert_op_before(new, op)
    for k, result in zip(keep, new.results, strict=True):
        op.results[k].replace_all_uses_with(result)
    return _erase(op)


def _unused_arguments(module: ModuleOp) -> list[SSAValue]:
    return [
        argument
        for function in functions(module)
        for argument in reversed(function.body.block.args)
        if argument.first_use is None
    ]


def _drop_argument(argument: object) -> bool:
    """Drop an argument; symbols that it carries come from another one of that size, or go when nothing needs them."""
    assert isinstance(argument, BlockArgument)
    block, number = argument.block, argument.index
    function = block.parent_op()
    assert isinstance(function, Function)
    declared = [s for s in symbols_of(function) if s.data.arg == number]
    others = [a for a in block.args if a is not argument]
    moved = {s: _carrier(s, others) for s in declared}
    block.erase_arg(argument, safe_erase=False)
    declared_now = [moved.get(symbol, symbol) for symbol in symbols_of(function)]
    set_symbols(function, [_without_argument(symbol, number) for symbol in declared_now if symbol is not None])
    refresh_type(function)
    return True


def _without_argument(symbol: SymbolAttr, number: int) -> SymbolAttr:
    """The declaration when argument `number` is gone."""
    arg = symbol.data.arg
    return symbol if arg is None or arg < number else SymbolAttr(replace(symbol.data, arg=arg - 1))


def _carrier(symbol: SymbolAttr, others: Sequence[BlockArgument]) -> SymbolAttr | None:
    """The declaration with another argument whose size is the symbol."""
    for argument in others:
        shape = argument.type.shape if isinstance(argument.type, TensorType) else ()
        for dim, size in enumerate(shape):
            if size is symbol.symbol:
                return SymbolAttr(replace(symbol.data, arg=argument.index, dim=dim, stride=None))
    return None


def symbols_of(function: Function) -> list[SymbolAttr]:
    """The symbols that a function declares."""
    declared = function.properties.get("symbols") or function.attributes.get("symbols")
    return [s for s in declared.data if isinstance(s, SymbolAttr)] if isinstance(declared, ArrayAttr) else []


def set_symbols(function: Function, symbols: Sequence[SymbolAttr]) -> None:
    """Declare symbols of a function anew."""
    where = function.properties if isinstance(function, host.FuncOp) else function.attributes
    where["symbols"] = ArrayAttr(symbols)
    if not symbols and isinstance(function, func.FuncOp):
        del where["symbols"]


DROP_FUNCTIONS = Sites("drop functions", _top_level, _erase)
DROP_RETURNED = Sites("drop returned values", _terminators, _drop_returned)
RETURN_EARLIER = Sites("return what the last op reads", _read_instead, _return_what_is_read)
REMOVE_FOR_OPERAND = Sites("replace ops by an operand", removable_ops, remove_for_operand)
REMOVE_FOR_ARGUMENT = Sites("replace ops by an argument", removable_ops, remove_for_argument)
DROP_RESULTS = Sites("drop unused results", _unused_results, _drop_result)
DROP_ARGUMENTS = Sites("drop unused arguments", _unused_arguments, _drop_argument)
