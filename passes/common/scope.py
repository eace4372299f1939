"""Which names an op uses in its index expressions, and which ones it declares for the ops inside or behind it.

Names of symbols and axes are no SSA values, so what dominance is for values is checked here by name: an axis is known
inside the nest that declares it, a symbol that an op binds behind that op, `d0, d1, ...` on the op that has them as
dynamic operands, and a function's other symbols in all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from ...dialects import host, kernel, loop
from ...dialects.access import is_dynamic_name
from ...dialects.aten import AtenOp, CallOp, TensorType
from ...dialects.aten.attributes import TupleAttr
from ...dialects.aten.binding import bindings
from ...dialects.sym import AxesAttr, Expr, MapAttr, SymAttr, SymbolAttr, SymbolDeclaration, SymError, symbol
from ...records import dataclass

#: smallest and largest value of a name, both included; None where they are not known
Range: TypeAlias = "tuple[int, int] | None"
NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Facts:
    """What the names of one op are.

    needs: names that must be declared around the op
    axes:  declared for its first `inside` regions, with their ranges; an empty range where no point is
    binds: symbols that are known behind the op
    """

    needs: frozenset[str] = NOTHING
    axes: tuple[tuple[str, Range], ...] = ()
    inside: int = 0
    binds: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether an axis has no point, so that what is inside never runs."""
        return any(found is not None and found[0] > found[1] for _, found in self.axes)


NO_NAMES = Facts()
_DYNAMIC = (loop.LoadOp, loop.IndexOp, loop.ScatterOp, kernel.LoadOp, kernel.StoreOp, kernel.IndexOp)
_KERNEL_LOOPS = (kernel.ForOp, kernel.ReduceOp, kernel.ScanOp)
_NESTS = (loop.GenerateOp, loop.ReduceOp, loop.ScanOp, loop.ScatterOp, loop.ViewOp)


def facts_of(op: Operation) -> tuple[Facts, str | None]:
    """The names of an op, and what is wrong with them whatever is around it."""
    if isinstance(op, FuncOp | host.FuncOp | kernel.FuncOp):
        return NO_NAMES, None  # see `declared_by`
    needs = _union(names_in(result.type) for result in op.results)
    if isinstance(op, _KERNEL_LOOPS):
        return _of_kernel_loop(op, needs)
    if isinstance(op, loop.FusionOp):
        names = [*op.axes.names, *op.inner.names]
        return Facts(needs | names_in(op.axes) | names_in(op.inner)), _name_problem(names)
    if isinstance(op, _NESTS):
        return _of_nest(op, needs)
    used = _union(map(names_in, op.properties.values()))
    if isinstance(op, _DYNAMIC):
        used -= _dynamic_names(len(op.dynamic))
    if isinstance(op, AtenOp | CallOp) and "binds" in op.properties:
        return Facts(needs - {*op.binds} | used, binds=op.binds), _binding_problem(op)
    return (Facts(needs | used) if needs or used else NO_NAMES), None


def _of_kernel_loop(
    op: kernel.ForOp | kernel.ReduceOp | kernel.ScanOp, needs: frozenset[str]
) -> tuple[Facts, str | None]:
    lo, hi, name = op.lo.data.as_int(), op.hi.data.as_int(), op.axis.data
    axes = ((name, None if lo is None or hi is None else (lo, hi - 1)),)
    problem = _name_problem([name])
    if name == "init" and not isinstance(op, kernel.ForOp):
        problem = f"an axis cannot be called {name!r}: it does not read back"
    needs |= op.lo.data.free_symbols | op.hi.data.free_symbols
    return Facts(needs, axes, 2 if isinstance(op, kernel.ScanOp) else 1), problem


def _of_nest(
    op: loop.GenerateOp | loop.ReduceOp | loop.ScanOp | loop.ScatterOp | loop.ViewOp, needs: frozenset[str]
) -> tuple[Facts, str | None]:
    sizes = [size.as_int() for size in op.axes.sizes]
    axes = [(name, None if n is None else (0, n - 1)) for name, n in zip(op.axes.names, sizes, strict=True)]
    needs |= names_in(op.axes)
    if isinstance(op, loop.ScatterOp | loop.ViewOp):
        needs |= names_in(op.map) - {*op.axes.names}
    if isinstance(op, loop.ScatterOp):
        needs -= _dynamic_names(len(op.dynamic))
    on = getattr(op, "on", None)
    places = [] if on is None else [place.data for place in on]
    return Facts(needs, tuple(axes), 0 if isinstance(op, loop.ViewOp) else 1), _name_problem(op.axes.names, places)


@lru_cache(maxsize=64)
def _dynamic_names(count: int) -> frozenset[str]:
    return frozenset(f"d{k}" for k in range(count))


