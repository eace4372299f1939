"""ATen ops and calls at every level, through `torch.ops` on real tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.aten import (
    MUTATES,
    Argument,
    AtenOp,
    CallOp,
    Device,
    Layout,
    MemoryFormat,
    Operator,
    Reference,
    TensorType,
    Tuple,
)
from ...dialects.aten.schema import REQUIRED
from ...dialects.aten.unread import reads_elements
from ...dialects.sym import Expr
from ...errors import program_raises
from ...lowering.fx_targets import resolve
from ..limits import bounded
from .errors import InterpretationError, describe
from .precision import WIDER, actual_device, torch_dtype
from .program import Handlers, Program
from .regions import region_call
from .scalar_arguments import limits, rounded

#: ops that convert because the program says so: their results are rounded also when wide
CASTS = frozenset({"aten._to_copy", "aten.to.dtype", "prims::convert_element_type"})

#: ops that read the bits of floats, which are those of the very format also when wide
FORMAT_BOUND = frozenset({"aten.view.dtype", "aten.nextafter", "prims::view_element_type"})

#: namespaces whose ops compute in float64 when they are given float64
_GENERIC = ("aten", "prims", "operator")


class _Arguments:
    """Turns IR values into what torch takes."""

    def __init__(self, program: Program, narrow: bool, written: Sequence[SSAValue] = ()) -> None:
        self.program = program
        self.narrow = narrow
        self.written = written
        self.undefined: Sequence[SSAValue] = ()
        """Operands that need not hold anything."""
        self._apart: list[tuple[torch.Tensor, torch.Tensor]] = []
        """Memory of operands that are written, and what was given instead."""

    def write_back(self) -> None:
        """Bring what was written to narrower memory to where it belongs."""
        for memory, given in self._apart:
            memory.copy_(given)

    def value(self, value: Any, is_read: bool = True) -> Any:
        """A tensor, number, dtype, ... for an argument's value."""
        if isinstance(value, SSAValue):
            return self._operand(value, is_read)
        if isinstance(value, Expr):
            return self.program.size(value)
        if isinstance(value, tuple | list):
            items = [self.value(item, is_read) for item in value]
            return tuple(items) if isinstance(value, Tuple) else items
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, Attribute):
            return torch_dtype(value) if self.narrow else self.program.machine.precision.stored(value)
        if isinstance(value, Device):
            return actual_device(value)
        if isinstance(value, Layout | MemoryFormat):
            return getattr(torch, value)
        if isinstance(value, Operator):
            return resolve(value)
        return self._reference(value) if isinstance(value, Reference) else value

    def _reference(self, name: str) -> Any:
        if name not in self.program.references:
            raise InterpretationError(f"nothing is given for the reference @{name}")
        return self.program.references[name]

    def _operand(self, value: SSAValue, is_read: bool) -> Any:
        if not isinstance(value.type, TensorType):
            return self.program.result(value)
        is_read = is_read and not any(value is each for each in self.undefined)
        found = self.program.tensor(value) if is_read else self.program.target(value)
        given = found.to(torch_dtype(value.type.element)) if self.narrow else found
        if given is not found and any(value is each for each in self.written):
            self._apart.append((found, given))
        return given


