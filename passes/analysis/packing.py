"""Ops of a function that move to the one whose results are kept; weights that a library may arrange there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import Float32Type, FunctionType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import SymbolTable

from ...dialects import aten
from ...dialects.aten import AtenOp
from ...dialects.aten.types import torch_name, type_of
from ...dialects.raw import operands_of
from ...dialects.sym import ONE
from ...machines import HOST
from ..common.copies import copy_op
from .kept import add_kept_function, insert_kept_call, is_frozen, is_kept_call, is_kept_value
from .sizes import Sizes
from .slices import inputs_of

#: names of elements, as the option `packed_weights` has them, by those of torch
ELEMENTS = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}


def is_packable(weight: SSAValue, elements: str) -> bool:
    """Whether a weight stays from call to call and is on a CPU, where a library can arrange such `elements`."""
    type_ = type_of(weight)
    stays = is_frozen(weight) or is_kept_value(weight)
    return stays and type_.device == HOST and ELEMENTS.get(torch_name(type_.element)) in elements.split(",")


#: weights of 16 bits with fewer elements are not packed: the product takes as long as the call
_LEAST = 1 << 14
#: float32, where ATen does not call oneDNN for what is small: multiplications that make up for its longer call, 15 us
_LEAST_WORK = 1 << 22
_LARGE_MATRIX = 1 << 20


def is_small_product(op: AtenOp, sizes: Sizes) -> bool:
    """Whether ATen's product of matrices takes less than a call of oneDNN with a packed one."""
    matrix = type_of(op.operands[-1])
    elements = sizes.product(matrix.shape)
    if matrix.element != Float32Type():
        return elements < _LEAST
    return sizes.of(type_of(op.results[0]).shape[0]) * elements < _LEAST_WORK and elements < _LARGE_MATRIX


#: float32 windows of one point, which ATen multiplies itself: multiplications that make up for the longer call, 15 us
_LEAST_WORK_OF_POINTS = 1 << 23
_PAGE = 4096


def objection_to_packing(op: AtenOp, sizes: Sizes) -> str | None:
    """Why the frozen weight of an `aten.convolution` stays as it is, whatever its images look like in memory."""
    image, weight, result = (type_of(value) for value in (op.operands[0], op.operands[1], op.results[0]))
    if any(size.as_int() is None for size in weight.shape):
        return "sizes of its weight are not known"
    if any(size.as_int() == 0 for type_ in (image, weight, result) for size in type_.shape):
        return "it is empty"
    rank, groups = len(weight.shape), op.arg("groups")
    is_point = all(size is ONE for size in weight.shape[2:])
    is_wide = result.element == Float32Type()
    if is_wide and rank < _RANK_OF_VOLUMES and not op.arg("transposed") and groups == 1 and is_point:
        points = sizes.product((result.shape[0], *result.shape[2:]))
        return "it is too small" if points * sizes.product(weight.shape) < _LEAST_WORK_OF_POINTS else None
    if rank == _RANK_OF_LINES and not op.arg("transposed"):
        (stride,) = cast("tuple[int, ...]", op.arg("stride"))
        row = stride * sizes.of(image.shape[1]) * (4 if is_wide else 2)
        if row % _PAGE == 0 and sizes.of(weight.shape[2]) > stride:
            return "rows of its windows would lie at one place of the cache"
    return None


_RANK_OF_LINES, _RANK_OF_VOLUMES = 3, 5


