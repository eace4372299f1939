"""Calls of higher-order operators whose bodies are functions of the module.

    %y = aten.call "higher_order::cond"(%p, @true_graph_0, @false_graph_0, (%x)) : T
    func.func @true_graph_0(%x: T) -> T { ... }

Each operator says which of its arguments are bodies and what each body gets and returns. A reference that names no
function is an object that travels beside the module, and the call is then one of torch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import host
from ...dialects.aten import CallOp, Reference, TensorType
from ...dialects.aten.attributes import TupleAttr
from ...dialects.aten.values import Value
from ...records import dataclass
from .lifetimes import viewed
from .memory import roots

INVOKE = "higher_order::invoke_subgraph"
EAGER = "eager"
"""Attribute of a call: why its bodies are not functions of the module, and torch runs them op by op."""
Function: TypeAlias = FuncOp | host.FuncOp
Given: TypeAlias = Sequence[Value]


@dataclass(frozen=True)
class Row:
    """A slice of a tensor along its first dimension, as an argument of a body."""

    of: Value


@dataclass(frozen=True)
class Body:
    """A body of a call: what it is given, and how many values it returns (None: any number)."""

    name: str
    inputs: Given
    results: int | None


def _items(value: Value) -> list[Value]:
    return list(value) if isinstance(value, tuple | list) else []


def _rows(value: Value) -> list[Value]:
    return [Row(item) for item in _items(value)]


def _cond(args: Given, results: int) -> list[Body]:
    _, taken, other, operands = args
    return [Body(str(each), _items(operands), results) for each in (taken, other)]


def _while_loop(args: Given, results: int) -> list[Body]:
    condition, body, carried, additional = args
    inputs = [*_items(carried), *_items(additional)]
    return [Body(str(condition), inputs, 1), Body(str(body), inputs, len(_items(carried)))]


def _scan(args: Given, results: int) -> list[Body]:
    body, init, xs, additional = args
    return [Body(str(body), [*_items(init), *_rows(xs), *_items(additional)], results)]


def _map(args: Given, results: int) -> list[Body]:
    body, xs, additional = args
    return [Body(str(body), [*_rows(xs), *_items(additional)], results)]


def _associative_scan(args: Given, results: int) -> list[Body]:
    body, xs, additional = args
    return [Body(str(body), [*_rows(xs), *_rows(xs), *_items(additional)], results)]


def _invoke(args: Given, results: int) -> list[Body]:
    return [Body(str(args[0]), args[2:], results)]


#: operator -> positions of its bodies, number of its arguments (None: any), what the bodies are given
_KNOWN: dict[str, tuple[tuple[int, ...], int | None, Callable[[Given, int], list[Body]]]] = {
    "higher_order::cond": ((1, 2), 4, _cond),
    "higher_order::while_loop": ((0, 1), 4, _while_loop),
    "higher_order::while_loop_stack_output": ((0, 1), 4, _while_loop),
    "higher_order::scan": ((0,), 4, _scan),
    "higher_order::map_impl": ((0,), 3, _map),
    "higher_order::associative_scan": ((0,), 3, _associative_scan),
    INVOKE: ((0,), None, _invoke),
}

_OVER_ROWS = frozenset({"higher_order::scan", "higher_order::map_impl", "higher_order::associative_scan"})


def body_positions(target: str) -> tuple[int, ...]:
    """Which arguments of an operator are bodies; none for an operator that is not known."""
    return _KNOWN[target][0] if target in _KNOWN else ()


def is_usual_call(target: str, args: Sequence[object], kwargs: Mapping[str, object]) -> bool:
    """Whether a call of a known operator has its usual arguments. Others say, as one, which of them bodies write."""
    count = _KNOWN[target][1]
    return not kwargs and (len(args) == count if count is not None else len(args) > max(_KNOWN[target][0]))


def bodies_of(op: CallOp) -> list[Body]:
    """The bodies of a call, if it is one of a known operator with references where bodies stand."""
    known = _KNOWN.get(op.target)
    if known is None:
        return []
    positions, _, describe = known
    args = op.args()
    if not is_usual_call(op.target, args, op.named.data):
        return []
    if not all(isinstance(args[k], Reference) for k in positions):
        return []
    return describe(args, len(op.results))


def runs_functions(op: CallOp, functions: Mapping[str, Function]) -> bool:
    """Whether all bodies of a call are functions of its module."""
    bodies = bodies_of(op)
    return bool(bodies) and all(body.name in functions for body in bodies)


def functions_by_name(module: ModuleOp) -> dict[str, Function]:
    """The functions of a module that have a body, of both levels."""
    found: dict[str, Function] = {}
    for op in module.ops:
        if isinstance(op, Function) and op.regions[0].blocks:
            found[op.sym_name.data] = op
    return found


def referenced(op: Operation) -> set[str]:
    """The names that the arguments of an `aten.call` refer to."""
    names: set[str] = set()
    waiting = [op.properties.get("positional"), op.properties.get("named")]
    while waiting:
        each = waiting.pop()
        if isinstance(each, SymbolRefAttr):
            names.add(each.root_reference.data)
        elif isinstance(each, TupleAttr):
            waiting.append(each.data)
        elif isinstance(each, ArrayAttr):
            waiting += each.data
        elif isinstance(each, DictionaryAttr):
            waiting += each.data.values()
    return names


def region_problem(op: CallOp, functions: Mapping[str, Function]) -> str | None:
    """What is wrong with the bodies of a call: that some are missing, or do not take or return what it says."""
    bodies = bodies_of(op)
    missing = [body.name for body in bodies if body.name not in functions]
    if not bodies or len(missing) == len(bodies):
        return None  # one of torch's
    if missing:
        return f"calls @{missing[0]}, and there is no such function"
    if op.target in _OVER_ROWS and not any(isinstance(each, Row) for each in bodies[0].inputs):
        return "loops over the rows of nothing"
    for body in bodies:
        taken, returned = _signature(functions[body.name])
        if len(taken) != len(body.inputs):
            return f"gives {len(body.inputs)} values to @{body.name}, which takes {len(taken)}"
        for number, (value, wanted) in enumerate(zip(body.inputs, taken, strict=True)):
            if not _fits(value, wanted):
                return f"argument {number} of @{body.name} is {wanted}, and {_described(value)} is given"
        if body.results is not None and len(returned) != body.results:
            return f"takes {body.results} results of @{body.name}, which returns {len(returned)}"
        if _returns_view(functions[body.name]):
            return f"@{body.name} returns a view of an argument or of another result: return a copy"
    return None


def _returns_view(function: Function) -> bool:
    """Whether a function returns a view of an argument, or of what it returns too. It may return what it is given."""
    block = function.regions[0].block
    last = block.last_op
    made = dict.fromkeys(value for value in (() if last is None else last.operands) if value.owner is not block)
    taken: set[SSAValue] = set(block.args)
    for value in made:
        found = set(_memory_of(value))
        if found & taken:
            return True
        taken |= found
    return False


def _memory_of(value: SSAValue) -> Sequence[SSAValue]:
    """The values in whose memory a value may lie, on each level."""
    return roots(viewed(value))


def _signature(function: Function) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
    types = function.function_type
    return types.inputs.data, types.outputs.data


def _fits(value: Value | Row, wanted: Attribute) -> bool:
    dropped = isinstance(value, Row)
    inner = value.of if isinstance(value, Row) else value
    kind = inner.type if isinstance(inner, SSAValue) else IndexType()
    if not isinstance(kind, TensorType) or not isinstance(wanted, TensorType):
        return not dropped and kind == wanted
    sizes = kind.shape[1:] if dropped else kind.shape
    if (dropped and not kind.shape) or len(sizes) != len(wanted.shape):
        return False
    pairs = ((a.as_int(), b.as_int()) for a, b in zip(sizes, wanted.shape, strict=True))
    known = all(a is None or b is None or a == b for a, b in pairs)
    return known and kind.element == wanted.element and kind.device == wanted.device


def _described(value: Value | Row) -> str:
    if isinstance(value, Row):
        return f"a row of {_described(value.of)}"
    return str(value.type) if isinstance(value, SSAValue) else repr(value)
