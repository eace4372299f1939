"""Scalar ops for element bodies that arith and math lack, with PyTorch's meaning.

A function of numbers is one line in `FUNCTIONS`, with what passes have to know of it. Casts that the program wrote
(`scalar.cast`) and casts that the compiler inserts to compute in a wider type (`scalar.widen`, `scalar.narrow`) are
different ops: only the latter may be elided.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, bf16, f16, f32, i1, i64
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..records import dataclass
from .access import parse_ssa_list, print_ssa_list
from .assembly import NUMBER, TYPE, AssemblyOp, Read, clause, mark, operand, prop
from .aten.types import scalar_type
from .fields import op_definition


@dataclass(frozen=True)
class ScalarFunction:
    """A pure function of scalars of one type.

    predicate: whether it gives i1, else the operands' type
    exact:     whether every device computes it to the same bits
    steps:     whether its results, floats, jump where operands hardly differ
    """

    name: str
    arity: int
    meaning: str
    predicate: bool = False
    exact: bool = False
    steps: bool = False


FUNCTIONS: tuple[ScalarFunction, ...] = (
    ScalarFunction("isnan", 1, "whether x is NaN", predicate=True, exact=True),
    ScalarFunction("isinf", 1, "whether x is inf or -inf", predicate=True, exact=True),
    ScalarFunction("isfinite", 1, "whether x is neither NaN nor infinite", predicate=True, exact=True),
    ScalarFunction("signbit", 1, "whether the sign bit is set, also of -0.0 and NaN", predicate=True, exact=True),
    ScalarFunction("erfc", 1, "complementary error function"),
    ScalarFunction("erfinv", 1, "inverse error function"),
    ScalarFunction("erfcx", 1, "exp(x*x) * erfc(x)"),
    ScalarFunction("lgamma", 1, "log of the absolute value of the gamma function"),
    ScalarFunction("digamma", 1, "logarithmic derivative of the gamma function"),
    ScalarFunction("i0", 1, "modified Bessel function of the first kind, order 0"),
    ScalarFunction("i0e", 1, "exp(-|x|) * i0(x)"),
    ScalarFunction("i1", 1, "modified Bessel function of the first kind, order 1"),
    ScalarFunction("i1e", 1, "exp(-|x|) * i1(x)"),
    ScalarFunction("ndtri", 1, "quantile of the standard normal distribution"),
    ScalarFunction("log_ndtr", 1, "log of the standard normal distribution function"),
    ScalarFunction("bessel_j0", 1, "Bessel function of the first kind, order 0"),
    ScalarFunction("bessel_j1", 1, "Bessel function of the first kind, order 1"),
    ScalarFunction("bessel_y0", 1, "Bessel function of the second kind, order 0"),
    ScalarFunction("bessel_y1", 1, "Bessel function of the second kind, order 1"),
    ScalarFunction("fmod", 2, "C's fmod: x - y * trunc(x / y), sign of x", exact=True, steps=True),
    ScalarFunction("remainderf", 2, "Python's x % y on floats: sign of y", exact=True, steps=True),
    ScalarFunction("floordivf", 2, "Python's x // y on floats; inf, -inf or NaN for y == 0", exact=True, steps=True),
    ScalarFunction(
        "floordivi", 2, "Python's x // y on signed integers; y != 0 is checked by an assert before", exact=True
    ),
    ScalarFunction(
        "remainderi", 2, "Python's x % y on signed integers; y != 0 is checked by an assert before", exact=True
    ),
    ScalarFunction("hypot", 2, "sqrt(x*x + y*y) without overflow"),
    ScalarFunction("nextafter", 2, "the next number after x in the direction of y", exact=True, steps=True),
    ScalarFunction("gcd", 2, "greatest common divisor of integers", exact=True),
    ScalarFunction("zeta", 2, "Hurwitz zeta function"),
    ScalarFunction("igamma", 2, "regularized lower incomplete gamma function"),
    ScalarFunction("igammac", 2, "regularized upper incomplete gamma function"),
)


class FunctionOp(IRDLOperation):
    """Base of the ops of `FUNCTIONS`: `%r = scalar.fmod %a, %b : f32`. All operands have the written type."""

    FUNCTION: ClassVar[ScalarFunction]

    @classmethod
    def of(cls, *operands: SSAValue) -> FunctionOp:
        """Build from operands of one type."""
        return cls.create(operands=operands, result_types=(i1 if cls.FUNCTION.predicate else operands[0].type,))

    def verify_(self) -> None:
        """Check arity and types."""
        if len(self.operands) != self.FUNCTION.arity:
            raise VerifyException(f"{self.name} takes {self.FUNCTION.arity} operands")
        types = {v.type for v in self.operands}
        if len(types) != 1:
            raise VerifyException(f"operands of {self.name} have one type")
        if self.results[0].type != (i1 if self.FUNCTION.predicate else types.pop()):
            raise VerifyException(f"wrong result type of {self.name}")

    @classmethod
    def parse(cls, parser: Parser) -> FunctionOp:
        """Parse `%a, %b : f32`."""
        operands = parse_ssa_list(parser)
        parser.parse_punctuation(":")
        written = parser.parse_type()
        if not operands or any(v.type != written for v in operands):
            parser.raise_error(f"operands of {cls.name} must have type {written}")
        return cls.of(*operands)

    def print(self, printer: Printer) -> None:
        """Print what `parse` reads."""
        printer.print_string(" ")
        print_ssa_list(printer, tuple(self.operands))
        printer.print_string(" : ")
        printer.print_attribute(self.operands[0].type)


def _define(function: ScalarFunction) -> type[FunctionOp]:
    operands = {f"operand{k}": operand_def() for k in range(function.arity)}
    namespace = {
        "__doc__": f"{function.meaning[0].upper()}{function.meaning[1:]}.",
        "__module__": __name__,
        "name": f"scalar.{function.name}",
        "result": result_def(),
        "traits": traits_def(Pure()),
        **operands,
    }
    op = op_definition(type(f"{function.name.title().replace('_', '')}Op", (FunctionOp,), namespace))
    op.FUNCTION = function
    return op


#: function name -> op class
FUNCTION_OPS: dict[str, type[FunctionOp]] = {f.name: _define(f) for f in FUNCTIONS}


class _ConversionOp(AssemblyOp):
    """Base of casts: `scalar.cast %x : ui8 to f32`, written with element types, so that the sign is known."""

    value = operand_def()
    from_ = prop_def(Attribute, prop_name="from")
    to = prop_def(Attribute)
    result = result_def()
    traits = traits_def(Pure())
    SYNTAX: ClassVar = (operand("value"), mark(":"), prop("from", TYPE), prop("to", TYPE, "to"))

    @classmethod
    def result_types_of(cls, read: Read) -> tuple[Attribute]:
        """A scalar of the type on the right."""
        return (scalar_type(read.properties["to"]),)

    def verify_(self) -> None:
        """Check operand and result against the element types."""
        source, target = self.properties["from"], self.properties["to"]
        if self.operands[0].type != scalar_type(source) or self.results[0].type != scalar_type(target):
            raise VerifyException(f"{self.name} from {source} to {target} has other operand or result types")

    @classmethod
    def of(cls, value: SSAValue, source: Attribute, target: Attribute):
        """Build from a scalar and the element types on both sides."""
        return cls.create(
            operands=(value,), result_types=(scalar_type(target),), properties={"from": source, "to": target}
        )

    @property
    def source_element(self) -> Attribute:
        """Element type converted from."""
        return self.properties["from"]

    @property
    def target_element(self) -> Attribute:
        """Element type converted to."""
        return self.properties["to"]


@op_definition
class CastOp(_ConversionOp):
    """A conversion that the program wrote, as `Tensor.to` does it: to bool is `x != 0`; float to integer truncates;
    integers wrap; float to float rounds to nearest even. Never elided, but folded where both sides agree."""

    name = "scalar.cast"


@op_definition
class WidenOp(_ConversionOp):
    """A conversion that the compiler inserted to compute in a wider type: exact. `widen(narrow(x))` may become x,
    unless the option `emulate_precision_casts` asks to round like eager."""

    name = "scalar.widen"


@op_definition
class NarrowOp(_ConversionOp):
    """The inserted conversion back from the wider type, rounding to nearest even; see `scalar.widen`."""

    name = "scalar.narrow"


@op_definition
class PhiloxOp(AssemblyOp):
    """32 random bits of Philox 4x32 with 10 rounds: `%bits = scalar.philox %seed, %offset : i64`.

    `seed` is the key; `offset` counts single 32-bit draws: block `offset floordiv 4`, word `offset mod 4`.
    """

    name = "scalar.philox"
    seed = operand_def(IntegerType(64))
    offset = operand_def(IntegerType(64))
    bits = result_def(IntegerType(32))
    traits = traits_def(Pure())
    SYNTAX: ClassVar = (operand("seed"), mark(","), operand("offset"))

    @classmethod
    def result_types_of(cls, read: Read) -> tuple[Attribute]:
        """The bits as an i32."""
        return (IntegerType(32),)

    @staticmethod
    def of(seed: SSAValue, offset: SSAValue) -> PhiloxOp:
        """Build from an i64 seed and an i64 draw counter."""
        return PhiloxOp.create(operands=(seed, offset), result_types=(IntegerType(32),))


#: what may be taken off a number of 4 bits that becomes a float of 16 bits by its bits, exactly
MOST_TAKEN_OFF: dict[Attribute, int] = {bf16: 128, f16: 1024}


class _DigitsOp(AssemblyOp):
    """Base of the numbers of 4 bits that lie in a byte."""

    value = operand_def(IntegerType(8))
    less = opt_prop_def(IntegerAttr)
    to = opt_prop_def(Attribute)
    result = result_def()
    traits = traits_def(Pure())
    SYNTAX: ClassVar = (operand("value"), clause("less", NUMBER), clause("to", TYPE))

    @classmethod
    def result_types_of(cls, read: Read) -> tuple[Attribute]:
        """A float."""
        return (read.properties.get("to", f32),)

    @classmethod
    def of(cls, value: SSAValue, less: int = 0, to: Attribute = f32):
        """Build from a byte, what is taken off, and a type of floats."""
        given: dict[str, Attribute] = {"less": IntegerAttr(less, i64)} if less else {}
        given |= {} if to == f32 else {"to": to}
        return cls.create(operands=(value,), result_types=(to,), properties=given)

    def verify_(self) -> None:
        """Check the type of the result, and that it has all digits of the number."""
        to = f32 if self.to is None else self.to
        if to not in (f32, *MOST_TAKEN_OFF) or self.result.type != to:
            raise VerifyException(f"{self.name} gives f32, bf16 or f16")
        if to != f32 and not 0 <= self.zero <= MOST_TAKEN_OFF[to]:
            raise VerifyException(f"{self.name} takes at most {MOST_TAKEN_OFF[to]} off a number of {to}")

    @property
    def zero(self) -> int:
        """What is taken off the number."""
        return 0 if self.less is None else self.less.value.data


@op_definition
class LowDigitsOp(_DigitsOp):
    """The number in the lower 4 bits of a byte, as an f32: `%n = scalar.low_digits %byte less 8` is -8 to 7.

    `scalar.low_digits %byte less 8 to bf16` is the same number as a float of 16 bits.
    """

    name = "scalar.low_digits"


@op_definition
class HighDigitsOp(_DigitsOp):
    """The number in the upper 4 bits of a byte, as an f32: `%n = scalar.high_digits %byte less 8` is -8 to 7.

    `scalar.high_digits %byte less 8 to bf16` is the same number as a float of 16 bits.
    """

    name = "scalar.high_digits"


#: conversions that the compiler inserts, and all of them
INSERTED_CONVERSIONS = (WidenOp, NarrowOp)
CONVERSIONS = (CastOp, *INSERTED_CONVERSIONS)


def number_of(value: SSAValue) -> int | float | None:
    """The number that a constant is; None for other values."""
    number = value.owner.value if isinstance(value.owner, ConstantOp) else None
    return number.value.data if isinstance(number, FloatAttr | IntegerAttr) else None


Scalar = Dialect("scalar", [*FUNCTION_OPS.values(), *CONVERSIONS, LowDigitsOp, HighDigitsOp, PhiloxOp])