def packed_product(
    op: AtenOp, weight: SSAValue, sizes: Sizes, by_mkl: bool = False, has_bias: bool = True
) -> tuple[aten.CallOp, aten.CallOp]:
    """What packs the right operand of an `aten.mm` or `aten.addmm`, and the product with what it makes.

    by_mkl:   MKL does it instead of oneDNN, whose product has the operand as it was beside the packed one
    has_bias: whether the product adds the bias of an `aten.addmm`
    """
    *bias, left, right = op.operands
    bias = bias if has_bias else []
    rows = sizes.of(type_of(left).shape[0])
    if by_mkl:
        pack = own_call(op, "mkl_matrix", [weight, rows], weight.type)
        given = [left, pack.results[0], right, bias[0] if bias else None]
        return pack, own_call(op, "mkl_product", given, op.results[0].type)
    pack = own_call(op, "packed_matrix", [weight, rows], weight.type)
    args = [left, pack.results[0], bias[0] if bias else None]
    return pack, own_call(op, "packed_product", args, op.results[0].type)


def packed_recurrence(op: AtenOp, matrices: Sequence[SSAValue]) -> tuple[aten.CallOp, aten.CallOp]:
    """What packs both matrices of an `aten.mkldnn_rnn_layer`, and the layer with what it makes; it has no workspace."""
    how = [op.arg(name) for name in ("hidden_size", "reverse", "has_biases", "batch_first")]
    pack = own_call(op, "packed_recurrent_matrices", [*matrices, *how], *(matrix.type for matrix in matrices))
    x, _, _, *others = op.operands
    args = [x, *pack.results, *others, *how]
    return pack, own_call(op, "packed_lstm", args, *(result.type for result in list(op.results)[:3]))


def own_call(op: Operation, name: str, args: Sequence[Any], *types: Attribute) -> aten.CallOp:
    """A call of one of our operators where an op stands."""
    return aten.CallOp.of(f"inductile::{name}", args, {}, types, op.location, pure=True)


def move_to_kept(function: FuncOp, block: Block, ops: Sequence[Operation]) -> None:
    """Let the kept function do `ops`, in their order, and return what is still read of it.

    They read frozen arguments, results of the kept call, and one another.
    """
    call = next((op for op in block.ops if is_kept_call(op)), None)
    old = cast("CallOp | None", call)
    callee = _callee_of(function, old)
    inner = callee.body.block
    last = cast(ReturnOp, inner.last_op)
    given = [] if old is None else list(operands_of(old))
    made: list[tuple[SSAValue, SSAValue]] = (
        [] if old is None else list(zip(old.results, operands_of(last), strict=True))
    )
    values: dict[SSAValue, SSAValue] = {**dict(zip(given, inner.args, strict=True)), **dict(made)}
    for op in ops:
        for source in inputs_of(op):
            if source not in values:
                given.append(source)
                values[source] = new = inner.insert_arg(source.type, len(inner.args))
                new.name_hint = source.name_hint
        clone = copy_op(op, values)
        inner.insert_op_before(clone, last)
        values.update(zip(op.results, clone.results, strict=True))
        made += zip(op.results, clone.results, strict=True)
    gone = {each for op in ops for each in op.walk()}
    read = [(outer, new) for outer, new in made if any(use.operation not in gone for use in outer.uses)]
    last.operands = [new for _, new in read]
    callee.function_type = FunctionType.from_lists([a.type for a in inner.args], [new.type for _, new in read])
    _replace(function, block, callee, given, [value for value, _ in read], [*ops, *([] if old is None else [old])])


def _replace(
    function: FuncOp, block: Block, callee: FuncOp, given: Sequence[SSAValue], read: Sequence[SSAValue],
    removed: Sequence[Operation],
) -> None:  # fmt: skip
    """Put a call of the function as it is now in front, and take away what it stands for."""
    call = insert_kept_call(function, callee, given, read)
    for value, result in zip(read, call.results, strict=True):
        value.replace_all_uses_with(result)
    for op in reversed(removed):
        block.erase_op(op, safe_erase=False)


def _callee_of(function: FuncOp, call: CallOp | None) -> FuncOp:
    """The kept function of a call; a new one, which returns nothing yet, where there is none."""
    if call is not None:
        return cast(FuncOp, SymbolTable.lookup_symbol(call, call.callee))
    return add_kept_function(function, Block([ReturnOp.create()]))
