"""Products that become loops of ours, rows of which are normalised, and the products that read these rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import Operation, SSAValue

from ...dialects.aten import AtenOp
from ...dialects.aten.types import type_of
from ...dialects.machine import TargetsAttr
from ...machines import GpuTarget
from ._recompute import RecomputeClass, recompute_class

PRODUCTS = frozenset({"aten.mm", "aten.bmm"})
_NORMALISED = frozenset({"aten._softmax", "aten._log_softmax", "aten._safe_softmax"})
_STATISTICS = _NORMALISED | {"aten.amax"}
#: the longest depth of a product that is computed again where it is read, as `loop-chain-products` has it
_MOST_DEPTH = 256
_OF_UNITS = (BFloat16Type, Float16Type, Float32Type)


@dataclass(frozen=True)
class Scores:
    """Products whose elements loops compute where they are read.

    products: what makes scores: their rows are normalised
    readers:  products that read what is computed of scores element by element
    """

    products: set[Operation] = field(default_factory=set)
    readers: set[Operation] = field(default_factory=set)


def scores_among(ops: Iterable[Operation], targets: TargetsAttr) -> Scores:
    """Scores that become loops of ours, with what reads them."""
    found = Scores()
    origins: dict[SSAValue, frozenset[Operation]] = {}
    for op in ops:
        if not isinstance(op, AtenOp):
            continue
        read = frozenset[Operation]().union(*(origins.get(value, frozenset()) for value in op.operands))
        if op.target in _STATISTICS:
            found.products.update(read)
        if op.target in PRODUCTS:
            if read:
                found.readers.add(op)
            elif _is_on_units(op, targets):
                origins.update(dict.fromkeys(op.results, frozenset((op,))))
        elif read and (op.target in _NORMALISED or recompute_class(op) in (RecomputeClass.FREE, RecomputeClass.CHEAP)):
            origins.update(dict.fromkeys(op.results, read))
    return found


def _is_on_units(op: AtenOp, targets: TargetsAttr) -> bool:
    """Whether a GPU multiplies tiles of the operands, and the depth is short."""
    left, result = type_of(op.operands[0]), type_of(op.results[0])
    target = targets.target(result.device)
    depth = left.shape[-1].as_int()
    if not isinstance(target, GpuTarget) or not target.matrix_units or depth is None or depth > _MOST_DEPTH:
        return False
    return isinstance(result.element, _OF_UNITS) and all(
        type_of(cast(SSAValue, value)).element == result.element for value in op.operands
    )
