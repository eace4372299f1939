"""Arithmetic, powers, division, bits, selection."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects.sym import ONE
from ....machines import ON_GPU, ON_HOST, eager, in_host_memory
from ..dtypes import BOOL, F16, F64, I32, I64, LOW_PRECISION, is_float, kind, reciprocal
from ..nests import type_of
from ..pointwise import add_pointwise
from ..rules import Call
from ..scalar import Number, Scalar
from ..scalar_builder import ScalarBuilder


def scaled(s: ScalarBuilder, value: Scalar, factor: Number) -> Scalar:
    """value * factor, without the product where the factor is 1."""
    known = factor.known if isinstance(factor, Scalar) else factor
    return value if known == 1 else value * s.number(factor, value.element)


def true_quotient(s: ScalarBuilder, left: Scalar, right: Scalar, call: Call) -> Scalar:
    """`left / right`, with the reciprocal of a number where eager multiplies."""
    number = right.known
    is_number = not isinstance(call["other"], SSAValue) and is_float(left.element)
    if not is_number or number is None or eager(call.type.device).divides_by_numbers:
        return left / right
    return left * s.constant(reciprocal(float(number), left.element), left.element)


def divide(s: ScalarBuilder, left: Scalar, right: Scalar, rounding_mode: str | None, call: Call) -> Scalar:
    """`torch.div` in one of its three modes; both sides have the type of the result."""
    if rounding_mode is None:
        return left / right
    if not is_float(left.element):
        return s.integer_quotient(left, right, floor=rounding_mode == "floor")
    if rounding_mode == "floor":
        return s.function("floordivf", left, right)
    quotient = left / right
    return s.trunc(s.widen(s.cast(quotient, call.type.element)) if _rounds_quotient(call) else quotient)


def _rounds_quotient(call: Call) -> bool:
    """Whether eager rounds a quotient of low precision before it drops the fraction: by a number it does not."""
    divisor = call["other"]
    if call.type.element not in LOW_PRECISION or not isinstance(divisor, SSAValue):
        return False
    type_ = type_of(divisor)
    if eager(call.type.device).single_is_number:
        return any(size is not ONE for size in type_.shape)
    return bool(type_.shape) or not in_host_memory(type_.device)


def remainder(s: ScalarBuilder, left: Scalar, right: Scalar) -> Scalar:
    """`left % right` with the sign of `right`."""
    if is_float(left.element):
        return s.function("remainderf", left, right)
    return s.integer_remainder(left, right, floor=True)


def fmod(s: ScalarBuilder, left: Scalar, right: Scalar) -> Scalar:
    """C's fmod: the sign is that of `left`."""
    return s.fmod(left, right) if is_float(left.element) else s.integer_remainder(left, right, floor=False)


def power(s: ScalarBuilder, base: Scalar, exponent: Scalar, call: Call) -> Scalar:
    """base ** exponent. Exponents that eager's kernels treat by themselves are treated alike: roots too, but for
    those of float16 on the CPU.
    """
    known = exponent.known
    if not is_float(base.element):
        return integer_power(s, base, exponent)
    if known in (0.5, -0.5) and (call.type.element != F16 or not eager(call.type.device).powers_of_float16_roots):
        return s.sqrt(base) if known == 0.5 else 1.0 / s.sqrt(base)
    if known in (1, 2, 3):
        return _repeated_product(base, int(known))
    if known in (-1, -2):
        return 1.0 / _repeated_product(base, -int(known))
    return s.pow(base, exponent)


def integer_power(s: ScalarBuilder, base: Scalar, exponent: Scalar) -> Scalar:
    """Integer power that wraps; a negative exponent gives 1 / base ** -exponent rounded to zero."""
    known = exponent.known
    if base.element == BOOL:
        return base | ~exponent
    if known in (1, 2, 3):
        return _repeated_product(base, int(known))
    if kind(base.element) == "unsigned":  # the op takes its operands as signed; the low bits agree
        return s.pow(base.to(I64), exponent.to(I64)).to(base.element)
    if known is not None and known >= 0:
        return s.pow(base, exponent)
    one, zero = s.constant(1, base.element), s.constant(0, base.element)
    odd = (exponent & 1).ne(0)
    inverse = s.where(base.eq(1), one, s.where(base.eq(-1), s.where(odd, s.constant(-1, base.element), one), zero))
    return s.where(exponent < 0, inverse, s.pow(base, s.max(exponent, zero)))


def _repeated_product(base: Scalar, times: int) -> Scalar:
    result = base
    for _ in range(times - 1):
        result = result * base
    return result


def shift_left(s: ScalarBuilder, value: Scalar, amount: Scalar) -> Scalar:
    """`value << amount`; 0 where the amount is negative or not below the width."""
    width = value.ssa.type.width.data  # pyright: ignore
    if amount.known is not None and 0 <= amount.known < width:
        return s.binary("shl", value, amount)
    shifted = s.binary("shl", value, s.clamp(amount, 0, width - 1))
    return s.where((amount < 0) | (amount >= width), s.constant(0, value.element), shifted)


def shift_right(s: ScalarBuilder, value: Scalar, amount: Scalar) -> Scalar:
    """`value >> amount`, arithmetic; an amount out of range shifts by the largest possible one."""
    width = value.ssa.type.width.data  # pyright: ignore
    if amount.known is not None and 0 <= amount.known < width:
        return s.binary("shr", value, amount)
    most = s.constant(width - 1, value.element)
    outside = (amount < 0) | (amount >= width)
    shifted = s.binary("shr", value, s.where(outside, most, amount))
    if kind(value.element) != "unsigned":
        return shifted
    return s.where(outside, s.constant(0, value.element), shifted)


