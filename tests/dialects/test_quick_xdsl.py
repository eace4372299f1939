"""What xDSL's classes do faster is what they did."""

from __future__ import annotations

from abc import ABCMeta
from io import StringIO
from typing import Any

import pytest
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ArrayAttr, Float32Type, IntegerAttr, IntegerType, ModuleOp, StringAttr, f32, i64
from xdsl.ir import Attribute, Block, BlockOps, Operation, OpResult, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from inductile.dialects.context import new_context
from inductile.dialects.quick_xdsl import LateFormat, OpMeta, number_of_ops, ops_in_order


def _block() -> Block:
    one = arith.ConstantOp(IntegerAttr(1, i64))
    two = arith.ConstantOp(IntegerAttr(2, i64))
    return Block([one, two, arith.AddiOp(one, two)])


def test_blocks_are_gone_through_in_order() -> None:
    block = _block()
    expected: list[Operation] = []
    op = block.first_op
    while op is not None:
        expected.append(op)
        op = op.next_op
    assert BlockOps.__iter__ is ops_in_order and BlockOps.__len__ is number_of_ops
    assert list(block.ops) == list(reversed(list(reversed(block.ops)))) == expected
    assert len(block.ops) == 3 and len(Block().ops) == 0 and list(Block().ops) == []


def test_an_op_may_be_taken_out_while_its_block_is_gone_through() -> None:
    block = _block()
    for op in block.ops:
        op.detach()
        op.erase(safe_erase=False)
    assert len(block.ops) == 0


def test_hashes_are_of_identity() -> None:
    block = _block()
    first, second = (op.results[0] for op in list(block.ops)[:2])
    assert {first: 1, second: 2}[second] == 2 and hash(first) == hash(first) and first != second
    assert {op: n for n, op in enumerate(block.ops)} == {op: n for n, op in enumerate(list(block.ops))}


SUBJECTS: list[Any] = [arith.ConstantOp(IntegerAttr(1, i64)), f32, i64, StringAttr("a"), ArrayAttr([f32]), _block(), 1]
CLASSES: list[type[Any]] = [
    Operation, IRDLOperation, arith.ConstantOp, arith.AddiOp, ModuleOp, SSAValue, OpResult, Attribute, IntegerType,
    Float32Type, StringAttr, ArrayAttr, Block,
]  # fmt: skip


@pytest.mark.parametrize("cls", CLASSES)
def test_isinstance_is_that_of_abstract_classes(cls: type[Any]) -> None:
    for subject in [*SUBJECTS, SUBJECTS[0].results[0], type(SUBJECTS[0])]:
        assert isinstance(subject, cls) is ABCMeta.__instancecheck__(cls, subject)
        assert issubclass(type(subject), cls) is ABCMeta.__subclasscheck__(cls, type(subject))
    assert type(cls) in (OpMeta, type)


def test_formats_are_read_when_they_are_needed() -> None:
    text = "func.func @f(%x: f32) -> f32 { %y = math.exp %x : f32  func.return %y : f32 }"
    module = Parser(new_context(), text).parse_module()
    assert any(isinstance(op, math.ExpOp) for op in module.walk())
    out = StringIO()
    Printer(out).print_op(module)
    assert "math.exp %x : f32" in out.getvalue()


def test_a_wrong_format_is_told_when_it_is_read() -> None:
    late = FormatProgram.from_str("$operand ...", math.ExpOp.get_irdl_definition())
    assert isinstance(late, LateFormat)
    with pytest.raises(ParseError):
        late.read()
