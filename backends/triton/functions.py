"""How scalar ops are spelled in Triton: one table, a text with places for the operands.

`{0}`, `{1}` are operands that may be literals beside a tensor, `{0t}` ones that are tensors of their dtype in any
case. A table entry may differ by dtype. Functions of `libdevice` exist for CUDA and HIP alike, except where noted.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.ir import Operation

from ...dialects.scalar import FUNCTION_OPS, HighDigitsOp, LowDigitsOp
from ..printing.operators import BITWISE, CMPF, FLOAT_INFIX, LIBM, LIBM_OF_TWO

Spelling = str | Mapping[str, str]

#: infix operators on values of any sign; quotients of floats are below
INFIX: dict[type[Operation], str] = {
    **{op: operator for op, operator in FLOAT_INFIX.items() if op is not arith.DivfOp}, **BITWISE,
    arith.AddiOp: "+", arith.SubiOp: "-", arith.MuliOp: "*", arith.ShLIOp: "<<",
}  # fmt: skip

#: operations that read the operands' bits as signed or as unsigned
SIGNED: dict[type[Operation], str] = {
    arith.DivSIOp: "{0t} // {1t}", arith.RemSIOp: "{0t} % {1t}", arith.ShRSIOp: "{0t} >> {1t}",
    arith.MaxSIOp: "tl.maximum({0t}, {1t})", arith.MinSIOp: "tl.minimum({0t}, {1t})",
    FUNCTION_OPS["floordivi"]: "prelude.floor_divide({0t}, {1t})",
    FUNCTION_OPS["remainderi"]: "prelude.floor_modulo({0t}, {1t})",
    FUNCTION_OPS["gcd"]: "prelude.gcd({0t}, {1t})",
    math_dialect.IPowIOp: "prelude.integer_power({0t}, {1t})", math_dialect.AbsIOp: "tl.abs({0t})",
}  # fmt: skip
UNSIGNED: dict[type[Operation], str] = {
    arith.DivUIOp: "{0t} // {1t}", arith.RemUIOp: "{0t} % {1t}", arith.ShRUIOp: "{0t} >> {1t}",
    arith.MaxUIOp: "tl.maximum({0t}, {1t})", arith.MinUIOp: "tl.minimum({0t}, {1t})",
}  # fmt: skip

#: functions of libdevice beside those that are called as in C
_LIBDEVICE = {
    **{op: name for op, name in LIBM.items() if op is not math_dialect.CbrtOp},
    math_dialect.RsqrtOp: "rsqrt", math_dialect.TruncOp: "trunc", math_dialect.RoundEvenOp: "nearbyint",
    FUNCTION_OPS["erfinv"]: "erfinv", FUNCTION_OPS["erfcx"]: "erfcx",
    FUNCTION_OPS["i0"]: "cyl_bessel_i0", FUNCTION_OPS["i1"]: "cyl_bessel_i1",
    **{FUNCTION_OPS[f"bessel_{name}"]: name for name in ("j0", "j1", "y0", "y1")},
}  # fmt: skip
_LIBDEVICE_OF_TWO = {**LIBM_OF_TWO, math_dialect.CopySignOp: "copysign"}

#: division of float32, correctly rounded
DIVIDE = "tl.div_rn({0t}, {1t})"

#: the rest: floats, comparisons are apart
FLOAT: dict[type[Operation], Spelling] = {
    **{op: f"libdevice.{name}({{0t}})" for op, name in _LIBDEVICE.items()},
    **{op: f"libdevice.{name}({{0t}}, {{1t}})" for op, name in _LIBDEVICE_OF_TWO.items()},
    # Triton's own division and square root of float32 are approximate; on float64 these names do not exist
    arith.DivfOp: {"float32": DIVIDE, "": "{0t} / {1t}"},
    math_dialect.SqrtOp: {"float32": "tl.sqrt_rn({0t})", "": "tl.sqrt({0t})"},
    arith.NegfOp: "prelude.negate({0t})",
    arith.MaximumfOp: "prelude.maximum({0t}, {1t})",
    arith.MinimumfOp: "prelude.minimum({0t}, {1t})",
    arith.MaxnumfOp: "tl.maximum({0t}, {1t})",
    arith.MinnumfOp: "tl.minimum({0t}, {1t})",
    math_dialect.AbsFOp: "tl.abs({0t})",
    math_dialect.CeilOp: "tl.ceil({0t})",
    math_dialect.FloorOp: "tl.floor({0t})",
    math_dialect.FmaOp: "tl.fma({0t}, {1t}, {2t})",
    FUNCTION_OPS["isnan"]: "{0t} != {0t}",
    FUNCTION_OPS["isinf"]: 'tl.abs({0t}) == float("inf")',
    FUNCTION_OPS["isfinite"]: 'tl.abs({0t}) < float("inf")',
    FUNCTION_OPS["signbit"]: "prelude.signbit({0t})",
    FUNCTION_OPS["floordivf"]: "prelude.float_floor_divide({0t}, {1t})",
    FUNCTION_OPS["remainderf"]: "prelude.float_modulo({0t}, {1t})",
    **{FUNCTION_OPS[name]: f"special.{name}({{0t}})" for name in ("digamma", "log_ndtr", "ndtri")},
    **{FUNCTION_OPS[name]: f"special.{name}({{0t}}, {{1t}})" for name in ("zeta", "igamma", "igammac")},
    FUNCTION_OPS["i0e"]: "prelude.i0e({0t})",
    FUNCTION_OPS["i1e"]: "prelude.i1e({0t})",
}

#: those of float32 that NVIDIA's GPUs have better ones for
NVIDIA: dict[type[Operation], str] = {
    math_dialect.TanhOp: "nvidia.tanh({0t})",
    math_dialect.ErfOp: "nvidia.erf({0t})",
}

#: those of float32 where the result may be approximate, on NVIDIA's GPUs
APPROXIMATE: dict[type[Operation], str] = {
    math_dialect.ExpOp: "nvidia.exp({0t})",
    math_dialect.Exp2Op: "nvidia.exp2({0t})",
}

#: quotients of float32 on NVIDIA's GPUs, by the mark of the divisor and whether the result may be approximate
QUOTIENTS: dict[tuple[str | None, bool], str] = {
    (None, False): DIVIDE, (None, True): DIVIDE,
    ("shared", False): "nvidia.divide_by_shared({0t}, {1t})", ("shared", True): "nvidia.divide_by_shared({0t}, {1t})",
    ("at_least_one", False): "nvidia.divide_by_at_least_one({0t}, {1t})",
    ("at_least_one", True): "nvidia.ratio_to_at_least_one({0t}, {1t})",
}  # fmt: skip

#: conversions of blocks, by the types of source and result, that NVIDIA's GPUs have better ones for; `pack` is how many
#: bytes at a time
TO_FLOAT = {
    ("int8", "float32"): "nvidia.float_of_int8({0t})", ("uint8", "float32"): "nvidia.float_of_uint8({0t})",
    ("int8", "bfloat16"): "nvidia.half_of_int8({0t}, tl.bfloat16, pack)",
    ("int8", "float16"): "nvidia.half_of_int8({0t}, tl.float16, pack)",
}  # fmt: skip

#: numbers of 4 bits in a byte, of a block on NVIDIA's GPUs, and else
DIGITS: dict[type[Operation], tuple[str, str]] = {
    LowDigitsOp: ("nvidia.low_digits({0t}, less, type)", "({0t} & 15).to(type) - less"),
    HighDigitsOp: ("nvidia.high_digits({0t}, less, type)", "(({0t} >> 4) & 15).to(type) - less"),
}

#: an approximate exponential that may be 0 where it is below the normal numbers
EXP_OR_ZERO = "nvidia.exp_or_zero({0t})"

#: number of the predicate -> operator; `ord`, `uno` and the like are spelled out
FLOAT_COMPARISONS: dict[int, str] = {
    **{number: f"{{0}} {sign} {{1}}" for number, (sign, negated) in CMPF.items() if not negated},
    **{number: f"~({{0}} {sign} {{1}})" for number, (sign, negated) in CMPF.items() if negated},
    0: "({0t} != {0t}) & False", 6: "({0} < {1}) | ({0} > {1})", 7: "({0} == {0}) & ({1} == {1})",
    8: "~(({0} < {1}) | ({0} > {1}))", 14: "({0} != {0}) | ({1} != {1})",
}  # fmt: skip
