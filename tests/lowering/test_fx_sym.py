"""SymPy in, symbolic integers out: both sides have the same values."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch.utils._sympy.functions import (
    CleanDiv,
    FloorDiv,
    Max,
    Min,
    ModularIndexing,
    PowByNatural,
    PythonMod,
    Where,
)

from inductile.dialects.sym import Atom, Expr, parse_text, simplify
from inductile.dialects.sym.ranges import Ranges
from inductile.lowering.fx_sym import UnsupportedSymbol, from_symint, from_sympy

A, B = sympy.symbols("s0 s1", integer=True, positive=True)
U = sympy.Symbol("u0", integer=True)


def _sizes(*hints: int) -> list[torch.SymInt]:
    env = ShapeEnv()
    sizes: list[torch.SymInt] = []
    for position, hint in enumerate(hints):
        source = ConstantSource(f"x{position}")
        made = env.create_symbol(hint, source=source, dynamic_dim=DimDynamic.DYNAMIC)
        node = env.create_symintnode(made, hint=hint, source=source)
        assert isinstance(node, torch.SymInt)
        sizes.append(node)
    return sizes


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "floor division": lambda a, b: a // b,
    "modulo": lambda a, b: a % b,
    "negative modulo": lambda a, b: (3 - a) % b,
    "polynomial": lambda a, b: a * b * b - 4 * a + 1,
    "power": lambda a, b: a**2 + b**3,
    "ceiling by floor": lambda a, b: -(-a // b),
    "ceiling of a quotient": lambda a, b: math.ceil(a / b),
    "floor of a quotient": lambda a, b: math.floor(a * b / 6),
    "truncated quotient": lambda a, b: math.trunc(a / 3) + math.trunc(a / b),
    "truncated quotient of unknown sign": lambda a, b: math.trunc((a - 2 * b) / 4),
    "float scale": lambda a, b: math.floor(a * 2.0) + math.trunc(b * 0.5) + math.ceil(a * 1.25),
    "float division": lambda a, b: math.floor(a / 1.5),
    "minimum, maximum": lambda a, b: torch.sym_max(a, b) - torch.sym_min(a, 4 * b),
    "absolute value": lambda a, b: abs(a - 2 * b),
    "shifts": lambda a, b: (a << 3) + (b >> 1),
    "convolution size": lambda a, b: (a + 2 * 3 - 2 * (3 - 1) - 1) // 2 + 1,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_programs_on_sizes(program: Callable[[Any, Any], Any]) -> None:
    a, b = _sizes(24, 7)
    result = from_symint(program(a, b))
    names = [str(size.node.expr) for size in (a, b)]
    for x, y in itertools.product((2, 3, 5, 12, 24, 63), (2, 3, 7, 12, 31)):
        assert result.evaluate(dict(zip(names, (x, y), strict=True))) == program(x, y), (str(result), x, y)
    assert parse_text(str(result)) is result


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (sympy.Integer(-3), "-3"),
        (sympy.S.Zero, "0"),
        (sympy.S.NegativeOne * A, "-s0"),
        (A**3, "s0*s0*s0"),
        (PowByNatural(A, sympy.Integer(2)), "s0*s0"),
        (FloorDiv(A + 1, 4), "(s0 + 1) floordiv 4"),
        (CleanDiv(A, B), "s0 floordiv s1"),
        (PythonMod(U, 4), "u0 mod 4"),
        (ModularIndexing(A, 4, 3), "(s0 floordiv 4) mod 3"),
        (Max(A, B, sympy.Integer(4)), "max(s0, s1, 4)"),
        (Min(A + 2, 4 * B), "min(4*s1, s0 + 2)"),
        (sympy.Min(A, U), "min(s0, u0)"),
        (sympy.floor(A / 2), "s0 floordiv 2"),
        (sympy.ceiling(A / 2), "(s0 + 1) floordiv 2"),
        (sympy.Mod(U, 5), "u0 mod 5"),
        (4096 * A + U + 1, "4096*s0 + u0 + 1"),
    ],
)
def test_expressions(source: sympy.Expr, expected: str) -> None:
    assert str(from_sympy(source)) == expected


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (sympy.Float(1.5) * A, "Float"),
        (A / 2, "integer"),
        (A**B, "power"),
        (A**17, "power"),
        (sympy.Symbol("z"), "integer"),
        (Where(A > B, A, B), "Where"),
        (sympy.Piecewise((A, A > B), (B, True)), "Piecewise"),
        (sympy.sqrt(A), "power"),
        (sympy.oo, "Infinity"),
        (A > B, "StrictGreaterThan"),
        (FloorDiv(A, A - B), None),
        (sympy.Symbol("s 0", integer=True), "symbol name"),
    ],
)
def test_what_is_not_an_integer_expression(source: sympy.Basic, part: str | None) -> None:
    if part is None:
        assert from_sympy(source).evaluate({"s0": 7, "s1": 4}) == 2
        return
    with pytest.raises(UnsupportedSymbol, match=part):
        from_sympy(source)


def test_rounded_floats_are_refused() -> None:
    (a,) = _sizes(24)
    with pytest.raises(UnsupportedSymbol, match="rounded"):
        from_symint(math.floor(a * 1.7))  # pyright: ignore[reportOperatorIssue]
    with pytest.raises(UnsupportedSymbol, match="RoundToInt"):
        from_symint(round(a / 2))  # pyright: ignore[reportArgumentType]
    with pytest.raises(UnsupportedSymbol, match="SymFloat"):
        from_symint(a * 2.0)
    with pytest.raises(UnsupportedSymbol, match="str"):
        from_symint("s0")


def test_truncation_is_floor_where_sizes_are_positive() -> None:
    (a,) = _sizes(24)
    assert str(from_symint(math.trunc(a / 3))) == f"{a.node.expr} floordiv 3"


def test_ints_and_constant_symints() -> None:
    (a,) = _sizes(24)
    assert from_symint(7).as_int() == 7
    assert from_symint(a - a + 3).as_int() == 3
    assert from_symint(a) is parse_text(str(a.node.expr))


LEAVES = st.one_of(st.sampled_from(("s0", "s1", "u0")), st.integers(-5, 9).map(str)).map(parse_text)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, k: a // k, inner, st.integers(1, 8)),
        st.builds(lambda a, k: a % k, inner, st.integers(1, 8)),
        st.builds(lambda a, b: parse_text(f"min({a}, {b})"), inner, inner),
        st.builds(lambda a, b: parse_text(f"max({a}, {b})"), inner, inner),
    ),
    max_leaves=6,
)


#: torch's Mod is only for values that are not negative; PythonMod is ours for all signs
TORCH_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floordiv": FloorDiv, "mod": PythonMod, "min": Min, "max": Max,
}  # fmt: skip


def to_sympy(expr: Expr, symbols: dict[str, sympy.Symbol]) -> sympy.Expr:
    """The SymPy expression of `expr`, with torch's functions; other names become plain integer symbols."""

    def convert(e: Expr) -> sympy.Expr:
        products = (sympy.Mul(sympy.Integer(count), *map(convert_atom, atoms)) for atoms, count in e.terms)
        return sympy.Add(*products)

    def convert_atom(atom: Atom) -> sympy.Expr:
        if atom.kind == "symbol":
            return symbols.get(atom.name) or sympy.Symbol(atom.name, integer=True)
        return TORCH_FUNCTIONS[atom.kind](*map(convert, atom.args))

    return convert(expr)


