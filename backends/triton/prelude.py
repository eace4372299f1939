"""Device functions that generated kernels call as `prelude.name`: combiners of reductions, and arithmetic with
PyTorch's meaning that Triton lacks.

Each works for scalars and for block tensors. Integer `//` and `%` truncate in Triton.
"""

# Triton's language only looks like Python: constants are declared by annotation, branches are chosen by dtype.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportRedeclaration=false, reportOperatorIssue=false

import triton
import triton.language as tl
from triton.language.extra import libdevice

# combiners, for tl.reduce, tl.associative_scan and accumulators


@triton.jit
def add(a, b):
    """x + y"""
    return a + b


@triton.jit
def multiply(a, b):
    """x * y"""
    return a * b


@triton.jit
def maximum(a, b):
    """The larger; NaN if either is NaN."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def minimum(a, b):
    """The smaller; NaN if either is NaN."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def bit_or(a, b):
    """x | y"""
    return a | b


@triton.jit
def bit_and(a, b):
    """x & y"""
    return a & b


@triton.jit
def bit_xor(a, b):
    """x ^ y"""
    return a ^ b


@triton.jit
def argmax(value, index, other_value, other_index):
    """The larger of two (value, index): NaN wins, ties go to the lower index."""
    tie = (value == other_value) | ((value != value) & (other_value != other_value))
    first = (value > other_value) | ((value != value) & (other_value == other_value))
    first = first | (tie & (index < other_index))
    return tl.where(first, value, other_value), tl.where(first, index, other_index)


@triton.jit
def argmin(value, index, other_value, other_index):
    """The smaller of two (value, index): NaN wins, ties go to the lower index."""
    tie = (value == other_value) | ((value != value) & (other_value != other_value))
    first = (value < other_value) | ((value != value) & (other_value == other_value))
    first = first | (tie & (index < other_index))
    return tl.where(first, value, other_value), tl.where(first, index, other_index)


@triton.jit
def welford(mean, m2, count, other_mean, other_m2, other_count):
    """(mean, sum of squared deviations, count) of two parts together; an empty part changes nothing.

    Chan, Golub, LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979.
    """
    total = count + other_count
    share = tl.where(total == 0, 0.0, other_count / total)
    delta = other_mean - mean
    return mean + delta * share, m2 + other_m2 + delta * delta * count * share, total


@triton.jit
def welford_of_equals(mean, m2, count, axis: tl.constexpr, keep_dims: tl.constexpr):
    """`welford` of lanes that have all seen `count` elements: their mean, and sums of what is left, without a division.

    The number of lanes is a power of two, so that its reciprocal is exact, and a sum of shares does not overflow.
    """
    lanes: tl.constexpr = mean.numel if axis is None else mean.shape[axis]
    middle = tl.sum(mean * (1.0 / lanes), axis, keep_dims=keep_dims)
    delta = mean - middle
    return middle, tl.sum(m2 + delta * delta * count, axis, keep_dims=keep_dims), count * lanes


@triton.jit
def logsumexp(highest, total, other_highest, other_total):
    """(m, s) standing for m + log(s), of two parts together; equal infinite maxima add their sums."""
    m = maximum(highest, other_highest)
    left = tl.where(highest == m, 1.0, tl.exp(highest - m))
    right = tl.where(other_highest == m, 1.0, tl.exp(other_highest - m))
    # an empty part is (-inf, 0), whose weight must not turn 0 into NaN
    return m, tl.where(total == 0, 0.0, total * left) + tl.where(other_total == 0, 0.0, other_total * right)


@triton.jit
def softmax_weight(x, highest):
    """exp(x - highest), where highest >= x; 0 where x is -inf."""
    return tl.where(x == float("-inf"), 0.0, tl.exp(x - highest))


@triton.jit
def softmax_scale(highest, times: tl.constexpr = 1.0):
    """(f, c) with exp(times*(x - highest)) == 2 ** (f*x + c) for all x <= highest, if f*x + c is rounded once.

    c is rounded: all weights of a row, and what rescales them, are wrong by one factor, below 2 ** 93. From 2 ** 31 on
    numbers lie 256 apart, so that a weight is 1 or 0, as it is with f = 0.5, where c is exact and nothing overflows.
    What is -inf weighs 0 beside anything, and beside nothing but -inf.
    """
    factor = tl.where(tl.abs(highest * times) >= 2147483648.0, 0.5 * times, 1.4426950408889634 * times)
    return factor, tl.where(highest == float("-inf"), 0.0, -highest) * factor


