"""Classes of xDSL answer as they did, for classes that others derive from them too."""

from __future__ import annotations

from abc import ABC, abstractmethod

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32
from xdsl.ir import Attribute, Block, Data, Operation, OpResult, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition

from inductile.dialects.plain_classes import PlainMeta


class _Named(ABC):
    @abstractmethod
    def own_name(self) -> str: ...


@irdl_attr_definition
class _Both(ParametrizedAttribute, _Named):
    name = "test.both"

    def own_name(self) -> str:
        return "both"


def test_isinstance_is_by_real_subclasses() -> None:
    number, op = IntegerAttr(1, i32), arith.ConstantOp.from_int_and_width(1, 32)
    classes = (Attribute, Data, ParametrizedAttribute, IntegerAttr, Operation, arith.ConstantOp, SSAValue, OpResult)
    for value in (number, StringAttr("a"), op, op.result, Block(), 1, None):
        for cls in classes:
            assert type(cls) is PlainMeta
            assert isinstance(value, cls) == (cls in type(value).__mro__) == issubclass(type(value), cls)


def test_classes_may_derive_from_abstract_ones() -> None:
    made = _Both()
    assert isinstance(made, Attribute) and isinstance(made, _Named) and made.own_name() == "both"
    assert type(_Both) is PlainMeta


def test_values_and_ops_are_equal_to_themselves_alone() -> None:
    first, second = (arith.ConstantOp.from_int_and_width(1, 32) for _ in range(2))
    assert first == first and first != second and first.result != second.result and first.result == first.result
    assert {first: 1, second: 2}[second] == 2 and len({first.result, second.result}) == 2
