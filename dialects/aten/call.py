"""Calls of operators outside the table: other namespaces, custom and higher-order operators, Python's `operator`.

%y = aten.call pure "torchvision::nms"(%boxes, %scores, 0.5) binds [u0] : !aten.tensor<(u0)xi64>
%z = aten.call "higher_order::cond"(%p, @true_graph_0, @false_graph_0, [%x]) : !aten.tensor<4xf32>
%b = aten.call pure "operator::ge"(u0, 0) : i1
aten.call "mylib::write"(at = 3, cache = %c) writes [0]
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    ComplexType,
    DenseArrayBase,
    DictionaryAttr,
    Float64Type,
    IndexType,
    IntegerType,
    NoneType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..fields import op_definition
from .attributes import OperandAttr, OperatorAttr, TupleAttr
from .op_syntax import parse_binds
from .ops import names_attr
from .syntax import parse_arguments, parse_value, print_value
from .types import TensorType
from .values import Value, decode, encode

MUTATES = "mutates"
"""Attribute of a call that functionalization wrapped: the names of the arguments that the operator inside writes."""
STARTS = "starts"
"""Attribute of the same: for each base where it lay in its storage when the views of it were described."""
UNSAFE = "cudagraph_unsafe"
"""Attribute of a call of an operator that must not be recorded in a CUDA graph, by its tag."""
TRITON_KERNEL = "triton_kernel"
"""Attribute of a call of a user's Triton kernel: its name. The call itself has a number in a table of torch."""
_RESULTS = (TensorType, IndexType, Float64Type, IntegerType, ComplexType, NoneType)


@op_definition
class CallOp(IRDLOperation):
    """Call an operator by name with positional and named arguments of any nesting.

    `callee` is "namespace::name.overload", "higher_order::name", or "operator::name" of Python. Tensors and numbers
    made by other ops are operands; graphs are references to functions of the module, or, as other objects, to what
    travels beside it. A list result is several results. A call that is not `pure` is neither removed nor merged nor
    moved. One that says what it `writes`, by the numbers of its operands, has no other effect; only host programs hold
    such calls.
    """

    name = "aten.call"
    callee = prop_def(StringAttr)
    positional = prop_def(ArrayAttr)
    named = prop_def(DictionaryAttr)
    bound = opt_prop_def(ArrayAttr[StringAttr], prop_name="binds")
    pure = opt_prop_def(UnitAttr)
    writes = opt_prop_def(DenseArrayBase)
    inputs = var_operand_def()
    outs = var_result_def()

    @staticmethod
    def of(
        callee: str,
        args: Sequence[Value],
        kwargs: Mapping[str, Value],
        result_types: Sequence[Attribute],
        location: Attribute | None = None,
        binds: Sequence[str] = (),
        pure: bool = False,
        writes: Sequence[SSAValue] = (),
    ) -> CallOp:
        """Build from Python values (see `values`), `writes` among them. TypeError for values that IR cannot hold."""
        inputs: list[SSAValue] = []
        properties: dict[str, Attribute] = {
            "callee": StringAttr(callee),
            "positional": ArrayAttr([encode(value, inputs) for value in args]),
            "named": DictionaryAttr({key: encode(value, inputs) for key, value in kwargs.items()}),
        }
        if binds:
            properties["binds"] = names_attr(*binds)
        if pure:
            properties["pure"] = UnitAttr()
        if writes:
            numbers = [number for number, value in enumerate(inputs) if any(value is each for each in writes)]
            properties["writes"] = DenseArrayBase.from_list(i64, numbers)
        return CallOp.create(
            operands=inputs,
            result_types=result_types,
            properties=properties,
            location=location,  # pyright: ignore[reportArgumentType]
        )

    @property
    def target(self) -> str:
        """The callee's name."""
        return self.callee.data

    @property
    def shown(self) -> str:
        """What people know the callee by."""
        name = self.attributes.get(TRITON_KERNEL)
        return f"triton::{name.data}" if isinstance(name, StringAttr) else self.target

    @property
    def binds(self) -> tuple[str, ...]:
        """Names of the symbols that this op defines."""
        return () if self.bound is None else tuple(name.data for name in self.bound)

    @property
    def written(self) -> tuple[SSAValue, ...]:
        """The operands that this op says it writes."""
        return tuple([self.operands[number] for number in self._written_numbers])

    @property
    def _written_numbers(self) -> tuple[int, ...]:
        return () if self.writes is None else cast("DenseArrayBase[IntegerType]", self.writes).get_values()

    def args(self) -> tuple[Value, ...]:
        """Positional arguments: SSA values and Python values."""
        return decode(self.positional, tuple(self.operands))

    def kwargs(self) -> dict[str, Value]:
        """Named arguments."""
        return decode(self.named, tuple(self.operands))

    def verify_(self) -> None:
        """Check that operand references match the operands, what is written, and the types of results."""
        for name in (self.callee.data, *operators_in(self.positional), *operators_in(self.named)):
            if not is_operator_name(name):
                raise VerifyException(f"calls {name!r}, which is not the name of an operator")
        wrong = next((name for name in self.named.data if not name.isidentifier()), None)
        if wrong is not None:
            raise VerifyException(f"{wrong!r} is not the name of an argument")
        referenced = sorted([*_references(self.positional), *_references(self.named)])
        if referenced != list(range(len(self.operands))):
            raise VerifyException(f"arguments refer to operands {referenced}, there are {len(self.operands)}")
        if self.writes is not None and self.pure is not None:
            raise VerifyException("a pure call writes nothing")
        for number in self._written_numbers:
            if not 0 <= number < len(self.operands) or not isinstance(self.operands[number].type, TensorType):
                raise VerifyException(f"writes operand {number}, which is no tensor of it")
        for type_ in self.result_types:
            if not isinstance(type_, _RESULTS):
                raise VerifyException(f"a call cannot return {type_}")

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        """Parse `pure "ns::f"(%x, 1, key = 2) binds [u0] writes [0] : T`."""
        pure = parser.parse_optional_keyword("pure") is not None
        callee = parser.parse_str_literal()
        inputs: list[SSAValue] = []
        positional: list[Attribute] = []
        named: dict[str, Attribute] = {}

        def parse_positional() -> None:
            positional.append(parse_value(parser, inputs))

        def parse_named(name: str) -> None:
            named[name] = parse_value(parser, inputs)

        parse_arguments(parser, parse_positional, parse_named)
        binds = parse_binds(parser)
        writes: list[int] = []
        if parser.parse_optional_keyword("writes") is not None:
            writes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        attributes = parser.parse_optional_attr_dict()
        types: list[Attribute] = []
        if parser.parse_optional_punctuation(":") is not None:
            types.append(parser.parse_type())
            while parser.parse_optional_punctuation(",") is not None:
                types.append(parser.parse_type())
        op = CallOp.of(callee, (), {}, types, binds=binds, pure=pure)
        op.operands = inputs
        op.properties |= {"positional": ArrayAttr(positional), "named": DictionaryAttr(named)}
        op.attributes.update(attributes)
        if writes:
            op.properties["writes"] = DenseArrayBase.from_list(i64, writes)
        return op

    def print(self, printer: Printer) -> None:
        """Print what `parse` reads."""
        printer.print_string(" pure " if self.pure is not None else " ")
        printer.print_string_literal(self.callee.data)
        dynamic = tuple(self.operands)
        with printer.in_parens():
            printer.print_list(self.positional.data, lambda item: print_value(printer, item, dynamic))
            if self.positional.data and self.named.data:
                printer.print_string(", ")
            printer.print_list(self.named.data.items(), lambda item: _print_named(printer, item, dynamic))
        if self.binds:
            printer.print_string(f" binds [{', '.join(self.binds)}]")
        if self.writes is not None:
            printer.print_string(f" writes [{', '.join(map(str, self._written_numbers))}]")
        printer.print_op_attributes(self.attributes)
        if self.results:
            printer.print_string(" : ")
            printer.print_list(self.result_types, printer.print_attribute)


