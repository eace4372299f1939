"""Ops of the host level: programs, launches and results. ATen calls stay `aten` ops here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FunctionType,
    IntegerType,
    LocationAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    base,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, SymbolOpInterface, SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from ...machines.eager import in_host_memory
from ..access import parse_parameters
from ..assembly import CALLEE, AssemblyOp, Part, Read, call_arguments, flag, operand, operands, prop, types, word
from ..aten.types import TensorType
from ..fields import op_definition
from ..sym import Expr, MapAttr, SymbolAttr, parse_exprs_until
from ..traits import Isolated
from .places import verify_places

_FLAGS = ("recorded", "kept")
"""What a function may be, as words behind its type."""


@op_definition
class FuncOp(IRDLOperation):
    """The program around the kernels.

        host.func @forward(%x: !aten.tensor<(s0)x8xf32>) -> (!aten.tensor<(s0)x8xf32>)
            symbols [#sym.symbol<s0, arg = 0, dim = 0>] { ... host.return %y }

    `symbols` declares each integer symbol: where it comes from, its range, divisibility and hint. `given [0, 2]` behind
    them says which arguments the caller keeps nothing of: what a forward graph saved for a backward graph. Their memory
    is free when the program frees them. A `recorded` function is a part of the one that calls it, for a CUDA graph to
    record and replay: `host.func @f_part_0(%x: T) -> (T) symbols [...] recorded { ... }`. A `kept` one makes of weights
    what the one that calls it reads of them; it runs again only when they have changed.
    """

    name = "host.func"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    symbols = prop_def(ArrayAttr[SymbolAttr])
    given = opt_prop_def(DenseArrayBase)
    recorded = opt_prop_def(UnitAttr)
    kept = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(Isolated(), SymbolOpInterface())

    @staticmethod
    def of(
        sym_name: str,
        results: Sequence[Attribute],
        symbols: ArrayAttr[SymbolAttr],
        body: Region,
        location: LocationAttr | None = None,
        given: Sequence[int] = (),
    ) -> FuncOp:
        """Build; argument types are those of the body's block."""
        arguments = [a.type for a in body.block.args]
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(sym_name),
            "function_type": FunctionType.from_lists(arguments, results),
            "symbols": symbols,
        }
        if given:
            properties["given"] = DenseArrayBase.from_list(i64, given)
        return FuncOp.create(properties=properties, regions=(body,), location=location)

    @property
    def given_numbers(self) -> tuple[int, ...]:
        """Numbers of the arguments that the caller keeps nothing of."""
        return () if self.given is None else cast("DenseArrayBase[IntegerType]", self.given).get_values()

    @property
    def given_arguments(self) -> tuple[SSAValue, ...]:
        """The arguments that the caller keeps nothing of."""
        return tuple([self.body.block.args[number] for number in self.given_numbers])

    def verify_(self) -> None:
        """Check that given arguments exist, and the places of planned memory."""
        count = len(self.body.block.args)
        if not all(0 <= number < count for number in self.given_numbers):
            raise VerifyException(f"is given arguments that it does not have; there are {count}")
        verify_places(self.body.block)

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        """Parse `@f(%x: T) -> (T) symbols [...] { ... }`."""
        sym_name = parser.parse_symbol_name().data
        arguments = parse_parameters(parser)
        results: list[Attribute] = []
        if parser.parse_optional_punctuation("->") is not None:
            results = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        symbols: list[SymbolAttr] = []
        if parser.parse_optional_keyword("symbols") is not None:
            symbols = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: _parse_symbol(parser))
        given: list[int] = []
        if parser.parse_optional_keyword("given") is not None:
            given = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        flags = [name for name in _FLAGS if parser.parse_optional_keyword(name) is not None]
        function = FuncOp.of(sym_name, results, ArrayAttr(symbols), parser.parse_region(arguments), given=given)
        function.properties.update(dict.fromkeys(flags, UnitAttr()))
        return function

    def print(self, printer: Printer) -> None:
        """Print what `parse` reads."""
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string("(")
        printer.print_list(self.body.block.args, printer.print_block_argument)
        printer.print_string(")")
        if self.function_type.outputs.data:
            printer.print_string(" -> (")
            printer.print_list(self.function_type.outputs.data, printer.print_attribute)
            printer.print_string(")")
        if self.symbols.data:
            printer.print_string(" symbols [")
            printer.print_list(self.symbols.data, printer.print_attribute)
            printer.print_string("]")
        if self.given is not None:
            printer.print_string(f" given [{', '.join(map(str, self.given_numbers))}]")
        for name in _FLAGS:
            if name in self.properties:
                printer.print_string(f" {name}")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


def _parse_symbol(parser: Parser) -> SymbolAttr:
    attribute = parser.parse_attribute()
    if not isinstance(attribute, SymbolAttr):
        parser.raise_error(f"expected a #sym.symbol, got {attribute}")
    return attribute


def _read_values(parser: Parser, into: Read) -> None:
    exprs: Sequence[Expr] = ()
    if parser.parse_optional_punctuation("[") is not None:
        exprs = parse_exprs_until(parser, "]")
        parser.parse_punctuation("]")
    into.properties["symbols"] = MapAttr.of(*exprs)


