"""Where accesses to a buffer may meet: direction vectors of pairs of affine accesses, and what passes ask of them.

The vectors are those of the literature (Allen and Kennedy, Optimizing Compilers for Modern Architectures, chapter 2):
for each loop around both accesses, whether the first one runs in an earlier (`<`), the same (`=`) or a later (`>`)
iteration than the second one, or in any (`*`). Whether a vector is possible is asked of bounds on the difference of the
two indices, with sizes that may be symbols; what cannot be excluded is possible.

| question                                                             | function             |
|----------------------------------------------------------------------|----------------------|
| In which iterations of loops do two accesses meet?                   | `directions`         |
| Do they meet only where the loops around both are at one point?      | `same_iterations`    |
| Does a store write other places in other iterations of a loop?       | `keeps_apart`        |
| What must stay in order in the body of a loop, or of nested ones?    | `dependences`        |
| Do iterations of a loop depend on one another?                       | `carried_dependence` |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from math import gcd

from ...dialects import kernel
from ...dialects.sym import ZERO, Atom, Expr, Ranges, as_expr, prove_lt, prove_nonneg, symbol
from ...records import dataclass
from .effects import Access, conflicts, effects_of
from .loops import Loop, loops_around

#: one of `<`, `=`, `>` and `*` for each loop, outermost first
Directions = tuple[str, ...]


@dataclass(frozen=True)
class Dependence:
    """Two accesses to one buffer, of which one writes, and how the iterations in which they meet may lie."""

    first: Access
    second: Access
    directions: frozenset[Directions]

    def __str__(self) -> str:
        vectors = ", ".join(f"({', '.join(each)})" for each in sorted(self.directions))
        return f"{_shown(self.first)} and {_shown(self.second)} may meet in iterations {vectors}"


def dependences(loops: Sequence[Loop]) -> list[Dependence]:
    """The dependences among what the innermost of nested loops does, by iterations of all of them.

    The loops are given outermost first; what is around them is taken to be in one iteration.
    """
    effects = effects_of(loops[-1])
    found = []
    seen = set[frozenset[Access]]()
    for first, second in conflicts(effects, effects):
        pair = frozenset((first, second))
        if pair in seen:
            continue
        seen.add(pair)
        possible = directions(loops, loops, first, second)
        if possible:
            found.append(Dependence(first, second, possible))
    return found


def carried_dependence(loop: Loop) -> Dependence | None:
    """A dependence between different iterations of a loop, in one iteration of those around it; None without one."""
    for each in dependences([loop]):
        across = each.directions - {("=",)}
        if across:
            return Dependence(each.first, each.second, across)
    return None


def directions(
    first_loops: Sequence[Loop], second_loops: Sequence[Loop], first: Access, second: Access
) -> frozenset[Directions]:
    """The direction vectors with which two accesses may meet.

    The loops are around the first and around the second access, outermost first; they are the same ones, or pairs over
    one range each.
    """
    own = _private(first, first_loops)
    choices = ["=" if position < own else "<=>" for position in range(len(first_loops))]
    vectors = product(*choices)
    if first.dynamic or second.dynamic:
        return frozenset(vectors)
    relation = _Pair.of(first_loops, second_loops, first, second)
    return frozenset(vector for vector in vectors if relation.may_meet(vector))


def same_iterations(loops: Sequence[tuple[Loop, Loop]], pair: tuple[Access, Access]) -> bool:
    """Whether two accesses meet only at equal values of the axes of the loops around them.

    `loops` are pairs of loops over one range, outermost first, around the first access and around the second; each
    pair may be one loop that is around both. Axes are settled one by one, in any order: the axis of the largest stride
    goes first, be its loop the outermost or not, and settled ones are equal from then on.
    """
    first, second = pair
    if first.dynamic or second.dynamic:
        return False
    if not loops:
        return True
    relation = _Pair.of([one for one, _ in loops], [other for _, other in loops], first, second)
    unsettled = set(range(len(loops)))
    while unsettled:
        settled = next((k for k in sorted(unsettled) if relation.settles(k, unsettled)), None)
        if settled is None:
            return False
        unsettled.remove(settled)
    return True


def keeps_apart(store: kernel.StoreOp, loop: Loop) -> bool:
    """Whether a store writes other places for other values of a loop's axis, whatever all else is."""
    around = loops_around(store)
    relation = _Pair.of(around, around, store, store)
    return not relation.may_meet(tuple("<" if each is loop else "*" for each in around))