@given(EXPRESSIONS)
def test_round_trip_through_sympy_keeps_the_value(e: Expr) -> None:
    symbols = {"s0": A, "s1": B}
    there = to_sympy(e, symbols)
    assert there.free_symbols <= {A, B, U}
    back = from_sympy(there)
    for x, y, u in ((1, 2, -3), (4, 3, 0), (12, 5, 7), (9, 64, -20)):
        point = {"s0": x, "s1": y, "u0": u}
        assert back.evaluate(point) == e.evaluate(point), (str(e), str(there), str(back))
        assert int(there.subs({A: x, B: y, U: u})) == e.evaluate(point), (str(e), str(there))


def test_arrays_evaluate_like_ints() -> None:
    e = parse_text("min(4*s0 + u0, s1 floordiv 3) mod 5 - max(u0, 2, s0)")
    x, u = torch.arange(1, 9).reshape(-1, 1), torch.arange(-4, 4)
    values = e.evaluate({"s0": x, "u0": u, "s1": 17})
    expected = [[e.evaluate({"s0": int(i), "u0": int(j), "s1": 17}) for j in u] for i in x]
    assert values.tolist() == expected
    assert simplify(e, Ranges({"s0": (1, None)})).evaluate({"s0": x, "u0": u, "s1": 17}).tolist() == expected