@triton.jit
def softmax_sum(highest, total, weighted, other_highest, other_total, other_weighted):
    """(m, s, t) of two parts together: a maximum, and two sums over exp(x - m)."""
    m = maximum(highest, other_highest)
    left, right = softmax_weight(highest, m), softmax_weight(other_highest, m)
    return m, total * left + other_total * right, weighted * left + other_weighted * right


@triton.jit
def welford_step(mean, m2, count, value, weight):
    """`welford` with a part of one element; a weight of 0 leaves it out, with a value that is finite or the mean."""
    total = count + weight
    delta = value - mean
    mean = mean + delta * tl.where(total == 0, 0.0, weight / total)
    return mean, m2 + delta * (value - mean) * weight, total


@triton.jit
def logsumexp_step(highest, total, value, weight):
    """`logsumexp` with a part of one element (-inf and weight 0 for none), by one exponential."""
    grows = (value > highest) | (value != value)
    scale = tl.where(value == highest, 1.0, tl.exp(-tl.abs(value - highest)))
    # nothing was there: 0 * exp(-inf) is fine, 0 * NaN is not
    kept = tl.where(total == 0, 0.0, total * scale)
    return tl.where(grows, value, highest), tl.where(grows, kept + weight, total + tl.where(weight == 0, 0.0, scale))


# arithmetic


@triton.jit
def floor_divide(a, b):
    """x // y on signed integers, rounded to -inf; y != 0."""
    quotient = a // b
    return tl.where((a % b != 0) & ((a < 0) != (b < 0)), quotient - 1, quotient)


@triton.jit
def floor_modulo(a, b):
    """x - y * floor(x / y) on signed integers: the sign of y; y != 0."""
    rest = a % b
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


@triton.jit
def float_divide(a, b):
    """x / y on floats, correctly rounded; Triton's own division of float32 is not."""
    if a.dtype == tl.float32:
        return tl.div_rn(a, b)
    else:
        return a / b


@triton.jit
def float_floor_divide(a, b):
    """Python's x // y on floats; x / y for y == 0."""
    rest = libdevice.fmod(a, b)
    quotient = float_divide(a - rest, b)
    quotient = tl.where((rest != 0) & ((b < 0) != (rest < 0)), quotient - 1.0, quotient)
    floor = tl.floor(quotient)
    floor = tl.where(quotient - floor > 0.5, floor + 1.0, floor)
    exact = float_divide(a, b)
    floor = tl.where(quotient == 0, copysign_zero(exact), floor)
    return tl.where(b == 0, exact, floor)


@triton.jit
def copysign_zero(x):
    """A zero with the sign of x."""
    zero = tl.full([], 0.0, x.dtype)
    return tl.where(signbit(x), negate(zero), zero)


@triton.jit
def float_modulo(a, b):
    """Python's x % y on floats: the sign of y."""
    rest = libdevice.fmod(a, b)
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


@triton.jit
def negate(x):
    """-x on floats, also for zero: Triton before 3.7 computes 0 - x, and reads the literal -0.0 as 0."""
    return x * -1.0


@triton.jit
def signbit(x):
    """Whether the sign bit of a float is set."""
    if x.dtype == tl.float64:
        return x.to(tl.int64, bitcast=True) < 0
    else:
        return x.to(tl.int32, bitcast=True) < 0


@triton.jit
def i0e(x):
    """exp(-|x|) * I0(x)"""
    size = tl.abs(x)
    small = tl.where(size < 80.0, size, 0.0)
    r = 1.0 / tl.where(size < 80.0, 80.0, size)
    series = 1.0 + r * (
        0.125 + r * (0.0703125 + r * (0.0732421875 + r * (0.112152099609375 + r * 0.22710800170898438)))
    )
    far = series * float_sqrt(r * 0.15915494309189535)
    near = libdevice.cyl_bessel_i0(small) * libdevice.exp(small * -1.0)
    return tl.where(size < 80.0, near, tl.where(x != x, x, far))


@triton.jit
def i1e(x):
    """exp(-|x|) * I1(x)"""
    size = tl.abs(x)
    small = tl.where(size < 80.0, x, 0.0)
    r = 1.0 / tl.where(size < 80.0, 80.0, size)
    series = 1.0 - r * (
        0.375 + r * (0.1171875 + r * (0.1025390625 + r * (0.144195556640625 + r * 0.27757644653320312)))
    )
    far = series * float_sqrt(r * 0.15915494309189535)
    near = libdevice.cyl_bessel_i1(small) * libdevice.exp(tl.abs(small) * -1.0)
    return tl.where(size < 80.0, near, tl.where(x != x, x, tl.where(x < 0, far * -1.0, far)))


