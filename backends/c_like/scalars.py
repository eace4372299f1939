"""C expressions of the pure scalar ops: arith, math and scalar."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ... import extensions
from ...dialects import kernel, scalar
from ...dialects.parametric import parametric
from ...errors import UnsupportedError
from ...passes.kernel.approximate import may_approximate
from ..printing.code import LOOSE, PRODUCT, SUM, UNARY, Code, binary, call, compare
from ..printing.operators import BITWISE, CMPF, CMPI, FLOAT_INFIX, LIBM, LIBM_OF_TWO
from . import conversions
from .conversions import cast, is_bool
from .language import Language, Needs
from .literals import conditional, float_literal, int_literal, rounded
from .prelude import libm_section
from .types import half_name, int_width, is_double, is_float, scalar_ctype

Rule: TypeAlias = Callable[[Operation, list[Code], Needs], Code]


def scalar_code(op: Operation, operands: list[Code], need: Needs) -> Code:
    """The expression of a pure scalar op. Raises UnsupportedError for one that no rule covers."""
    rule = need.language.scalar_rules.get(type(op)) or RULES.get(type(op)) or _added_rule(type(op), need.language)
    if rule is None:
        raise UnsupportedError(f"no {need.language.title} for {op.name}")
    code = rule(op, operands, need)
    half = half_name(op.results[0].type)
    if half is None or type(op) in _EXACT:
        return code
    need(half)
    return call(f"round_{half}", code)


def _added_rule(op: type[Operation], language: Language) -> Rule | None:
    """The rule of another package; a text stands for one that puts the operands into it."""
    rule = extensions.table(language.extensions).get(op)
    return text_rule(rule) if isinstance(rule, str) else rule


def text_rule(text: str) -> Rule:
    """A rule that puts the operands into a text: `"{0} / (1 + {1})"`."""
    return lambda op, v, need: Code(text.format(*(operand.at(UNARY) for operand in v)), LOOSE)


def _infix(operator: str, level: int) -> Rule:
    return lambda op, v, need: binary(operator, level, v[0], v[1])


@parametric
def _integer(op: Operation, v: list[Code], need: Needs, function: str, section: str, boolean: str = "") -> Code:
    """A support function of integers, or a bitwise operator for i1."""
    if boolean and is_bool(op.results[0].type):
        return compare(boolean, v[0], v[1])
    need(section)
    return call(need.language.generic(function, scalar_ctype(op.results[0].type)), *v)


@parametric
def _bitwise(op: Operation, v: list[Code], need: Needs, operator: str) -> Code:
    code = compare(operator, v[0], v[1])
    return cast(scalar_ctype(op.results[0].type), code) if 1 < int_width(op.results[0].type) < 32 else code


@parametric
def _of_floats(op: Operation, v: list[Code], need: Needs, function: str, section: str) -> Code:
    """A support function of floats."""
    need(section)
    return call(need.language.overloaded(function, scalar_ctype(op.operands[0].type)), *v)


@parametric
def _unsigned_extremum(op: Operation, v: list[Code], need: Needs, function: str) -> Code:
    need("int_minmax")
    ctype = scalar_ctype(op.results[0].type)
    if ctype == "bool":
        return compare("|" if function == "max_int" else "&", v[0], v[1])
    return cast(ctype, call(need.language.generic(function, f"u{ctype}"), *v))


def _suffix(op: Operation) -> str:
    return "" if is_double(op.operands[0].type) else "f"


def builtin(name: str) -> Rule:
    """A GCC builtin that becomes an instruction; the suffix f means float."""
    return lambda op, v, need: call(f"__builtin_{name}{_suffix(op)}", *v)


@parametric
def libm(op: Operation, v: list[Code], need: Needs, name: str) -> Code:
    """A libm function, with its vector variant where there is one."""
    function = name + _suffix(op)
    need(libm_section(function))
    return call(function, *v)


def by_width(single: Rule, double: Rule) -> Rule:
    """One rule for f64, another for narrower floats."""
    return lambda op, v, need: (double if is_double(op.operands[0].type) else single)(op, v, need)


@parametric
def support(op: Operation, v: list[Code], need: Needs, function: str, section: str) -> Code:
    """A support function of one type."""
    need(section)
    return call(function, *v)


@parametric
def special(op: Operation, v: list[Code], need: Needs, function: str, section: str) -> Code:
    """A function that the headers implement in double."""
    code = support(function, section)(op, v, need)
    return code if is_double(op.results[0].type) else cast("float", code)


def _erf(op: Operation, v: list[Code], need: Needs) -> Code:
    """Coarsely where a sum with one is rounded to few bits."""
    name = "erf_coarse_f32" if may_approximate(op) else "erf_f32"
    return support(name, name)(op, v, need)


def _constant(op: Operation, v: list[Code], need: Needs) -> Code:
    assert isinstance(op, arith.ConstantOp)
    value: Attribute = op.value
    if isinstance(value, FloatAttr):
        return float_literal(rounded(value.value.data, half_name(value.type)), is_double(value.type))
    assert isinstance(value, IntegerAttr)
    return int_literal(value.value.data, int_width(value.type), need.language)


def _cmpi(op: Operation, v: list[Code], need: Needs) -> Code:
    assert isinstance(op, arith.CmpiOp)
    operator, unsigned = CMPI[op.predicate.value.data]
    ctype = scalar_ctype(op.lhs.type)
    if unsigned and ctype != "bool":
        v = [cast(f"u{ctype}", x) for x in v]
    elif unsigned is False and ctype == "bool":  # signed i1: true is -1
        v = v[::-1]
    return compare(operator, v[0], v[1])


def _cmpf(op: Operation, v: list[Code], need: Needs) -> Code:
    assert isinstance(op, arith.CmpfOp)
    predicate = op.predicate.value.data
    if predicate in (0, 15):
        return Code("true" if predicate else "false")
    if predicate in (6, 8):  # less or greater, and its negation
        one = Code(f"({compare('<', *v)}) | ({compare('>', *v)})", LOOSE)
        return one if predicate == 6 else Code(f"!({one})", UNARY)
    if predicate in (7, 14):
        unordered = call("__builtin_isunordered", *v)
        return unordered if predicate == 14 else Code(f"!{unordered}", UNARY)
    operator, negated = CMPF[predicate]
    code = compare(operator, *v)
    return Code(f"!({code})", UNARY) if negated else code


def _select(op: Operation, v: list[Code], need: Needs) -> Code:
    return conditional(*v)


def _negf(op: Operation, v: list[Code], need: Needs) -> Code:
    return Code(f"-{v[0].at(0)}", UNARY)


@parametric
def _static_cast(
    op: Operation, v: list[Code], need: Needs, source_unsigned: bool = False, target_unsigned: bool = False
) -> Code:
    """arith's conversions: extensions, truncations, int to float and back."""
    source, target = scalar_ctype(op.operands[0].type), scalar_ctype(op.results[0].type)
    if target == "bool":  # the lowest bit
        return Code(f"({v[0].at(SUM)} & 1) != 0", LOOSE)
    code = v[0]
    if isinstance(op, arith.FPToSIOp | arith.FPToUIOp):
        # what fits a narrow type fits the wide one that it goes through
        wide = "int64_t" if target == "int64_t" or (target_unsigned and target == "int32_t") else "int32_t"
        if target_unsigned and target == "int64_t":
            wide = "uint64_t"
        code = conversions.truncate(wide, code, need)
        return code if wide == target else cast(target, code)
    if source_unsigned and source != "bool":
        code = cast(f"u{source}", code)
    if target_unsigned:
        code = cast(f"u{target}", code)
    if source == target and code is v[0]:
        return code
    return cast(target, code)


