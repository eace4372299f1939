"""What a library does to a sum before it stores it, recognised from the nest that reads the sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten.types import type_of
from ...dialects.loop import GenerateOp, LoadOp, yielded
from ...dialects.scalar import CastOp, NarrowOp, WidenOp
from ...dialects.sym import ONE, ZERO, AxesAttr, symbol
from ...records import dataclass
from ._accesses import map_of

NONE, RELU = "none", "relu"

_SHIFTED = "add(x, 3.0)"
_POSITIVE = f"select(olt({_SHIFTED}, 0.0), 0.0, {_SHIFTED})"
#: the arithmetic of an activation of x, as `_Reader` writes it, and the library's name of it
_ACTIVATIONS: Mapping[str, str] = {
    "x": NONE,
    "select(olt(x, 0.0), 0.0, x)": RELU,
    f"div(mul(x, select(ogt({_POSITIVE}, 6.0), 6.0, {_POSITIVE})), 6.0)": "hardswish",
    "div(x, add(exp(neg(x)), 1.0))": "swish",
}
_NAMES: Mapping[type[Operation], str] = {
    arith.AddfOp: "add", arith.MulfOp: "mul", arith.DivfOp: "div", arith.NegfOp: "neg", arith.SelectOp: "select",
    math.ExpOp: "exp",
}  # fmt: skip
_COMPARISONS = {2: "ogt", 4: "olt"}
_MOST = 24
"""Ops of a body that is looked at: the longest activation has half as many."""


@dataclass(frozen=True)
class PostOp:
    """An activation by the library's name, of the sum alone, or of the sum and another value added to it.

    finite: a truth that is known when the library is called: no NaN is in what it applies relu to
    """

    activation: str
    other: SSAValue | None = None
    finite: SSAValue | None = None


def post_op(nest: Operation, total: SSAValue) -> PostOp | None:
    """What a nest does to the sum `total` element by element; None where no post-op of the library does that."""
    if type(nest) is not GenerateOp or len(nest.results) != 1 or nest.results[0].type != total.type:
        return None
    body = nest.regions[0].block
    if len(body.ops) > _MOST or any(op.regions for op in body.ops):
        return None
    reader = _Reader(nest, total, body)
    value = yielded(nest.regions[0])[0]
    if type(value.owner) is CastOp and isinstance(value.owner.operands[0].type, AnyFloat):
        value = value.owner.operands[0]  # the library rounds its result, too
    text = reader.text(value)
    if text is None:
        return None
    others = list(reader.others)
    if not others:
        name = _ACTIVATIONS.get(text)
        return None if name in (None, NONE) else PostOp(cast(str, name))
    added = ("add(x, y)", "add(y, x)")
    return PostOp(NONE, others[0]) if len(others) == 1 and text in added else None


class _Reader:
    """Writes values of a body as text: the sum is x, another tensor of its type at the same place y."""

    def __init__(self, nest: GenerateOp, total: SSAValue, body: Block) -> None:
        self.total = total
        self.body = body
        self.others: dict[SSAValue, None] = {}
        axes = map(symbol, cast(AxesAttr, nest.properties["axes"]).names)
        shape = type_of(total).shape
        self.place = [(axis, ZERO) if size is ONE else (axis,) for axis, size in zip(axes, shape, strict=True)]
        """What an index may be in each dimension."""
        self._known: dict[SSAValue, str | None] = {}

    def text(self, value: SSAValue) -> str | None:
        if value not in self._known:
            self._known[value] = self._text(value)
        return self._known[value]

    def _text(self, value: SSAValue) -> str | None:
        op = value.owner
        if isinstance(op, Block) or op.parent is not self.body:
            return None
        if type(op) in (WidenOp, NarrowOp):
            return self.text(op.operands[0])
        if isinstance(op, arith.ConstantOp):
            return repr(op.value.value.data) if isinstance(op.value, FloatAttr) else None
        if type(op) is LoadOp:
            return self._load(op)
        name = _NAMES.get(type(op))
        if isinstance(op, arith.CmpfOp):
            name = _COMPARISONS.get(op.predicate.value.data)
        parts = [self.text(operand) for operand in op.operands]
        if name is None or None in parts:
            return None
        return f"{name}({', '.join(cast('list[str]', parts))})"

    def _load(self, op: LoadOp) -> str | None:
        source = op.operands[0]
        if len(op.operands) != 1 or source.type != self.total.type or not self._is_same_place(op):
            return None
        if source is self.total:
            return "x"
        self.others[source] = None
        return "y"

    def _is_same_place(self, op: LoadOp) -> bool:
        return all(e in allowed for e, allowed in zip(map_of(op).data, self.place, strict=True))
