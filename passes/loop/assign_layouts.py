"""`loop-assign-layouts`: strides of values whose layout is free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten.types import TensorType, type_of
from ...dialects.loop import GenerateOp, LoadOp, ReduceOp, ScanOp, yielded
from ...dialects.raw import ops_of
from ...dialects.sym import ONE, AxesAttr, Expr
from ...machines import HOST
from ...records import dataclass
from ..analysis.sizes import Sizes
from ..analysis.tensor_bytes import is_dense
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import loads_in, map_of
from ._bodies import nest_of
from ._layout_groups import groups


@dataclass(frozen=True)
class AssignLayouts(LoopPass):
    """Give row-major strides to intermediate values where that makes accesses contiguous.

    level:         loop
    precondition:  `loop-eliminate-views`; no `loop.fusion` yet
    guarantee:     values that leave the nests (returned, viewed, used by ATen or as the destination of a scatter)
                   keep the strides that eager gives them. A value that only nests read becomes row-major if it is not
                   dense, or if more loads and stores in its producer and readers then run along its unit stride; on
                   a CPU values that are computed from one another element by element become so together. A product
                   of matrices that is row-major becomes column-major where more of them run along its rows, as where
                   it is read transposed.

        %t = loop.generate (i0 in 4, i1 in 6) { ... %x[i0, i1] ... } : !aten.tensor<4x6xf32, strides = [1, 4]>
        %y = loop.generate (i0 in 4, i1 in 6) { ... %t[i0, i1] ... } : !aten.tensor<4x6xf32>
    becomes
        %t = loop.generate (i0 in 4, i1 in 6) { ... %x[i0, i1] ... } : !aten.tensor<4x6xf32>
    """

    name = "loop-assign-layouts"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        together = _together(function, block)
        for nest in list(block.ops):
            if type(nest) in (GenerateOp, ScanOp):
                _assign(nest, [together.get(value) or _better_type(value) for value in nest.results])


def _together(function: FuncOp, block: Block) -> dict[SSAValue, TensorType]:
    """Row-major types of values on a CPU that are computed from one another, and are better off if all have them.

    Each alone would stay as what it is computed from lies. A residual stream that a transposed sum begins is such.
    """
    nests = [op for op in block.ops if type(op) in (GenerateOp, ScanOp)]
    sizes = Sizes.of_function(function)

    def elements(accessed: TensorType) -> int:
        return sizes.product(accessed.shape)

    found: dict[SSAValue, TensorType] = {}
    for group in groups(value for nest in nests for value in nest.results if _may_turn(value)):
        if len(group) == 1:
            continue
        ahead = 0
        for value in group:
            votes, current = votes_for(value, group, elements), type_of(value)
            ahead += votes[unit_dimension(_row_major(current))] - votes[unit_dimension(current)]
        if ahead > 0:
            found.update((value, _row_major(type_of(value))) for value in group)
    return found


def _may_turn(value: SSAValue) -> bool:
    """Whether a value on a CPU is dense, but not row-major, and only nests read it."""
    current = type_of(value)
    is_read_by_nests = all(type(use.operation) is LoadOp for use in value.uses)
    return current.device == HOST and is_read_by_nests and not current.is_contiguous and is_dense(current)


def _row_major(current: TensorType) -> TensorType:
    return TensorType.get(current.shape, current.element, device=current.device)


def _assign(nest: Operation, types: list[TensorType | None]) -> None:
    if all(new is None for new in types) or not counter("loop-assign-layouts"):
        return
    new = type(nest).create(
        operands=tuple(nest.operands),
        result_types=[new or old.type for new, old in zip(types, nest.results, strict=True)],
        properties=nest.properties,
        attributes=nest.attributes,
        location=nest.location,
        regions=[nest.detach_region(region) for region in nest.regions],
    )
    told = "column-major" if any(new is not None and not new.is_contiguous for new in types) else "row-major"
    remark("passed", "loop-assign-layouts", nest, told, results=sum(t is not None for t in types))
    block = cast(Block, nest.parent)
    block.insert_op_before(new, nest)
    for old, result in zip(nest.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    block.erase_op(nest)


def _better_type(value: SSAValue) -> TensorType | None:
    """The type of a value that should have other strides; None for one that stays."""
    current = cast(TensorType, value.type)
    if any(type(use.operation) is not LoadOp for use in value.uses):
        return None
    if current.is_contiguous:
        return _column_major(value)
    row_major = _row_major(current)
    if not is_dense(current):
        return row_major
    votes = votes_for(value)
    now, then = unit_dimension(current), unit_dimension(row_major)
    return row_major if votes[then] > votes[now] else None


def _column_major(value: SSAValue) -> TensorType | None:
    """The column-major type of a product that should have it; None for what stays."""
    current, producer = cast(TensorType, value.type), value.owner
    if len(current.shape) < 2 or not isinstance(producer, GenerateOp) or not _is_product(producer):
        return None
    votes, last = votes_for(value), len(current.shape) - 1
    if unit_dimension(current) != last or votes[last - 1] <= votes[last]:
        return None
    *outer, _, _ = current.strides
    return current.with_(strides=(*outer, ONE, current.shape[-2]))


def _is_product(nest: GenerateOp) -> bool:
    """Whether a nest sums products of what it loads, and does nothing else."""
    sums = [op for op in ops_of(nest.body.block) if type(op) is ReduceOp]
    if len(sums) != 1 or [c.data for c in sums[0].combiners] != ["sum"]:
        return False
    summed = yielded(sums[0].body)[0].owner
    return isinstance(summed, arith.MulfOp) and len(loads_in(sums[0])) == 2


def unit_dimension(tensor: TensorType) -> int | None:
    """The dimension along which neighbours in memory lie."""
    for dimension, (stride, size) in enumerate(zip(tensor.strides, tensor.shape, strict=True)):
        if stride is ONE and size is not ONE:
            return dimension
    return None


def votes_for(
    value: SSAValue,
    undecided: Collection[SSAValue] = (),
    weigh: Callable[[TensorType], int] = lambda accessed: 1,
) -> Counter[int | None]:
    """Dimension of a value -> accesses in its producer and its readers that are contiguous along it.

    undecided: other values whose layout is open as well, whose accesses say nothing
    weigh:     what an access of a tensor counts
    """
    votes: Counter[int | None] = Counter()
    open_values = {value, *undecided}
    for dimension, accessed in _votes(value, open_values):
        votes[dimension] += weigh(accessed)
    return votes


def _votes(value: SSAValue, undecided: Collection[SSAValue]) -> Iterator[tuple[int | None, TensorType]]:
    """For each access in the producer and the readers, the dimension of `value` along which it is contiguous."""
    producer = cast(Operation, value.owner)
    names = cast(AxesAttr, producer.properties["axes"]).names
    for axis, accessed in _contiguous_axes(producer, undecided):
        yield (names.index(axis) if axis in names else None), accessed
    for use in value.uses:
        if type(use.operation) is not LoadOp:
            continue
        load = use.operation
        index = [_axis_name(e) for e in map_of(load).data]
        for axis, accessed in _contiguous_axes(nest_of(cast(Block, load.parent)), undecided):
            yield (index.index(axis) if axis in index else None), accessed


def _contiguous_axes(nest: Operation, undecided: Collection[SSAValue]) -> Iterator[tuple[str, TensorType]]:
    """Axes along which a nest's loads and results are contiguous, but for those of some values, with their types."""
    for load in loads_in(nest):
        source = load.operands[0]
        type_ = cast(TensorType, source.type)
        dimension = unit_dimension(type_) if source not in undecided else None
        name = _axis_name(map_of(load).data[dimension]) if dimension is not None else None
        if name is not None:
            yield name, type_
    names = cast(AxesAttr, nest.properties["axes"]).names
    for result in nest.results:
        type_ = cast(TensorType, result.type)
        dimension = unit_dimension(type_) if result not in undecided else None
        if dimension is not None and dimension < len(names):
            yield names[dimension], type_


def _axis_name(expr: Expr) -> str | None:
    atom = expr.as_atom
    return atom.name if atom is not None and atom.kind == "symbol" else None
