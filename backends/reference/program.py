"""A function's run: values of its SSA names, its symbols, and what each op at the function's level does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

import torch
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects.aten import CHECKED, AtenOp, CallOp
from ...dialects.aten.binding import MEASURED, bindings
from ...dialects.aten.types import TensorType
from ...dialects.sym import Expr, SymIntOp
from ...errors import of_program
from ...records import dataclass
from .domain import Domain, value_of
from .errors import InterpretationError, LifetimeError, describe
from .frame import Frame, Machine
from .precision import tensor_device
from .tensors import mismatch, same_memory, same_strides, undefined

#: function of a program and an op, by the op's class
Handlers: TypeAlias = Mapping[type[Operation], Callable[[Any, Any], None]]


@dataclass(frozen=True)
class TakenOver:
    """Stands for a tensor whose memory a scatter `in_place` has taken over."""

    tensor: torch.Tensor
    by: Operation


@dataclass
class Program:
    """State of one run of one function."""

    machine: Machine
    handlers: Handlers
    """What each op at the function's level does. A class stands for its subclasses too; scalar ops need none."""
    symbols: dict[str, int]
    values: dict[SSAValue, Any] = field(default_factory=dict)
    """Tensors, and Python numbers for values of other types (0-d tensors for results of scalar ops)."""
    references: Mapping[str, Any] = field(default_factory=dict)
    """What `@name` in arguments of ATen calls stands for."""
    current: Operation | None = None
    """The op that runs, for messages."""

    def enter(self, symbols: dict[str, int]) -> Program:
        """The state of a run of a function that this one calls."""
        return Program(self.machine, self.handlers, symbols, references=self.references)

    def run(self, block: Block) -> list[Any]:
        """Execute a function's body; the values of its terminator's operands."""
        last_use = {v: op for op in block.ops for inner in op.walk() for v in inner.operands}
        dying: dict[Operation, list[SSAValue]] = {}
        for value, op in last_use.items():
            dying.setdefault(op, []).append(value)
        for op in block.ops:
            self.current = op
            if op.has_trait(IsTerminator):
                return [self.result(v) for v in op.operands]
            self.execute(op)
            for value in dying.get(op, ()):  # what no op reads any more need not stay in memory
                self.values.pop(value, None)
        raise InterpretationError("a function without a terminator")

    def execute(self, op: Operation) -> None:
        """Execute one op and bind its results."""
        self.current = op
        for kind in type(op).__mro__:
            handler = self.handlers.get(kind)
            if handler is not None:
                return handler(self, op)
        Frame(self.machine, self.domain(torch.device("cpu")), self.values).execute(op)

    def result(self, value: SSAValue) -> Any:
        """A value as the function returns it."""
        found = self.values[value]
        if isinstance(value.type, TensorType):
            return self.tensor(value)
        return found.item() if isinstance(found, torch.Tensor) else found

    def tensor(self, value: SSAValue) -> torch.Tensor:
        """The tensor that an op reads."""
        found = self.values[value]
        if isinstance(found, TakenOver):
            raise LifetimeError(f"{self.reader()}: reads memory that was taken over by {describe(found.by)}")
        return found

    def reader(self) -> str:
        """The op that runs, for messages."""
        return "the function" if self.current is None else describe(self.current)

    def target(self, value: SSAValue) -> torch.Tensor:
        """The tensor that an op writes without reading it."""
        found = self.values[value]
        return found.tensor if isinstance(found, TakenOver) else found

    def wrote(self, value: SSAValue) -> None:
        """Be told that an op has written a whole tensor."""

    def origin(self, tensor: torch.Tensor) -> int:
        """Where in its storage the memory of the program begins that a tensor lies in, in elements of the tensor."""
        return 0

    def take_over(self, value: SSAValue, op: Operation) -> None:
        """Forbid further reads of a value that `op` has overwritten. An argument may be read: it is then new."""
        if isinstance(value.owner, Operation):
            self.values[value] = TakenOver(self.tensor(value), op)

    def size(self, expr: Expr) -> int:
        """Value of an expression over the function's symbols. SymError for a symbol that has none."""
        return value_of(expr, self.symbols)

    def shape(self, kind: TensorType) -> tuple[int, ...]:
        """Sizes of a type."""
        return tuple(self.size(e) for e in kind.shape)

    def strides(self, kind: TensorType) -> tuple[int, ...]:
        """Strides of a type, in elements."""
        return tuple(self.size(e) for e in kind.strides)

    def device(self, value: SSAValue) -> torch.device:
        """Where a tensor value lives."""
        return tensor_device(value.type)

    def domain(self, device: torch.device) -> Domain:
        """The domain outside of all loops."""
        return Domain(device, dict(self.symbols))

    def undefined(self, kind: TensorType) -> torch.Tensor:
        """A tensor of a type, full of canaries."""
        dtype = self.machine.precision.stored(kind.element)
        return undefined(self.shape(kind), self.strides(kind), dtype, tensor_device(kind))

    def place(self, op: Operation, value: torch.Tensor, kind: TensorType) -> torch.Tensor:
        """A copy of `value` in the layout of a type."""
        shape, strides = self.shape(kind), self.strides(kind)
        if any(size > 1 and stride == 0 for size, stride in zip(shape, strides, strict=True)) and 0 not in shape:
            raise InterpretationError(f"{describe(op)}: the result's strides {strides} put elements on one place")
        out = self.undefined(kind)
        return out.copy_(value)

    def receive(self, op: Operation, results: Sequence[Any], binds: Sequence[str], writes: bool) -> None:
        """Bind what an ATen op returned to the results of `op`, and the symbols that it defines.

        A tensor in another layout than its type says is copied into that layout, which a view or a written argument
        must not need.
        """
        if len(results) != len(op.results):
            raise InterpretationError(f"{describe(op)}: returns {len(results)} values")
        for each in bindings(op) if binds and isinstance(op, AtenOp | CallOp) else ():
            if each.name not in self.symbols:
                found = results[each.result]
                if each.dim is not None:
                    found = found.size(each.dim)
                elif each.stride is not None:
                    found = found.stride(each.stride)
                self.symbols[each.name] = value_of(each.value, {**self.symbols, MEASURED: int(found)})
        for out, value in zip(op.results, results, strict=True):
            if isinstance(out.type, TensorType) and isinstance(value, torch.Tensor):
                self._define_sizes(out.type, value)
        for out, value in zip(op.results, results, strict=True):
            if isinstance(out.type, TensorType):
                value = self._fit(op, out.type, value, writes)
            self.values[out] = value

    def _define_sizes(self, kind: TensorType, value: torch.Tensor) -> None:
        for expr, size in zip(kind.shape, value.shape, strict=False):
            atom = expr.as_atom
            if atom is not None and atom.kind == "symbol":
                self.symbols.setdefault(atom.name, size)

    def _fit(self, op: Operation, kind: TensorType, value: Any, writes: bool) -> torch.Tensor:
        if not isinstance(value, torch.Tensor):
            raise InterpretationError(f"{describe(op)}: returns {type(value).__name__} instead of a tensor")
        precision = self.machine.precision
        if precision.wide:
            value = value.to(precision.stored(kind.element))
        problem = mismatch(value, self.shape(kind), None, precision.stored(kind.element), kind.device)
        if problem and CHECKED in op.attributes:
            raise of_program(RuntimeError(f"{describe(op)}: the result {problem}"))
        if problem:
            raise InterpretationError(f"{describe(op)}: the result {problem}")
        strides = self.strides(kind)
        if same_strides(value, strides):
            return value
        operands = [self.values[v] for v in op.operands if isinstance(v.type, TensorType)]
        if writes or any(same_memory(value, o) for o in operands if isinstance(o, torch.Tensor)):
            raise InterpretationError(f"{describe(op)}: the view has strides {value.stride()} instead of {strides}")
        return self.place(op, value, kind)


def index_constant(program: Program, op: SymIntOp) -> None:
    """Run `sym.int`."""
    program.values[op.result] = program.size(op.value.data)


HANDLERS: Handlers = {SymIntOp: index_constant}
