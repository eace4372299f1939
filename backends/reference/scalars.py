"""The meaning of every scalar op: `arith`, `math` and `scalar`, one line each, on tensors that hold one scalar a lane.

Floats round after each op to their own type (f16 and bf16 are computed in float32 first, as torch does), or are
float64 throughout when wide. Integers wrap; signless bits are read as signed or unsigned as the op says; i1 is a
one-bit integer, so `true` is -1 to a signed op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType, Signedness
from xdsl.ir import Attribute, Operation

from ... import extensions
from ...dialects import kernel
from ...dialects import scalar as sc
from . import floats as fl
from . import integers as it
from .errors import InterpretationError, describe
from .precision import Precision, torch_dtype

Tensor = torch.Tensor
Special = torch.special


def _ordered(x: Tensor, y: Tensor) -> Tensor:
    return ~(x.isnan() | y.isnan())


#: functions of floats; operands have one type, the result has it too, or is i1
FLOAT: dict[type[Operation], Callable[..., Tensor]] = {
    arith.AddfOp: torch.add,
    arith.SubfOp: torch.sub,
    arith.MulfOp: torch.mul,
    arith.DivfOp: torch.div,
    arith.NegfOp: torch.neg,
    arith.MaximumfOp: torch.maximum,  # NaN if either is
    arith.MinimumfOp: torch.minimum,
    arith.MaxnumfOp: torch.fmax,  # the number if one is NaN
    arith.MinnumfOp: torch.fmin,
    math.AbsFOp: torch.abs,
    math.AcosOp: torch.acos,
    math.AcoshOp: torch.acosh,
    math.AsinOp: torch.asin,
    math.AsinhOp: torch.asinh,
    math.AtanOp: torch.atan,
    math.Atan2Op: torch.atan2,
    math.AtanhOp: torch.atanh,
    math.CbrtOp: fl.cube_root,
    math.CeilOp: torch.ceil,
    math.CopySignOp: torch.copysign,
    math.CosOp: torch.cos,
    math.CoshOp: torch.cosh,
    math.ErfOp: torch.erf,
    math.ExpOp: torch.exp,
    math.Exp2Op: torch.exp2,
    math.ExpM1Op: torch.expm1,
    math.FloorOp: torch.floor,
    math.FmaOp: fl.fused_multiply_add,
    math.LogOp: torch.log,
    math.Log10Op: torch.log10,
    math.Log1pOp: torch.log1p,
    math.Log2Op: torch.log2,
    math.PowFOp: torch.pow,
    math.RoundOp: fl.round_half_away,
    math.RoundEvenOp: torch.round,
    math.RsqrtOp: torch.rsqrt,
    math.SinOp: torch.sin,
    math.SinhOp: torch.sinh,
    math.SqrtOp: torch.sqrt,
    math.TanOp: torch.tan,
    math.TanhOp: torch.tanh,
    math.TruncOp: torch.trunc,
}

_SCALAR_FLOAT: dict[str, Callable[..., Tensor]] = {
    "isnan": torch.isnan,
    "isinf": torch.isinf,
    "isfinite": torch.isfinite,
    "signbit": torch.signbit,
    "erfc": Special.erfc,
    "erfinv": Special.erfinv,
    "erfcx": Special.erfcx,
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "i0": Special.i0,
    "i0e": Special.i0e,
    "i1": Special.i1,
    "i1e": Special.i1e,
    "ndtri": Special.ndtri,
    "log_ndtr": Special.log_ndtr,
    "bessel_j0": Special.bessel_j0,
    "bessel_j1": Special.bessel_j1,
    "bessel_y0": Special.bessel_y0,
    "bessel_y1": Special.bessel_y1,
    "fmod": fl.fmod,
    "remainderf": fl.remainder,
    "floordivf": fl.floor_divide,
    "hypot": torch.hypot,
    "nextafter": torch.nextafter,
    "zeta": Special.zeta,
    "igamma": Special.gammainc,
    "igammac": Special.gammaincc,
}
FLOAT.update({sc.FUNCTION_OPS[name]: function for name, function in _SCALAR_FLOAT.items()})

#: functions of signed tensors of one integer type; i1 comes as int8 with true = -1
INTEGER: dict[type[Operation], Callable[..., Tensor]] = {
    arith.AddiOp: torch.add,
    arith.SubiOp: torch.sub,
    arith.MuliOp: torch.mul,
    arith.MinSIOp: torch.minimum,
    arith.MaxSIOp: torch.maximum,
    arith.MinUIOp: lambda x, y: it.flip(torch.minimum(it.flip(x), it.flip(y))),
    arith.MaxUIOp: lambda x, y: it.flip(torch.maximum(it.flip(x), it.flip(y))),
    arith.AndIOp: torch.bitwise_and,
    arith.OrIOp: torch.bitwise_or,
    arith.XOrIOp: torch.bitwise_xor,
    arith.ShLIOp: it.shift_left,
    arith.ShRSIOp: it.shift_right,
    arith.ShRUIOp: it.shift_right_unsigned,
    math.AbsIOp: torch.abs,
    math.CtPopOp: it.population_count,
    math.CountLeadingZerosOp: it.leading_zeros,
    math.CountTrailingZerosOp: it.trailing_zeros,
    math.IPowIOp: torch.pow,
    sc.FUNCTION_OPS["gcd"]: torch.gcd,
}

#: integer divisions: a zero divisor is an error
DIVISION: dict[type[Operation], Callable[[Tensor, Tensor], Tensor]] = {
    arith.DivSIOp: lambda x, y: it.divide(x, y, "trunc"),
    arith.RemSIOp: lambda x, y: it.remainder(x, y, "trunc"),
    arith.FloorDivSIOp: lambda x, y: it.divide(x, y, "floor"),
    arith.CeilDivSIOp: it.divide_up,
    arith.DivUIOp: it.divide_unsigned,
    arith.RemUIOp: it.remainder_unsigned,
    arith.CeilDivUIOp: it.divide_up_unsigned,
    sc.FUNCTION_OPS["floordivi"]: lambda x, y: it.divide(x, y, "floor"),
    sc.FUNCTION_OPS["remainderi"]: lambda x, y: it.remainder(x, y, "floor"),
}

#: ops with two integer results
EXTENDED: dict[type[Operation], Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    arith.AddUIExtendedOp: lambda x, y: (x + y, it.flip(x + y) < it.flip(x)),
    arith.MulUIExtendedOp: lambda x, y: (x * y, it.multiply_high(x, y, signed=False)),
    arith.MulSIExtendedOp: lambda x, y: (x * y, it.multiply_high(x, y, signed=True)),
}

#: cmpi predicates, numbered as in arith
CMPI: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    torch.eq,
    torch.ne,
    torch.lt,
    torch.le,
    torch.gt,
    torch.ge,
    lambda x, y: it.flip(x) < it.flip(y),
    lambda x, y: it.flip(x) <= it.flip(y),
    lambda x, y: it.flip(x) > it.flip(y),
    lambda x, y: it.flip(x) >= it.flip(y),
)

#: cmpf predicates, numbered as in arith: false, the ordered ones, ord, the unordered ones, uno, true
CMPF: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    lambda x, y: torch.zeros_like(x == y),
    torch.eq,
    torch.gt,
    torch.ge,
    torch.lt,
    torch.le,
    lambda x, y: _ordered(x, y) & (x != y),
    _ordered,
    lambda x, y: ~_ordered(x, y) | (x == y),
    lambda x, y: ~_ordered(x, y) | (x > y),
    lambda x, y: ~_ordered(x, y) | (x >= y),
    lambda x, y: ~_ordered(x, y) | (x < y),
    lambda x, y: ~_ordered(x, y) | (x <= y),
    torch.ne,
    lambda x, y: ~_ordered(x, y),
    lambda x, y: torch.ones_like(x == y),
)

#: functions whose result depends on the operand's very format, so that they see the rounded number also when wide
_FORMAT_BOUND = (sc.FUNCTION_OPS["nextafter"],)


def _unsigned(kind: Attribute) -> Attribute:
    return IntegerType(64 if isinstance(kind, IndexType) else kind.width.data, Signedness.UNSIGNED)  # pyright: ignore


def _negative_if_true(x: Tensor) -> Tensor:
    """i1 as a signed integer of one bit."""
    return -x.to(torch.int8) if x.dtype == torch.bool else x


def _lowest_bit(x: Tensor, kind: Attribute) -> Tensor:
    return (x & 1).to(torch.bool) if kind == IntegerType(1) and x.dtype != torch.bool else x


def constant(op: arith.ConstantOp, precision: Precision, device: torch.device) -> Tensor:
    """The value of an `arith.constant` as a 0-d tensor; integers of any sign are taken as bits."""
    kind, value = op.result.type, op.value
    dtype = precision.scalar(kind)
    if isinstance(value, FloatAttr):
        exact = torch.tensor(value.value.data, dtype=torch_dtype(kind), device=device)
        return exact.to(dtype)  # a constant is a number of its type also when wide
    if not isinstance(value, IntegerAttr):
        raise InterpretationError(f"{describe(op)}: not a scalar constant")
    number = value.value.data
    if dtype == torch.bool:
        return torch.tensor(bool(number), device=device)
    info = torch.iinfo(dtype)
    wrapped = (number - info.min) % (1 << info.bits) + info.min
    return torch.tensor(wrapped, dtype=dtype, device=device)


def _cast(op: Operation, x: Tensor, precision: Precision) -> Tensor:
    """Conversions: of `scalar`, by element types; of `arith`, by the op's reading of signless integers."""
    if isinstance(op, sc.CastOp):
        return precision.convert(x, op.source_element, op.target_element)
    if isinstance(op, sc.INSERTED_CONVERSIONS):
        return precision.resize(x, op.source_element, op.target_element)
    source, target = op.operands[0].type, op.results[0].type
    if isinstance(op, arith.ExtFOp | arith.TruncFOp | arith.FPToSIOp):
        return precision.resize(x, source, target)
    if isinstance(op, arith.FPToUIOp):
        return precision.resize(x, source, _unsigned(target))
    if isinstance(op, arith.UIToFPOp | arith.ExtUIOp):
        return precision.resize(x, _unsigned(source) if x.dtype != torch.bool else source, target)
    if isinstance(op, arith.BitcastOp):
        same = precision.round(x, source) if x.is_floating_point() else x
        return same.view(Precision().scalar(target)).to(precision.scalar(target))
    # sitofp, extsi, trunci, index_cast: signed
    return _lowest_bit(_negative_if_true(x), target).to(precision.scalar(target))