def _print_values(printer: Printer, op: LaunchOp) -> None:
    if op.symbols.data:
        printer.print_string(f" [{', '.join(map(str, op.symbols.data))}]")


@op_definition
class LaunchOp(AssemblyOp):
    """Run a kernel: `host.launch @softmax(%x, %y) [s0]`, buffers in the kernel's order, then its symbols' values.

    Whether it raises follows from the kernel's `errors`.
    """

    name = "host.launch"
    kernel = prop_def(SymbolRefAttr)
    buffers = var_operand_def(base(TensorType))
    symbols = prop_def(MapAttr)
    SYNTAX: ClassVar = (prop("kernel", CALLEE), call_arguments("buffers"), Part(_read_values, _print_values))

    def verify_(self) -> None:
        """Check that a kernel runs on one device; what lies in the host's memory is moved to it."""
        types = [cast("TensorType", value.type) for value in self.buffers]
        devices = sorted({kind.device for kind in types if not in_host_memory(kind.device)})
        if len(devices) > 1:
            raise VerifyException(f"a kernel runs on one device, and its arguments are on {', '.join(devices)}")

    @staticmethod
    def of(
        kernel: str, buffers: Sequence[SSAValue], symbols: MapAttr, location: LocationAttr | None = None
    ) -> LaunchOp:
        """Build from the kernel's name, its buffers and the values of its symbols."""
        return LaunchOp.create(
            operands=buffers,
            properties={"kernel": SymbolRefAttr(kernel), "symbols": symbols},
            location=location,
        )


class _CallsHostFunction(SymbolUserOpInterface):
    """The callee is a `host.func` of the call's types."""

    def verify(self, op: Operation) -> None:
        """Raises VerifyException for another callee or other types."""
        assert isinstance(op, CallOp)
        callee = SymbolTable.lookup_symbol(op, op.callee)
        name = op.callee.root_reference.data
        if not isinstance(callee, FuncOp):
            raise VerifyException(f"there is no host.func @{name} to call")
        types = FunctionType.from_lists([v.type for v in op.arguments], [r.type for r in op.out])
        if callee.function_type != types:
            raise VerifyException(f"@{name} is of type {callee.function_type}, the call of {types}")
        if (callee.kept is None) != (op.kept is None):
            raise VerifyException(f"of the call and @{name} only one says that the results are kept")


@op_definition
class CallOp(AssemblyOp):
    """Run another program: `%y, %z = host.call @layer(%x, %w) : T, U`, with the types of the results.

    The symbols of the other program are arguments or sizes of them, and have the same names here. Nothing that it
    returns is in memory of an argument. `host-inline` puts the program in its place; the calls that `host-split-parts`
    makes stay, and so does one whose results are kept from call to call, `%p = host.call kept @f_weights(%w) : T`:
    nothing writes these. The verifier checks the callee's types.
    """

    name = "host.call"
    callee = prop_def(SymbolRefAttr)
    kept = opt_prop_def(UnitAttr)
    arguments = var_operand_def()
    out = var_result_def()
    traits = traits_def(_CallsHostFunction())
    SYNTAX: ClassVar = (flag("kept"), prop("callee", CALLEE), call_arguments("arguments"), types(optional=True))

    @staticmethod
    def of(
        callee: SymbolRefAttr,
        arguments: Sequence[SSAValue],
        results: Sequence[Attribute],
        location: LocationAttr | None = None,
        kept: bool = False,
    ) -> CallOp:
        """Build from the name of a `host.func`, its arguments and the types of its results."""
        properties: dict[str, Attribute] = {"callee": callee}
        if kept:
            properties["kept"] = UnitAttr()
        return CallOp.create(operands=arguments, properties=properties, result_types=results, location=location)


@op_definition
class CopyOp(AssemblyOp):
    """Copy elements of `source` into the memory of `target` (same shape; any strides, dtype and device):
    `host.copy %y to %x`."""

    name = "host.copy"
    source = operand_def(base(TensorType))
    target = operand_def(base(TensorType))
    SYNTAX: ClassVar = (operand("source"), word("to"), operand("target"))

    def verify_(self) -> None:
        """Check that the shapes can be the same, whatever the symbols are."""
        source, target = self.source.type, self.target.type
        assert isinstance(source, TensorType) and isinstance(target, TensorType)
        if len(source.shape) != len(target.shape):
            raise VerifyException(f"copies {len(source.shape)} dimensions to {len(target.shape)}")
        for dim, (size, other) in enumerate(zip(source.shape, target.shape, strict=True)):
            if (size - other).as_int() not in (None, 0):
                raise VerifyException(f"copies {size} elements to {other} in dimension {dim}")


@op_definition
class ReturnOp(AssemblyOp):
    """Return tensors and integers: `host.return %y, %n`."""

    name = "host.return"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), HasParent(FuncOp))
    SYNTAX: ClassVar = (operands("values"),)

    def verify_(self) -> None:
        """Check the types against those of the function."""
        function = cast("FuncOp | None", self.parent_op())
        if function is None:
            return
        given, wanted = [value.type for value in self.values], list(function.function_type.outputs.data)
        if given != wanted:
            returned, declared = ", ".join(map(str, given)), ", ".join(map(str, wanted))
            raise VerifyException(f"returns ({returned}), and the function's results are ({declared})")
