"""Attributes and the op as text, and what they refuse."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, IndexType, ModuleOp
from xdsl.parser import Parser
from xdsl.traits import is_side_effect_free
from xdsl.utils.exceptions import ParseError, VerifyException

from inductile.dialects.sym import Sym, SymAttr, SymbolAttr, SymbolDeclaration, SymIntOp, const, symbol


def _parser(text: str) -> Parser:
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Sym)
    return Parser(context, text)


@pytest.mark.parametrize(
    "text",
    [
        "#sym.expr<4096*s0 + 1>",
        "#sym.expr<-i0 + 5>",
        "#sym.expr<min(s0, (i0 + 3) floordiv 4)>",
        "#sym.symbol<s0>",
        "#sym.symbol<s0, arg = 1, dim = 0, min = 2, max = 1024, divisor = 8, hint = 16>",
        "#sym.symbol<s1, arg = 0, stride = 1, hint = -3>",
        "#sym.symbol<u0, min = -5>",
    ],
)
def test_attribute_text_reads_back(text: str) -> None:
    attribute = _parser(text).parse_attribute()
    assert str(attribute) == text


def test_equal_attributes_are_one_object() -> None:
    assert SymAttr.of(symbol("s0") + 1) is SymAttr.of(1 + symbol("s0"))
    assert SymAttr.of(3) is SymAttr.of(const(3))
    assert _parser("#sym.expr<s0 + 1>").parse_attribute() == SymAttr.of(symbol("s0") + 1)


def test_declaration_fields() -> None:
    attribute = _parser("#sym.symbol<s0, arg = 1, dim = 0, divisor = 8>").parse_attribute()
    assert isinstance(attribute, SymbolAttr)
    assert attribute.data == SymbolDeclaration("s0", arg=1, dim=0, divisor=8)
    assert attribute.symbol is symbol("s0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#sym.symbol<s0, min = 3, max = 2>", "empty"),
        ("#sym.symbol<s0, divisor = 0>", "positive"),
        ("#sym.symbol<s0, dim = 0>", "no argument"),
        ("#sym.symbol<s0, arg = 0, dim = 0, stride = 0>", "both a size and a stride"),
        ("#sym.symbol<s0, arg = -1>", "negative"),
        ("#sym.symbol<s0, arg = 1, arg = 2>", "twice"),
        ("#sym.symbol<mod>", "not a valid symbol name"),
        ("#sym.symbol<s0, size = 3>", "Expected one of"),
        ("#sym.expr<>", "expected a symbol"),
        ("#sym.expr<s0 floordiv 0>", "division by zero"),
    ],
)
def test_contradictions_are_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        _parser(text).parse_attribute()


def test_verifier_refuses_what_the_parser_refuses() -> None:
    with pytest.raises(VerifyException, match="empty"):
        SymbolAttr(SymbolDeclaration("s0", min=3, max=2))


MODULE = """builtin.module {
  %n = sym.int s0 + 1
  %m = sym.int min(s0, 3) {note = 1 : i32}
  "test.op"(%n, %m) : (index, index) -> ()
}"""


def test_op_text_reads_back() -> None:
    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    context.load_dialect(Sym)
    module = Parser(context, MODULE).parse_module()
    assert isinstance(module, ModuleOp)
    module.verify()
    assert str(module) == MODULE
    op = module.body.block.first_op
    assert isinstance(op, SymIntOp)
    assert op.value.data is symbol("s0") + 1
    assert op.result.type == IndexType()
    assert is_side_effect_free(op)
    assert op.is_structurally_equivalent(SymIntOp(symbol("s0") + 1))