CASTS: tuple[type[Operation], ...] = (
    *sc.CONVERSIONS, arith.ExtFOp, arith.TruncFOp, arith.FPToSIOp, arith.FPToUIOp, arith.UIToFPOp,
    arith.SIToFPOp, arith.ExtUIOp, arith.ExtSIOp, arith.TruncIOp, arith.IndexCastOp, arith.BitcastOp,
)  # fmt: skip


def _float(op: Operation, function: Callable[..., Tensor], args: tuple[Tensor, ...], precision: Precision) -> Tensor:
    kind = op.operands[0].type
    if isinstance(op, _FORMAT_BOUND):
        return function(*(precision.round(a, kind) for a in args)).to(precision.scalar(kind))
    dtype = args[0].dtype
    computed = Precision.computed(dtype)
    result = function(*(a.to(computed) for a in args))
    return result if result.dtype == torch.bool else result.to(dtype)


def _integer(op: Operation, function: Callable[..., Any], args: tuple[Tensor, ...]) -> Any:
    result = function(*map(_negative_if_true, args))
    if isinstance(result, tuple):
        return tuple(_lowest_bit(r, out.type) for r, out in zip(result, op.results, strict=True))
    return _lowest_bit(result, op.results[0].type)


def evaluate(
    op: Operation,
    args: tuple[Tensor, ...],
    precision: Precision,
    on_zero_divisor: Callable[[Operation, Tensor], None],
) -> tuple[Tensor, ...]:
    """Results of a scalar op for its operands' lanes.

    `on_zero_divisor(op, lanes)` is told of lanes that an integer division divides by zero; their results are 0.
    Raises InterpretationError for an op that is no scalar op.
    """
    result = _evaluate(op, args, precision, on_zero_divisor)
    results = result if isinstance(result, tuple) else (result,)
    for value, out in zip(results, op.results, strict=True):
        assert value.dtype == precision.scalar(out.type), f"{op.name}: {value.dtype} for {out.type}"
    return results