def _private(access: Access, loops: Sequence[Loop]) -> int:
    """How many of the loops are around the declaration of a local buffer: each iteration has one of its own."""
    local = access.buffer.owner
    if not isinstance(local, kernel.LocalOp):
        return 0
    around = loops_around(local)
    return sum(loop in around for loop in loops)


@dataclass(frozen=True)
class _Pair:
    """Two indices over axes that begin at 0, with the lengths of these.

    names:    the axes that the loops in question have in `left`, and likewise in `right`
    lengths:  of each axis of the loops in question
    inner:    axes inside of them, with their lengths
    loaded:   indices that loads give
    """

    left: Expr
    right: Expr
    names: tuple[str, ...]
    lengths: tuple[Expr, ...]
    inner: tuple[tuple[str, Expr], ...]
    loaded: frozenset[str]

    @staticmethod
    def of(first_loops: Sequence[Loop], second_loops: Sequence[Loop], first: Access, second: Access) -> _Pair:
        """The indices of two accesses; what loads give as an index is anything, in each of the two."""
        left = _normal(first, first_loops, "")
        right = _normal(second, second_loops, ".other")
        renamed = {
            theirs.axis.data: symbol(ours.axis.data) for ours, theirs in zip(first_loops, second_loops, strict=True)
        }
        names = tuple(loop.axis.data for loop in first_loops)
        loaded = frozenset(f"d{k}" for k in range(max(len(first.dynamic), len(second.dynamic))))
        apart = {name: symbol(f"{name}.other") for name in loaded}
        index = right.index.subs({**renamed, **apart})
        return _Pair(left.index, index, names, left.lengths, (*left.inner, *right.inner), loaded)

    def may_meet(self, vector: Directions) -> bool:
        """Whether the two indices may be equal in iterations of these directions."""
        earlier: dict[str, Expr] = {}
        later: dict[str, Expr] = {}
        axes = list(self.inner)
        loaded = {each for name in self.loaded for each in (name, f"{name}.other")}
        for name, length, direction in zip(self.names, self.lengths, vector, strict=True):
            if direction == "=":
                axes.append((name, length))
                continue
            if direction == "*":
                axes += [(name, length), (f"{name}.other", length)]
                later[name] = symbol(f"{name}.other")
                continue
            if length.as_int() == 1:
                return False
            behind = symbol(name) + symbol(f"{name}.apart") + 1
            (later if direction == "<" else earlier)[name] = behind
            axes += [(name, length), (f"{name}.apart", length - 1)]
        difference = self.left.subs(earlier) - self.right.subs(later)
        return not _never_zero(difference, Ranges.of_axes(axes), loaded.union(name for name, _ in axes), self.lengths)

    def settles(self, k: int, unsettled: set[int]) -> bool:
        """Whether the indices are equal in one iteration of the k-th loop only; those that are not unsettled are."""
        around = ["*" if j in unsettled else "=" for j in range(len(self.names))]
        return not any(self.may_meet((*around[:k], direction, *around[k + 1 :])) for direction in "<>")


@dataclass(frozen=True)
class _Normal:
    index: Expr
    lengths: tuple[Expr, ...]
    inner: tuple[tuple[str, Expr], ...]


def _normal(access: Access, loops: Sequence[Loop], suffix: str) -> _Normal:
    """An index over axes from 0: of the loops in question under their names, of those inside with a suffix."""
    values: dict[str, Expr] = {}
    lengths: list[Expr] = []
    inner: list[tuple[str, Expr]] = []
    axes = {loop.axis.data for loop in loops}
    for loop in loops_around(access):
        if loop not in loops and not lengths:
            continue  # around all of them: one iteration
        name = loop.axis.data
        own = name if loop in loops else f"{name}.inner{suffix}"
        axes.add(own)
        lo = loop.lo.data.subs(values)
        length = _length(lo, loop.hi.data.subs(values), axes, f"{own}.most")
        values[name] = lo + symbol(own)
        if loop in loops:
            lengths.append(length)
        else:
            inner.append((own, length))
    return _Normal(access.map.data[0].subs(values), tuple(lengths), tuple(inner))


