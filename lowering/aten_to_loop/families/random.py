"""Numbers drawn by a function of a seed and the position: `inductile::random` (see `lowering/fx_random.py`)."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from ....dialects.aten.call import CallOp
from ....dialects.aten.types import ELEMENT_TYPES, TensorType, contiguous_strides
from ....dialects.scalar import PhiloxOp
from ....dialects.sym import ZERO, Expr, const
from ..dtypes import F32, F64
from ..nests import LoopBuilder
from ..rules import CALLS, Replacement
from ..scalar import Scalar
from ..scalar_builder import ScalarBuilder

_U32 = ELEMENT_TYPES["uint32"]


def _bits(s: ScalarBuilder, seed: Scalar, draw: Expr) -> Scalar:
    """32 random bits: draw number `draw` of the stream of a seed."""
    return Scalar(s, s.emit(PhiloxOp, (seed.ssa, s.index(draw).ssa), i32), _U32)


def _uniform(s: ScalarBuilder, seed: Scalar, draw: Expr, element: object) -> Scalar:
    """A multiple of 2**-24 in [0, 1) from one draw, or of 2**-53 from two."""
    if element == F32:
        return s.binary("shr", _bits(s, seed, draw), 8).to(F32) * 2.0**-24
    high = s.binary("shr", _bits(s, seed, 2 * draw), 5)
    low = s.binary("shr", _bits(s, seed, 2 * draw + 1), 6)
    return (high.to(F64) * 2.0**26 + low.to(F64)) * 2.0**-53


def _random(b: LoopBuilder, op: CallOp, values: dict[SSAValue, SSAValue]) -> Replacement:
    type_ = op.results[0].type
    assert isinstance(type_, TensorType)
    seeds = values.get(op.operands[0], op.operands[0])
    is_normal = bool(op.kwargs().get("normal", False))
    b.s.device = type_.device

    def body(index: tuple[Expr, ...]) -> Scalar:
        s = b.s
        seed = s.load(seeds, (ZERO,))
        strides = contiguous_strides(type_.shape)
        position = sum((i * stride for i, stride in zip(index, strides, strict=True)), const(0))
        if not is_normal:
            return _uniform(s, seed, position, type_.element)
        # Box and Muller; 1 - u is in (0, 1]
        radius = s.sqrt(s.log(1.0 - _uniform(s, seed, 2 * position, type_.element)) * -2.0)
        return radius * s.cos(_uniform(s, seed, 2 * position + 1, type_.element) * (2 * math.pi))

    return b.generate(body, type_)


CALLS["inductile::random"] = _random
