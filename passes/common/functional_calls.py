"""Calls that functionalization wrapped: what the operator inside writes, and the call of it that writes there.

A wrapper returns what its operator returns, and behind that new values of the tensors that the operator writes, its
*bases*; at run time it copies each base before. Three forms reach a host program:

    higher_order::auto_functionalized_v2(@op, v = %v, _cache_base_index = 0, _all_bases = [%c]) {mutates = ["cache"]}
    higher_order::auto_functionalized(@op, v = %v, cache = %c) {mutates = ["cache"]}
    higher_order::triton_kernel_wrapper_functional(kernel_idx = 0, kwargs = {x = %c}, tensors_to_clone = ["x"], ...)

In the first an argument may be a view of its base, which names such as `_cache_slice_dim` describe. They count places
from where the storage of the base starts; `starts = [0]` says where the base itself lay when they were made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, NoneType, StringAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import host
from ...dialects.aten import MUTATES, STARTS, CallOp, Operator, TensorType
from ...dialects.sym import ZERO, Expr, MapAttr, SymAttr, as_expr
from ...records import dataclass

_FIRST = "higher_order::auto_functionalized"
_SECOND = "higher_order::auto_functionalized_v2"
_TRITON = "higher_order::triton_kernel_wrapper_functional"

Memory = Sequence[SSAValue]
"""For each base the tensor that is written: itself, or a copy of it."""
View = Callable[[Memory, Block, CallOp], SSAValue]
"""Makes an argument in front of a call."""


@dataclass
class FunctionalCall:
    """What is in a wrapper.

    target:    the operator inside
    bases:     the tensors that it writes, or views of which it writes
    outs:      the number of results in front of the new values of the bases
    named:     arguments that it gets as they are
    written:   how each of the others is made
    wrap:      the named arguments of the call from those of the operator
    """

    op: CallOp
    target: str
    bases: list[SSAValue]
    outs: int
    named: dict[str, Any]
    written: dict[str, Any] = field(default_factory=dict)
    wrap: Callable[[dict[str, Any]], dict[str, Any]] = dict

    @property
    def shown(self) -> str:
        """What people know the operator by."""
        return self.op.shown if self.op.target == _TRITON else self.target

    @property
    def values(self) -> Sequence[SSAValue]:
        """The new values of the bases."""
        return self.op.results[self.outs :]

    def write(self, memory: Memory) -> CallOp:
        """Put the call in front of the wrapper, on this memory for the bases. It has the results in front of them."""
        block, op = self.op.parent, self.op
        assert block is not None
        given = {name: _made(how, memory, block, op) for name, how in self.written.items()}
        written = [value for made in given.values() for value in (made if isinstance(made, tuple) else (made,))]
        types = [result.type for result in op.results[: self.outs]]
        if all(isinstance(type_, NoneType) for type_ in types):
            types = []
        tensors = [value for value in written if isinstance(value, SSAValue)]
        call = CallOp.of(self.target, (), self.wrap(self.named | given), types, op.location, writes=tensors)
        call.attributes.update((name, value) for name, value in op.attributes.items() if name not in (MUTATES, STARTS))
        block.insert_op_before(call, op)
        for old, new in zip(op.results, call.results, strict=False):
            new.name_hint = old.name_hint
        return call


def is_wrapper(op: object) -> bool:
    """Whether an op is a call that functionalization wrapped."""
    return isinstance(op, CallOp) and op.target in (_FIRST, _SECOND, _TRITON)


def functional_call(op: Operation) -> FunctionalCall | None:
    """What is in a wrapper; None where the operator writes nothing, or returns what it writes, and for a graph."""
    assert isinstance(op, CallOp)
    if op.target == _TRITON:
        return _of_triton(op)
    mutated = op.attributes.get(MUTATES)
    if not isinstance(mutated, ArrayAttr) or op.binds:
        return None
    names = [name.data for name in mutated.data if isinstance(name, StringAttr)]
    target, named = op.args()[0], op.kwargs()
    if not isinstance(target, Operator):
        return None
    return _of_first(op, target, named, names) if op.target == _FIRST else _of_second(op, target, named, names)


def _of_first(op: CallOp, target: str, named: dict[str, Any], names: Sequence[str]) -> FunctionalCall | None:
    """Each argument that is written is a base of its own; one that is None has a result too."""
    written = {name: named.pop(name) for name in names}
    bases = [value for given in written.values() for value in (given if isinstance(given, tuple) else (given,))]
    if not all(isinstance(base, SSAValue) for base in bases) or not bases:
        return None
    numbers = iter(range(len(bases)))
    call = FunctionalCall(op, target, bases, len(op.results) - len(bases), named)
    call.written = {
        name: tuple([_base(next(numbers)) for _ in given]) if isinstance(given, tuple) else _base(next(numbers))
        for name, given in written.items()
    }
    return call


def _of_second(op: CallOp, target: str, named: dict[str, Any], names: Sequence[str]) -> FunctionalCall | None:
    """Arguments are bases or views of them; several may be views of one."""
    bases = named.pop("_all_bases", ())
    if not isinstance(bases, tuple) or not all(isinstance(base, SSAValue) for base in bases) or not bases:
        return None
    given = op.attributes.get(STARTS)
    starts = given.data if isinstance(given, MapAttr) else (ZERO,) * len(bases)
    call = FunctionalCall(op, target, list(bases), len(op.results) - len(bases), named)
    for name in names:
        length = named.pop(f"_{name}_length", 0)
        if f"_{name}_base_index" in named:
            call.written[name] = _view(named, f"_{name}_", starts)
        elif length is None:
            call.written[name] = None
        else:
            call.written[name] = tuple([_view(named, f"_{name}_{number}_", starts) for number in range(length)])
    return call


def _of_triton(op: CallOp) -> FunctionalCall | None:
    named = op.kwargs()
    arguments, cloned = named.pop("kwargs"), named.pop("tensors_to_clone")
    names = [name for name in arguments if name in cloned]
    bases = [arguments[name] for name in names]
    if op.args() or len(bases) != len(op.results) or not bases:
        return None
    rest = {name: value for name, value in arguments.items() if name not in cloned}

    def wrap(given: dict[str, Any]) -> dict[str, Any]:
        return named | {"kwargs": {name: given[name] for name in arguments}}

    call = FunctionalCall(op, _TRITON.replace("functional", "mutation"), bases, 0, rest, wrap=wrap)
    call.written = {name: _base(number) for number, name in enumerate(names)}
    return call


def _made(how: Any, memory: Memory, block: Block, op: CallOp) -> Any:
    if isinstance(how, tuple):
        return tuple([_made(each, memory, block, op) for each in how])
    return None if how is None else how(memory, block, op)


def _base(number: int) -> View:
    return lambda memory, block, op: memory[number]


_FACTS = ("base_index", "alias", "size", "stride", "storage_offset", "slice_dim", "slice_start", "slice_end")


def _view(named: dict[str, Any], prefix: str, starts: Sequence[Expr]) -> View | None:
    """One argument of the second form; takes the names that describe it out of the others."""
    facts = {fact: named.pop(prefix + fact) for fact in _FACTS if prefix + fact in named}
    number = facts["base_index"]
    if number is None:
        return None
    if "storage_offset" not in facts and "slice_dim" not in facts:
        return _base(number)

    def view(memory: Memory, block: Block, op: CallOp) -> SSAValue:
        kind = memory[number].type
        assert isinstance(kind, TensorType)
        shape, strides, place = _window(kind, facts)
        type_ = TensorType.get(shape, kind.element, strides, kind.device)
        made = host.ViewOp.of(memory[number], SymAttr.of(place - starts[number]), type_, op.location)
        block.insert_op_before(made, op)
        return made.out

    return view


def _window(base: TensorType, facts: Mapping[str, Any]) -> tuple[tuple[Expr, ...], tuple[Expr, ...], Expr]:
    """Sizes and strides of a view, and its place in the storage of its base, in elements."""
    if "storage_offset" in facts:
        size, stride = (tuple(map(as_expr, facts[name])) for name in ("size", "stride"))
        return size, stride, as_expr(facts["storage_offset"])
    dim, start, end = facts["slice_dim"], as_expr(facts["slice_start"]), as_expr(facts["slice_end"])
    shape = (*base.shape[:dim], end - start, *base.shape[dim + 1 :])
    return shape, base.strides, start * base.strides[dim]
