"""Ops inside the bodies of loop-level nests: reading elements, indices as values, checks, reductions, yield."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerType, LocationAttr, StringAttr, i1, i64
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    base,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from ..access import (
    parse_dynamic,
    parse_map,
    parse_mask,
    parse_ssa,
    parse_ssa_list,
    print_dynamic,
    print_map,
    print_mask,
    print_ssa_list,
    segments,
)
from ..aten.types import TensorType, scalar_type
from ..sym import AxesAttr, MapAttr, SymAttr, parse_expr
from .monoids import MONOIDS, Kind, is_of_kind
from .syntax import parse_nest, parse_on, print_nest, print_on, verify_axes


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Read one element of a tensor at a logical index.

        %v = loop.load %x[i0, 2*r0 + 1]
        %v = loop.load %w[d0, i1] (d0 = %token)            // indexed by a loaded value
        %v = loop.load %x[i0 - 1] if %inside else %zero    // masked: reads nothing where %inside is false

    One expression a dimension of the tensor. The result has the tensor's scalar type. A dynamic index must be in
    range where the mask holds: negative indices are normalised and checked by ops before the load.
    """

    name = "loop.load"
    source = operand_def(base(TensorType))
    dynamic = var_operand_def(IntegerType)
    mask = opt_operand_def(i1)
    other = opt_operand_def()
    map = prop_def(MapAttr)
    value = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    @staticmethod
    def of(
        source: SSAValue,
        index_map: MapAttr,
        dynamic: Sequence[SSAValue] = (),
        mask: SSAValue | None = None,
        other: SSAValue | None = None,
        location: LocationAttr | None = None,
    ) -> LoadOp:
        """Build without the generic builder, which costs twice as much."""
        masked = () if mask is None or other is None else (mask, other)
        n = 1 if masked else 0
        return LoadOp.create(
            operands=(source, *dynamic, *masked),
            result_types=(scalar_type(source.type.element),),  # pyright: ignore
            properties={"map": index_map, "operandSegmentSizes": segments(1, len(dynamic), n, n)},
            location=location,
        )

    def verify_(self) -> None:
        """Check rank, result type, and that mask and other come together."""
        source = self.source.type
        assert isinstance(source, TensorType)
        if len(self.map.data) != len(source.shape):
            raise VerifyException(f"{len(self.map.data)} indices for a tensor of {len(source.shape)} dimensions")
        if self.value.type != scalar_type(source.element):
            raise VerifyException(f"result is {self.value.type}, the tensor holds {scalar_type(source.element)}")
        if (self.mask is None) != (self.other is None):
            raise VerifyException("a masked load needs both a mask and a value for outside")
        if self.other is not None and self.other.type != self.value.type:
            raise VerifyException(f"the value for outside is {self.other.type}, not {self.value.type}")

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        """Parse `%x[map] (dynamic) if %m else %o`."""
        source = parse_ssa(parser)
        if not isinstance(source.type, TensorType):
            parser.raise_error(f"loop.load reads a tensor, not {source.type}")
        index_map, dynamic = parse_map(parser)
        mask, other = parse_mask(parser, with_other=True)
        return LoadOp.of(source, index_map, dynamic, mask[0] if mask else None, other[0] if other else None)

    def print(self, printer: Printer) -> None:
        """Print what `parse` reads."""
        printer.print_string(" ")
        printer.print_ssa_value(self.source)
        print_map(printer, self.map, self.dynamic)
        print_mask(printer, self.mask, self.other)


@irdl_op_definition
class IndexOp(IRDLOperation):
    """An index expression as an i64 value: `%i = loop.index 4*i0 + i1`, `%n = loop.index s0`, with dynamic operands
    `loop.index 2*d0 (d0 = %j)`."""

    name = "loop.index"
    dynamic = var_operand_def(IntegerType)
    expr = prop_def(SymAttr)
    value = result_def(I64)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> IndexOp:
        """Parse `4*i0 + d0 (d0 = %j)`."""
        expr = SymAttr.of(parse_expr(parser))
        return cls.create(operands=parse_dynamic(parser), properties={"expr": expr}, result_types=(i64,))

    def print(self, printer: Printer) -> None:
        """Print what `parse` reads."""
        printer.print_string(f" {self.expr.data}")
        print_dynamic(printer, self.dynamic)