@contextmanager
def _default_dtype(wide: bool) -> Iterator[None]:
    """Ops that make floats of nothing, or of integers, make float64 when wide."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if wide else before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _flatten(result: Any) -> list[Any]:
    if isinstance(result, dict):  # of a user's Triton kernel: what it wrote, by the names of its arguments
        result = tuple(result.values())
    if isinstance(result, tuple | list):
        return [leaf for item in result for leaf in _flatten(item)]
    return [result]


def _invoke(program: Program, op: AtenOp | CallOp, narrow: bool) -> list[Any]:
    arguments = _Arguments(program, narrow, op.written)
    if isinstance(op, CallOp):
        arguments.undefined = _copied(op)
        function, positional = resolve(op.target), [arguments.value(a) for a in op.args()]
        named = {key: arguments.value(a) for key, a in op.kwargs().items()}
    else:
        function, positional = resolve(op.target.replace(".", "::", 1)), []
        named = {a.name: arguments.value(op.arg(a.name), reads_elements(op, a)) for a in _spelled(op)}
        place, tensor = named.get("storage_offset"), next(iter(named.values()), None)
        if place is not None and isinstance(tensor, torch.Tensor):  # counted from where the program's memory begins
            named["storage_offset"] = place + program.origin(tensor)
    wide = program.machine.precision.wide and not narrow
    if wide and isinstance(op, AtenOp):
        floats = [a.name for a in _spelled(op) if a.kind == "scalar" and isinstance(named[a.name], float)]
        named.update({name: rounded(op, name, named[name]) for name in floats})
        named.update({name: limit for name, limit in limits(op).items() if named.get(name) is None})
    if wide and "half_to_float" in named:
        named["half_to_float"] = False  # there is no half to convert
    with _default_dtype(wide):
        results = _flatten(bounded(function)(*positional, **named))
    arguments.write_back()
    return results


def _copied(op: CallOp) -> list[SSAValue]:
    """What a call writes, and of one that functionalization wrapped the tensors of which it writes copies."""
    kwargs = op.kwargs()
    given = kwargs.get("kwargs")
    copied: list[object] = list(op.written)
    if isinstance(given, dict):  # a user's Triton kernel
        copied += [given.get(name) for name in kwargs.get("tensors_to_clone", ())]
    if isinstance(mutated := op.attributes.get(MUTATES), ArrayAttr):
        copied += [kwargs.get(name.data) for name in mutated if isinstance(name, StringAttr)]
        copied += kwargs.get("_all_bases", ())
    flat = [each for item in copied for each in (item if isinstance(item, tuple | list) else (item,))]
    return [each for each in flat if isinstance(each, SSAValue)]


def _spelled(op: AtenOp) -> list[Argument]:
    """Arguments that the op gives, without those that have their default."""
    return [a for a in op.schema.arguments if a.is_tensor or a.name in op.properties or a.default is REQUIRED]


def call(program: Program, op: AtenOp | CallOp) -> None:
    """Run an ATen op or a call of another operator."""
    if isinstance(op, AtenOp) and op.target == "aten.copy_":
        return _copy(program, op)
    if isinstance(op, CallOp):
        results = region_call(program, op, _Arguments(program, narrow=False).value)
        if results is not None:
            return program.receive(op, results, op.binds, writes=False)
    precision = program.machine.precision
    foreign = isinstance(op, CallOp) and op.target.partition("::")[0] not in _GENERIC
    narrow = precision.wide and (foreign or op.target in FORMAT_BOUND)
    try:
        results = _invoke(program, op, narrow)
    except (NotImplementedError, RuntimeError) as error:
        # Some kernels exist for narrow floats only; all else is the program's own error.
        if not precision.wide or narrow or "not implemented for 'Double'" not in str(error):
            raise
        results = _invoke(program, op, narrow=True)
    if precision.wide and op.target in CASTS:
        results = _rounded(op, results)
    program.receive(op, _kept(op, results), op.binds, bool(op.written))
    for value in op.written:
        program.wrote(value)


def _kept(op: Operation, results: Sequence[Any]) -> list[Any]:
    """Results that the op has; an op without results returns None or what is not wanted."""
    if not op.results and results == [None]:
        return []
    return list(results)


def _rounded(op: Operation, results: Sequence[Any]) -> list[Any]:
    """Results rounded to the elements of the result types, in the dtypes they have when wide."""
    rounded: list[Any] = []
    for out, value in zip(op.results, results, strict=True):
        assert isinstance(out.type, TensorType)
        dtype = torch_dtype(out.type.element)
        rounded.append(value.to(dtype).to(WIDER.get(dtype, dtype)))
    return rounded


def _copy(program: Program, op: AtenOp) -> None:
    """`aten.copy_`: writes a graph input, whose memory may already hold the value."""
    target, source, kind = op.operands[0], program.tensor(op.operands[1]), op.operands[0].type
    if not isinstance(kind, TensorType):
        raise InterpretationError(f"{describe(op)}: writes {kind}")
    with program_raises():
        program.target(target).copy_(source.to(torch_dtype(kind.element)))
    program.wrote(target)
    if op.results:
        program.receive(op, [program.target(target)], (), writes=True)


HANDLERS: Handlers = {AtenOp: call, CallOp: call}