def _check_marks(op: Operation, args: tuple[Tensor, ...]) -> None:
    """InterpretationError where a mark of an op says of its operands what is not so."""
    if kernel.mark_of(op, kernel.DIVISOR) == "at_least_one" and bool((args[1] < 1).any()):
        raise InterpretationError(
            f"{describe(op)}: the divisor is {float(args[1].min())}, and is said to be at least 1"
        )


def _evaluate(
    op: Operation,
    args: tuple[Tensor, ...],
    precision: Precision,
    on_zero_divisor: Callable[[Operation, Tensor], None],
) -> Tensor | tuple[Tensor, ...]:
    kind = type(op)
    if op.attributes:
        _check_marks(op, args)
    if kind in FLOAT:
        return _float(op, FLOAT[kind], args, precision)
    if kind in INTEGER:
        return _integer(op, INTEGER[kind], args)
    if kind in DIVISION:
        zero = args[1] == 0
        on_zero_divisor(op, zero)
        quotient = _integer(op, DIVISION[kind], (args[0], torch.where(zero, torch.ones_like(args[1]), args[1])))
        return torch.where(zero, torch.zeros_like(quotient), quotient)
    if kind in EXTENDED:
        return _integer(op, EXTENDED[kind], args)
    if kind in CASTS:
        return _cast(op, args[0], precision)
    if isinstance(op, arith.CmpiOp):
        return CMPI[op.predicate.value.data](*map(_negative_if_true, args))
    if isinstance(op, arith.CmpfOp):
        return CMPF[op.predicate.value.data](*args)
    if isinstance(op, arith.SelectOp):
        return torch.where(*args)
    if isinstance(op, math.FPowIOp):
        return torch.pow(args[0], args[1].to(args[0].dtype))
    if isinstance(op, sc.LowDigitsOp):
        return (args[0] & 15).to(precision.scalar(op.results[0].type)) - op.zero
    if isinstance(op, sc.HighDigitsOp):
        return ((args[0] >> 4) & 15).to(precision.scalar(op.results[0].type)) - op.zero
    if isinstance(op, sc.PhiloxOp):
        return it.philox(*args)
    added = extensions.table("inductile.reference").get(kind)
    if added is not None:
        return _float(op, added, args, precision)
    raise InterpretationError(f"{describe(op)}: not an op of a scalar body")
