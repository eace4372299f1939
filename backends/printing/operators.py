"""How languages spell the scalar ops that all of them spell alike."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.ir import Operation

from ...dialects.scalar import FUNCTION_OPS

#: operators of floats, each with one rounding
FLOAT_INFIX: dict[type[Operation], str] = {
    arith.AddfOp: "+", arith.SubfOp: "-", arith.MulfOp: "*", arith.DivfOp: "/",
}  # fmt: skip
#: operators of bits
BITWISE: dict[type[Operation], str] = {arith.AndIOp: "&", arith.OrIOp: "|", arith.XOrIOp: "^"}

#: number of a predicate of integers -> (operator, whether it reads the bits as unsigned; None where it does not matter)
CMPI: dict[int, tuple[str, bool | None]] = {
    0: ("==", None), 1: ("!=", None), 2: ("<", False), 3: ("<=", False), 4: (">", False), 5: (">=", False),
    6: ("<", True), 7: ("<=", True), 8: (">", True), 9: (">=", True),
}  # fmt: skip
#: number of a predicate of floats -> (operator, whether the result is negated): an unordered comparison is a negated
#: ordered one. The others (false, `one`, `ord`, `ueq`, `uno`, true) are no single comparison.
CMPF: dict[int, tuple[str, bool]] = {
    1: ("==", False), 2: (">", False), 3: (">=", False), 4: ("<", False), 5: ("<=", False),
    9: ("<=", True), 10: ("<", True), 11: (">=", True), 12: (">", True), 13: ("!=", False),
}  # fmt: skip

#: ops that a function of C's math library computes
LIBM: dict[type[Operation], str] = {
    math.AcosOp: "acos", math.AcoshOp: "acosh", math.AsinOp: "asin", math.AsinhOp: "asinh", math.AtanOp: "atan",
    math.AtanhOp: "atanh", math.CbrtOp: "cbrt", math.CosOp: "cos", math.CoshOp: "cosh", math.ErfOp: "erf",
    math.ExpOp: "exp", math.Exp2Op: "exp2", math.ExpM1Op: "expm1", math.LogOp: "log", math.Log10Op: "log10",
    math.Log1pOp: "log1p", math.Log2Op: "log2", math.SinOp: "sin", math.SinhOp: "sinh", math.TanOp: "tan",
    math.TanhOp: "tanh", **{FUNCTION_OPS[name]: name for name in ("erfc", "lgamma")},
}  # fmt: skip
#: those of two operands
LIBM_OF_TWO: dict[type[Operation], str] = {
    math.Atan2Op: "atan2", math.PowFOp: "pow",
    **{FUNCTION_OPS[name]: name for name in ("fmod", "hypot", "nextafter")},
}  # fmt: skip
