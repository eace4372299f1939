"""The rules of `graph-canonicalize`: small functions, each one identity, in a table by packet.

A rule gets an op and returns the value that replaces its result, or None when it does not match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from ...dialects.aten import AtenOp, Device, TensorType
from ...dialects.aten.types import type_of
from ...dialects.sym import Expr
from ..analysis.memory import escapes, is_returned, roots
from ._constants import converted
from ._dtypes import is_exact, is_float


class Rewriter:
    """What rules may ask and do."""

    def __init__(self, written: set[SSAValue]) -> None:
        self._written = written
        self.inserted: Operation | None = None

    def may_alias(self, result: SSAValue, source: SSAValue) -> bool:
        """Whether uses of `result`, a view of `source`, may use `source`.

        A view that is returned is an output of its own, apart from inputs and other outputs; it may only give way to
        a value that nobody else can get hold of.
        """
        if not is_returned(result):
            return True
        return all(map(_is_fresh, roots(source))) and not is_returned(source)

    def may_share(self, result: SSAValue, source: SSAValue) -> bool:
        """Whether uses of `result`, a copy of `source`, may use `source`: nobody writes either or keeps both."""
        if self._is_written(result) or self._is_written(source):
            return False
        return not escapes(result) or (roots(source) == (source,) and _is_fresh(source) and not escapes(source))

    def _is_written(self, value: SSAValue) -> bool:
        return any(root in self._written for root in (value, *roots(value)))

    def insert(self, op: AtenOp, target: str, args: Mapping[str, Any]) -> SSAValue:
        """A new op of the same result type, in front of `op`, with what a joint graph says of that."""
        new = AtenOp.of(target, args, (op.results[0].type,), op.location)
        new.attributes.update(op.attributes)
        assert op.parent is not None
        op.parent.insert_op_before(new, op)
        new.results[0].name_hint = op.results[0].name_hint
        self.inserted = new
        return new.results[0]


def _is_fresh(value: SSAValue) -> bool:
    """Whether a value is no argument of the function, so that nobody outside has its memory yet."""
    return isinstance(value.owner, Operation)


Rule = Callable[[AtenOp, Rewriter], SSAValue | None]


def view_of_same_type(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    """view(x, sizes of x) == x, and likewise for other views that keep elements in order."""
    source = op.arg("self")
    if op.results[0].type == source.type and rewriter.may_alias(op.results[0], source):
        return source
    return None


def copy_of_same_type(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    """clone(x) == x, where nobody can tell a copy from the original."""
    source = op.operands[0]
    if op.results[0].type == source.type and rewriter.may_share(op.results[0], source):
        return source
    return None


def view_of_view(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    """view(view(x, a), b) == view(x, b)"""
    inner = op.arg("self").owner
    if op.target == "aten.view.dtype" or not isinstance(inner, AtenOp) or inner.target != "aten.view":
        return None
    return rewriter.insert(op, op.target, {"self": inner.arg("self"), "size": type_of(op.results[0]).shape})


def permutation(op: Operation) -> tuple[int, ...] | None:
    """For `permute`, `transpose` and `t`: which dimension of the source each result dimension is."""
    if not isinstance(op, AtenOp) or op.target not in ("aten.permute", "aten.transpose.int", "aten.t"):
        return None
    rank = len(type_of(op.results[0]).shape)
    dims = list(range(rank))
    if op.target == "aten.permute":
        return tuple(d % rank for d in op.arg("dims")) if rank else ()
    first, second = (0, 1) if op.target == "aten.t" else (op.arg("dim0"), op.arg("dim1"))
    if rank < 2:
        return tuple(dims)
    dims[first], dims[second] = dims[second], dims[first]
    return tuple(dims)


def permutation_of_permutation(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    """permute(permute(x, p), q) == permute(x, p o q); nothing when that is the identity."""
    outer, inner = permutation(op), None
    source = op.operands[0]
    if isinstance(source.owner, Operation):
        inner = permutation(source.owner)
    if outer is None:
        return None
    if inner is not None:
        assert isinstance(source.owner, AtenOp)
        source = source.owner.operands[0]
        outer = tuple(inner[d] for d in outer)
    if outer == tuple(range(len(outer))) and rewriter.may_alias(op.results[0], source):
        return source
    if inner is None:
        return None
    return rewriter.insert(op, "aten.permute", {"self": source, "dims": outer})


def cast_of_exact_cast(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    """cast(cast(x, wide), t) == cast(x, t) when every value of x is a value of the wide type"""
    inner = op.arg("self").owner
    if not isinstance(inner, AtenOp) or inner.target != "aten._to_copy" or not _is_plain_cast(inner):
        return None
    source = inner.arg("self")
    narrow, wide, result = type_of(source), type_of(inner.results[0]), type_of(op.results[0])
    if narrow.strides != wide.strides or not is_exact(narrow.element, wide.element):
        return None
    to_number = isinstance(result.element, IntegerType) and result.element.width.data > 1
    if to_number and is_float(wide.element) and not is_exact(narrow.element, result.element):
        return None  # out of range, the conversion depends on the type it starts from
    args = {name: value for name, value in op.args().items() if name != "self" and name in op.properties}
    return rewriter.insert(op, op.target, {**args, "self": source, "dtype": result.element})


def _is_plain_cast(op: AtenOp) -> bool:
    """Whether a `_to_copy` changes nothing but the dtype."""
    return type_of(op.operands[0]).device == type_of(op.results[0]).device and not op.arg("pin_memory")


#: constructors of constants -> how the fill value follows from the op
_FILL: dict[str, Callable[[AtenOp], Any]] = {
    "aten.zeros": lambda op: 0,
    "aten.zeros_like": lambda op: 0,
    "aten.new_zeros": lambda op: 0,
    "aten.ones": lambda op: 1,
    "aten.ones_like": lambda op: 1,
    "aten.new_ones": lambda op: 1,
    "aten.full_like": lambda op: op.arg("fill_value"),
    "aten.new_full": lambda op: op.arg("fill_value"),
    "aten.scalar_tensor": lambda op: op.arg("s"),
}


def constant_is_full(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    """zeros(n) == full(n, 0), and likewise for ones, the `_like` and `new_` forms and scalar_tensor."""
    fill = _FILL.get(op.target)
    type_ = type_of(op.results[0])
    if fill is None or not type_.is_contiguous or op.arg("pin_memory"):
        return None
    return rewriter.insert(op, "aten.full", _full(type_, fill(op)))


def _full(type_: TensorType, value: Any) -> dict[str, Any]:
    return {
        "size": type_.shape,
        "fill_value": value,
        "dtype": type_.element,
        "device": Device(type_.device),
    }


def cast_of_full(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    """cast(full(n, v), t) == full(n, v), where v is a value of both types"""
    inner = op.arg("self").owner
    if not isinstance(inner, AtenOp) or inner.target != "aten.full" or not _is_plain_cast(op):
        return None
    type_ = type_of(op.results[0])
    value = converted(inner.arg("fill_value"), type_of(inner.results[0]).element, type_.element)
    if value is None or not type_.is_contiguous:
        return None
    return rewriter.insert(op, "aten.full", _full(type_, value))


def _is_number(value: Any, number: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, Expr) and value == number


def multiply_by_one(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    """x * 1 == x; of floats too: NaN stays NaN, -0.0 stays -0.0"""
    if op.target in ("aten.mul.Scalar", "aten.div.Scalar") and _is_number(op.arg("other"), 1):
        return copy_of_same_type(op, rewriter)
    return None


def add_integer_zero(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    """x + 0 == x for integers; for floats it would turn -0.0 into 0.0"""
    is_integer = isinstance(type_of(op.results[0]).element, IntegerType)
    if op.target in ("aten.add.Scalar", "aten.sub.Scalar") and is_integer and _is_number(op.arg("other"), 0):
        return copy_of_same_type(op, rewriter)
    return None


_VIEWS = (view_of_same_type,)
_PERMUTATIONS = (permutation_of_permutation,)
_CONSTANTS = (constant_is_full,)

#: packet -> rules, in the order in which they are tried
RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys(("alias", "detach", "expand", "lift", "lift_fresh", "reshape", "slice", "squeeze"), _VIEWS),
    "view": (view_of_same_type, view_of_view),
    "_unsafe_view": (copy_of_same_type, view_of_view),
    **dict.fromkeys(("permute", "transpose", "t"), _PERMUTATIONS),
    **dict.fromkeys(("clone", "lift_fresh_copy"), (copy_of_same_type,)),
    "_to_copy": (copy_of_same_type, cast_of_exact_cast, cast_of_full),
    **dict.fromkeys(
        ("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full_like", "new_full", "scalar_tensor"),
        _CONSTANTS,
    ),
    "mul": (multiply_by_one,),
    "div": (multiply_by_one,),
    "add": (add_integer_zero,),
    "sub": (add_integer_zero,),
}
