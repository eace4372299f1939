"""Bounds, proofs and simplification with ranges, by example."""

import pytest

from inductile.dialects.sym import (
    Expr,
    Ranges,
    SymbolDeclaration,
    bounds,
    lower_expr,
    parse_text,
    prove_eq,
    prove_le,
    prove_lt,
    prove_nonneg,
    simplify,
    upper_expr,
)

AXES = "i0 s0, i1 4, i2 3, i3 s1, i4 s0*s1, i5 12"
"""Name and size of each axis used below."""


def _axes() -> list[tuple[str, Expr]]:
    pairs = (axis.split() for axis in AXES.split(","))
    return [(name, parse_text(size)) for name, size in pairs]


RANGES = Ranges.of_axes(_axes(), Ranges({"s0": (2, None), "s1": (2, 64)}))
MULTIPLES = Ranges({"s0": (1, 1000)}, {"s0": 8})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", (7, 7)),
        ("unknown", (None, None)),
        ("i1", (0, 3)),
        ("i0", (0, None)),
        ("i3", (0, 63)),
        ("i1 - 2*i2", (-4, 3)),
        ("i1*i2 + 1", (1, 7)),
        ("-i0*i1", (None, 0)),
        ("unknown mod 8", (0, 7)),
        ("i0 mod 8", (0, 7)),
        ("i1 mod 8", (0, 3)),
        ("i0 floordiv 8", (0, None)),
        ("(i5 - 5) floordiv 4", (-2, 1)),
        ("i5 floordiv s1", (0, 5)),
        ("unknown floordiv other", (None, None)),
        ("unknown mod other", (None, None)),
        ("i5 mod s1", (0, 11)),
        ("min(i0, i1)", (0, 3)),
        ("max(i0, i1 + 2)", (2, None)),
        ("unknown*unknown", (0, None)),
    ],
)
def test_bounds(text: str, expected: tuple[int | None, int | None]) -> None:
    assert bounds(parse_text(text), RANGES) == expected


def test_divisibility_tightens_bounds() -> None:
    assert bounds(parse_text("s0"), MULTIPLES) == (8, 1000)
    assert Ranges({"n": (-5, 5)}, {"n": 4})["n"] == (-4, 4)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("i0", "s0"),
        ("4*i0 + i1", "4*s0"),
        ("s1*i0 + i3", "s0*s1"),
        ("12*s1*i0 + s1*i5 + i3", "12*s0*s1"),
        ("i4", "s0*s1"),
        ("i0 floordiv 4", "(s0 + 3) floordiv 4"),
        ("min(i0, 5)", "min(s0, 6)"),
        ("max(i0, i3)", "max(s0, s1)"),
        ("i4 mod s1", "s1"),
        ("i0 - i3", "s0"),
        ("i1", "i2 + 4"),
        ("i0", "s0*s1"),
        ("s0", "s0*s1"),
        ("i0 mod 7", "s0 + 5"),
    ],
)
def test_proves_less(left: str, right: str) -> None:
    a, b = parse_text(left), parse_text(right)
    assert prove_lt(a, b, RANGES)
    assert prove_le(a + 1, b, RANGES)
    assert prove_nonneg(b - a - 1, RANGES)
    assert not prove_lt(b, a, RANGES)


@pytest.mark.parametrize(
    ("left", "right"),
    [("i0", "s0 - 1"), ("i0", "s1"), ("i0 + 1", "s0"), ("unknown", "unknown"), ("0", "unknown"), ("i4", "s0")],
)
def test_does_not_prove_what_is_not_so(left: str, right: str) -> None:
    assert not prove_lt(parse_text(left), parse_text(right), RANGES)


def test_proves_equal() -> None:
    left = parse_text("13*(i4 floordiv 12) + i4 mod 12")
    assert prove_eq(left, parse_text("i4 + i4 floordiv 12"), RANGES)
    assert prove_eq(parse_text("(s0*i3 + i0) mod s0"), parse_text("i0"), RANGES)
    assert not prove_eq(parse_text("i0"), parse_text("i3"), RANGES)


def test_symbolic_bounds_are_free_of_axes() -> None:
    assert upper_expr(parse_text("s1*i0 + i3"), RANGES) is parse_text("s0*s1 - 1")
    assert upper_expr(parse_text("4*i0 - i1"), RANGES) is parse_text("4*s0 - 4")
    assert lower_expr(parse_text("4*i0 - i3"), RANGES) is parse_text("-s1 + 1")
    assert upper_expr(parse_text("i0 floordiv 2"), RANGES) is parse_text("(s0 - 1) floordiv 2")
    assert upper_expr(parse_text("i0*unknown"), RANGES) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(12*i0 + 4*i2 + i1) floordiv 4 mod 3", "i2"),
        ("(12*i0 + 4*i2 + i1) mod 12", "4*i2 + i1"),
        ("(12*i0 + 4*i2 + i1) floordiv 12", "i0"),
        ("(6*i0 + 2*i2 + i1 floordiv 2) floordiv 2 mod 3", "i2"),
        ("(s0*i1 + i0) floordiv s0", "i1"),
        ("(s0*i1 + i0) mod s0", "i0"),
        ("(s1*i0 + i3) floordiv (s0*s1)", "0"),
        ("(s1*i0 + i3) mod (2*s1)", "s1*(i0 mod 2) + i3"),
        ("(4*s0*i2 + s0*i1 + i0) floordiv s0 mod 4", "i1"),
        ("(4*s0*i2 + s0*i1 + i0) mod (4*s0)", "i1*s0 + i0"),
        ("(i4 floordiv s1) floordiv s0", "0"),
        ("(i4 mod (s0*s1)) floordiv s1", "i4 floordiv s1"),
        ("((i0 + i3) mod (s0*s1)) mod s1", "(i0 + i3) mod s1"),
        ("(i0*s1 + i0) floordiv (s1 + 1)", "i0"),
        ("(i0 + s0) mod s0", "i0"),
        ("(i0 - s0) floordiv s0", "-1"),
        ("(-i0 - 1) mod s0", "s0 - i0 - 1"),
        ("i0 floordiv (-s0)", "(-i0) floordiv s0"),
        ("(i1 - 1) floordiv 4", "(i1 + 3) floordiv 4 - 1"),
        ("(i1 + 4) mod 8", "i1 + 4"),
        ("min(i0, s0)", "i0"),
        ("max(min(i0, s0 - 1), 0)", "i0"),
        ("max(i1, 3)", "3"),
        ("min(i0, i3)", "min(i0, i3)"),
        ("s1*(i4 floordiv s1) + i4 mod s1", "i4"),
        ("unknown mod s0", "unknown mod s0"),
    ],
)
def test_simplify(text: str, expected: str) -> None:
    assert simplify(parse_text(text), RANGES) is parse_text(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s0 mod 4", "0"),
        ("4*(s0 floordiv 4)", "s0"),
        ("(s0 + 3) floordiv 4", "s0 floordiv 4"),
        ("(s0*s1 + s1) mod 8", "s1 mod 8"),
        ("16*((s0 + 7) floordiv 8)*s1", "2*s0*s1"),
    ],
)
def test_divisibility(text: str, expected: str) -> None:
    assert simplify(parse_text(text), MULTIPLES) is parse_text(expected)