def _length(lo: Expr, hi: Expr, axes: set[str], unknown: str) -> Expr:
    """The length of an axis, or something at least as long that no axis decides: the size of a block, or a symbol."""
    atom = hi.as_atom
    ends = [hi, *(atom.args if atom is not None and atom.kind == "min" else ())]
    lengths = [length for end in ends if (length := end - lo).free_symbols.isdisjoint(axes)]
    return next(
        (length for length in lengths if length.as_int() is not None), lengths[0] if lengths else symbol(unknown)
    )


def _never_zero(difference: Expr, ranges: Ranges, axes: set[str], lengths: Sequence[Expr]) -> bool:
    """Whether an expression is certainly not 0.

    Of `g*big + rest` with `-g < rest < g` both parts would have to be 0: digits of a number are equal one by one. For
    `g` are tried the strides, and the lengths of the loops.
    """
    if _excluded_by_divisor(difference):
        return True
    if prove_lt(difference, ZERO, ranges) or prove_lt(ZERO, difference, ranges):
        return True
    terms = list(difference.terms)
    strides = [_factor(term, axes) for term in terms if term[0]]
    for factor in dict.fromkeys([*strides, *(length.terms[0] for length in lengths if len(length.terms) == 1)]):
        big = [term for term in terms if _is_multiple(term, factor)]
        if not 0 < len(big) < len(terms):
            continue
        rest = _sum([term for term in terms if term not in big])
        if _is_digit(rest, _sum([factor]), ranges):
            multiple = _sum([_quotient(term, factor) for term in big])  # g is more than |rest|, so it is not 0
            return _never_zero(multiple, ranges, axes, lengths) or _never_zero(rest, ranges, axes, lengths)
    return False


def _is_digit(rest: Expr, size: Expr, ranges: Ranges) -> bool:
    """Whether `-size < rest < size`; where the sign is known, one side says that the size is positive."""
    sides = [side for side in (rest, -rest) if prove_nonneg(side, ranges)][:1] or [rest, -rest]
    return all(prove_lt(side, size, ranges) for side in sides)


#: atoms that are multiplied, and a coefficient
_Term = tuple[tuple[Atom, ...], int]


def _factor(term: _Term, axes: set[str]) -> _Term:
    """What a term is a multiple of, whatever the axes are."""
    return tuple(atom for atom in term[0] if atom.free_symbols.isdisjoint(axes)), abs(term[1])


def _is_multiple(term: _Term, factor: _Term) -> bool:
    return not (Counter(factor[0]) - Counter(term[0])) and term[1] % factor[1] == 0


def _quotient(term: _Term, factor: _Term) -> _Term:
    """A multiple of a factor, divided by it."""
    return tuple((Counter(term[0]) - Counter(factor[0])).elements()), term[1] // factor[1]


def _sum(terms: Iterable[_Term]) -> Expr:
    total = ZERO
    for atoms, coefficient in terms:
        product = as_expr(coefficient)
        for atom in atoms:
            product = product * atom.expr
        total = total + product
    return total


def _excluded_by_divisor(difference: Expr) -> bool:
    """Whether a difference is never 0, since all of its terms but a constant are multiples of something."""
    constant = sum(value for monomial, value in difference.terms if not monomial)
    divisor = gcd(*(value for monomial, value in difference.terms if monomial))
    return constant % divisor != 0 if divisor else constant != 0


def _shown(access: Access) -> str:
    """An access as a person would write it: `load y[512*i0 + i1]`."""
    kind = "load" if isinstance(access, kernel.LoadOp) else "store"
    hint = access.buffer.name_hint or "?"
    return f"kernel.{kind} %{hint}[{access.map.data[0]}]"