#: what `loop.assert` may raise
ERRORS = (
    "AssertionError", "IndexError", "NotImplementedError", "OverflowError", "RuntimeError", "TypeError", "ValueError",
    "ZeroDivisionError",
)  # fmt: skip


@irdl_op_definition
class AssertOp(IRDLOperation):
    """Report an error of the kernel, as eager would raise it, when a condition is false for any element:

        loop.assert %in_range, "index out of range" : IndexError

    A side effect: a nest with an assert is not removed, and is not inlined under a mask.
    """

    name = "loop.assert"
    condition = operand_def(i1)
    message = prop_def(StringAttr)
    error = prop_def(StringAttr)

    @staticmethod
    def of(condition: SSAValue, message: str, error: str = "IndexError") -> AssertOp:
        """Build from a condition, the message, and the name of the Python exception."""
        return AssertOp.create(
            operands=(condition,), properties={"message": StringAttr(message), "error": StringAttr(error)}
        )

    def verify_(self) -> None:
        """Check that the error is one that a kernel can raise."""
        if self.error.data not in ERRORS:
            raise VerifyException(f"cannot raise {self.error.data}; known: {', '.join(ERRORS)}")

    @classmethod
    def parse(cls, parser: Parser) -> AssertOp:
        """Parse `%c, "message" : IndexError`."""
        condition = parse_ssa(parser)
        parser.parse_punctuation(",")
        message = parser.parse_str_literal()
        parser.parse_punctuation(":")
        return AssertOp.of(condition, message, parser.parse_identifier())

    def print(self, printer: Printer) -> None:
        """Print what `parse` reads."""
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        printer.print_string(", ")
        printer.print_string_literal(self.message.data)
        printer.print_string(f" : {self.error.data}")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """End a body: the element's values, and for `loop.scatter` the dynamic indices (and the mask) behind them."""

    name = "loop.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), NoMemoryEffect())

    @classmethod
    def parse(cls, parser: Parser) -> YieldOp:
        """Parse `%a, %b`."""
        return cls.create(operands=parse_ssa_list(parser))

    def print(self, printer: Printer) -> None:
        """Print what `parse` reads."""
        if self.values:
            printer.print_string(" ")
            print_ssa_list(printer, self.values)