def _sign_extend(op: Operation, v: list[Code], need: Needs) -> Code:
    """A signed conversion to a wider type, in which a true i1 is -1."""
    code = cast(scalar_ctype(op.results[0].type), v[0])
    return Code(f"-{code.text}", UNARY) if is_bool(op.operands[0].type) else code


def _bitcast(op: Operation, v: list[Code], need: Needs) -> Code:
    for value in (op.operands[0], op.results[0]):
        half = half_name(value.type)
        if half is not None:
            return _half_bitcast(op, v, need)
    need("bits")
    return call(need.language.bit_cast(scalar_ctype(op.operands[0].type), scalar_ctype(op.results[0].type)), *v)


def _half_bitcast(op: Operation, v: list[Code], need: Needs) -> Code:
    source, target = half_name(op.operands[0].type), half_name(op.results[0].type)
    for half in filter(None, (source, target)):
        need(half)
    bits = call(f"to_{source}", *v) if source else cast("uint16_t", v[0])
    return call(f"from_{target}", bits) if target else cast("int16_t", bits)


def _conversion(op: Operation, v: list[Code], need: Needs) -> Code:
    assert isinstance(op, scalar.CONVERSIONS)
    source, target = op.source_element, op.target_element
    if half_name(target) is not None and is_float(source) and _only_stored(op.results[0]):
        target = source if not is_double(source) else Float32Type()  # the stores round
    return conversions.convert(v[0], source, target, need)