def lerp(s: ScalarBuilder, start: Scalar, end: Scalar, weight: Number) -> Scalar:
    """start + weight * (end - start), computed from the nearer end."""
    weight = s.number(weight, start.element)
    difference = end - start
    near_start = start + weight * difference
    near_end = end - difference * (1.0 - weight)
    if weight.known is not None:
        return near_start if abs(weight.known) < 0.5 else near_end
    return s.where(s.abs(weight) < 0.5, near_start, near_end)


def heaviside(s: ScalarBuilder, value: Scalar, values: Scalar) -> Scalar:
    """0 below zero and for NaN, 1 above, `values` at zero."""
    return s.where(value.eq(0), values, (value > 0).to(value.element))


def gcd(s: ScalarBuilder, left: Scalar, right: Scalar) -> Scalar:
    """Greatest common divisor; the op takes its operands as signed."""
    if kind(left.element) != "unsigned":
        return s.function("gcd", left, right)
    return s.function("gcd", left.to(I64), right.to(I64)).to(left.element)


def lcm(s: ScalarBuilder, left: Scalar, right: Scalar) -> Scalar:
    """Least common multiple, 0 if either is 0; in 32 bits at least, as C++ promotes."""
    element = left.element
    if element not in (I32, I64):
        left, right = left.to(I32), right.to(I32)
    divisor = s.function("gcd", left, right)
    safe = s.where(divisor.eq(0), s.constant(1, left.element), divisor)
    return s.abs(s.binary("quotient", left, safe) * right).to(element)


add_pointwise({
    "add.Tensor add.Scalar": lambda s, self, other, alpha: self + scaled(s, other, alpha),
    "sub.Tensor sub.Scalar": lambda s, self, other, alpha: self - scaled(s, other, alpha),
    "rsub.Tensor rsub.Scalar": lambda s, self, other, alpha: other - scaled(s, self, alpha),
}, exact_numbers={ON_GPU: ("self", "other")})  # fmt: skip

add_pointwise({
    "mul.Tensor mul.Scalar": lambda s, self, other: self * other,
}, exact_numbers={ON_HOST: ("other",), ON_GPU: ("self", "other")})  # fmt: skip

add_pointwise({
    "div.Tensor div.Scalar true_divide.Tensor true_divide.Scalar":
        lambda s, self, other, call: true_quotient(s, self, other, call),
    "div.Tensor_mode div.Scalar_mode":
        lambda s, self, other, rounding_mode, call: divide(s, self, other, rounding_mode, call),
    "floor_divide floor_divide.Scalar": lambda s, self, other, call: divide(s, self, other, "floor", call),
}, exact_numbers={ON_HOST: ("other",), ON_GPU: ("other",)})  # fmt: skip

add_pointwise({
    "remainder.Tensor remainder.Scalar remainder.Scalar_Tensor": lambda s, self, other: remainder(s, self, other),
    "fmod.Tensor fmod.Scalar": lambda s, self, other: fmod(s, self, other),
    "pow.Tensor_Tensor pow.Tensor_Scalar pow.Scalar": lambda s, self, exponent, call: power(s, self, exponent, call),
    "float_power.Tensor_Tensor float_power.Tensor_Scalar float_power.Scalar":
        lambda s, self, exponent, call: power(s, self.to(F64), exponent.to(F64), call),
    "neg": lambda s, self: -self,
    "positive": lambda s, self: self,
    "abs": lambda s, self: s.abs(self),
    "square": lambda s, self: self * self,
    "reciprocal": lambda s, self: 1.0 / self,
    "sign sgn": lambda s, self: s.sign(self),
    "addcmul": lambda s, self, tensor1, tensor2, value: self + scaled(s, tensor1, value) * tensor2,
    "addcdiv": lambda s, self, tensor1, tensor2, value: self + scaled(s, tensor1, value) / tensor2,
    "lerp.Tensor lerp.Scalar": lambda s, self, end, weight: lerp(s, self, end, weight),
    "maximum max.other": lambda s, self, other: s.max(self, other),
    "minimum min.other": lambda s, self, other: s.min(self, other),
    "fmax": lambda s, self, other: s.fmax(self, other),
    "fmin": lambda s, self, other: s.fmin(self, other),
    "clamp clamp.Tensor clip clip.Tensor": lambda s, self, min, max: s.clamp(self, min, max),
    "clamp_min clamp_min.Tensor": lambda s, self, min: s.clamp(self, min, None),
    "clamp_max clamp_max.Tensor": lambda s, self, max: s.clamp(self, None, max),
    "bitwise_and.Tensor bitwise_and.Scalar bitwise_and.Scalar_Tensor __and__.Tensor __and__.Scalar":
        lambda s, self, other: self & other,
    "bitwise_or.Tensor bitwise_or.Scalar bitwise_or.Scalar_Tensor __or__.Tensor __or__.Scalar":
        lambda s, self, other: self | other,
    "bitwise_xor.Tensor bitwise_xor.Scalar bitwise_xor.Scalar_Tensor __xor__.Tensor __xor__.Scalar":
        lambda s, self, other: self ^ other,
    "bitwise_not": lambda s, self: ~self,
    "bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar bitwise_left_shift.Scalar_Tensor "
    "__lshift__.Tensor __lshift__.Scalar": lambda s, self, other: shift_left(s, self, other),
    "bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar bitwise_right_shift.Scalar_Tensor "
    "__rshift__.Tensor __rshift__.Scalar": lambda s, self, other: shift_right(s, self, other),
    "gcd": lambda s, self, other: gcd(s, self, other),
    "lcm": lambda s, self, other: lcm(s, self, other),
    "heaviside": lambda s, self, values: heaviside(s, self, values),
})  # fmt: skip