def yielded(region: Region) -> tuple[SSAValue, ...]:
    """Operands of the terminator of a single-block region."""
    block = region.blocks.first
    last = block.last_op if block is not None else None
    return tuple(last.operands) if last is not None else ()


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Reduce over axes inside a body; the results are scalars of the enclosing element.

        %m = loop.reduce max (r0 in 4096) { %v = loop.load %x[i0, r0]  loop.yield %v }
        %v, %i = loop.reduce argmax (r0 in 10) { ... loop.yield %x, %r }
        %s = loop.reduce custom init(%zero) (r0 in 10) { ... loop.yield %v }
                 combine { ^bb0(%a: f32, %b: f32): ... loop.yield %c }

    Each of `combiners` names a monoid that takes its arity of yielded values in turn, so `[sum, max]` reduces two
    values at once. `custom` has a region instead, and its identity as operands. An empty domain gives the identity.
    `on` names the fusion axes that the reduce's axes run along, inside a `loop.fusion`.
    """

    name = "loop.reduce"
    init = var_operand_def()
    axes = prop_def(AxesAttr)
    combiners = prop_def(ArrayAttr[StringAttr])
    on = opt_prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    combine = opt_region_def("single_block")
    outs = var_result_def()

    @staticmethod
    def of(
        axes: AxesAttr,
        combiners: Sequence[str],
        body: Region,
        init: Sequence[SSAValue] = (),
        combine: Region | None = None,
        on: ArrayAttr[StringAttr] | None = None,
    ) -> ReduceOp:
        """Build; result types are those of the yielded values."""
        properties: dict[str, Attribute] = {"axes": axes, "combiners": combiner_attr(*combiners)}
        if on is not None:
            properties["on"] = on
        return ReduceOp.create(
            operands=init,
            result_types=tuple(v.type for v in yielded(body)),
            properties=properties,
            regions=(body,) if combine is None else (body, combine),
        )

    def verify_(self) -> None:
        """Check the combiners against what the body yields."""
        verify_combiners(self, self.combiners, yielded(self.body), self.combine, self.init)
        verify_axes(self.axes, self.on)
        if tuple(v.type for v in yielded(self.body)) != self.result_types:
            raise VerifyException("results must have the types that the body yields")

    @classmethod
    def parse(cls, parser: Parser) -> ReduceOp:
        """Parse `max (r0 in 4096) on (a1) { ... }`."""
        combiners, init = parse_combiners(parser)
        axes = parse_nest(parser)
        on = parse_on(parser)
        body = parser.parse_region()
        combine = parser.parse_region() if parser.parse_optional_keyword("combine") is not None else None
        return ReduceOp.of(axes, combiners, body, init, combine, on)

    def print(self, printer: Printer) -> None:
        """Print what `parse` reads."""
        print_combiners(printer, self.combiners, self.init)
        print_nest(printer, self.axes)
        print_on(printer, self.on)
        printer.print_string(" ")
        printer.print_region(self.body)
        if self.combine is not None:
            printer.print_string(" combine ")
            printer.print_region(self.combine)


_COMBINERS: dict[tuple[str, ...], ArrayAttr[StringAttr]] = {}


def combiner_attr(*names: str) -> ArrayAttr[StringAttr]:
    """The cached `combiners` property for the given monoid names."""
    found = _COMBINERS.get(names)
    if found is None:
        found = _COMBINERS[names] = ArrayAttr([StringAttr(n) for n in names])
    return found


def parse_combiners(parser: Parser) -> tuple[list[str], list[SSAValue]]:
    """Parse `max`, `[sum, max]` or `custom init(%a, %b)`."""
    names = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
    if names is None:
        names = [parser.parse_identifier()]
    init: list[SSAValue] = []
    if parser.parse_optional_keyword("init") is not None:
        init = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_ssa(parser))
    return names, init


def print_combiners(printer: Printer, combiners: ArrayAttr[StringAttr], init: Sequence[SSAValue]) -> None:
    """Print what `parse_combiners` reads, with spaces around."""
    names = [c.data for c in combiners]
    printer.print_string(f" {names[0]} " if len(names) == 1 else f" [{', '.join(names)}] ")
    if init:
        printer.print_string("init(")
        print_ssa_list(printer, init)
        printer.print_string(") ")


def verify_combiners(
    op: Operation,
    combiners: ArrayAttr[StringAttr],
    values: Sequence[SSAValue],
    combine: Region | None,
    init: Sequence[SSAValue],
) -> None:
    """Check that named monoids exist and take all values and their types, or that a custom one has its region and
    identity."""
    names = [c.data for c in combiners]
    if names == ["custom"]:
        if combine is None or len(init) != len(values):
            raise VerifyException(f"{op.name} custom needs a combine region and one init value a yielded value")
        types = [v.type for v in values]
        block = combine.blocks.first
        if block is None or [a.type for a in block.args] != types * 2:
            raise VerifyException(f"the combine region takes {types} twice")
        if [v.type for v in yielded(combine)] != types or [v.type for v in init] != types:
            raise VerifyException(f"the combine region yields and init gives {types}")
        return
    unknown = [n for n in names if n not in MONOIDS]
    if unknown:
        raise VerifyException(f"unknown monoid {unknown[0]}; known: custom, {', '.join(MONOIDS)}")
    kinds: list[Kind] = [kind for n in names for kind in MONOIDS[n].takes]
    if len(kinds) != len(values):
        raise VerifyException(f"{', '.join(names)} take {len(kinds)} values, the body yields {len(values)}")
    for kind, value in zip(kinds, values, strict=True):
        if not is_of_kind(value.type, kind):
            raise VerifyException(f"{', '.join(names)} take {', '.join(kinds)}, the body yields {value.type}")
