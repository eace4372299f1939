"""Reading expressions: from strings, from the middle of IR, and from people who mean harm."""

import time

import pytest
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from inductile.dialects.sym import SymError, parse_expr, parse_text


@pytest.mark.parametrize(
    ("text", "expected", "rest"),
    [
        ("i0, r0", "i0", ","),
        ("2*r0 + 1]", "2*r0 + 1", "]"),
        ("s0 in x", "s0", "in"),
        ("i0 to s0", "i0", "to"),
        ("(i0) if", "i0", "if"),
        ("i0 mod 4 step 2", "i0 mod 4", "step"),
        ("s0 : index", "s0", ":"),
        ("s0 {a}", "s0", "{"),
        ("s0 -> x", "s0", "->"),
        ("s0 - 1 -> x", "s0 - 1", "->"),
        ("min(i0, 3) into", "min(i0, 3)", "into"),
        ("4 on", "4", "on"),
        ("s0>", "s0", ">"),
        ("(s0)x", "s0", "x"),
    ],
)
def test_stops_before_what_is_not_an_operator(text: str, expected: str, rest: str) -> None:
    parser = Parser(Context(), text)
    assert str(parse_expr(parser)) == expected
    assert text[parser.pos :].startswith(rest)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i0 + 2*i1 floordiv 3", "i0 + (2*i1) floordiv 3"),
        ("i0 floordiv 2 mod 3", "(i0 floordiv 2) mod 3"),
        ("-i0 floordiv 2", "-((i0 + 1) floordiv 2)"),
        ("- - i0", "i0"),
        ("i0 - i1 - 1", "i0 - i1 - 1"),
        ("0x10*s0", "16*s0"),
        ("  ( i0 )  ", "i0"),
        ("true + x.y$_1", "true + x.y$_1"),
    ],
)
def test_precedence(text: str, expected: str) -> None:
    assert str(parse_text(text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a symbol.*column 1"),
        ("i0 +", "expected a symbol.*column 5"),
        ("i0 i1", "expected an operator.*column 4"),
        ("(i0", r"'\)'.*column 4"),
        ("min()", "min of nothing"),
        ("min i0", "column 5"),
        ("mod", "not a valid symbol name"),
        ("floordiv 4", "not a valid symbol name"),
        ("i0 floordiv 0", "division by zero.*column 4"),
        ("i0 mod (s0 - s0)", "division by zero"),
        ("i0 % 3", "column 4"),
        ("1.5", "column 1"),
        ("i0 ** 2", "column 5"),
        ("__import__('os')", "column 11"),
        ("9" * 100, "integer literal is too long"),
        ("9" * 10000, "integer literal is too long"),
        ("*".join(["4294967296"] * 50), "more than 64 bits"),
        ("(" * 1000 + "i0" + ")" * 1000, "nested more than"),
        ("-" * 10000 + "i0", "nested more than"),
        ("min(" * 1000 + "i0" + ")" * 1000, "nested more than"),
        (" floordiv ".join(f"s{n}" for n in range(500)), "nested more than"),
        ("*".join(["s0"] * 5000), "factors"),
        ("*".join(f"(a{n} + b{n})" for n in range(60)), "terms"),
        (" + ".join(f"s{n}" for n in range(1500)), "terms"),
        ("s0 + " * 20000 + "s0", "characters"),
    ],
)
def test_bad_text_is_refused_quickly_and_clearly(text: str, message: str) -> None:
    start = time.process_time()
    with pytest.raises(SymError, match=message) as caught:
        parse_text(text)
    assert len(str(caught.value)) < 500
    assert time.process_time() - start < 2


def test_error_inside_ir_is_a_parse_error_at_the_token() -> None:
    parser = Parser(Context(), "[i0, i1 floordiv 0]")
    parser.parse_punctuation("[")
    parse_expr(parser)
    parser.parse_punctuation(",")
    with pytest.raises(ParseError, match="division by zero") as caught:
        parse_expr(parser)
    assert caught.value.span.start == 8
