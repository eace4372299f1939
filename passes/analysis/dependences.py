"""Which iterations of a kernel's loops depend on one another: direction vectors of pairs of accesses.

The vectors are those of the literature (Allen and Kennedy, Optimizing Compilers for Modern Architectures, chapter 2):
for each loop around both accesses, whether the first one runs in an earlier (`<`), the same (`=`) or a later (`>`)
iteration than the second one. Whether a vector is possible is asked of bounds on the difference of the two indices,
with sizes that may be symbols; what cannot be excluded is possible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd

from ...dialects import kernel
from ...dialects.sym import ZERO, Atom, Expr, Ranges, as_expr, prove_lt, symbol
from .effects import Access, conflicts, effects_of
from .loops import Loop, loops_around

#: one of `<`, `=` and `>` for each loop, outermost first
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
    if first.dynamic or second.dynamic or (loops := _Pair.of(first_loops, second_loops, first, second)) is None:
        return frozenset(vectors)
    return frozenset(vector for vector in vectors if loops.may_meet(vector))


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
    """

    left: Expr
    right: Expr
    names: tuple[str, ...]
    lengths: tuple[Expr, ...]
    inner: tuple[tuple[str, Expr], ...]

    @staticmethod
    def of(first_loops: Sequence[Loop], second_loops: Sequence[Loop], first: Access, second: Access) -> _Pair | None:
        """None where the length of an axis is not known to be less than something that no axis decides."""
        left = _normal(first, first_loops, "")
        right = _normal(second, second_loops, ".other")
        if left is None or right is None:
            return None
        renamed = {
            theirs.axis.data: symbol(ours.axis.data) for ours, theirs in zip(first_loops, second_loops, strict=True)
        }
        names = tuple(loop.axis.data for loop in first_loops)
        return _Pair(left.index, right.index.subs(renamed), names, left.lengths, (*left.inner, *right.inner))

    def may_meet(self, vector: Directions) -> bool:
        """Whether the two indices may be equal in iterations of these directions."""
        earlier: dict[str, Expr] = {}
        later: dict[str, Expr] = {}
        axes = list(self.inner)
        for name, length, direction in zip(self.names, self.lengths, vector, strict=True):
            if direction == "=":
                axes.append((name, length))
                continue
            if length.as_int() == 1:
                return False
            behind = symbol(name) + symbol(f"{name}.apart") + 1
            (later if direction == "<" else earlier)[name] = behind
            axes += [(name, length), (f"{name}.apart", length - 1)]
        difference = self.left.subs(earlier) - self.right.subs(later)
        return not _never_zero(difference, Ranges.of_axes(axes), {name for name, _ in axes})


@dataclass(frozen=True)
class _Normal:
    index: Expr
    lengths: tuple[Expr, ...]
    inner: tuple[tuple[str, Expr], ...]


def _normal(access: Access, loops: Sequence[Loop], suffix: str) -> _Normal | None:
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
        length = _length(lo, loop.hi.data.subs(values), axes)
        if length is None:
            return None
        values[name] = lo + symbol(own)
        if loop in loops:
            lengths.append(length)
        else:
            inner.append((own, length))
    return _Normal(access.map.data[0].subs(values), tuple(lengths), tuple(inner))


def _length(lo: Expr, hi: Expr, axes: set[str]) -> Expr | None:
    """The length of an axis, or something at least as long that no axis decides, such as the size of a block."""
    atom = hi.as_atom
    ends = [hi, *(atom.args if atom is not None and atom.kind == "min" else ())]
    lengths = [length for end in ends if (length := end - lo).free_symbols.isdisjoint(axes)]
    return next((length for length in lengths if length.as_int() is not None), lengths[0] if lengths else None)


def _never_zero(difference: Expr, ranges: Ranges, axes: set[str]) -> bool:
    """Whether an expression is certainly not 0.

    Of `g*big + rest` with `-g < rest < g` both parts would have to be 0: digits of a number are equal one by one.
    """
    if _excluded_by_divisor(difference):
        return True
    if prove_lt(difference, ZERO, ranges) or prove_lt(ZERO, difference, ranges):
        return True
    terms = list(difference.terms)
    for factor in {_factor(term, axes) for term in terms if term[0]}:
        big = [term for term in terms if _is_multiple(term, factor)]
        if len(big) == len(terms):
            continue
        size = _sum([factor])
        rest = _sum([term for term in terms if term not in big])
        if prove_lt(rest, size, ranges) and prove_lt(-rest, size, ranges):
            return _never_zero(_sum(big), ranges, axes) or _never_zero(rest, ranges, axes)
    return False


#: atoms that are multiplied, and a coefficient
_Term = tuple[tuple[Atom, ...], int]


def _factor(term: _Term, axes: set[str]) -> _Term:
    """What a term is a multiple of, whatever the axes are."""
    return tuple(atom for atom in term[0] if atom.free_symbols.isdisjoint(axes)), abs(term[1])


def _is_multiple(term: _Term, factor: _Term) -> bool:
    return not (Counter(factor[0]) - Counter(term[0])) and term[1] % factor[1] == 0


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
