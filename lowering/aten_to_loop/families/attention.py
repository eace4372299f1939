"""Fused attention that is marked to be nests (`graph-expand-products`); all other is an ATen call.

The keys are cut into parts. Of each part, the scores of a query are one nest with their maximum, the sum of their
exponentials and the sum of values weighted with them, so that keys and values are read once and no score is stored; a
last nest puts the parts together. With s the scores of a query, p a part, and m_p the maximum of s in p,

    l_p = sum over p of exp(s - m_p)    o_p = sum over p of exp(s - m_p) * v    m = max of m_p
    result = (sum of exp(m_p - m) * o_p) / (sum of exp(m_p - m) * l_p)

Attention that carries a tile is for matrix units: the queries of all heads that share keys are the rows of one sum over
a softmax (`softmax_sum`), whose parts, where there are several, have o_p / l_p and m_p + log l_p as their results.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import MulfOp
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from ....dialects.aten.types import TensorType
from ....dialects.sym import Expr, ceildiv, const
from ....passes.common.choices import KEPT_BY_NESTS, TILE
from ....passes.common.implementations import IMPLEMENTATION, NEST
from ..dtypes import computation_type, is_float
from ..nests import LoopBuilder, axes_of_rank, row_major, shape_of, type_of
from ..rules import Call, Replacement, add_rule
from ..scalar import Scalar

#: keys of a part: few, so that one query gives many parts, but not too many to put together. For 32 heads of 64 and
#: 1,024 keys the nests take 9.9 us on an H200, with 64 keys a part 13.4, with 32 13.1
KEYS = 128
#: so many keys are not cut: what puts parts together is another launch
WHOLE = 256
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
        s = self.b.s
        *row, part, inner = index
        key = part * KEYS + inner

        def product(r: tuple[Expr, ...]) -> Scalar:
            return s.widen(s.load(self.query, (*row, *r))) * self.element(self.key, row, key, *r)

        (total,) = s.reduce(["sum"], [self.width], product)
        return self.biased(total, (*row, key), s.compare("lt", s.index(key), self.keys))

    def biased(self, total: Scalar, place: Sequence[Expr], inside: Scalar | None) -> Scalar:
        """A score scaled, with what is added to it; -inf behind the end."""
        s, scale = self.b.s, self.call["scale"]
        if scale is None:
            known = self.width.as_int()
            scale = 1.0 / s.sqrt(s.number(self.width, self.wide)) if known is None else known**-0.5
        total = total * scale
        if self.bias is not None:
            at = [e if n.as_int() != 1 else const(0) for e, n in zip(place, shape_of(self.bias), strict=True)]
            total = total + s.widen(s.load(self.bias, at, inside))
        return total if inside is None else s.where(inside, total, s.constant(float("-inf"), self.wide))


class _Streamed(_Attention):
    """The nests of an op of few queries a head, several of which share keys: rows of tiles for matrix units."""

    def __init__(self, b: LoopBuilder, call: Call) -> None:
        super().__init__(b, call)
        batch, of_keys, self.keys, _ = shape_of(self.key)
        self.part = self.keys if (self.keys.as_int() or WHOLE + 1) <= WHOLE else const(KEYS)
        self.parts = ceildiv(self.keys, self.part)
        self.rows = (batch, of_keys, self.groups, shape_of(self.query)[2])
        self.kept = {name: call.op.attributes[name] for name in KEPT_BY_NESTS if name in call.op.attributes}

    def lower(self) -> SSAValue:
        """The nests; the result."""
        b, s, width = self.b, self.b.s, shape_of(self.value)[-1]
        result = row_major((*self.rows, width), self.call.type.element, self.call.type.device)
        if self.parts.as_int() == 1:
            return self.heads(b.generate(lambda i: self.sums((*i[:-1], const(0), i[-1]))[0], result)[0])
        sums, logarithms = b.generate(self.sums, *[self.type(self.parts, width)] * 2)
        stored = self.first(logarithms)
        (highest,) = b.reduce(["max"], shape_of(stored), [4], lambda i: s.load(stored, i), self.type())

        def joined(index: tuple[Expr, ...]) -> Scalar:
            *row, column = index

            def part(inner: tuple[Expr, ...]) -> list[Scalar]:
                factor = s.exp(s.load(stored, (*row, *inner)) - self.finite(highest, row))
                return [factor * s.load(sums, (*row, *inner, column)), factor]

            value, weight = s.reduce(["sum", "sum"], [self.parts], part)
            return self.quotient(value, weight)

        return self.heads(b.generate(joined, result)[0])

    def sums(self, index: tuple[Expr, ...]) -> list[Scalar]:
        """An element of a part's result, and the logarithm of the sum of its exponentials."""
        s, (*row, number, column) = self.b.s, index

        def step(inner: tuple[Expr, ...]) -> list[Scalar]:
            key = number * self.part + inner[0]
            return [self.score_of(row, key), s.constant(1, self.wide), self.shared(self.value, row, key, column)]

        highest, total, weighted = s.reduce(["softmax_sum"], [self.part], step)
        return [self.quotient(weighted, total), highest + s.log(total)]

    def quotient(self, value: Scalar, total: Scalar) -> Scalar:
        """A mean; 0 where nothing weighs anything."""
        return self.b.s.where(total.eq(0), self.b.s.constant(0, self.wide), value / total)

    def shared(self, source: SSAValue, row: Sequence[Expr], key: Expr, column: Expr) -> Scalar:
        """Of the keys or the values; 0 behind the end."""
        batch, head, _, _ = row
        return self.b.s.widen(self.b.s.load(source, (batch, head, key, column), self.inside(key)))

    def inside(self, key: Expr) -> Scalar | None:
        """Whether there is a key; None where there certainly is."""
        is_exact = self.part is self.keys or (self.parts * self.part) is self.keys
        return None if is_exact else self.b.s.compare("lt", self.b.s.index(key), self.keys)

    def score_of(self, row: Sequence[Expr], key: Expr) -> Scalar:
        """Of a query and a key; -inf behind the end."""
        s, (batch, of_keys, group, query) = self.b.s, row
        head = of_keys * self.groups + group

        def product(r: tuple[Expr, ...]) -> Scalar:
            found = s.widen(s.load(self.query, (batch, head, query, *r))) * self.shared(self.key, row, key, *r)
            if isinstance(found.ssa.owner, MulfOp):
                found.ssa.owner.attributes.update(self.kept)
            return found

        (total,) = s.reduce(["sum"], [self.width], product)
        return self.biased(total, (batch, head, query, key), self.inside(key))

    def first(self, value: SSAValue) -> SSAValue:
        """What does not vary along the columns, of which the first one is stored."""
        s, type_ = self.b.s, self.type(self.parts)
        column = axes_of_rank(len(shape_of(value)))[-1]
        return self.b.scatter(
            self.b.empty(type_), shape_of(value), lambda i: (s.load(value, i), i[:-1]), type_,
            mask=lambda: s.index(column).eq(0), flags=("unique",),
        )  # fmt: skip

    def heads(self, result: SSAValue) -> SSAValue:
        """The result with one dimension for all heads."""
        batch, head, query, column = axes_of_rank(4)
        places = (batch, head // self.groups, head % self.groups, query, column)
        return self.b.view(result, places, self.call.type)


def _lower(b: LoopBuilder, call: Call) -> Replacement:
    result = (_Streamed if TILE in call.op.attributes else _Attention)(b, call).lower()
    return [result, *(b.empty(type_) for type_ in call.types[1:])]


add_rule(_NAMES, _lower, _unmarked)
