"""Laws that hold for random expressions: text, substitution, evaluation, simplification."""

import copy
import itertools
import pickle

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from inductile.dialects.sym import (
    ZERO,
    Expr,
    Ranges,
    bounds,
    ceildiv,
    const,
    lower_expr,
    parse_text,
    prove_eq,
    prove_le,
    prove_lt,
    prove_nonneg,
    simplify,
    smax,
    smin,
    symbol,
    upper_expr,
)

NAMES = ("i0", "i1", "s0", "s1")
SMALL = st.integers(-6, 12)
DIVISORS = st.sampled_from((1, 2, 3, 4, 6, 8, 12))


def _grow(inner: st.SearchStrategy[Expr], divisors: st.SearchStrategy[Expr | int]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, k: a * k, inner, SMALL),
        st.builds(lambda a, name: a * symbol(name), inner, st.sampled_from(NAMES)),
        st.builds(lambda a, d: a // d, inner, divisors),
        st.builds(lambda a, d: a % d, inner, divisors),
        st.builds(lambda a, d: a // d * d + a % d, inner, divisors),
        st.builds(lambda a, d, b: a // d % b * d + a % d, inner, divisors, divisors),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(smin, inner, inner),
        st.builds(smax, inner, inner),
    )


LEAVES = st.one_of(st.sampled_from(NAMES).map(symbol), SMALL.map(const))
SIZES = st.one_of(
    st.sampled_from(("s0", "s1")).map(symbol),
    st.builds(lambda name, k: symbol(name) * k, st.sampled_from(("s0", "s1")), st.integers(1, 4)),
    st.builds(lambda name, k: symbol(name) + k, st.sampled_from(("s0", "s1")), st.integers(0, 3)),
    st.just(symbol("s0") * symbol("s1")),
)
EXPRESSIONS = st.recursive(LEAVES, lambda inner: _grow(inner, DIVISORS), max_leaves=8)
# Divisors that are positive wherever the sizes are.
SIZED = st.recursive(LEAVES, lambda inner: _grow(inner, st.one_of(DIVISORS, SIZES)), max_leaves=8)
POINTS = st.fixed_dictionaries({name: st.integers(-20, 20) for name in NAMES})


def _domain() -> list[tuple[Ranges, list[dict[str, int]]]]:
    """Ranges with all the points they allow: two constant axes, then one axis each below a symbol and 4*symbol."""
    s0, s1 = symbol("s0"), symbol("s1")
    sizes = Ranges({"s0": (1, 4), "s1": (2, 3)})
    open_sizes = Ranges({"s0": (1, None), "s1": (2, None)})
    multiples = Ranges({"s0": (4, 8), "s1": (1, 6)}, {"s0": 4, "s1": 3})
    found: list[tuple[Ranges, list[dict[str, int]]]] = []
    for axes, base, pairs in (
        ((const(4), const(3)), sizes, itertools.product((1, 2, 3, 4), (2, 3))),
        ((s0, s0 * 4), sizes, itertools.product((1, 2, 3, 4), (2, 3))),
        ((s0, s1), open_sizes, itertools.product((1, 2, 5), (2, 3, 7))),
        ((const(1), s0 * s1), open_sizes, itertools.product((1, 3), (2, 5))),
        ((const(6), s0), multiples, itertools.product((4, 8), (3, 6))),
    ):
        points = [
            {"s0": a, "s1": b, "i0": x, "i1": y}
            for a, b in pairs
            for x in range(axes[0].evaluate({"s0": a, "s1": b}))
            for y in range(axes[1].evaluate({"s0": a, "s1": b}))
        ]
        found.append((Ranges.of_axes([("i0", axes[0]), ("i1", axes[1])], base), points))
    return found


DOMAINS = _domain()
DOMAIN = st.sampled_from(range(len(DOMAINS)))


@settings(deadline=None)
@given(EXPRESSIONS)
def test_text_reads_back_to_the_same_object(e: Expr) -> None:
    assert parse_text(str(e)) is e


@settings(deadline=None)
@given(SIZED)
def test_text_with_symbolic_divisors_reads_back_to_the_same_object(e: Expr) -> None:
    assert parse_text(str(e)) is e


@settings(deadline=None)
@given(SIZED)
def test_copies_are_the_same_object(e: Expr) -> None:
    assert pickle.loads(pickle.dumps(e)) is e
    assert copy.deepcopy([e])[0] is e


@settings(deadline=None)
@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS)
def test_ring_laws_are_identities(a: Expr, b: Expr, c: Expr) -> None:
    assert a + b is b + a
    assert a * b is b * a
    assert a - a is ZERO
    assert a * (b - c) - a * b + a * c is ZERO or a.has_mod or b.has_mod or c.has_mod


@settings(deadline=None)
@given(EXPRESSIONS, EXPRESSIONS, DIVISORS, POINTS)
def test_operators_agree_with_ints(a: Expr, b: Expr, k: int, point: dict[str, int]) -> None:
    x, y = a.evaluate(point), b.evaluate(point)
    pairs = [
        (a + b, x + y),
        (a - b, x - y),
        (a * b, x * y),
        (-a, -x),
        (a // k, x // k),
        (a % k, x % k),
        (a // -k, x // -k),
        (a % -k, x % -k),
        (ceildiv(a, k), -(-x // k)),
        (smin(a, b, 3), min(x, y, 3)),
        (smax(a, b, 3), max(x, y, 3)),
        (5 - a, 5 - x),
    ]
    for expr, value in pairs:
        assert expr.evaluate(point) == value, str(expr)
    if y:
        assert (a // b).evaluate(point) == x // y
        assert (a % b).evaluate(point) == x % y


@settings(deadline=None)
@given(EXPRESSIONS, st.dictionaries(st.sampled_from(NAMES), EXPRESSIONS, max_size=3), POINTS)
def test_substitution_agrees_with_evaluation(e: Expr, mapping: dict[str, Expr], point: dict[str, int]) -> None:
    inner = {name: value.evaluate(point) for name, value in mapping.items()}
    assert e.subs(mapping).evaluate(point) == e.evaluate({**point, **inner})
    assert not e.subs({name: point[name] for name in NAMES}).free_symbols
    assert e.subs(point).as_int() == e.evaluate(point)


@settings(deadline=None)
@given(EXPRESSIONS, st.sets(st.sampled_from(NAMES)))
def test_split_is_a_linear_decomposition(e: Expr, names: set[str]) -> None:
    parts = e.split(names)
    assume(parts is not None)
    assert parts is not None
    coefficients, rest = parts
    assert rest.free_symbols.isdisjoint(names)
    assert all(c.free_symbols.isdisjoint(names) and c is not ZERO for c in coefficients.values())
    assert sum((symbol(n) * c for n, c in coefficients.items()), rest) is e


@settings(max_examples=400, deadline=None)
@given(SIZED, DOMAIN)
def test_simplify_keeps_the_value_on_every_point(e: Expr, domain: int) -> None:
    ranges, points = DOMAINS[domain]
    simple = simplify(e, ranges)
    lo, hi = bounds(e, ranges)
    lower, upper = lower_expr(e, ranges), upper_expr(e, ranges)
    for point in points:
        value = e.evaluate(point)
        assert simple.evaluate(point) == value, f"{e} -> {simple} at {point}"
        assert (lo is None or lo <= value) and (hi is None or value <= hi)
        assert lower is None or lower.evaluate(point) <= value
        assert upper is None or value <= upper.evaluate(point)
    assert simplify(simple, ranges) is simple
    assert parse_text(str(simple)) is simple


@settings(max_examples=400, deadline=None)
@given(SIZED, SIZED, DOMAIN)
def test_what_is_proven_holds_on_every_point(a: Expr, b: Expr, domain: int) -> None:
    ranges, points = DOMAINS[domain]
    values = [(a.evaluate(point), b.evaluate(point)) for point in points]
    assert not prove_nonneg(a, ranges) or all(x >= 0 for x, _ in values)
    assert not prove_le(a, b, ranges) or all(x <= y for x, y in values)
    assert not prove_lt(a, b, ranges) or all(x < y for x, y in values)
    assert not prove_eq(a, b, ranges) or all(x == y for x, y in values)


@settings(deadline=None)
@given(st.lists(SIZED, min_size=1, max_size=4), st.permutations(range(4)))
def test_construction_order_does_not_show(parts: list[Expr], order: list[int]) -> None:
    shuffled = [parts[i] for i in order if i < len(parts)]
    # Sums with remainders may settle on another of several equal forms; everything else is canonical.
    assume(not any(part.has_mod for part in parts))
    assert sum(parts, ZERO) is sum(shuffled, ZERO)
    assert smin(*parts) is smin(*shuffled)
    assert smax(*parts) is smax(*shuffled)


@pytest.mark.parametrize("dims", [(2, 3, 4), (5, 1, 7), (4, 4, 4, 4)])
def test_delinearized_index_recombines(dims: tuple[int, ...]) -> None:
    index = symbol("i0")
    total, stride = ZERO, 1
    for size in reversed(dims[1:]):
        total = total + index // stride % size * stride
        stride *= size
    total = total + index // stride * stride
    assert total is index
