"""Fused attention that is marked to be nests (`graph-expand-products`); all other is an ATen call.

The keys are cut into parts. Of each part, the scores of a query are one nest with their maximum, the sum of their
exponentials and the sum of values weighted with them, so that keys and values are read once and no score is stored; a
last nest puts the parts together. With s the scores of a query, p a part, and m_p the maximum of s in p,

    l_p = sum over p of exp(s - m_p)    o_p = sum over p of exp(s - m_p) * v    m = max of m_p
    result = (sum of exp(m_p - m) * o_p) / (sum of exp(m_p - m) * l_p)
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from ....dialects.aten.types import TensorType
from ....dialects.sym import Expr, ceildiv, const
from ....passes.common.implementations import IMPLEMENTATION, NEST
from ..dtypes import computation_type, is_float
from ..nests import LoopBuilder, row_major, shape_of, type_of
from ..rules import Call, Replacement, add_rule
from ..scalar import Scalar

#: keys of a part: few, so that one query gives many parts, but not too many to put together. For 32 heads of 64 and
#: 1,024 keys the nests take 9.9 us on an H200, with 64 keys a part 13.4, with 32 13.1
KEYS = 128
_NAMES = (
    "_scaled_dot_product_cudnn_attention _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention"
)


def _unmarked(call: Call) -> str | None:
    if call.op.attributes.get(IMPLEMENTATION) != StringAttr(NEST):
        return f"{call.op.name} is a library's: graph-expand-products has not made it a nest"
    if any(result.first_use is not None for result in call.op.results[1:]):
        return "others of its results are read"
    if call["is_causal"] or call["dropout_p"] != 0.0:
        return "it is causal, or drops something"
    bias = call.optional("attn_bias") if call.has("attn_bias") else None
    if any(len(shape_of(value)) != 4 for value in (call.tensor("query"), bias) if value is not None):
        return "it has other than four dimensions"
    types = {type_of(call.tensor(name)).element for name in ("query", "key", "value")} | {call.type.element}
    return None if len(types) == 1 and all(map(is_float, types)) else "its operands are no floats of one type"


class _Attention:
    """The nests of one op."""

    def __init__(self, b: LoopBuilder, call: Call) -> None:
        self.b = b
        self.call = call
        self.query, self.key, self.value = (call.tensor(name) for name in ("query", "key", "value"))
        self.bias = call.optional("attn_bias") if call.has("attn_bias") else None
        batch, heads, queries, self.width = shape_of(self.query)
        self.keys = shape_of(self.key)[2]
        self.groups = heads // shape_of(self.key)[1]
        self.parts = ceildiv(self.keys, KEYS)
        self.rows = (batch, heads, queries)
        self.wide = computation_type(call.type.element)

    def type(self, *sizes: Expr) -> TensorType:
        """Of what is computed for each query."""
        return row_major((*self.rows, *sizes), self.wide, self.call.type.device)

    def lower(self) -> SSAValue:
        """The nests; the result."""
        b, s = self.b, self.b.s
        in_part = const(KEYS)
        (scores,) = b.generate(self.score, self.type(self.parts, in_part))
        (most,) = b.reduce(["max"], shape_of(scores), [4], lambda i: s.load(scores, i), self.type(self.parts))
        (powers,) = b.generate(lambda i: s.exp(s.load(scores, i) - self.finite(most, i[:-1])), type_of(scores))
        (total,) = b.reduce(["sum"], shape_of(powers), [4], lambda i: s.load(powers, i), self.type(self.parts))
        width = shape_of(self.value)[-1]

        def weighted(index: Sequence[Expr]) -> Scalar:
            *row, part, column, key = index
            return s.load(powers, (*row, part, key)) * self.element(self.value, row, part * KEYS + key, column)

        domain = (*self.rows, self.parts, width, in_part)
        (sums,) = b.reduce(["sum"], domain, [5], weighted, self.type(self.parts, width))
        (highest,) = b.reduce(["max"], shape_of(most), [3], lambda i: s.load(most, i), self.type())

        def result(index: tuple[Expr, ...]) -> Scalar:
            *row, column = index

            def part(inner: tuple[Expr, ...]) -> list[Scalar]:
                factor = s.exp(s.load(most, (*row, *inner)) - self.finite(highest, row))
                return [factor * s.load(sums, (*row, *inner, column)), factor * s.load(total, (*row, *inner))]

            value, weight = s.reduce(["sum", "sum"], [self.parts], part)
            return s.where(weight.eq(0), s.constant(0, self.wide), value / weight)

        return b.generate(result, self.call.type)[0]

    def finite(self, most: SSAValue, index: Sequence[Expr]) -> Scalar:
        """A maximum to subtract; 0 where every score is -inf, so that their exponentials are 0 and not NaN."""
        value = self.b.s.load(most, index)
        return self.b.s.where(value.eq(float("-inf")), self.b.s.constant(0, self.wide), value)

    def element(self, source: SSAValue, row: Sequence[Expr], key: Expr, column: Expr) -> Scalar:
        """Of the keys or the values; 0 behind the end."""
        s, (batch, head, _) = self.b.s, row
        inside = s.compare("lt", s.index(key), self.keys)
        return s.widen(s.load(source, (batch, head // self.groups, key, column), inside))

    def score(self, index: tuple[Expr, ...]) -> Scalar:
        """Of a query and a key; -inf behind the end."""
        s, call = self.b.s, self.call
        *row, part, inner = index
        key = part * KEYS + inner

        def product(r: tuple[Expr, ...]) -> Scalar:
            return s.widen(s.load(self.query, (*row, *r))) * self.element(self.key, row, key, *r)

        (total,) = s.reduce(["sum"], [self.width], product)
        scale = call["scale"]
        if scale is None:
            known = self.width.as_int()
            scale = 1.0 / s.sqrt(s.number(self.width, self.wide)) if known is None else known**-0.5
        total = total * scale
        inside = s.compare("lt", s.index(key), self.keys)
        if self.bias is not None:
            at = [e if n.as_int() != 1 else const(0) for e, n in zip((*row, key), shape_of(self.bias), strict=True)]
            total = total + s.widen(s.load(self.bias, at, inside))
        return s.where(inside, total, s.constant(float("-inf"), self.wide))


def _lower(b: LoopBuilder, call: Call) -> Replacement:
    result = _Attention(b, call).lower()
    return [result, *(b.empty(type_) for type_ in call.types[1:])]


add_rule(_NAMES, _lower, _unmarked)