def names_in(attribute: Attribute) -> frozenset[str]:
    """Names that the index expressions in an attribute or type use."""
    kind = type(attribute)
    read = _READERS.get(kind)
    if read is None:
        read = _READERS[kind] = next((how for of, how in _KINDS if issubclass(kind, of)), _no_names)
    return read(attribute)


def _no_names(attribute: Attribute) -> frozenset[str]:
    return NOTHING


_KINDS: tuple[tuple[type[Attribute], Callable[[Any], frozenset[str]]], ...] = (
    (TensorType, lambda attribute: _tensor_names(attribute)),
    (SymAttr, lambda attribute: attribute.data.free_symbols),
    (MapAttr, lambda attribute: _of_exprs(attribute.data)),
    (AxesAttr, lambda attribute: _of_exprs(attribute.sizes)),
    (kernel.BufferType, lambda attribute: attribute.extent.free_symbols),
    (TupleAttr, lambda attribute: names_in(attribute.data)),
    (ArrayAttr, lambda attribute: _union(map(names_in, attribute.data))),
    (DictionaryAttr, lambda attribute: _union(map(names_in, attribute.data.values()))),
)
_READERS: dict[type[Attribute], Callable[[Any], frozenset[str]]] = {}
"""How each class of attributes that was met is read."""


@lru_cache(maxsize=16384)
def _tensor_names(kind: TensorType) -> frozenset[str]:
    return _of_exprs(kind.shape) | _of_exprs(kind.data.strides or ())


def _of_exprs(exprs: Iterable[Expr]) -> frozenset[str]:
    return _union(expr.free_symbols for expr in exprs)


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    found = NOTHING
    for each in sets:
        if each:
            found = found | each if found else each
    return found


def declared_by(function: FuncOp | host.FuncOp | kernel.FuncOp) -> tuple[tuple[str, ...], str | None]:
    """Symbols that are known in all of a function, and what is wrong with their declarations."""
    arguments = [a.type for block in function.body.blocks for a in block.args]
    if isinstance(function, kernel.FuncOp):
        names = tuple(name.data for name in function.symbols)
        return names, _name_problem(names) or _undeclared_in(arguments, names)
    attribute = function.symbols if isinstance(function, host.FuncOp) else function.attributes.get("symbols")
    if attribute is None:
        return (), _undeclared_in(arguments, ())
    if not isinstance(attribute, ArrayAttr) or not all(isinstance(each, SymbolAttr) for each in attribute):
        return (), "the attribute `symbols` is a list of #sym.symbol"
    declared = [each.data for each in attribute.data if isinstance(each, SymbolAttr)]
    problem = _name_problem([each.name for each in declared])
    for each in declared:
        problem = problem or _declaration_problem(each, arguments)
    names = tuple(each.name for each in declared if each.arg is not None)
    return names, problem or _undeclared_in(arguments, names)


def _declaration_problem(declared: SymbolDeclaration, arguments: list[Attribute]) -> str | None:
    if declared.arg is None:
        return None
    if declared.arg >= len(arguments):
        return f"symbol {declared.name} comes from argument {declared.arg}, and there are {len(arguments)}"
    kind, dim = arguments[declared.arg], declared.dim if declared.dim is not None else declared.stride
    if dim is None:
        fits = isinstance(kind, IndexType)
    else:
        fits = isinstance(kind, TensorType) and dim < len(kind.shape)
    if fits:
        return None
    wanted = "an index" if dim is None else f"a tensor with a dimension {dim}"
    return f"symbol {declared.name} comes from argument {declared.arg}, which is {kind} and not {wanted}"


def _undeclared_in(types: Iterable[Attribute], names: Iterable[str]) -> str | None:
    unknown = _union(map(names_in, types)) - {*names}
    return undeclared(unknown) if unknown else None


def undeclared(names: Iterable[str]) -> str:
    """The message for names that nothing declares."""
    name = min(names)
    if is_dynamic_name(name):
        return f"uses {name}, and has no such dynamic operand"
    return f"uses {name!r}, which nothing around it declares"


def _name_problem(names: Iterable[str], places: Iterable[str] = ()) -> str | None:
    """What is wrong with the names of axes that one op declares."""
    listed = list(names)
    if len(set(listed)) < len(listed):
        return f"declares {max(listed, key=listed.count)!r} twice"
    for name in (*listed, *places):
        if not _reads_back(name):
            return f"an axis or symbol cannot be called {name!r}: it does not read back"
    return None


@lru_cache(maxsize=4096)
def _reads_back(name: str) -> bool:
    if "$" in name or is_dynamic_name(name):
        return False
    try:
        symbol(name)
    except SymError:
        return False
    return True


def _binding_problem(op: AtenOp | CallOp) -> str | None:
    names = op.properties["binds"]
    if not isinstance(names, ArrayAttr) or not all(isinstance(name, StringAttr) for name in names):
        return "binds a list of names"
    try:
        bindings(op)
    except ValueError as error:
        return str(error)
    return _name_problem(op.binds)