def _only_stored(value: SSAValue) -> bool:
    """Whether a value goes to memory only, where a half type rounds it anyway."""
    return all(
        isinstance(use.operation, kernel.StoreOp) and use.index == 0 and use.operation.kind.data == "set"
        for use in value.uses
    )


@parametric
def _count_zeros(op: Operation, v: list[Code], need: Needs, name: str) -> Code:
    need("bit_counts")
    return call(need.language.generic(name, scalar_ctype(op.results[0].type)), *v)


def _isinf(op: Operation, v: list[Code], need: Needs) -> Code:
    suffix = _suffix(op)
    return compare("==", call(f"__builtin_fabs{suffix}", *v), Code(f"__builtin_inf{suffix}()"))


def _isfinite(op: Operation, v: list[Code], need: Needs) -> Code:
    suffix = _suffix(op)
    return compare("<", call(f"__builtin_fabs{suffix}", *v), Code(f"__builtin_inf{suffix}()"))


def _rsqrt(op: Operation, v: list[Code], need: Needs) -> Code:
    one = float_literal(1.0, is_double(op.operands[0].type))
    return binary("/", PRODUCT, one, builtin("sqrt")(op, v, need))


def _signbit(op: Operation, v: list[Code], need: Needs) -> Code:
    """The sign of the bits as an integer: GCC 12 crashes on a vector of `__builtin_signbit` of a converted bfloat16."""
    need("bits")
    bits = "int64_t" if is_double(op.operands[0].type) else "int32_t"
    cast = need.language.bit_cast(scalar_ctype(op.operands[0].type), bits)
    return compare("<", call(cast, *v), Code("0"))


def _isnan(op: Operation, v: list[Code], need: Needs) -> Code:
    return call("__builtin_isnan", *v)


_ARITH: dict[type[Operation], Rule] = {
    arith.ConstantOp: _constant,
    **{op: _infix(operator, SUM if operator in "+-" else PRODUCT) for op, operator in FLOAT_INFIX.items()},
    arith.NegfOp: _negf,
    arith.MaximumfOp: _of_floats("max_nan", "nan_minmax"),
    arith.MinimumfOp: _of_floats("min_nan", "nan_minmax"),
    arith.MaxnumfOp: _of_floats("max_num", "num_minmax"),
    arith.MinnumfOp: _of_floats("min_num", "num_minmax"),
    arith.AddiOp: _integer("wrap_add", "wrap", "^"),
    arith.SubiOp: _integer("wrap_sub", "wrap", "^"),
    arith.MuliOp: _integer("wrap_mul", "wrap", "&"),
    arith.DivSIOp: _integer("div_trunc", "int_division"),
    arith.RemSIOp: _integer("rem_trunc", "int_division"),
    arith.DivUIOp: _integer("div_unsigned", "int_division"),
    arith.RemUIOp: _integer("rem_unsigned", "int_division"),
    arith.FloorDivSIOp: _integer("div_floor", "floor_division"),
    arith.CeilDivSIOp: _integer("div_ceil", "floor_division"),
    arith.MaxSIOp: _integer("max_int", "int_minmax", "&"),
    arith.MinSIOp: _integer("min_int", "int_minmax", "|"),
    arith.MaxUIOp: _unsigned_extremum("max_int"),
    arith.MinUIOp: _unsigned_extremum("min_int"),
    **{op: _bitwise(operator) for op, operator in BITWISE.items()},
    arith.ShLIOp: _integer("shift_left", "shift"),
    arith.ShRSIOp: _integer("shift_right", "shift"),
    arith.ShRUIOp: _integer("shift_right_logical", "shift"),
    arith.CmpiOp: _cmpi,
    arith.CmpfOp: _cmpf,
    arith.SelectOp: _select,
    arith.ExtFOp: _static_cast(),
    arith.TruncFOp: _static_cast(),
    arith.TruncIOp: _static_cast(),
    arith.ExtSIOp: _sign_extend,
    arith.ExtUIOp: _static_cast(source_unsigned=True),
    arith.SIToFPOp: _sign_extend,
    arith.UIToFPOp: _static_cast(source_unsigned=True),
    arith.FPToSIOp: _static_cast(),
    arith.FPToUIOp: _static_cast(target_unsigned=True),
    arith.IndexCastOp: _static_cast(),
    arith.BitcastOp: _bitcast,
}

