"""Normal forms that hold without ranges, the text of expressions, and the limits."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from inductile.dialects.sym import (
    ONE,
    ZERO,
    Expr,
    SymError,
    as_expr,
    ceildiv,
    const,
    parse_text,
    smin,
    symbol,
)

NORMAL_FORMS = {
    # sums and products: degree, then size of the coefficient, then name; the constant last
    "1 + r0 + 4096*s0": "4096*s0 + r0 + 1",
    "5 - i0": "-i0 + 5",
    "s10 + s2": "s2 + s10",
    "s1*s0 + 7*i0": "s0*s1 + 7*i0",
    "(a + b)*(a - b)": "a*a - b*b",
    "i0 - i0": "0",
    "-(i0 floordiv 4)": "-(i0 floordiv 4)",
    "2*(i0 mod 4)*s0": "2*s0*(i0 mod 4)",
    # constants
    "-7 floordiv 2": "-4",
    "-7 mod 4": "1",
    "7 mod (-4)": "-1",
    "7 ceildiv 2": "4",
    # exact multiples leave the quotient
    "i0 floordiv 1": "i0",
    "i0 mod 1": "0",
    "(8*i0 + 12) floordiv 4": "2*i0 + 3",
    "(4*i0 + i1 + 7) floordiv 4": "i0 + (i1 + 3) floordiv 4 + 1",
    "(4*i0 + i1 + 7) mod 4": "(i1 + 3) mod 4",
    "(5*i0) floordiv 4": "i0 + i0 floordiv 4",
    "(-5*i0) mod 4": "-((i0 + 3) mod 4) + 3",
    # common factors
    "(6*i0 + 5) floordiv 4": "i0 + i0 floordiv 2 + 1",
    "(4*i0 + 1) mod 8": "4*(i0 mod 2) + 1",
    # one sign
    "(-s0) floordiv 8": "-((s0 + 7) floordiv 8)",
    "(s0 + 7) floordiv 8": "(s0 + 7) floordiv 8",
    "s0 ceildiv 8": "(s0 + 7) floordiv 8",
    "(-i0) mod 4": "-((i0 + 3) mod 4) + 3",
    "i0 floordiv (-4)": "-((i0 + 3) floordiv 4)",
    "i0 floordiv (-s0)": "(-i0) floordiv s0",
    "i0 mod (-s0)": "-((-i0) mod s0)",
    # nesting
    "(i0 floordiv 4) floordiv 3": "i0 floordiv 12",
    "(2*i0 + i1 floordiv 4) floordiv 3": "(8*i0 + i1) floordiv 12",
    "(i0 mod 12) mod 4": "i0 mod 4",
    "(i0 mod 12 + i1) mod 4": "(i0 + i1) mod 4",
    "(i0 mod 12) floordiv 4": "(i0 floordiv 4) mod 3",
    # a quotient and its remainder
    "4*(i0 floordiv 4) + i0 mod 4": "i0",
    "24*(i0 floordiv 4)*s0 + 6*s0*(i0 mod 4)": "6*i0*s0",
    "s0*(i0 floordiv s0) + i0 mod s0": "i0",
    "12*(i0 floordiv 12) + 4*((i0 floordiv 4) mod 3) + i0 mod 4": "i0",
    "8*(i0 floordiv 4) + i0 mod 4": "8*(i0 floordiv 4) + i0 mod 4",
    # nothing is assumed of a symbolic divisor, not even that it is not zero
    "(s0*i0) floordiv s0": "(i0*s0) floordiv s0",
    "s0 floordiv s0": "s0 floordiv s0",
    "0 mod s0": "0 mod s0",
    "(4*i0) floordiv (6*s0)": "(2*i0) floordiv (3*s0)",
    # minimum and maximum
    "min(3, s0, 5, s0)": "min(s0, 3)",
    "max(min(s0, 4), max(1, i0), i0 + 2)": "max(i0 + 2, min(s0, 4), 1)",
    "min(s0)": "s0",
    "max(-3, 2)": "2",
}


@pytest.mark.parametrize(("text", "expected"), NORMAL_FORMS.items())
def test_normal_form(text: str, expected: str) -> None:
    found = parse_text(text)
    assert str(found) == expected
    assert parse_text(str(found)) is found
    names = ("i0", "i1", "r0", "s0", "s1", "s2", "s10", "a", "b")
    for start in (2, 5, 11):
        point = {name: start + 3 * position for position, name in enumerate(names)}
        assert found.evaluate(point) == _python_value(text, point), (str(found), point)


def _python_value(text: str, point: dict[str, int]) -> int:
    """The value by Python's own operators; the text is this file's."""
    text = text.replace(" floordiv ", " // ").replace(" mod ", " % ")
    if " ceildiv " in text:
        left, right = text.split(" ceildiv ")
        text = f"-(-{left} // {right})"
    return eval(text, {"min": lambda *a: min(a), "max": lambda *a: max(a)}, dict(point))


def test_equal_expressions_are_one_object() -> None:
    i0, s0 = symbol("i0"), symbol("s0")
    assert symbol("i0") is i0
    assert (i0 + s0) * 2 is 2 * s0 + 2 * i0
    assert const(0) is ZERO and const(1) is ONE and as_expr(1) is ONE
    assert smin(i0, s0) is smin(s0, i0)
    assert 7 // s0 is const(7) // s0 and 7 % s0 is const(7) % s0 and 7 - s0 is -s0 + 7
    assert hash(i0 + s0) == hash(s0 + i0)


def test_threads_share_one_object() -> None:
    def build(_: int) -> list[Expr]:
        return [(symbol(f"t{n}") + 3) // 7 % 5 for n in range(200)]

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(build, range(8))
    assert all(a is b for other in others for a, b in zip(first, other, strict=True))


def test_queries() -> None:
    e = parse_text("4096*s0 + 3*r0*s0 + min(i0, 4) + 1")
    assert e.free_symbols == {"s0", "r0", "i0"}
    assert e.coefficient("r0") is symbol("s0") * 3
    assert e.coefficient("missing") is ZERO
    assert e.coefficient("i0") is None
    assert e.split(("s0", "r0")) is None
    assert e.split(("s0",)) == ({"s0": parse_text("3*r0 + 4096")}, parse_text("min(i0, 4) + 1"))
    assert parse_text("s0*s0").coefficient("s0") is None
    assert const(5).as_int() == 5 and const(5).is_constant and not e.is_constant and e.as_int() is None


def test_substitution_is_simultaneous() -> None:
    e = parse_text("i0 floordiv 4 + 2*i1")
    assert e.subs({"i0": symbol("i1"), "i1": symbol("i0")}) is parse_text("i1 floordiv 4 + 2*i0")
    assert e.subs({"s0": 4}) is e
    assert e.subs({"i0": 9, "i1": 1}).as_int() == 4


def test_errors() -> None:
    i0 = symbol("i0")
    for zero in (lambda: i0 // 0, lambda: i0 % 0, lambda: i0 // (i0 - i0), lambda: ceildiv(i0, 0)):
        with pytest.raises(SymError, match="division by zero"):
            zero()
    with pytest.raises(SymError, match="no value for symbol 'i0'"):
        (i0 + 1).evaluate({})
    for name in ("", "1a", "a b", "mod", "min", "%x", "a\n"):
        with pytest.raises(SymError, match="not a valid symbol name"):
            symbol(name)
    with pytest.raises(SymError, match="min of nothing"):
        smin()
    with pytest.raises(TypeError):
        _ = i0 + 1.5  # pyright: ignore[reportOperatorIssue]
    with pytest.raises(TypeError, match="got float"):
        _ = i0 // 1.5  # pyright: ignore[reportOperatorIssue]


def test_limits() -> None:
    nested = symbol("i0")
    with pytest.raises(SymError, match="nested more than"):
        for n in range(100):
            nested = nested // symbol(f"s{n}")
    product = symbol("i0")
    with pytest.raises(SymError, match="factors"):
        for _ in range(100):
            product = product * symbol("s0")
    wide = sum((symbol(f"s{n}") for n in range(100)), ZERO)
    with pytest.raises(SymError, match="terms"):
        _ = wide * wide
