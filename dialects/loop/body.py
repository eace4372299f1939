"""Ops inside the bodies of loop-level nests: reading elements, indices as values, checks, reductions, yield."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr, StringAttr, i1
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    base,
    operand_def,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..access import parse_ssa, print_ssa_list
from ..assembly import (
    DYNAMIC,
    INDICES,
    MASK_OTHER,
    NAME,
    TEXT,
    AssemblyOp,
    Part,
    Read,
    mark,
    operand,
    prop,
    region,
)
from ..aten.types import TensorType, scalar_type
from ..fields import op_definition
from ..shared_ops import IndexBase, LoadBase, YieldBase
from ..sym import AxesAttr
from .monoids import MONOIDS, Kind, is_of_kind
from .syntax import AXES, ON, verify_axes


@op_definition
class LoadOp(LoadBase):
    """Read one element of a tensor at a logical index.

        %v = loop.load %x[i0, 2*r0 + 1]
        %v = loop.load %w[d0, i1] (d0 = %token)            // indexed by a loaded value
        %v = loop.load %x[i0 - 1] if %inside else %zero    // masked: reads nothing where %inside is false

    One expression a dimension of the tensor. The result has the tensor's scalar type. A dynamic index must be in
    range where the mask holds: negative indices are normalised and checked by ops before the load.
    """

    name = "loop.load"
    source = operand_def(base(TensorType))
    traits = traits_def(Pure())
    SYNTAX: ClassVar = (operand("source", TensorType), INDICES, DYNAMIC, MASK_OTHER)

    def verify_(self) -> None:
        """Check rank, result type, and that mask and other come together."""
        source = self.source.type
        assert isinstance(source, TensorType)
        if len(self.map.data) != len(source.shape):
            raise VerifyException(f"{len(self.map.data)} indices for a tensor of {len(source.shape)} dimensions")
        if self.value.type != scalar_type(source.element):
            raise VerifyException(f"result is {self.value.type}, the tensor holds {scalar_type(source.element)}")
        super().verify_()


@op_definition
class IndexOp(IndexBase):
    """An index expression as an i64 value: `%i = loop.index 4*i0 + i1`, `%n = loop.index s0`, with dynamic operands
    `loop.index 2*d0 (d0 = %j)`."""

    name = "loop.index"


#: what `loop.assert` may raise
ERRORS = (
    "AssertionError", "IndexError", "NotImplementedError", "OverflowError", "RuntimeError", "TypeError", "ValueError",
    "ZeroDivisionError",
)  # fmt: skip


@op_definition
class AssertOp(AssemblyOp):
    """Report an error of the kernel, as eager would raise it, when a condition is false for any element:

        loop.assert %in_range, "index out of range" : IndexError

    A side effect: a nest with an assert is not removed, and is not inlined under a mask.
    """

    name = "loop.assert"
    condition = operand_def(i1)
    message = prop_def(StringAttr)
    error = prop_def(StringAttr)
    SYNTAX: ClassVar = (operand("condition"), mark(","), prop("message", TEXT), mark(":"), prop("error", NAME))

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


@op_definition
class YieldOp(YieldBase):
    """End a body: the element's values, and for `loop.scatter` the dynamic indices (and the mask) behind them."""

    name = "loop.yield"


def yielded(region: Region) -> tuple[SSAValue, ...]:
    """Operands of the terminator of a single-block region."""
    block = region.blocks.first
    last = block.last_op if block is not None else None
    return tuple(last.operands) if last is not None else ()


_COMBINERS: dict[tuple[str, ...], ArrayAttr[StringAttr]] = {}


def combiner_attr(*names: str) -> ArrayAttr[StringAttr]:
    """The cached `combiners` property for the given monoid names."""
    found = _COMBINERS.get(names)
    if found is None:
        found = _COMBINERS[names] = ArrayAttr([StringAttr(n) for n in names])
    return found


def _read_combiners(parser: Parser, read: Read) -> None:
    names = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)
    read.properties["combiners"] = combiner_attr(*([parser.parse_identifier()] if names is None else names))
    if parser.parse_optional_keyword("init") is not None:
        read.operands["init"] = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_ssa(parser))


def _print_combiners(printer: Printer, op: Any) -> None:
    names = [c.data for c in op.combiners]
    printer.print_string(f" {names[0]}" if len(names) == 1 else f" [{', '.join(names)}]")
    if op.init:
        printer.print_string(" init(")
        print_ssa_list(printer, op.init)
        printer.print_string(")")


#: `max`, `[sum, max]` or `custom init(%a, %b)`
COMBINERS = Part(_read_combiners, _print_combiners)


@op_definition
class ReduceOp(AssemblyOp):
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
    SYNTAX: ClassVar = (COMBINERS, AXES, ON, region(), region(1, "combine", optional=True))

    @classmethod
    def result_types_of(cls, read: Read) -> tuple[Attribute, ...]:
        """Those of the yielded values."""
        return tuple(value.type for value in yielded(read.regions[0]))

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


def verify_combiners(
    op: Operation,
    combiners: ArrayAttr[StringAttr],
    values: Sequence[SSAValue],
    combine: Region | None,
    init: Sequence[SSAValue],
    goes_on: bool = False,
) -> None:
    """Check that named monoids exist and take all values and their types, or that a custom one has its region and
    identity.

    goes_on: whether named monoids may have `init`, what they go on from
    """
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
    if init and not (goes_on and [v.type for v in init] == [v.type for v in values]):
        raise VerifyException(f"{op.name} {', '.join(names)} has init, which is for custom monoids, or of another type")
    kinds: list[Kind] = [kind for n in names for kind in MONOIDS[n].takes]
    if len(kinds) != len(values):
        raise VerifyException(f"{', '.join(names)} take {len(kinds)} values, the body yields {len(values)}")
    for kind, value in zip(kinds, values, strict=True):
        if not is_of_kind(value.type, kind):
            raise VerifyException(f"{', '.join(names)} take {', '.join(kinds)}, the body yields {value.type}")