_MATH: dict[type[Operation], Rule] = {
    **{op: libm(name) for op, name in {**LIBM, **LIBM_OF_TWO}.items()},
    math.AbsFOp: builtin("fabs"),
    math.CeilOp: builtin("ceil"),
    math.CopySignOp: builtin("copysign"),
    math.FloorOp: builtin("floor"),
    math.FmaOp: builtin("fma"),
    math.RoundEvenOp: builtin("rint"),
    math.SqrtOp: builtin("sqrt"),
    math.TruncOp: builtin("trunc"),
    math.RsqrtOp: _rsqrt,
    math.RoundOp: _of_floats("round_away", "round_away"),
    math.ExpOp: by_width(support("exp_f32", "exp_f32"), libm("exp")),
    math.ErfOp: by_width(_erf, libm("erf")),
    math.AbsIOp: _integer("wrap_abs", "wrap"),
    math.CountLeadingZerosOp: _count_zeros("leading_zeros"),
    math.CountTrailingZerosOp: _count_zeros("trailing_zeros"),
    math.CtPopOp: _count_zeros("count_ones"),
    math.FPowIOp: _of_floats("pow_int", "pow_int"),
    math.IPowIOp: _integer("wrap_pow", "wrap_pow"),
}  # fmt: skip

_FUNCTIONS: dict[str, Rule] = {
    "isnan": _isnan,
    "isinf": _isinf,
    "isfinite": _isfinite,
    "signbit": _signbit,
    **{f"bessel_{name}": special(f"bessel_{name}", "bessel_jy") for name in ("j0", "j1", "y0", "y1")},
    **{name: special(name, name) for name in ("erfinv", "erfcx", "digamma", "ndtri", "log_ndtr", "zeta", "igamma")},
    **{name: special(f"bessel_{name}", "bessel_i") for name in ("i0", "i0e", "i1", "i1e")},
    "igammac": special("igammac", "igamma"),
    "remainderf": _of_floats("rem_floor_float", "fmod"),
    "floordivf": _of_floats("div_floor_float", "fmod"),
    "floordivi": _integer("div_floor", "floor_division"),
    "remainderi": _integer("rem_floor", "floor_division"),
    "gcd": _integer("gcd", "gcd"),
}

RULES: dict[type[Operation], Rule] = {
    **_ARITH,
    **_MATH,
    **{scalar.FUNCTION_OPS[name]: rule for name, rule in _FUNCTIONS.items()},
    **dict.fromkeys(scalar.CONVERSIONS, _conversion),
    scalar.PhiloxOp: support("philox", "philox"),
}
"""op class -> its C"""

#: ops whose result a half type can represent when it can represent the operands, or that round themselves
_EXACT: frozenset[type[Operation]] = frozenset(
    {
        arith.BitcastOp, arith.ConstantOp, arith.NegfOp, arith.SelectOp, arith.MaximumfOp, arith.MinimumfOp,
        arith.MaxnumfOp, arith.MinnumfOp, math.AbsFOp, math.CeilOp, math.CopySignOp, math.FloorOp, math.RoundEvenOp,
        math.TruncOp, *scalar.CONVERSIONS,
    }
)  # fmt: skip


def is_exact(owner: object) -> bool:
    """Whether an op reads a number of its type, or chooses it among such."""
    return isinstance(owner, kernel.LoadOp | arith.SelectOp | arith.MaximumfOp | arith.MinimumfOp)
