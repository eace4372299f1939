"""Chains of views as index expressions: they simplify to what a person would write, and fast."""

import itertools
import random
import time
from collections.abc import Sequence

import pytest

from inductile.dialects.sym import ONE, ZERO, Expr, Ranges, as_expr, const, parse_text, simplify, symbol

S0, S1 = symbol("s0"), symbol("s1")
SIZES = Ranges({"s0": (2, None), "s1": (2, None)})
Shape = Sequence[Expr | int]


def _linearize(index: Sequence[Expr], shape: Shape) -> Expr:
    flat = ZERO
    for position, size in zip(index, shape, strict=True):
        flat = flat * size + position
    return flat


def _reshape(index: Sequence[Expr], source: Shape, target: Shape, ranges: Ranges) -> list[Expr]:
    """The index into `source` of the element at `index` of `target`."""
    flat = simplify(_linearize(index, target), ranges)
    found: list[Expr] = []
    for size in reversed(source[1:]):
        found.append(simplify(flat % size, ranges))
        flat = simplify(flat // size, ranges)
    return [flat, *reversed(found)]


def _axes(shape: Shape) -> tuple[list[Expr], Ranges]:
    names = [f"i{n}" for n in range(len(shape))]
    ranges = Ranges.of_axes([(n, as_expr(s)) for n, s in zip(names, shape, strict=True)], SIZES)
    return [symbol(n) for n in names], ranges


CASES = [
    # (input shape, [(permutation, reshaped to), ...], the index into the input)
    ("split heads", (2, 128, 768), [((0, 1, 2), (2, 128, 12, 64))], ("i0", "i1", "64*i2 + i3")),
    (
        "merge heads",
        (2, 12, 128, 64),
        [((0, 2, 1, 3), (2, 128, 768))],
        ("i0", "i2 floordiv 64", "i1", "i2 mod 64"),
    ),
    (
        "merge heads, dynamic",
        (S0, 12, S1, 64),
        [((0, 2, 1, 3), (S0, S1, 768))],
        ("i0", "i2 floordiv 64", "i1", "i2 mod 64"),
    ),
    ("flatten and back", (S0, S1, 8), [((0, 1, 2), (S0 * S1, 8)), ((0, 1), (S0, S1, 8))], ("i0", "i1", "i2")),
    (
        "flatten rows of a dynamic batch",
        (S0, S1, 8),
        [((0, 1, 2), (S0 * S1, 8))],
        ("i0 floordiv s1", "i0 mod s1", "i1"),
    ),
    (
        "pixel shuffle",
        (2, 16, 8, 8),
        [((0, 1, 2, 3), (2, 4, 2, 2, 8, 8)), ((0, 1, 4, 2, 5, 3), (2, 4, 16, 16))],
        ("i0", "4*i1 + 2*(i2 mod 2) + i3 mod 2", "i2 floordiv 2", "i3 floordiv 2"),
    ),
    (
        "channel shuffle",
        (S0, 12, 7, 7),
        [((0, 1, 2, 3), (S0, 3, 4, 7, 7)), ((0, 2, 1, 3, 4), (S0, 12, 7, 7))],
        ("i0", "4*(i1 mod 3) + i1 floordiv 3", "i2", "i3"),
    ),
    (
        "window partition",
        (S0, 8, 8, 32),
        [((0, 1, 2, 3), (S0, 2, 4, 2, 4, 32)), ((0, 1, 3, 2, 4, 5), (4 * S0, 16, 32))],
        (
            "i0 floordiv 4",
            "4*((i0 floordiv 2) mod 2) + i1 floordiv 4",
            "4*(i0 mod 2) + i1 mod 4",
            "i2",
        ),
    ),
    ("group norm", (S0, 32, S1, 4), [((0, 1, 2, 3), (8 * S0, 4 * S1 * 4))], None),
]


def _compose(
    source: Shape, steps: list[tuple[tuple[int, ...], Shape]], ranges: Ranges, index: list[Expr]
) -> list[Expr]:
    shapes: list[tuple[list[Expr | int], Shape, tuple[int, ...]]] = []
    shape: Shape = source
    for permutation, target in steps:
        shapes.append(([shape[d] for d in permutation], target, permutation))
        shape = target
    for permuted, target, permutation in reversed(shapes):
        before = _reshape(index, permuted, target, ranges)
        index = [before[permutation.index(d)] for d in range(len(permutation))]
    return index


@pytest.mark.parametrize(("source", "steps", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_chain_simplifies(source: Shape, steps: list, expected: tuple[str, ...] | None) -> None:
    index, ranges = _axes(steps[-1][1])
    composed = _compose(source, steps, ranges, index)
    if expected is not None:
        assert tuple(map(str, composed)) == expected
        assert all(parse_text(text) is e for text, e in zip(expected, composed, strict=True))
    _check_is_a_permutation(composed, source, steps[-1][1])


def _check_is_a_permutation(composed: list[Expr], source: Shape, target: Shape) -> None:
    """Over the whole domain the index takes every value of the input's domain once, in bounds."""
    sizes = {"s0": 2, "s1": 3}
    extents = [as_expr(s).evaluate(sizes) for s in target]
    if (total := _product(extents)) > 20000:
        return
    seen = {
        tuple(e.evaluate({**sizes, **{f"i{n}": v for n, v in enumerate(point)}}) for e in composed)
        for point in itertools.product(*map(range, extents))
    }
    assert len(seen) == total
    assert seen == set(itertools.product(*(range(as_expr(s).evaluate(sizes)) for s in source)))


def _product(values: Sequence[int]) -> int:
    result = 1
    for value in values:
        result *= value
    return result


def _random_chains(count: int, symbolic: bool) -> list[tuple[Shape, list[tuple[tuple[int, ...], Shape]]]]:
    """Distinct chains of two to three reshapes with permutations between them, as attention code has them."""
    rng = random.Random(0)
    chains: list[tuple[Shape, list[tuple[tuple[int, ...], Shape]]]] = []
    while len(chains) < count:
        batch: Expr | int = S0 if symbolic else rng.choice((2, 3, 4, 8))
        length: Expr | int = S1 if symbolic and rng.random() < 0.5 else rng.choice((16, 32, 48, 128))
        heads, width = rng.choice((2, 4, 6, 8, 12)), rng.choice((8, 16, 32, 64))
        source = (batch, length, heads * width)
        split = (batch, length, heads, width)
        orders = [(0, 2, 1, 3), (0, 2, 3, 1), (2, 0, 1, 3), (0, 1, 3, 2), (1, 0, 2, 3)]
        first, second = rng.choice(orders), rng.choice(orders)
        permuted = [split[d] for d in first]
        merged = (permuted[0] * as_expr(permuted[1]), permuted[2], permuted[3])
        back = tuple(permuted)
        shuffled = [back[d] for d in second]
        last = (shuffled[0], shuffled[1], shuffled[2] * as_expr(shuffled[3]))
        chains.append((source, [((0, 1, 2), split), (first, merged), ((0, 1, 2), back), (second, last)]))
    return chains


def _random_shape(rng: random.Random, factors: list[Expr]) -> list[Expr]:
    """Neighbouring factors multiplied together at random."""
    shape = [ONE]
    for factor in factors:
        if rng.random() < 0.5:
            shape.append(factor)
        else:
            shape[-1] = shape[-1] * factor
    return shape


@pytest.mark.parametrize("sizes", [(2, 2, 3, 4, 5, 8), (2, 2, 3, 4, 5, S0, S1)], ids=["static", "symbolic"])
def test_reshapes_alone_leave_the_linear_index(sizes: tuple[Expr | int, ...]) -> None:
    """However the dimensions are regrouped, the address of a contiguous buffer comes out as the plain sum."""
    rng = random.Random(1)
    for _ in range(200):
        factors = [as_expr(rng.choice(sizes)) for _ in range(rng.randint(2, 6))]
        shapes: list[list[Expr]] = []
        for _ in range(rng.randint(2, 4)):
            if rng.random() < 0.5:
                rng.shuffle(factors)
            shapes.append(_random_shape(rng, factors))
        index, ranges = _axes(shapes[-1])
        expected = simplify(_linearize(index, shapes[-1]), ranges)
        for source, target in zip(reversed(shapes[:-1]), reversed(shapes[1:]), strict=True):
            index = _reshape(index, source, target, ranges)
        assert simplify(_linearize(index, shapes[0]), ranges) is expected, [list(map(str, s)) for s in shapes]


def _strided(composed: list[Expr], source: Shape, ranges: Ranges) -> Expr:
    return simplify(_linearize(composed, source), ranges)


@pytest.mark.parametrize("symbolic", [False, True])
def test_a_thousand_chains_are_fast(symbolic: bool) -> None:
    """About 0.15 s, symbolic 0.25 s, on an idle core; the bound leaves room for a busy machine."""
    chains = _random_chains(1000, symbolic)
    start = time.process_time()
    for source, steps in chains:
        # Other axis names for every chain would be unfair to the prototype's figure: kernels share names.
        index, ranges = _axes(steps[-1][1])
        _strided(_compose(source, steps, ranges, index), source, ranges)
    elapsed = time.process_time() - start
    print(f"1000 {'symbolic' if symbolic else 'static'} view chains: {elapsed:.3f} s")
    assert elapsed < 3.0


def test_identity_of_one_and_size_one_axes() -> None:
    ranges = Ranges.of_axes([("i0", ONE), ("i1", const(4))])
    assert simplify(symbol("i0") * 4 + symbol("i1"), ranges) is symbol("i1")
