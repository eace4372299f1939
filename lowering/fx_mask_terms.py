"""Masks of attention whose sizes are symbols, as conditions on the place of an element.

The calls that make a mask of positions (`arange`, comparisons, views) are read as functions from an index to an
integer expression or a truth; nothing is computed. What is asked of them then holds for all sizes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch.fx import Node

from ..dialects.sym import ONE, ZERO, Expr, Ranges, const, prove_eq, prove_nonneg, symbol
from ..errors import UnsupportedError
from ..records import dataclass
from .fx_private import computed_attribute
from .fx_sym import from_symint


class UnknownTermError(Exception):
    """A mask is made in a way that is not understood here."""


@dataclass(frozen=True)
class All:
    """Every one of these holds: expressions that are not negative. Of none: true."""

    conditions: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class Never:
    """Nothing holds."""


Term: TypeAlias = "Expr | All | Never"
Index: TypeAlias = tuple[Expr, ...]
TRUE, FALSE = All(), Never()
_WIDE = (torch.int64, torch.int32)


@dataclass(frozen=True)
class Tensor:
    """Sizes, and the element at an index."""

    shape: tuple[Expr, ...]
    at: Callable[[Index], Term]


class Terms:
    """Reads the calls of a graph, each once. `ranges` says what is known of places in the mask that is asked for.

    takes_any: whether integers that are not understood are numbers of which nothing is known but that each element is
               equal to itself: that suffices to see that `document[i] == document[j]` holds where i is j
    """

    def __init__(self, ranges: Callable[[], Ranges], takes_any: bool = False) -> None:
        self._ranges = ranges
        self._takes_any = takes_any
        self._known: dict[Node, Any] = {}
        self._elements: dict[tuple[Node, Index], Expr] = {}

    def of(self, node: Node) -> Any:
        """A tensor, an integer expression or a constant. UnknownTermError for what is not understood."""
        if node not in self._known:
            value = node.meta.get("example_value")
            is_any = self._takes_any and isinstance(value, torch.Tensor) and value.dtype in _WIDE
            self._known[node] = self._read_or_take(node) if is_any else self._read(node)
        return self._known[node]

    def _read_or_take(self, node: Node) -> Tensor:
        """Integers, those elements that are not understood as numbers of their own."""
        try:
            known = self._read(node)
        except UnknownTermError:
            known = None

        def at(index: Index) -> Term:
            try:
                if isinstance(known, Tensor):
                    return known.at(index)
            except UnknownTermError:
                pass
            return self._elements.setdefault((node, index), symbol(f"t{len(self._elements)}"))

        return Tensor(tuple(map(expression, node.meta["example_value"].shape)), at)

    def _read(self, node: Node) -> Any:
        value = node.meta.get("example_value")
        if isinstance(value, int | torch.SymInt) and not isinstance(value, bool):
            return expression(value)
        rule = _rule(node)
        if rule is None:
            raise UnknownTermError(f"it depends on {described(node)}")
        try:
            found = rule(self, *map(self.argument, node.args), **{k: self.argument(v) for k, v in node.kwargs.items()})
        except (TypeError, IndexError, AttributeError) as error:
            raise UnknownTermError(f"{node.name} is not understood") from error
        if isinstance(found, Tensor) and isinstance(value, torch.Tensor):
            shape = tuple(map(expression, value.shape))
            if len(shape) != len(found.shape):
                raise UnknownTermError(f"{node.name} is not understood")
            return Tensor(shape, found.at)
        return found

    def argument(self, argument: Any) -> Any:
        """What a call is given: of a node what `of` says, and so inside of tuples and slices."""
        if isinstance(argument, Node):
            return self.of(argument)
        if isinstance(argument, tuple | list):
            return tuple(map(self.argument, argument))
        if isinstance(argument, slice):
            return slice(*map(self.argument, (argument.start, argument.stop, argument.step)))
        return argument

    def is_known(self, expr: Expr) -> bool:
        """Whether an expression is never negative at a place in the mask."""
        return prove_nonneg(expr, self._ranges())

    def are_equal(self, left: Expr, right: Expr) -> bool:
        """Whether two expressions are equal at all places in the mask."""
        return prove_eq(left, right, self._ranges())

    def conjunction(self, conditions: Sequence[Expr]) -> Term:
        """Conditions without those that always hold, or hold where another one does."""
        kept: list[Expr] = []
        for each in conditions:
            if self.is_known(-each - 1):
                return FALSE
            if not self.is_known(each) and not any(self.is_known(each - other) for other in kept):
                kept = [other for other in kept if not self.is_known(other - each)] + [each]
        return All(tuple(kept))


def _rule(node: Node) -> Callable[..., Any] | None:
    """How a call is read."""
    return _RULES.get(operation_name(node) or "")


def described(node: Node) -> str:
    """A call for a remark: its name, and what is called."""
    called = node.target if isinstance(node.target, str) else getattr(node.target, "__qualname__", node.target)
    return node.name if node.op == "placeholder" else f"{node.name}, a {node.op} of {called}"


def operation_name(node: Node) -> str | None:
    """The name of a method or an attribute of tensors, of one of Python's operators, or of a function of torch.

    That of `and_` is "and".
    """
    if node.op == "call_method":
        name = str(node.target)
        return name[2:-2] if name.startswith("__") and name.endswith("__") else name
    if node.op != "call_function":
        return None
    attribute = computed_attribute(node)
    if attribute is not None:
        return attribute
    name = getattr(node.target, "__name__", "")
    is_own = any(getattr(module, name, None) is node.target for module in (operator, torch, torch.Tensor))
    return name.strip("_") if name and is_own and (not name.endswith("_") or hasattr(operator, name)) else None


def expression(value: Any) -> Expr:
    """A size; UnknownTermError for one that is no expression here."""
    try:
        return from_symint(value)
    except UnsupportedError as error:
        raise UnknownTermError(str(error)) from error


def _integer(value: Any) -> Expr:
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnknownTermError(f"{value} is no integer")
    return const(value)


def _tensor(value: Any) -> Tensor:
    """A tensor; a number is one without dimensions."""
    if isinstance(value, Tensor):
        return value
    term = (TRUE if value else FALSE) if isinstance(value, bool) else _integer(value)
    return Tensor((), lambda index: term)


def broadcast(*tensors: Tensor) -> tuple[tuple[Expr, ...], list[Callable[[Index], Term]]]:
    """The shape of several tensors together, and the element of each for an index of it."""
    rank = max(len(t.shape) for t in tensors)
    padded = [(*[ONE] * (rank - len(t.shape)), *t.shape) for t in tensors]
    shape = tuple(next((n for n in sizes if n is not ONE), ONE) for sizes in zip(*padded, strict=True))
    return shape, [stretched(t, rank) for t in tensors]


def stretched(tensor: Tensor, rank: int) -> Callable[[Index], Term]:
    """The element for an index of more or larger dimensions."""
    missing = rank - len(tensor.shape)

    def at(index: Index) -> Term:
        return tensor.at(tuple(ZERO if n is ONE else i for i, n in zip(index[missing:], tensor.shape, strict=True)))

    return at


def _elementwise(function: Callable[..., Term]) -> Callable[..., Tensor | Expr]:
    def rule(terms: Terms, *operands: Any, **options: Any) -> Tensor | Expr:
        if options:
            raise UnknownTermError(f"an operation with {', '.join(options)} is not understood")
        tensors = [_tensor(each) for each in operands]
        shape, parts = broadcast(*tensors)
        return Tensor(shape, lambda index: function(terms, *(part(index) for part in parts)))

    return rule


def _number(term: Term) -> Expr:
    if isinstance(term, Expr):
        return term
    if term == TRUE:
        return ONE
    if term == FALSE:
        return ZERO
    raise UnknownTermError("a truth is counted")


def truth_of(terms: Terms, term: Term) -> All | Never:
    """What a term says as a truth; UnknownTermError where its value decides."""
    if not isinstance(term, Expr):
        return term
    if terms.are_equal(term, ZERO):
        return FALSE
    if terms.is_known(term - 1) or terms.is_known(-term - 1):
        return TRUE
    raise UnknownTermError("an integer is taken as a truth")


def _arithmetic(function: Callable[[Expr, Expr], Expr]) -> Callable[..., Any]:
    def element(terms: Terms, a: Term, b: Term) -> Term:
        if not isinstance(a, Expr) and not isinstance(b, Expr):
            raise UnknownTermError("truths are added")  # True + True == True
        return function(_number(a), _number(b))

    return _elementwise(element)


def _bitwise(function: Callable[..., Term]) -> Callable[..., Any]:
    """Of truths alone: bits of integers are something else."""

    def element(terms: Terms, *operands: Term) -> Term:
        if any(isinstance(each, Expr) for each in operands):
            raise UnknownTermError("bits of integers are combined")
        return function(terms, *operands)

    return _elementwise(element)


def _at_least(terms: Terms, a: Term, b: Term) -> Term:
    return terms.conjunction([_number(a) - _number(b)])


def _equal(terms: Terms, a: Term, b: Term) -> Term:
    difference = _number(a) - _number(b)
    return terms.conjunction([difference, -difference])


def both(terms: Terms, a: Term, b: Term) -> Term:
    """Whether two truths hold together."""
    a, b = truth_of(terms, a), truth_of(terms, b)
    if isinstance(a, Never) or isinstance(b, Never):
        return FALSE
    return terms.conjunction([*a.conditions, *b.conditions])


def negated(terms: Terms, a: Term) -> Term:
    """The opposite of a truth; UnknownTermError where that is no conjunction."""
    a = truth_of(terms, a)
    if isinstance(a, Never):
        return TRUE
    if not a.conditions:
        return FALSE
    if len(a.conditions) == 1:  # not x >= 0 == -x - 1 >= 0
        return terms.conjunction([-a.conditions[0] - 1])
    raise UnknownTermError("several conditions are negated")


def _or(terms: Terms, a: Term, b: Term) -> Term:
    a, b = truth_of(terms, a), truth_of(terms, b)
    if TRUE in (a, b):
        return TRUE
    if isinstance(a, Never) or isinstance(b, Never):
        return b if isinstance(a, Never) else a
    raise UnknownTermError("one of several conditions suffices")


def _arange(terms: Terms, *numbers: Any, dtype: Any = None, **_: Any) -> Tensor:
    if dtype not in (None, *_WIDE):
        raise UnknownTermError(f"it is made of {dtype}")
    first, end, step = (0, *numbers, 1) if len(numbers) == 1 else (*numbers, 1)[:3]
    first, end, step = map(_integer, (first, end, step))
    return Tensor((end - first,), lambda index: first + step * index[0])


def _filled(value: Any) -> Callable[..., Tensor]:
    def rule(terms: Terms, *args: Any, dtype: Any = None, **_: Any) -> Tensor:
        term = _tensor(value).at(())
        sizes = args[-1] if args and isinstance(args[-1], tuple) else args
        sizes = [each for each in sizes if not isinstance(each, Tensor)]
        number = _number(term)
        chosen = (FALSE if number is ZERO else TRUE) if dtype is torch.bool else number
        return Tensor(tuple(map(_integer, sizes)), lambda index: chosen)

    return rule


def _full(terms: Terms, *args: Any, dtype: Any = None, **_: Any) -> Tensor:
    sizes, value = [each for each in args if not isinstance(each, Tensor)]
    given = _tensor(value).at(())
    chosen = truth_of(terms, given) if dtype is torch.bool else given
    return Tensor(tuple(map(_integer, sizes)), lambda index: chosen)


def _expanded(terms: Terms, tensor: Tensor, *sizes: Any) -> Tensor:
    sizes = sizes[0] if isinstance(sizes[0], tuple) else sizes
    rank = len(sizes)
    kept = (*[None] * (rank - len(tensor.shape)), *tensor.shape)
    shape = tuple(k if n == -1 else _integer(n) for n, k in zip(sizes, kept, strict=True))
    return Tensor(tuple(n for n in shape if n is not None), stretched(tensor, rank))


def _expanded_as(terms: Terms, tensor: Tensor, other: Tensor) -> Tensor:
    return Tensor(other.shape, stretched(tensor, len(other.shape)))


def _reshaped(terms: Terms, tensor: Tensor, *sizes: Any) -> Tensor:
    """With dimensions of size 1 in other places."""
    sizes = sizes[0] if isinstance(sizes[0], tuple) else sizes
    given = [None if isinstance(size, int) and size == -1 else _integer(size) for size in sizes]
    before = [dim for dim, size in enumerate(tensor.shape) if size is not ONE]
    behind = [dim for dim, size in enumerate(given) if size is not ONE]
    alike = len(before) == len(behind) and all(
        given[new] in (None, tensor.shape[old]) for old, new in zip(before, behind, strict=True)
    )
    if not alike:
        raise UnknownTermError("it is reshaped")
    shape = [ONE] * len(given)
    for old, new in zip(before, behind, strict=True):
        shape[new] = tensor.shape[old]

    def at(index: Index) -> Term:
        places = [ZERO] * len(tensor.shape)
        for old, new in zip(before, behind, strict=True):
            places[old] = index[new]
        return tensor.at(tuple(places))

    return Tensor(tuple(shape), at)


def _unsqueezed(terms: Terms, tensor: Tensor, dim: int) -> Tensor:
    place = dim % (len(tensor.shape) + 1)
    shape = (*tensor.shape[:place], ONE, *tensor.shape[place:])
    return Tensor(shape, lambda index: tensor.at((*index[:place], *index[place + 1 :])))


def _transposed(terms: Terms, tensor: Tensor, first: int, second: int) -> Tensor:
    order = list(range(len(tensor.shape)))
    order[first], order[second] = order[second], order[first]
    return Tensor(tuple(tensor.shape[d] for d in order), lambda index: tensor.at(tuple(index[d] for d in order)))


def _same(terms: Terms, tensor: Tensor, *options: Any, **named: Any) -> Tensor:
    """A copy, possibly as another type; one of few bits might not hold the integer."""
    if any(isinstance(each, Tensor) for each in (*options, *named.values())):
        raise UnknownTermError("the type is another tensor's")
    dtype = next((each for each in (*options, *named.values()) if isinstance(each, torch.dtype)), None)
    if dtype is torch.bool:
        return Tensor(tensor.shape, lambda index: truth_of(terms, tensor.at(index)))
    if dtype is None:
        return tensor
    if dtype not in _WIDE:
        raise UnknownTermError(f"it is made of {dtype}")
    return Tensor(tensor.shape, lambda index: _number(tensor.at(index)))


def _indexed(terms: Terms, tensor: Any, places: Any) -> Any:
    if not isinstance(tensor, Tensor):
        return tensor[places]
    places = places if isinstance(places, tuple) else (places,)
    if any(isinstance(each, Tensor) for each in places):
        return _gathered(terms, tensor, places)
    given = sum(each is not None and each is not Ellipsis for each in places)
    if Ellipsis in places:
        k = places.index(Ellipsis)
        places = (*places[:k], *[slice(None)] * (len(tensor.shape) - given), *places[k + 1 :])
    else:
        places = (*places, *[slice(None)] * (len(tensor.shape) - given))
    shape: list[Expr] = []
    makers: list[Callable[[Index], Expr]] = []
    dims = iter(tensor.shape)
    for each in places:
        if each is None:
            shape.append(ONE)
            continue
        size = next(dims)
        first = _first(terms, each, size)
        makers.append(_place(len(shape), first, isinstance(each, slice)))
        if isinstance(each, slice):
            shape.append(size if each.stop is None else _integer(each.stop) - first)
    return Tensor(tuple(shape), lambda index: tensor.at(tuple(make(index) for make in makers)))


def _first(terms: Terms, place: Any, size: Expr) -> Expr:
    """The first place that an index or a slice takes."""
    if not isinstance(place, slice):
        number = _integer(place)
        return number if terms.is_known(number) else number + size
    if place.step not in (None, 1):
        raise UnknownTermError("a slice has steps")
    first = ZERO if place.start is None else _integer(place.start)
    if not terms.is_known(first):
        raise UnknownTermError("a slice begins at the end")
    return first


def _place(position: int, first: Expr, moves: bool) -> Callable[[Index], Expr]:
    return (lambda index: first + index[position]) if moves else (lambda index: first)


def _gathered(terms: Terms, tensor: Tensor, places: Sequence[Any]) -> Tensor:
    if len(places) != len(tensor.shape) or not all(isinstance(each, Tensor) for each in places):
        raise UnknownTermError("some dimensions are indexed by tensors")
    shape, parts = broadcast(*places)

    def at(index: Index) -> Term:
        found = tuple(_number(part(index)) for part in parts)
        if not all(map(terms.is_known, found)):
            raise UnknownTermError("an index may be negative")
        return tensor.at(found)

    return Tensor(shape, at)


def _differences(terms: Terms, tensor: Tensor, n: int = 1, dim: int = -1, prepend: Any = None) -> Tensor:
    """x[i] - x[i - 1]; where what is prepended continues x, so for the first."""
    rank = len(tensor.shape)
    if n != 1 or dim not in (-1, rank - 1) or not isinstance(prepend, Tensor):
        raise UnknownTermError("differences of another kind")
    before = stretched(prepend, rank)

    def at(index: Index) -> Term:
        *outer, last = index
        here, previous = tensor.at(index), tensor.at((*outer, last - 1))
        if prepend.shape[-1] is not ONE or before((*outer, ZERO)) != tensor.at((*outer, const(-1))):
            raise UnknownTermError("what is prepended does not continue the positions")
        return _number(here) - _number(previous)

    return Tensor(tensor.shape, at)


def _running_sum(terms: Terms, tensor: Tensor, dim: int = -1, **_: Any) -> Tensor:
    """Of zeros alone."""

    def at(index: Index) -> Term:
        anywhere = tuple(symbol(f"j{k}") for k in range(len(index)))
        if _number(tensor.at(anywhere)) is not ZERO:
            raise UnknownTermError("a running sum of other than zeros")
        return ZERO

    return Tensor(tensor.shape, at)


def inside_triangle(terms: Terms, index: Index, diagonal: Any, sign: int) -> Term:
    """j - i <= diagonal (1), or at least it (-1), of the last two places."""
    return terms.conjunction([(index[-2] - index[-1] + _integer(diagonal)) * sign])


def _triangle(terms: Terms, tensor: Tensor, diagonal: Any, sign: int) -> Tensor:
    """Of truths."""

    def at(index: Index) -> Term:
        return both(terms, truth_of(terms, tensor.at(index)), inside_triangle(terms, index, diagonal, sign))

    return Tensor(tensor.shape, at)


_RULES: Mapping[str, Callable[..., Any]] = {
    "add": _arithmetic(operator.add), "sub": _arithmetic(operator.sub), "mul": _arithmetic(operator.mul),
    "neg": _elementwise(lambda terms, a: -_number(a)),
    "ge": _elementwise(_at_least), "le": _elementwise(lambda terms, a, b: _at_least(terms, b, a)),
    "gt": _elementwise(lambda terms, a, b: _at_least(terms, _number(a) - 1, b)),
    "lt": _elementwise(lambda terms, a, b: _at_least(terms, _number(b) - 1, a)),
    "eq": _elementwise(_equal), "ne": _elementwise(lambda terms, a, b: negated(terms, _equal(terms, a, b))),
    "and": _bitwise(both), "or": _bitwise(_or), "invert": _bitwise(negated), "logical_and": _elementwise(both),
    "logical_or": _elementwise(_or), "logical_not": _elementwise(negated),
    "arange": _arange, "ones": _filled(1), "zeros": _filled(0), "new_ones": _filled(1), "new_zeros": _filled(0),
    "full": _full, "new_full": _full, "expand": _expanded, "expand_as": _expanded_as, "unsqueeze": _unsqueezed,
    "view": _reshaped, "reshape": _reshaped,
    "transpose": _transposed, "mT": lambda t, x, *_: _transposed(t, x, -1, -2),
    "T": lambda t, x, *_: Tensor(x.shape[::-1], lambda index: x.at(index[::-1])), "to": _same,
    "bool": lambda t, x: _same(t, x, torch.bool),
    "long": lambda t, x: _same(t, x, torch.int64), "contiguous": _same, "clone": _same, "getitem": _indexed,
    "diff": _differences, "cumsum": _running_sum,
    "tril": lambda t, x, diagonal=0: _triangle(t, x, diagonal, 1),
    "triu": lambda t, x, diagonal=0: _triangle(t, x, diagonal, -1),
}  # fmt: skip

_STRUCTURE = frozenset(
    ["expand", "expand_as", "view", "reshape", "unsqueeze", "transpose", "mT", "contiguous", "clone", "getitem"]
)


def structure_rule(name: str) -> Callable[..., Tensor] | None:
    """How an operation is read that moves elements and looks at none; None for others."""
    return _RULES[name] if name in _STRUCTURE else None
