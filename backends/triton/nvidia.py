"""Device functions for NVIDIA's GPUs, which generated kernels call as `nvidia.name`.

They are as exact as those of libdevice, unless they say otherwise, but without branches, which the lanes of a warp take
one after the other, and without care for denormal numbers where those cannot reach the result. All work on float32, on
scalars and on blocks, but for conversions, which work on blocks of bytes.
"""

# Triton's language only looks like Python: constants are declared by annotation, branches are chosen by dtype.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false

import triton
import triton.language as tl
from triton.language.extra import libdevice

from . import prelude

# one instruction each


@triton.jit
def exp2(x):
    """2 ** x to 2 units in the last place; 0 for what is below the normal numbers."""
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


@triton.jit
def full_exp2(x):
    """2 ** x to 2 units in the last place, also where it is below the normal numbers."""
    return tl.inline_asm_elementwise("ex2.approx.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


@triton.jit
def reciprocal(x):
    """1 / x to 1 unit in the last place; operands and results below the normal numbers count as 0."""
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


# loads: what `tl.load` returns lies as wide loads want it, and goes through shared memory to where it is used


@triton.jit
def load_in_lanes(buffer, place):
    """The float at a place, as float32, by the lane that uses it; nothing in the kernel may store to it."""
    text: tl.constexpr = "{" + _address(buffer, place) + _load_float(buffer, "") + "}"
    operands: tl.constexpr = "=f,l,l" if place.dtype == tl.int64 else "=f,l,r"
    return tl.inline_asm_elementwise(text, operands, [buffer.to(tl.int64), place], tl.float32, is_pure=True, pack=1)


@triton.jit
def load_in_lanes_where(buffer, place, mask):
    """`load_in_lanes` where a mask is true, else 0."""
    head: tl.constexpr = "{.reg .pred inside; setp.ne.s32 inside, $3, 0; mov.f32 $0, 0f00000000; "
    text: tl.constexpr = head + _address(buffer, place) + _load_float(buffer, "@inside ") + "}"
    operands: tl.constexpr = "=&f,l,l,r" if place.dtype == tl.int64 else "=&f,l,r,r"
    values = [buffer.to(tl.int64), place, mask.to(tl.int32)]
    return tl.inline_asm_elementwise(text, operands, values, tl.float32, is_pure=True, pack=1)


@triton.constexpr_function
def _address(buffer, place):
    """The address of an element, in one instruction."""
    times = "mad.lo.s64" if place.dtype == tl.int64 else "mad.wide.s32"
    size = buffer.dtype.element_ty.primitive_bitwidth // 8
    return f".reg .b64 address; {times} address, $2, {size}, $1; "


@triton.constexpr_function
def _load_float(buffer, where):
    """The float at an address, which has 16 zeros more as bfloat16."""
    if buffer.dtype.element_ty == tl.float32:
        return f"{where}ld.global.f32 $0, [address];"
    head = f".reg .b16 none, half; mov.b16 none, 0; mov.b16 half, 0; {where}ld.global.b16 half, [address]; "
    wide = "mov.b32 $0, {none, half};" if buffer.dtype.element_ty == tl.bfloat16 else "cvt.f32.f16 $0, half;"
    return head + wide


# conversions: a processor converts 16 numbers in a cycle, and permutes the bytes of 64 words, or adds 128 numbers


@triton.jit
def float_of_int8(x):
    """x, exactly: 128 + x are the last digits of 2 ** 23 + 128 + x, from which the rest is taken off."""
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 bytes, a, b, c, d;
        xor.b32 bytes, $4, 0x80808080;
        prmt.b32 a, bytes, 0x4B000000, 0x7540;
        prmt.b32 b, bytes, 0x4B000000, 0x7541;
        prmt.b32 c, bytes, 0x4B000000, 0x7542;
        prmt.b32 d, bytes, 0x4B000000, 0x7543;
        add.rn.f32 $0, a, 0fCB000080;
        add.rn.f32 $1, b, 0fCB000080;
        add.rn.f32 $2, c, 0fCB000080;
        add.rn.f32 $3, d, 0fCB000080;
        }""",
        "=f,=f,=f,=f,r",
        [x],
        tl.float32,
        is_pure=True,
        pack=4,
    )


@triton.jit
def float_of_uint8(x):
    """x, exactly: the last digits of 2 ** 23 + x."""
    return tl.inline_asm_elementwise(
        """{
        .reg .b32 a, b, c, d;
        prmt.b32 a, $4, 0x4B000000, 0x7540;
        prmt.b32 b, $4, 0x4B000000, 0x7541;
        prmt.b32 c, $4, 0x4B000000, 0x7542;
        prmt.b32 d, $4, 0x4B000000, 0x7543;
        add.rn.f32 $0, a, 0fCB000000;
        add.rn.f32 $1, b, 0fCB000000;
        add.rn.f32 $2, c, 0fCB000000;
        add.rn.f32 $3, d, 0fCB000000;
        }""",
        "=f,=f,=f,=f,r",
        [x],
        tl.float32,
        is_pure=True,
        pack=4,
    )


@triton.jit
def half_of_int8(x, dtype: tl.constexpr, pack: tl.constexpr):
    """x, exactly, as a float of 16 bits: its lower 7 bits less 128 where the highest is set, both beside a power of 2.

    pack: bytes at a time, 4, or 2 for an operand of matrix units in registers, which lies there in pairs
    """
    if dtype == tl.float16:
        low = _halves_of_bytes(x, "0x64646464", "0xFF7FFF7F", pack).to(tl.float16, bitcast=True)
        half = low - _halves_of_bytes(x, "0x64646464", "0xFF80FF80", pack).to(tl.float16, bitcast=True)
    else:
        low = _halves_of_bytes(x, "0x43434343", "0xFF7FFF7F", pack).to(tl.bfloat16, bitcast=True)
        half = low - _halves_of_bytes(x, "0x43434343", "0xFF80FF80", pack).to(tl.bfloat16, bitcast=True)
    return half


@triton.jit
def _halves_of_bytes(x, power: tl.constexpr, mask: tl.constexpr, pack: tl.constexpr):
    """Bytes below the upper byte of a power of 2, of each of which a mask is taken."""
    text: tl.constexpr = _halves_text(power, mask, pack)
    operands: tl.constexpr = "=r,h" if pack == 2 else "=r,=r,r"
    return tl.inline_asm_elementwise(text, operands, [x], tl.int16, is_pure=True, pack=pack)


@triton.constexpr_function
def _halves_text(power, mask, pack):
    if pack == 2:
        return f"{{.reg .b32 a; cvt.u32.u16 a, $1; prmt.b32 a, a, {power}, 0x4140; and.b32 $0, a, {mask};}}"
    low = f"prmt.b32 a, $2, {power}, 0x4140; and.b32 $0, a, {mask}; "
    return f"{{.reg .b32 a, b; {low}prmt.b32 b, $2, {power}, 0x4342; and.b32 $1, b, {mask};}}"


@triton.jit
def low_digits(x, less: tl.constexpr, dtype: tl.constexpr):
    """The number in the lower 4 bits, less another, exactly."""
    return _digits(x, "0", less, dtype)


@triton.jit
def high_digits(x, less: tl.constexpr, dtype: tl.constexpr):
    """The number in the upper 4 bits, less another, exactly."""
    return _digits(x, "4", less, dtype)


@triton.jit
def _digits(x, shift: tl.constexpr, less: tl.constexpr, dtype: tl.constexpr):
    """4 bits of each byte from `shift` on, less a number: the last digits of a power of 2 and what the bits are.

    That is 2 ** 23 for float32, 2 ** 10 for float16 and 2 ** 7 for bfloat16, of which a word holds two.
    """
    if dtype == tl.float32:
        digits = _digits_of_words(x, shift).to(tl.float32, bitcast=True) - (8388608.0 + less)
    elif dtype == tl.float16:
        digits = _digits_of_halves(x, shift, "0x64646464").to(tl.float16, bitcast=True) - (1024.0 + less)
    else:
        digits = _digits_of_halves(x, shift, "0x43434343").to(tl.bfloat16, bitcast=True) - (128.0 + less)
    return digits


@triton.jit
def _digits_of_words(x, shift: tl.constexpr):
    return tl.inline_asm_elementwise(
        "{.reg .b32 digits; shr.u32 digits, $4, "
        + shift
        + """;
        and.b32 digits, digits, 0x0F0F0F0F;
        prmt.b32 $0, digits, 0x4B000000, 0x7540;
        prmt.b32 $1, digits, 0x4B000000, 0x7541;
        prmt.b32 $2, digits, 0x4B000000, 0x7542;
        prmt.b32 $3, digits, 0x4B000000, 0x7543;
        }""",
        "=r,=r,=r,=r,r",
        [x],
        tl.int32,
        is_pure=True,
        pack=4,
    )


@triton.jit
def _digits_of_halves(x, shift: tl.constexpr, power: tl.constexpr):
    return tl.inline_asm_elementwise(
        "{.reg .b32 digits; shr.u32 digits, $2, "
        + shift
        + "; and.b32 digits, digits, 0x0F0F0F0F; prmt.b32 $0, digits, "
        + power
        + ", 0x5140; prmt.b32 $1, digits, "
        + power
        + ", 0x5342; }",
        "=r,=r,r",
        [x],
        tl.int16,
        is_pure=True,
        pack=4,
    )


# products


@triton.jit
def settled(x):
    """x once it is there: matrix units of Hopper are done with the registers that they read when the step ends.

    The compiler lets the next step write the first factor of products into registers that units may still read, up to
    Triton 3.6: of 60 kernels 5 gave wrong elements on an H200 (triton-lang/triton#9433).
    """
    return tl.inline_asm_elementwise("mov.b32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)


# launches that overlap (programmatic dependent launch): nothing without the attribute of the launch that allows it


@triton.jit
def let_next_begin():
    """Once all programs have come here, the next launch may begin."""
    tl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], tl.int32, is_pure=False, pack=1)


@triton.jit
def await_launches():
    """Wait until the launch in front has ended and what it wrote is there."""
    tl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], tl.int32, is_pure=False, pack=1)


# functions


@triton.jit
def exp(x):
    """e ** x to 2 units in the last place and half a unit of x: exact for an argument rounded once more."""
    return full_exp2(x * 1.4426950408889634)


@triton.jit
def exp_or_zero(x):
    """`exp`, but 0 for what is below the normal numbers."""
    return exp2(x * 1.4426950408889634)


@triton.jit
def tanh(x):
    """An odd polynomial for small arguments, else 1 - 2 / (exp(2 |x|) + 1); within 3 units in the last place."""
    size = tl.abs(x)
    t = x * x
    p = tl.fma(tl.fma(t, -0.005905868498553464, 0.02080538466046647), t, -0.053786683595900595)
    p = tl.fma(tl.fma(p, t, 0.1333195824300548), t, -0.33333299272076694)
    small = tl.fma(p * t, size, size)
    large = tl.fma(reciprocal(exp2(size * 2.8853900817779268) + 1.0), -2.0, 1.0)
    return libdevice.copysign(tl.where(size < 0.6, small, large), x)


@triton.jit
def erf(x):
    """An odd polynomial below 1, else 1 - 2 ** q(|x|) with a polynomial q; within 2 units in the last place."""
    t = x * x
    p = tl.fma(t, 7.853857548868648e-05, -0.0008010192378909298)
    p = tl.fma(tl.fma(p, t, 0.005188327528662869), t, -0.02685381184036746)
    p = tl.fma(tl.fma(p, t, 0.11283585145836116), t, -0.376126258238888)
    small = tl.fma(tl.fma(p, t, 0.12837916572659322), x, x)
    s = tl.abs(x)
    q = tl.fma(s, -2.2596143102590875e-05, 0.0005153528129745239)
    q = tl.fma(tl.fma(q, s, -0.005358644501224445), s, 0.03414165904445264)
    q = tl.fma(tl.fma(q, s, -0.15233313448882405), s, -0.9178991712799504)
    q = tl.fma(tl.fma(q, s, -1.6271325773968508), s, -0.0003275848294062725)
    return tl.where(s < 1.0, small, libdevice.copysign(1.0 - exp2(q), x))


# division


@triton.jit
def divide_by_shared(a, b):
    """a / b to 0.500001 units in the last place where it is above 2**-102, for a `b` that many elements of `a` share.

    The reciprocal, taken once, is a sum of two numbers, so that what is a number of float32 comes out as that number:
    b / b is 1. The first is 1 / b rounded down, so that both have one sign: for an infinity, or a divisor of 0, they
    add up to what one of them says. A power of 2 keeps both in range, and has the sign of b.
    """
    scale = tl.where(tl.abs(b) > 1.8446744073709552e19, 5.421010862427522e-20, 1.0)
    scale = tl.where(tl.abs(b) < 5.421010862427522e-20, 1.8446744073709552e19, scale)
    scale = libdevice.copysign(scale, b)
    divisor = b * scale
    share = reciprocal(divisor)
    most = share * 0.9999996423721313  # 1 - 3 * 2**-23: a unit more than the reciprocal may be too large
    excess = tl.fma(divisor, most * -1.0, 1.0)
    rest = tl.where(tl.abs(excess) < float("inf"), excess * share, most)
    scaled = a * scale
    return tl.fma(scaled, most, scaled * rest)


@triton.jit
def divide_by_at_least_one(a, b):
    """a / b to 0.5000003 units in the last place where it is a normal number, for b >= 1 or a NaN.

    A quarter of both keeps the reciprocal from being denormal.
    """
    divisor = b * 0.25
    return _corrected(a * 0.25, divisor, reciprocal(divisor))


@triton.jit
def ratio_to_at_least_one(a, b):
    """a / b to 2 units in the last place where it is a normal number, for b >= 1 or a NaN."""
    return (a * 0.25) * reciprocal(b * 0.25)


@triton.jit
def _corrected(a, b, share):
    """a * share, nearly a / b, less what it is too much by, which is no number for infinite and zero operands; b >= 0.

    Spelled so that a zero keeps its sign.
    """
    quotient = a * share
    excess = tl.fma(quotient, b, a * -1.0)
    return tl.where(tl.abs(excess) < float("inf"), tl.fma(excess, share * -1.0, quotient), quotient)


# reductions


@triton.jit
def logsumexp_fold(highest, total, groups):
    """`prelude.logsumexp` with several elements a lane, which lie along the last axis of `groups` (-inf for none).

    The lane's sum is rescaled once for all of them. Where the maximum is infinite, the sum is of exp(x) itself.
    """
    axis: tl.constexpr = len(groups.shape) - 1
    grown = prelude.maximum(highest, tl.reduce(groups, axis, prelude.maximum))
    base = tl.where(tl.abs(grown) == float("inf"), 0.0, grown)
    shares = exp2((groups - tl.expand_dims(base, axis)) * 1.4426950408889634)
    return grown, total * exp2((highest - base) * 1.4426950408889634) + tl.sum(shares, axis)