def _print_named(printer: Printer, item: tuple[str, Attribute], dynamic: Sequence[SSAValue]) -> None:
    printer.print_string(f"{item[0]} = ")
    print_value(printer, item[1], dynamic)


_OPERATOR_NAME = re.compile(r"(?P<namespace>[A-Za-z_]\w*)::(?P<packet>[A-Za-z_]\w*)(?:\.(?P<overload>\w+))?", re.ASCII)


def is_operator_name(name: str) -> bool:
    """Whether a text is `namespace::name.overload`. No part is a special method of Python, but for ATen's own."""
    match = _OPERATOR_NAME.fullmatch(name)
    if match is None:
        return False
    special = [part.startswith("__") for part in match.groups("")]
    return not any((special[0], special[1] and match["namespace"] != "aten", special[2]))


def operators_in(attribute: Attribute) -> list[str]:
    """Names of the operators that an argument holds."""
    if isinstance(attribute, OperatorAttr):
        return [attribute.data]
    if isinstance(attribute, TupleAttr):
        return operators_in(attribute.data)
    if isinstance(attribute, ArrayAttr | DictionaryAttr):
        items = attribute.data if isinstance(attribute, ArrayAttr) else attribute.data.values()
        return [name for item in items for name in operators_in(item)]
    return []


def _references(attribute: Attribute) -> list[int]:
    """Numbers of the operands that an argument refers to."""
    if isinstance(attribute, OperandAttr):
        return [attribute.data]
    if isinstance(attribute, ArrayAttr):
        return [number for item in attribute.data for number in _references(item)]
    if isinstance(attribute, TupleAttr):
        return _references(attribute.data)
    if isinstance(attribute, DictionaryAttr):
        return [number for item in attribute.data.values() for number in _references(item)]
    return []
