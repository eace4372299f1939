"""Operands of matrix products as they lie in memory, and the ops that lay them out in aligned rows."""

from __future__ import annotations

from typing import cast

from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects.aten import MemoryFormat, TensorType
from ...dialects.sym import ONE, Expr
from ...records import dataclass
from ..analysis.kept import is_frozen, mark_packing
from ..analysis.memory import Mutations
from ._recompute import RecomputeClass, recompute_class
from ._replacement import ReplacementBuilder, type_of
from ._rules import permutation

ROWS, COLUMNS = -2, -1
_NESTS = (RecomputeClass.CHEAP, RecomputeClass.REDUCTION)


def padding(size: Expr, per: int) -> int | None:
    """What a size lacks to a multiple; None for a symbol."""
    constant = size.as_int()
    return None if constant is None else -constant % per


@dataclass
class Matrix:
    """An operand of a product: its last two dimensions, one of which lies side by side in memory.

    inner: that dimension, ROWS or COLUMNS
    step:  elements from one to the next in the other dimension
    pads:  elements to be added at the end of the two dimensions
    fill:  what they are
    """

    value: SSAValue
    inner: int
    step: Expr
    is_fresh: bool = False
    pads: tuple[int, int] = (0, 0)
    fill: float = 0.0

    @staticmethod
    def of(value: SSAValue) -> Matrix | None:
        """The matrix that a value is; None where no dimension lies side by side, so that ATen copies it anyway."""
        rows, columns = type_of(value).strides[-2:]
        if columns is ONE:
            return Matrix(value, COLUMNS, rows)
        return Matrix(value, ROWS, columns) if rows is ONE else None

    @property
    def type(self) -> TensorType:
        """Its type before anything is added."""
        return type_of(self.value)

    def lay_out(self, inner: int, rows: int = 0, columns: int = 0) -> None:
        """Ask for a copy with other elements side by side, or more of them."""
        self.is_fresh |= inner != self.inner or bool(rows or columns)
        self.inner = inner
        self.pads = (self.pads[0] + rows, self.pads[1] + columns)

    @property
    def source(self) -> SSAValue:
        """What the value is a view of."""
        value = self.value
        while (source := source_of_view(value)) is not None:
            value = source
        return value

    def extra_copies(self) -> int:
        """How often the elements cross the memory for a copy: a nest that makes them alone for this writes them so.

        A frozen argument is copied once, and the copy kept.
        """
        if not self.is_fresh:
            return 0
        value, alone = self.value, self.value.has_one_use()
        while (source := source_of_view(value)) is not None:
            value = source
            alone &= value.has_one_use()
        if is_frozen(value):
            return 0
        is_nest = isinstance(value.owner, Operation) and recompute_class(value.owner) in _NESTS
        return 2 if not is_nest else int(not alone)


def source_of_view(value: SSAValue) -> SSAValue | None:
    """What a value is a view of, one step up."""
    owner = value.owner
    is_view = isinstance(owner, Operation) and recompute_class(owner) is RecomputeClass.FREE
    return owner.operands[0] if isinstance(owner, Operation) and is_view else None


class Arranger:
    """Makes the operands of one block that are laid out anew, each once, where no write lies between two readers."""

    def __init__(self, mutations: Mutations) -> None:
        self._mutations = mutations
        self._made: dict[tuple[SSAValue, bool, tuple[int, int], float], tuple[SSAValue, Operation]] = {}

    def operand(self, aten: ReplacementBuilder, matrix: Matrix, reader: Operation) -> SSAValue:
        """The value that the product gets."""
        if not matrix.is_fresh:
            return matrix.value
        base, is_turned = matrix.value, matrix.inner == ROWS
        pads = (matrix.pads[1], matrix.pads[0]) if is_turned else matrix.pads
        stored = _transposed_of(base) if is_turned else base
        key = (base if stored is None else stored, is_turned and stored is None, pads, matrix.fill)
        known = self._made.get(key)
        if known is not None and not self._mutations.moves_past_write((matrix.value,), known[1], reader):
            copy = known[0]
        else:
            copy = _copy(aten, transposed(aten, base) if stored is None else stored, pads, matrix.fill)
            mark_packing(cast(Operation, copy.owner), matrix.source)
            self._made[key] = copy, reader
        return transposed(aten, copy) if is_turned else copy


def _copy(aten: ReplacementBuilder, value: SSAValue, pads: tuple[int, int], fill: float) -> SSAValue:
    old = type_of(value)
    shape = (*old.shape[:-2], old.shape[-2] + pads[0], old.shape[-1] + pads[1])
    type_ = TensorType.get(shape, old.element, None, old.device)
    if not any(pads):
        return aten.clone(value, memory_format=MemoryFormat("contiguous_format"), types=[type_])
    pad = (0, pads[1], 0, pads[0]) if pads[0] else (0, pads[1])
    return aten.constant_pad_nd(value, pad=pad, value=fill, types=[type_])


def transposed(aten: ReplacementBuilder, value: SSAValue) -> SSAValue:
    """The value with its last two dimensions exchanged."""
    return aten.permute(value, dims=_exchange(len(type_of(value).shape)))


def _exchange(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


def _transposed_of(value: SSAValue) -> SSAValue | None:
    """What a value is the transpose of, by its last two dimensions."""
    op = value.owner
    order = permutation(op) if isinstance(op, Operation) else None
    if order is None or order != _exchange(len(order)):
        return None
    assert isinstance(op, Operation)
    source = op.operands[0]
    old, new = type_of(source), type_of(value)
    swapped = (*old.shape[:-2], old.shape[-1], old.shape[-2])
    strides = (*old.strides[:-2], old.strides[-1], old.strides[-2])
    return source if new.shape == swapped and new.strides == strides else None


def only_nests_read(value: SSAValue) -> bool:
    """Whether all readers of a value, through views, become nests, which read any strides."""
    for use in value.uses:
        if use.operation.has_trait(IsTerminator):
            return False
        kind = recompute_class(use.operation)
        if kind is RecomputeClass.FREE and not all(map(only_nests_read, use.operation.results)):
            return False
        if kind in (RecomputeClass.HEAVY, RecomputeClass.NEVER):
            return False
    return True
