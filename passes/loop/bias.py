"""The bias of a product or a convolution as a nest behind it, which `loop-inline` puts into those who read the sum."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.aten import AtenOp
from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, LoadOp, YieldOp
from ...dialects.machine import target_at
from ...dialects.scalar import NarrowOp, WidenOp
from ...dialects.sym import AxesAttr, MapAttr, symbol

_FLOATS = (BFloat16Type, Float16Type, Float32Type, Float64Type)
_NARROW = (BFloat16Type, Float16Type)


def adds_columns(op: AtenOp) -> bool:
    """Whether what an `aten.addmm` adds is a bias, a number for each column."""
    bias, _, right = (cast(TensorType, value.type) for value in op.operands)
    return bias.shape == (right.shape[1],) and op.arg("beta") == 1 and op.arg("alpha") == 1


def is_apart_on_gpu(op: Operation) -> bool:
    """Whether adding the bias inside of a library's call is no faster on a GPU than a kernel that adds it afterwards.

    This holds for products of float32 matrices. It holds for all convolutions, for ATen adds the bias to the results of
    cuDNN and MIOpen by a kernel of its own.
    """
    if not isinstance(op, AtenOp) or not op.results:
        return False
    type_ = op.results[0].type
    if not isinstance(type_, TensorType) or not _may_be_apart(op, type_):
        return False
    return target_at(op, type_.device).family.library.adds_bias_apart


def _may_be_apart(op: AtenOp, type_: TensorType) -> bool:
    if op.name == "aten.addmm":
        return isinstance(type_.element, Float32Type) and adds_columns(op)
    if op.name != "aten.convolution" or not isinstance(type_.element, _FLOATS):
        return False
    bias = op.arg("bias")
    return isinstance(bias, SSAValue) and cast(TensorType, bias.type).element == type_.element


def add_bias_behind(op: AtenOp) -> None:
    """Take the bias out of an op for which `is_apart_on_gpu` holds, and add it in a nest, which takes its place."""
    type_ = cast(TensorType, op.results[0].type)
    alone, bias, dimension = _without_bias(op, type_)
    names = [f"i{position}" for position in range(len(type_.shape))]
    value = LoadOp.of(alone.results[0], MapAttr.of(*map(symbol, names)), location=op.location)
    addend = LoadOp.of(bias, MapAttr.of(symbol(names[dimension])), location=op.location)
    body = Region(Block([value, addend]))
    _yield_sum(body.block, value.results[0], addend.results[0], type_.element)
    for each in body.block.ops:
        each.location = op.location
    axes = AxesAttr.of(*zip(names, type_.shape, strict=True))
    nest = GenerateOp.of(axes, body, [type_], location=op.location)
    block = op.parent
    assert block is not None
    for each in (alone, nest):
        block.insert_op_before(each, op)
    nest.results[0].name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(nest.results[0])
    block.erase_op(op)


def _without_bias(op: AtenOp, type_: TensorType) -> tuple[AtenOp, SSAValue, int]:
    """The op alone, its bias, and the dimension of the result that the bias runs along."""
    if op.name == "aten.addmm":
        bias, left, right = op.operands
        return AtenOp.of("aten.mm", {"self": left, "mat2": right}, [type_], op.location), bias, 1
    arguments = {argument.name: op.arg(argument.name) for argument in op.schema.arguments}
    bias = cast(SSAValue, arguments["bias"])
    # a batch may be missing: channels stand before the dimensions that the window moves along
    dimension = len(type_.shape) - len(cast(TensorType, cast(SSAValue, arguments["weight"]).type).shape) + 1
    return AtenOp.of(op.name, arguments | {"bias": None}, [type_], op.location), bias, dimension


def _yield_sum(block: Block, value: SSAValue, addend: SSAValue, element: Attribute) -> None:
    """Add in float32 what is narrower, as eager does, and round once."""
    if isinstance(element, _NARROW):
        wide = [WidenOp.of(each, element, Float32Type()) for each in (value, addend)]
        total = arith.AddfOp(wide[0].results[0], wide[1].results[0])
        result: Operation = NarrowOp.of(total.result, Float32Type(), element)
        block.add_ops([*wide, total, result])
    else:
        result = arith.AddfOp(value, addend)
        block.add_op(result)
    block.add_op(YieldOp.create(operands=[result.results[0]]))
