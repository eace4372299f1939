"""What a panel of a matrix is made of: the ops that make a few of its columns of the same columns of other values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, cast

from xdsl.ir import Operation, SSAValue

from ...dialects.aten import AtenOp, TensorType
from ...dialects.aten.values import Value
from ...dialects.sym import ONE, const
from ...records import dataclass
from ..common.copies import copy_op
from ._dequantised import ARITHMETIC, dequantised_ops, is_view
from ._replacement import type_of

#: op, dimension of its result, operand -> the same dimension of the operand, None where it has no such, or a reason
_Back = Callable[[AtenOp, int, SSAValue], int | None]


class PanelError(Exception):
    """Why a matrix is not made in panels."""


@dataclass
class Recipe:
    """How a matrix is made.

    ops:    in the order of the program
    dims:   value -> the dimension of it that the columns of the matrix are; None: each panel reads all of it
    leaves: values that the ops read and do not make, in order
    """

    ops: list[AtenOp]
    dims: dict[SSAValue, int | None]
    leaves: list[SSAValue]

    def copy(self, values: dict[SSAValue, SSAValue], width: int) -> Iterable[Operation]:
        """Copies of the ops for a panel of a width, on the operands that `values` gives; their results get into it."""
        for op in self.ops:
            dim = self.dims[op.results[0]]
            if dim is None:
                yield copy_op(op, values)
                continue
            type_ = type_of(op.results[0])
            named: dict[str, Value] = {a.name: _replaced(op.arg(a.name), values) for a in op.schema.arguments}
            size = named.get("size")
            if op.packet in _SIZED and isinstance(size, tuple | list):
                named["size"] = tuple(width if k == dim else n for k, n in enumerate(size))
            shape = tuple(const(width) if k == dim else n for k, n in enumerate(type_.shape))
            made = TensorType.get(shape, type_.element, type_.strides, type_.device)
            new = type(op).build(cast(Any, named), [made], op.location)
            values[op.results[0]] = new.results[0]
            yield new


def _replaced(value: Any, values: dict[SSAValue, SSAValue]) -> Any:
    if isinstance(value, SSAValue):
        return values.get(value, value)
    return tuple(_replaced(each, values) for each in value) if isinstance(value, tuple | list) else value


def recipe_of(matrix: SSAValue, dim: int) -> Recipe:
    """How the columns of a matrix, its dimension `dim`, are made each by itself. PanelError where they are not."""
    made = dequantised_ops(matrix)
    block = cast(Operation, matrix.owner).parent
    assert block is not None
    ops = [op for op in block.ops if isinstance(op, AtenOp) and op in made]
    results = {result for op in ops for result in op.results}
    leaves = list(dict.fromkeys(value for op in ops for value in op.operands if value not in results))
    recipe = Recipe(ops, {matrix: dim}, leaves)
    for op in reversed(recipe.ops):
        result = op.results[0]
        if result not in recipe.dims:
            raise PanelError(f"nothing is known of the columns of {op.name}")
        for operand in op.operands:
            found = _operand_dim(op, recipe.dims[result], operand)
            if recipe.dims.setdefault(operand, found) != found:
                raise PanelError(f"{op.name} reads a value whose columns lie along two dimensions")
        _check_layout(type_of(result), recipe.dims[result], is_view(op))
    for leaf in recipe.leaves:
        _check_layout(type_of(leaf), recipe.dims[leaf], True)
    return recipe


def _operand_dim(op: AtenOp, dim: int | None, operand: SSAValue) -> int | None:
    if dim is None:
        return None
    back = _BACK.get(op.packet, _aligned if op.packet in ARITHMETIC else None)
    if back is None:
        raise PanelError(f"{op.name} may mix its columns")
    return back(op, dim, operand)


def _check_layout(type_: TensorType, dim: int | None, is_view: bool) -> None:
    """That a panel has the strides of the whole: it is a part of it, or columns are its outer dimension."""
    sizes, strides = ([each.as_int() for each in part] for part in (type_.shape, type_.strides))
    if None in sizes or None in strides:
        raise PanelError("sizes of its matrix are dynamic")
    if dim is None or is_view:
        return
    extents = [cast(int, n) * cast(int, s) for k, (n, s) in enumerate(zip(sizes, strides, strict=True)) if k != dim]
    if any(extent > cast(int, strides[dim]) for extent in extents):
        raise PanelError("its columns do not lie one behind the other")


def _same(op: AtenOp, dim: int, operand: SSAValue) -> int | None:
    return dim


def _aligned(op: AtenOp, dim: int, operand: SSAValue) -> int | None:
    """Elementwise: dimensions are aligned at the end, and one of one element is repeated."""
    given = type_of(operand).shape
    place = dim - (len(type_of(op.results[0]).shape) - len(given))
    return None if place < 0 or given[place] is ONE else place


def _permuted(op: AtenOp, dim: int, operand: SSAValue) -> int | None:
    rank = len(type_of(operand).shape)
    if op.packet == "t":
        return rank - 1 - dim
    if op.packet == "permute":
        return cast("tuple[int, ...]", op.arg("dims"))[dim] % rank
    first, second = (cast(int, op.arg(name)) % rank for name in ("dim0", "dim1"))
    return {first: second, second: first}.get(dim, dim)


def _through_view(op: AtenOp, dim: int, operand: SSAValue) -> int | None:
    """The dimension of the same size with as many elements in front."""
    target, source = type_of(op.results[0]).shape, type_of(operand).shape
    before = math.prod(target[:dim], start=ONE)
    for place in range(len(source)):
        if source[place] == target[dim] and math.prod(source[:place], start=ONE) == before:
            return place
    raise PanelError(f"{op.name} mixes its columns with other dimensions")


def _unsqueezed(op: AtenOp, dim: int, operand: SSAValue) -> int | None:
    added = cast(int, op.arg("dim")) % len(type_of(op.results[0]).shape)
    return None if dim == added else dim - (dim > added)


def _selected(op: AtenOp, dim: int, operand: SSAValue) -> int | None:
    taken = cast(int, op.arg("dim")) % len(type_of(operand).shape)
    return dim + (dim >= taken)


def _joined(op: AtenOp, dim: int, operand: SSAValue) -> int | None:
    joined = cast(int, op.arg("dim")) % len(type_of(op.results[0]).shape)
    if joined == dim:
        raise PanelError(f"{op.name} joins columns")
    return dim - (dim > joined) if op.packet == "stack" else dim


def _sliced(op: AtenOp, dim: int, operand: SSAValue) -> int | None:
    if cast(int, op.arg("dim")) % len(type_of(operand).shape) == dim:
        raise PanelError(f"{op.name} leaves columns out")
    return dim


_SIZED = frozenset({"_unsafe_view", "expand", "view"})
_BACK: dict[str, _Back] = {
    "_to_copy": _same, "_unsafe_view": _through_view, "alias": _same, "cat": _joined, "detach": _same,
    "expand": _aligned, "permute": _permuted, "select": _selected, "slice": _sliced, "stack": _joined, "t": _permuted,
    "transpose": _permuted, "unsqueeze": _unsqueezed, "view": _through_view,
}  # fmt: skip
