"""Products that become loops of ours, rows of which are normalised, and the products that read these rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from math import prod
from typing import cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, StringAttr
from xdsl.ir import Operation, SSAValue

from ...dialects.aten import AtenOp
from ...dialects.aten.types import type_of
from ...dialects.machine import TargetsAttr
from ...machines import GpuTarget
from ...records import dataclass
from ..common.implementations import IMPLEMENTATION, MOST_OF_CHAIN, NEST
from ._recompute import RecomputeClass, recompute_class

PRODUCTS = frozenset({"aten.mm", "aten.bmm"})
_NORMALISED = frozenset({"aten._softmax", "aten._log_softmax", "aten._safe_softmax"})
_FOLLOWED = _NORMALISED | {"aten._softmax_backward_data"}
_STATISTICS = _NORMALISED | {"aten.amax"}
#: times the elements of its factors that a product has whose elements are cheaper to compute again than to keep
_TIMES = 4
_OF_UNITS = (BFloat16Type, Float16Type, Float32Type)


@dataclass(frozen=True)
class Scores:
    """Products whose elements loops compute where they are read.

    products: what makes scores: their rows are normalised, or they are wide and become a factor of another product
    readers:  products that read what is computed of scores element by element
    origins:  the products that a value is computed from so
    """

    products: set[Operation] = field(default_factory=set)
    readers: set[Operation] = field(default_factory=set)
    origins: dict[SSAValue, frozenset[Operation]] = field(default_factory=dict)

    @property
    def read_by(self) -> dict[Operation, frozenset[Operation]]:
        """The products of scores that each reader reads something of."""
        return {op: _read(op, self.origins) & self.products for op in self.readers}


def scores_among(ops: Iterable[Operation], targets: TargetsAttr, every: bool, wide: bool = False) -> Scores:
    """Scores that become loops of ours, with what reads them: those that are marked as nests, or every one.

    wide: also those whose rows are not normalised, if they are many times as many as the elements of their factors
    """
    found = Scores()
    origins = found.origins
    for op in ops:
        if not isinstance(op, AtenOp):
            continue
        read = _read(op, origins)
        if op.target in _STATISTICS:
            found.products.update(read)
        if op.target in PRODUCTS:
            if read:
                found.readers.add(op)
                found.products.update(each for each in read if wide and _is_wide(each))
            elif (every or _is_nest(op)) and _is_on_units(op, targets):
                origins.update(dict.fromkeys(op.results, frozenset((op,))))
        elif read and (op.target in _FOLLOWED or recompute_class(op) in (RecomputeClass.FREE, RecomputeClass.CHEAP)):
            origins.update(dict.fromkeys(op.results, read))
    return found


def _read(op: Operation, origins: Mapping[SSAValue, frozenset[Operation]]) -> frozenset[Operation]:
    return frozenset[Operation]().union(*(origins.get(value, frozenset()) for value in op.operands))


def _is_wide(op: Operation) -> bool:
    """Whether a product surely has many times the elements of its factors, and would be the most of what is saved."""
    counts = [_known_count(value) for value in (op.results[0], *op.operands)]
    return None not in counts and (counts[0] or 0) >= _TIMES * sum(count or 0 for count in counts[1:])


def _known_count(value: SSAValue) -> int | None:
    """How many elements a tensor has; None where its sizes are symbols."""
    sizes = [size.as_int() for size in type_of(value).shape]
    return None if None in sizes else prod(size or 0 for size in sizes)


def _is_nest(op: Operation) -> bool:
    found = op.attributes.get(IMPLEMENTATION)
    return isinstance(found, StringAttr) and found.data == NEST


def gradient_product(op: AtenOp) -> AtenOp | None:
    """The product that the gradient of a softmax is given, through views and casts."""
    if op.target != "aten._softmax_backward_data":
        return None
    owner = op.operands[0].owner
    while isinstance(owner, AtenOp) and owner.target not in PRODUCTS:
        if owner.target != "aten._to_copy" and recompute_class(owner) is not RecomputeClass.FREE:
            return None
        owner = owner.operands[0].owner
    return owner if isinstance(owner, AtenOp) else None


def _is_on_units(op: AtenOp, targets: TargetsAttr) -> bool:
    """Whether a GPU multiplies tiles of the operands, and the depth is short."""
    left, result = type_of(op.operands[0]), type_of(op.results[0])
    target = targets.target(result.device)
    depth = left.shape[-1].as_int()
    if not isinstance(target, GpuTarget) or not target.matrix_units or depth is None or depth > MOST_OF_CHAIN:
        return False
    return isinstance(result.element, _OF_UNITS) and all(
        type_of(cast(SSAValue, value)).element == result.element for value in op.operands
    )
