"""Whether an `AtenOp` agrees with its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ComplexType, Float64Type, IndexType, IntegerType, NoneType
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from .arguments import describe, is_allowed
from .attributes import NoneAttr, OperandAttr, PresenceAttr
from .schema import Argument, Return
from .types import TensorType

if TYPE_CHECKING:
    from .ops import AtenOp

#: types of the results of each kind; NoneType stands for an output that was not asked for
RESULT_TYPES: dict[str, tuple[type, ...]] = {
    "tensor": (TensorType, NoneType),
    "int": (IndexType,),
    "float": (Float64Type,),
    "bool": (IntegerType,),
    "scalar": (IndexType, Float64Type, IntegerType, ComplexType),
    "complex": (ComplexType,),
}
DYNAMIC_TYPES = (IndexType, Float64Type, IntegerType, ComplexType)
_OWN = frozenset({"operandSegmentSizes", "resultSegmentSizes", "binds"})


def verify_op(op: AtenOp) -> None:
    """Raise VerifyException when operands, properties or results disagree with the schema."""
    _verify_operands(op)
    for name, attribute in op.properties.items():
        if name in _OWN:
            continue
        argument = op.schema.by_name.get(name)
        if argument is None:
            raise VerifyException(f"{op.name} has no argument '{name}'")
        if not argument.is_tensor and not is_allowed(argument, attribute):
            raise VerifyException(f"argument '{name}' takes {describe(argument)}, not {attribute}")
        if isinstance(attribute, OperandAttr) and attribute.data >= len(op.dynamic):
            raise VerifyException(f"argument '{name}' refers to an operand that is not there")
    for argument in op.schema.arguments:
        if not argument.is_tensor and not argument.may_be_left_out and argument.name not in op.properties:
            raise VerifyException(f"argument '{argument.name}' is missing")
    _verify_results(op)


def _verify_operands(op: AtenOp) -> None:
    sizes = op.segment_sizes
    if len(sizes) != len(op.schema.tensors) + 1 or sum(sizes) != len(op.operands):
        raise VerifyException(f"operand groups {sizes} do not fit {len(op.operands)} operands")
    for argument, size in zip(op.schema.tensors, sizes, strict=False):
        _verify_group(argument, size, op.properties.get(argument.name))
    tensors = len(op.operands) - sizes[-1]
    for value in op.operands[:tensors]:
        if not isinstance(value.type, TensorType):
            raise VerifyException(f"expects tensors, got a value of type {value.type}")
    for value in op.operands[tensors:]:
        if not isinstance(value.type, DYNAMIC_TYPES):
            raise VerifyException(f"expects a number, got a value of type {value.type}")


def _verify_group(argument: Argument, size: int, presence: Attribute | None) -> None:
    expected = None if argument.is_variadic else 1
    if argument.optional and not argument.is_list:
        expected = min(size, 1)
    if isinstance(presence, PresenceAttr):
        expected = sum(presence.data) if argument.optional_items else -1
    elif isinstance(presence, NoneAttr):
        expected = 0 if argument.optional else -1
    elif presence is not None:
        raise VerifyException(f"argument '{argument.name}' is a tensor, not {presence}")
    if expected is not None and size != expected:
        raise VerifyException(f"argument '{argument.name}' has {size} operands, not {max(expected, 0)}")


def _verify_results(op: AtenOp) -> None:
    sizes = op.result_sizes
    returns = op.schema.returns
    if len(sizes) != len(returns) or sum(sizes) != len(op.results):
        raise VerifyException(f"has {len(op.results)} results, the schema says {len(returns)}")
    types = iter(op.result_types)
    for result, size in zip(returns, sizes, strict=True):
        if size != 1 and not result.is_list:
            raise VerifyException(f"a {result.kind} is one result, not {size}")
        for _ in range(size):
            _verify_type(result, next(types))


def _verify_type(result: Return, type_: Attribute) -> None:
    if not isinstance(type_, RESULT_TYPES.get(result.kind, ())):
        raise VerifyException(f"result of type {type_} where the schema has a {result.kind}")
