"""Evaluating a body over a domain: what the bodies of the loop and the kernel level have in common."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, Self

import torch
from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects.access import dynamic_name
from ...dialects.sym import Expr
from ...records import dataclass
from ..limits import too_many_steps
from .domain import Domain
from .errors import InterpretationError, OutOfBoundsError, describe, position_text
from .precision import Precision
from .scalars import constant, evaluate

#: running a body for so many lanes takes as long as for one
FEW_LANES = 4096


@dataclass
class Machine:
    """What holds for a whole run."""

    precision: Precision = field(default_factory=Precision)
    check_bounds: bool = True
    strict: bool = True
    """Report reads of memory that nothing wrote."""
    max_steps: int | None = None
    """Iterations of loops that the program may run."""
    _steps: int = 0

    def count_steps(self, lanes: int) -> None:
        """Raise UserError when the bodies of loops have run too often. A body costs much, also for few lanes."""
        self._steps += max(lanes, FEW_LANES)
        if self.max_steps is not None and self._steps > self.max_steps:
            raise too_many_steps("the program", self.max_steps)


@dataclass(frozen=True)
class Frame:
    """Values of SSA names in the lanes of a domain."""

    machine: Machine
    domain: Domain
    values: MutableMapping[SSAValue, Any] = field(default_factory=dict)

    HANDLERS: ClassVar[Mapping[type[Operation], Callable[[Any, Any], None]]] = {}
    """What each op that is no scalar op does to a frame."""

    def inside(self, domain: Domain) -> Self:
        """A frame for an inner body; what it defines is forgotten with it."""
        self.machine.count_steps(domain.lanes)
        return replace(self, domain=domain, values=ChainMap({}, self.values))

    def scalar(self, value: SSAValue) -> torch.Tensor:
        """The lanes of a scalar, broadcastable to the domain."""
        found = self.values[value]
        if isinstance(found, torch.Tensor):
            return found.to(self.domain.device)
        return torch.tensor(found, dtype=self.machine.precision.scalar(value.type), device=self.domain.device)

    def run(self, block: Block) -> tuple[Any, ...]:
        """Evaluate a body; the lanes of its terminator's operands."""
        for op in block.ops:
            if op.has_trait(IsTerminator):
                return tuple(self.scalar(v) for v in op.operands)
            self.execute(op)
        raise InterpretationError("a body without a terminator")

    def execute(self, op: Operation) -> None:
        """Evaluate one op and bind its results."""
        handler = self.HANDLERS.get(type(op))
        if handler is not None:
            handler(self, op)
        elif isinstance(op, arith.ConstantOp):
            self.values[op.result] = constant(op, self.machine.precision, self.domain.device)
        else:
            args = tuple(self.scalar(v) for v in op.operands)
            self.bind(op, evaluate(op, args, self.machine.precision, self.zero_divisor))

    def bind(self, op: Operation, results: Sequence[Any]) -> None:
        """Give values to the results of an op."""
        for result, value in zip(op.results, results, strict=True):
            self.values[result] = value

    def zero_divisor(self, op: Operation, lanes: torch.Tensor) -> None:
        """Report an integer division by zero in a lane that exists."""
        wrong = self.existing(lanes)
        if bool(wrong.any()):
            raise InterpretationError(f"{describe(op)}: division by zero{self.where(wrong)}")

    def existing(self, lanes: torch.Tensor) -> torch.Tensor:
        """`lanes` without those that are inactive."""
        return lanes if self.domain.active is None else lanes & self.domain.active

    def where(self, wrong: torch.Tensor) -> str:
        """ " at i0 = 3" for the first wrong lane, nothing outside of loops."""
        text = position_text(dict(self.domain.symbols), self.domain.shape, wrong)
        return f" at {text}" if text else ""

    def indices(self, exprs: Sequence[Expr], dynamic: Sequence[SSAValue]) -> list[torch.Tensor]:
        """Each index expression in each lane, with `d0, d1, ...` bound to the dynamic operands."""
        values = {dynamic_name(k): self.scalar(v).to(torch.int64) for k, v in enumerate(dynamic)}
        return [self.domain.tensor(self.domain.evaluate(e, values)) for e in exprs]

    def wanted(self, mask: torch.Tensor | None) -> torch.Tensor | None:
        """Lanes that exist and where a mask holds; None: all."""
        active = self.domain.active
        if mask is None or active is None:
            return active if mask is None else mask
        return mask & active

    def check_indices(
        self,
        op: Operation,
        indices: Sequence[torch.Tensor],
        sizes: Sequence[int | torch.Tensor],
        wanted: torch.Tensor | None,
    ) -> list[torch.Tensor]:
        """Indices with 0 in place of those that are not `wanted` or whose lane does not exist.

        Raises OutOfBoundsError where one that is wanted is not in [0, size), unless bounds are not checked.
        """
        lanes = self.wanted(wanted)
        checked: list[torch.Tensor] = []
        for dim, (index, size) in enumerate(zip(indices, sizes, strict=True)):
            if self.machine.check_bounds:
                wrong = (index < 0) | (index >= size)
                wrong = wrong if lanes is None else wrong & lanes
                if bool(wrong.any()):
                    found = int(index.expand(wrong.shape)[wrong][0])
                    raise OutOfBoundsError(
                        f"{describe(op)}: index {found} of dimension {dim} with size {size}{self.where(wrong)}"
                    )
            checked.append(index if lanes is None else torch.where(lanes, index, 0))
        return checked


def evaluate_index(frame: Frame, op: Any) -> None:
    """`loop.index` and `kernel.index`."""
    (frame.values[op.value],) = frame.indices((op.expr.data,), op.dynamic)


def combine_region(frame: Frame, block: Block) -> Callable[[tuple[Any, ...], tuple[Any, ...]], tuple[Any, ...]]:
    """The region of a custom monoid as a function of two tuples; its ops work on lanes of any shape."""

    def combine(x: tuple[Any, ...], y: tuple[Any, ...]) -> tuple[Any, ...]:
        flat = replace(frame.domain, shape=tuple(x[0].shape), active=None)
        inner = frame.inside(flat)
        inner.values.update(zip(block.args, (*x, *y), strict=True))
        results = inner.run(block)
        # a result that depends on no element has no lanes of its own
        lanes = torch.broadcast_shapes(*(value.shape for value in (*x, *y, *results)))
        return tuple(result.expand(lanes) for result in results)

    return combine
