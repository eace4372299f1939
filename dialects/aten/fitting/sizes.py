"""Sizes as the rules see them: expressions of which some are not known, and what must hold of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import TypeAlias

from xdsl.ir import SSAValue

from ...sym import ONE, Expr, SymError, as_expr
from ..ops import AtenOp
from ..types import TensorType
from ..values import Value

#: a size that is not known is None
Size: TypeAlias = Expr | None
Sizes: TypeAlias = tuple[Size, ...]
#: the sizes of an op's results, in order; None for one of which nothing is known
Results: TypeAlias = Sequence["Sizes | None"]
Rule: TypeAlias = Callable[["Arguments"], Results]


class MisfitError(Exception):
    """Arguments that do not fit; the text says which and why."""


class UnknownError(Exception):
    """A rule asks for what the IR does not say."""


class Arguments:
    """The arguments of an op by name."""

    def __init__(self, op: AtenOp) -> None:
        self.op = op

    def has(self, name: str) -> bool:
        """Whether the overload takes an argument of this name."""
        return name in self.op.schema.by_name

    def __getitem__(self, name: str) -> Value:
        """A number, a list of numbers, ... Raises UnknownError for one that another op computes, or none takes."""
        value = self._argument(name)
        if isinstance(value, SSAValue) or (
            isinstance(value, tuple) and any(isinstance(item, SSAValue) for item in value)
        ):
            raise UnknownError
        return value

    def get(self, name: str, default: Value = None) -> Value:
        """An argument, or a default where the overload has none of that name."""
        return self[name] if self.has(name) else default

    def integer(self, name: str) -> int:
        """A number. Raises UnknownError for a symbol."""
        return known(self[name])

    def integers(self, name: str) -> tuple[int, ...]:
        """A list of numbers, which may be written as one."""
        value = self[name]
        return tuple(known(each) for each in value) if isinstance(value, tuple) else (known(value),)

    def sizes(self, name: str) -> Sizes:
        """A list of sizes."""
        value = self[name]
        return tuple(as_expr(each) for each in (value if isinstance(value, tuple) else (value,)))

    def shape(self, name: str) -> tuple[Expr, ...]:
        """The sizes of a tensor."""
        found = self.shape_or_none(name)
        if found is None:
            raise UnknownError
        return found

    def shape_or_none(self, name: str) -> tuple[Expr, ...] | None:
        """The sizes of a tensor that may be left out."""
        value = self._argument(name)
        return value.type.shape if isinstance(value, SSAValue) and isinstance(value.type, TensorType) else None

    def shapes(self, name: str) -> list[tuple[Expr, ...] | None]:
        """The sizes of a list of tensors, None for those left out."""
        values = self._argument(name)
        if not isinstance(values, tuple):
            raise UnknownError
        return [v.type.shape if isinstance(v, SSAValue) and isinstance(v.type, TensorType) else None for v in values]

    def _argument(self, name: str) -> Value:
        if not self.has(name):
            raise UnknownError  # another overload of the name, which the rule is not about
        return self.op.arg(name)

    def tensors(self) -> list[tuple[Expr, ...]]:
        """The sizes of all tensors."""
        return [value.type.shape for value in self.op.operands if isinstance(value.type, TensorType)]

    def dim(self, rank: int, name: str = "dim") -> int:
        """A dimension of a tensor, counted from the front."""
        return dimension(self.integer(name), rank)


def require(holds: bool, problem: str) -> None:
    """Raise MisfitError unless it holds."""
    if not holds:
        raise MisfitError(problem)


def known(value: Value) -> int:
    """A number of an argument. Raises UnknownError for a symbol."""
    number = value.as_int() if isinstance(value, Expr) else value
    if not isinstance(number, int):
        raise UnknownError
    return number


def dimension(dim: int, rank: int) -> int:
    """A dimension counted from the front; a 0-d tensor has dimension 0 too."""
    limit = max(rank, 1)
    require(-limit <= dim < limit, f"dimension {dim} of a tensor with {rank}")
    return dim % limit


def dimensions(dims: Iterable[int], rank: int) -> tuple[int, ...]:
    """Dimensions counted from the front, each of which may be named once."""
    found = tuple(dimension(dim, rank) for dim in dims)
    require(len(set(found)) == len(found), f"a dimension is named twice in {list(found)}")
    return found


def differ(left: Size, right: Size) -> bool:
    """Whether two sizes are known to differ."""
    if left is right or left is None or right is None:
        return False
    try:
        difference = (left - right).as_int()
    except SymError:
        return False
    return difference not in (None, 0)


def text(sizes: Iterable[Size]) -> str:
    """Sizes for a message: `4x(s0)x?`."""
    return "x".join("?" if size is None else str(size) for size in sizes) or "0-d"


def require_same(left: Sequence[Size], right: Sequence[Size], what: str) -> None:
    """Raise MisfitError where sizes are known to differ."""
    fits = len(left) == len(right) and not any(map(differ, left, right))
    require(fits, f"{what} is {text(left)}, and not {text(right)}")


def broadcast(*shapes: Sequence[Size]) -> Sizes:
    """The sizes that tensors are broadcast to."""
    rank = max(map(len, shapes), default=0)
    result: list[Size] = [ONE] * rank
    for shape in shapes:
        for place, size in enumerate(shape, rank - len(shape)):
            result[place] = _common(result[place], size, shapes)
    return tuple(result)


def _common(left: Size, right: Size, shapes: Sequence[Sequence[Size]]) -> Size:
    if left is ONE or left is right:
        return right
    if right is ONE:
        return left
    if left is None or right is None:
        return None
    numbers = left.as_int(), right.as_int()
    if None not in numbers:
        raise MisfitError(f"{' and '.join(map(text, shapes))} do not broadcast")
    return left if numbers[0] is not None else right if numbers[1] is not None else None


def require_broadcast_to(source: Sequence[Size], target: Sequence[Size], what: str) -> None:
    """Raise MisfitError where a tensor is known not to broadcast to sizes."""
    skipped = len(target) - len(source)
    fits = skipped >= 0 and not any(
        s is not ONE and differ(s, t) for s, t in zip(source, target[skipped:], strict=True)
    )
    require(fits, f"{what} of {text(source)} does not broadcast to {text(target)}")


def number_of(sizes: Sequence[Size]) -> int | None:
    """How many elements there are, None where that is not known."""
    numbers = [None if size is None else size.as_int() for size in sizes]
    if 0 in numbers:
        return 0
    return None if None in numbers else prod(n for n in numbers if n is not None)


def without(sizes: Sequence[Size], dims: Iterable[int], keepdim: bool = False) -> Sizes:
    """The sizes that a reduction leaves."""
    gone = set(dims)
    if keepdim:
        return tuple(ONE if d in gone else size for d, size in enumerate(sizes))
    return tuple(size for d, size in enumerate(sizes) if d not in gone)


def replaced(sizes: Sequence[Size], dim: int, size: Size) -> Sizes:
    """The sizes with another one in a dimension."""
    return (*sizes[:dim], size, *sizes[dim + 1 :])


def same_as(name: str) -> Rule:
    """All results have the sizes of an argument."""
    return lambda a: [a.shape(name)] * len(a.op.results)


def of_broadcast(a: Arguments) -> Results:
    """All results have the sizes that the tensors are broadcast to."""
    return [broadcast(*a.tensors())] * len(a.op.results)