@triton.jit
def float_sqrt(x):
    """The square root of a float, correctly rounded."""
    if x.dtype == tl.float32:
        return tl.sqrt_rn(x)
    else:
        return tl.sqrt(x)


@triton.jit
def integer_power(base, exponent):
    """base ** exponent on integers, which wrap; of a negative exponent what is left after truncation."""
    one = base * 0 + 1
    result = one
    factor = base
    left = tl.where(exponent < 0, exponent * 0, exponent)
    while tl.max(left + tl.zeros([1], left.dtype), axis=None) > 0:
        result = tl.where(left & 1 != 0, result * factor, result)
        factor = factor * factor
        left = left >> 1
    small = tl.where(base == 1, one, tl.where(base == -1, tl.where(exponent & 1 != 0, -one, one), base * 0))
    return tl.where(exponent < 0, small, result)


@triton.jit
def gcd(a, b):
    """Greatest common divisor of integers, not negative."""
    a = tl.abs(a)
    b = tl.abs(b)
    while tl.max(tl.abs(b + tl.zeros([1], b.dtype)), axis=None) != 0:
        rest = tl.where(b == 0, a, a % tl.where(b == 0, b + 1, b))
        a = tl.where(b == 0, a, b)
        b = tl.where(b == 0, b, rest)
    return a


@triton.jit
def philox(seed, offset):
    """Draw number `offset` of the stream of `seed`: Philox 4x32 with 10 rounds, four draws a block; int64 both."""
    block = offset >> 2
    zero = (block * 0).to(tl.uint32)
    low = (block & 0xFFFFFFFF).to(tl.uint32)
    high = ((block >> 32) & 0xFFFFFFFF).to(tl.uint32)
    first, second, third, fourth = tl.philox(seed, low, high, zero, zero)
    word = offset & 3
    bits = tl.where(word == 0, first, tl.where(word == 1, second, tl.where(word == 2, third, fourth)))
    return bits.to(tl.int32, bitcast=True)


@triton.jit
def atomic_maximum(places, values, mask):
    """Raise floats in memory to `values` where `mask` holds; NaN wins.

    Floats without a sign order like their bits, those with one in reverse, and below all others. As a number, the
    largest integer is a NaN.
    """
    if values.dtype == tl.float64:
        number: tl.constexpr = tl.int64
        word: tl.constexpr = tl.uint64
        nan: tl.constexpr = 0x7FFFFFFFFFFFFFFF
    else:
        number: tl.constexpr = tl.int32
        word: tl.constexpr = tl.uint32
        nan: tl.constexpr = 0x7FFFFFFF
    there = tl.load(places, mask=mask)
    mask = mask & (there == there)  # a NaN in memory stays
    bits = tl.where(values != values, nan, values.to(number, bitcast=True)).to(number)
    tl.atomic_max(places.to(tl.pointer_type(number), bitcast=True), bits, mask=mask & (bits >= 0), sem="relaxed")
    words = bits.to(word, bitcast=True)
    tl.atomic_min(places.to(tl.pointer_type(word), bitcast=True), words, mask=mask & (bits < 0), sem="relaxed")


@triton.jit
def atomic_minimum(places, values, mask):
    """Lower floats in memory to `values` where `mask` holds; NaN wins. See `atomic_maximum`; -1 is a NaN too."""
    if values.dtype == tl.float64:
        number: tl.constexpr = tl.int64
        word: tl.constexpr = tl.uint64
    else:
        number: tl.constexpr = tl.int32
        word: tl.constexpr = tl.uint32
    there = tl.load(places, mask=mask)
    mask = mask & (there == there)
    bits = tl.where(values != values, -1, values.to(number, bitcast=True)).to(number)
    tl.atomic_min(places.to(tl.pointer_type(number), bitcast=True), bits, mask=mask & (bits >= 0), sem="relaxed")
    words = bits.to(word, bitcast=True)
    tl.atomic_max(places.to(tl.pointer_type(word), bitcast=True), words, mask=mask & (bits < 0), sem="relaxed")


@triton.jit
def report(status, failed, code: tl.constexpr):
    """Set the status word of a kernel to `code` where an element failed its check. Which code stays is open."""
    tl.store(status + failed.to(tl.int32) * 0, failed.to(tl.int32) * code, mask=failed)
