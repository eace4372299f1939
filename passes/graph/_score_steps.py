"""What is done with the scores of an attention, in words: which steps there are, and where their operands come from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from xdsl.ir import Operation, SSAValue

from ...dialects.aten import AtenOp, TensorType
from ...dialects.raw import operands_of
from ...dialects.sym import ONE
from ..analysis.sizes import Sizes
from ._segments import is_view

GATHERS = "index"
_NUMBERS = "arange"
KEYS, PLACES, VECTORS, MATRIX, TABLE = "keys", "places", "vectors", "matrix", "table"
"""Where a mask or a bias comes from: the same for all rows; computed from the numbers of rows and keys alone; read from
fewer elements than there are scores of a head, `places+vectors` where such numbers take part; read from as many; looked
up by computed numbers.
"""

_SUMS, _FACTORS = ("add", "sub", "rsub"), ("mul", "div")
_SOFTMAXES = ("_softmax", "_safe_softmax")


def computes(op: Operation) -> bool:
    """Whether an op is more than a view, a cast or a copy."""
    return isinstance(op, AtenOp) and not is_view(op) and op.packet not in ("_to_copy", "clone")


def depending(ops: Iterable[Operation], products: Sequence[AtenOp]) -> list[Operation]:
    """Ops that compute something of what products give, the products left out."""
    known: set[SSAValue] = {result for op in products for result in op.results}
    found: list[Operation] = []
    for op in ops:
        if op not in products and not known.isdisjoint(operands_of(op)):
            known.update(op.results)
            found.append(op)
    return found


def steps_of(ops: Sequence[Operation], products: Sequence[AtenOp], sizes: Sizes) -> list[str]:
    """What ops do between products: `hidden:places` under a mask by places, `added:matrix`, others as ATen's packets.

    Factors that are numbers say nothing of how long a kernel takes, and are left out.
    """
    between = depending(ops, products)
    scores = {result for op in (*between, *products) for result in op.results}
    return sorted(step for op in between if computes(op) and (step := _step(op, scores, set(ops), sizes)))


def _step(op: Operation, scores: Collection[SSAValue], inside: Collection[Operation], sizes: Sizes) -> str:
    """One step in words; empty where it is a number that is added or multiplied with."""
    assert isinstance(op, AtenOp)
    others = [value for value in operands_of(op) if value not in scores and not _is_number(value, sizes)]
    many = sum(value in scores for value in operands_of(op)) > 1
    if op.packet in _SOFTMAXES:
        return "_softmax"
    if op.packet in ("masked_fill", "where") and others and not many:
        return f"hidden:{_source(others[0], _matrix(op, sizes), inside, sizes)}"
    if op.packet in (*_SUMS, *_FACTORS) and not many:
        name = "added" if op.packet in _SUMS else op.packet
        return f"{name}:{_source(others[0], _matrix(op, sizes), inside, sizes)}" if others else ""
    return op.packet


def _source(value: SSAValue, matrix: int, inside: Collection[Operation], sizes: Sizes) -> str:
    """Where a mask or a bias comes from; `matrix` is the number of scores of one head."""
    if _is_alike_for_rows(value):
        return KEYS
    seen: set[SSAValue] = set()
    waiting, largest, has_places = [value], 0, False
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        op = each.owner
        if isinstance(op, AtenOp) and op in inside:
            if op.packet == GATHERS:
                return TABLE
            waiting += operands_of(op)
            has_places |= op.packet == _NUMBERS
        else:
            assert isinstance(each.type, TensorType)
            largest = max(largest, sizes.elements(each.type))
    if largest >= matrix:
        return MATRIX
    return "+".join(name for name, is_read in ((PLACES, has_places or not largest), (VECTORS, largest)) if is_read)


def _is_alike_for_rows(value: SSAValue) -> bool:
    """Whether a value has one row, in front of views at least."""
    while True:
        assert isinstance(value.type, TensorType)
        if value.type.shape[-2:-1] in ((), (ONE,)):
            return True
        op = value.owner
        if not (isinstance(op, AtenOp) and is_view(op) and len(operands_of(op)) == 1):
            return False
        value = operands_of(op)[0]


def _matrix(op: AtenOp, sizes: Sizes) -> int:
    type_ = op.results[0].type
    assert isinstance(type_, TensorType)
    return sizes.product(type_.shape[-2:])


def _is_number(value: SSAValue, sizes: Sizes) -> bool:
    return isinstance(value.type, TensorType) and sizes.elements(value.type) == 1