def test_nothing_is_divided_by_what_may_be_zero() -> None:
    maybe_zero = Ranges({"s0": (0, None), "i0": (0, 0)})
    for text in ("(s0*x) floordiv s0", "s0 mod s0", "i0 floordiv s0"):
        found = simplify(parse_text(text), maybe_zero)
        with pytest.raises(ZeroDivisionError):
            found.evaluate({"s0": 0, "x": 1, "i0": 0})


def test_axes_of_one_point_vanish_and_empty_ones_do_no_harm() -> None:
    ranges = Ranges.of_axes([("i0", parse_text("1")), ("i1", parse_text("0"))])
    assert simplify(parse_text("5*i0 + x"), ranges) is parse_text("x")
    assert ranges["i1"] == (0, 0)


def test_an_axis_shows_that_its_size_is_positive() -> None:
    sizes = Ranges({"u0": (0, None), "u1": (0, 9)})
    inside = Ranges.of_axes([("i0", parse_text("u0*u1"))], sizes)
    assert inside["u0"] == (1, None) and inside["u1"] == (1, 9)
    assert sizes["u0"] == (0, None)
    assert simplify(parse_text("(x*u1) floordiv u1"), inside) is parse_text("x")


def test_a_domain_with_points_has_positive_quotients() -> None:
    """Rows of chunks of a dynamic length: their number `s0 floordiv 8` is not 0 where there is an element."""
    base = Ranges({"s0": (2, None), "s1": (2, None)})
    chunks = parse_text("s0 floordiv 8")
    assert bounds(chunks, base) == (0, None)
    inside = Ranges.of_axes([("i0", parse_text("2*s1*(s0 floordiv 8)"))], base)
    assert bounds(chunks, inside) == (1, None)
    index = parse_text(
        "2*(i0 floordiv (2*(s0 floordiv 8)))*max(s0 floordiv 8, 1)"
        " + ((i0 floordiv (s0 floordiv 8)) mod 2)*max(s0 floordiv 8, 1) + i0 mod (s0 floordiv 8)"
    )
    assert simplify(index, inside) is parse_text("i0")
    of_eight = Ranges.of_axes(
        [("i0", parse_text("2*s1*(s0 floordiv 8)"))], Ranges({"s0": (8, None), "s1": (2, None)}, {"s0": 8})
    )
    scaled = simplify(parse_text("8") * index, of_eight)  # where `8*(s0 floordiv 8)` is `s0`
    assert scaled is parse_text("8*i0")
    may_be_negative = Ranges.of_axes([("i0", parse_text("(s0 - s1)*(s0 floordiv 8)"))], base)
    assert bounds(chunks, may_be_negative) == (0, None)


def test_same_axes_share_what_was_derived() -> None:
    base = Ranges({"s0": (2, None)})
    axes = [("i0", parse_text("s0"))]
    assert Ranges.of_axes(axes, base) is Ranges.of_axes(list(axes), base)


def test_ranges_of_declared_symbols() -> None:
    ranges = Ranges.of_symbols([SymbolDeclaration("s0", min=2, max=100, divisor=8), SymbolDeclaration("u0", min=0)])
    assert ranges["s0"] == (8, 96) and ranges["u0"] == (0, None) and ranges["s9"] == (None, None)
    assert simplify(parse_text("s0 mod 8"), ranges).as_int() == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s0 floordiv (s0 floordiv 8)", "8"),
        ("s0 mod (s0 floordiv 8)", "0"),
        ("(s1*s0) floordiv (s0 floordiv 8)", "8*s1"),
        ("(3*s0 + 5) floordiv (s0 floordiv 8)", "24 + 5 floordiv (s0 floordiv 8)"),
        ("s0 floordiv (s0 floordiv 7)", "s0 floordiv (s0 floordiv 7)"),
    ],
)
def test_a_size_is_as_many_of_its_exact_parts(text: str, expected: str) -> None:
    ranges = Ranges({"s0": (8, None), "s1": (0, None)}, {"s0": 8})
    assert simplify(parse_text(text), ranges) is parse_text(expected)
