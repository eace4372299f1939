"""A `host.func` of a program for the CPU as C++ over libtorch; see `runtime.h` for what it calls."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override
from xdsl.dialects.builtin import Float64Type, IndexType, IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import host
from ....dialects.aten import CHECKED, AtenOp, CallOp, Device, Layout, MemoryFormat, TensorType
from ....dialects.aten.binding import MEASURED, bindings
from ....dialects.aten.schema import REQUIRED, Argument
from ....dialects.aten.types import ITEM_SIZES, torch_name
from ....dialects.sym import Expr, Ranges, SymIntOp
from ....dialects.sym.expr import Atom
from ....errors import UnsupportedError
from ....passes.analysis.functions import called
from ...printing.code import ATOM, Code, call
from ...printing.index import IndexPrinter, IndexSyntax

SCALAR_TYPES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble", "complex32": "ComplexHalf", "uint16": "UInt16", "uint32": "UInt32",
    "uint64": "UInt64", "float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2",
}  # fmt: skip
"""torch's name of a type -> that of libtorch's enumeration."""
_GETTERS: tuple[tuple[type[Attribute], str, str], ...] = (
    (TensorType, "at::Tensor", "toTensor"),
    (IndexType, "int64_t", "toInt"),
    (Float64Type, "double", "toDouble"),
    (IntegerType, "bool", "toBool"),
)
"""Type of a value, its type in C++, and what takes it out of a value of the dispatcher's."""
_ITEMS = {"int": "int64_t", "float": "double", "bool": "bool", "tensor": "at::Tensor"}


class _Syntax(IndexSyntax):
    """Quotients and rests are functions of the runtime, which round to minus infinity."""

    @override
    def is_plain(self, atom: Atom, ranges: Ranges) -> bool:
        return False

    @override
    def floored(self, divides: bool, dividend: Code, divisor: Code, constant: bool) -> Code:
        return call("floordiv" if divides else "mod", dividend, divisor)

    @override
    def extremum(self, kind: str, arguments: list[Code]) -> Code:
        return call(kind, *arguments)


_SYNTAX, _NOTHING_KNOWN = _Syntax("*", " / ", " % "), Ranges()


def scalar_type(name: str) -> str:
    """A type as libtorch names it. UnsupportedError for one that it has not."""
    if name not in SCALAR_TYPES:
        raise UnsupportedError(f"a runner has no tensors of {name}")
    return f"at::ScalarType::{SCALAR_TYPES[name]}"


def emit_program(module: ModuleOp, errors: Mapping[str, Sequence[str]], keeps: bool) -> str:
    """The struct `Program`, whose `run` takes and returns values as the module's outer host function does.

    errors: for each kernel by name what its statuses mean, from 1
    keeps:  whether results of weights alone are kept from call to call: nothing writes weights

    Raises UnsupportedError for what has no C++ here.
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, host.FuncOp)}
    inner = called(module)
    outer = next(name for name in functions if name not in inner)
    shared = _Shared(errors, keeps)
    names = {name: f"part{number}" for number, name in enumerate(each for each in functions if each != outer)}
    names[outer] = "run"
    bodies = [_Function(function, names, shared).text() for name, function in functions.items()]
    return shared.program(bodies)


class _Shared:
    """Kernels, operators and memory that the functions of a program name."""

    def __init__(self, errors: Mapping[str, Sequence[str]], keeps: bool) -> None:
        self._errors = errors
        self.keeps = keeps
        self._kernels: dict[str, None] = {}
        self._operators: dict[tuple[str, str], str] = {}
        self._kept: list[str] = []

    def kernel(self, name: str) -> str:
        """The member that a kernel is."""
        if name not in self._errors:
            raise UnsupportedError(f"a runner has no kernel {name}")
        self._kernels[name] = None
        return f"k_{name}"

    def operator(self, name: str, overload: str) -> str:
        """The member that an operator is."""
        return self._operators.setdefault((name, overload), f"op{len(self._operators)}")

    def kept(self) -> str:
        """A member for memory, or for results, that stay from call to call."""
        self._kept.append(f"kept{len(self._kept)}")
        return self._kept[-1]

    def program(self, functions: Sequence[str]) -> str:
        """The text of the struct."""
        members = [f"  const Kernel k_{name};\n" for name in self._kernels]
        members += [
            f"  const Operator {member}{{{json.dumps(name)}, {json.dumps(overload)}}};\n"
            for (name, overload), member in self._operators.items()
        ]
        members += [f"  Kept {name};\n" for name in self._kept]
        made = [
            f"k_{name}(kernels({json.dumps(name)}, {{{', '.join(map(json.dumps, self._errors[name]))}}}))"
            for name in self._kernels
        ]
        head = (
            f"  explicit Program(const Kernels& kernels){' : ' if made else ''}{', '.join(made)} {{ (void)kernels; }}\n"
        )
        return "struct Program {\n" + "".join(members) + "\n" + head + "\n" + "\n".join(functions) + "};\n"


class _Function:
    """One function: names are of our own numbering, as in Python."""

    def __init__(self, function: host.FuncOp, names: Mapping[str, str], shared: _Shared) -> None:
        self.function, self.names, self.shared = function, names, shared
        self.lines: list[str] = []
        self.variables: dict[SSAValue, str] = {}
        self.symbols: dict[str, str] = {}
        self._count = 0

    def text(self) -> str:
        """The member function."""
        self._arguments()
        for op in self.function.body.block.ops:
            self._op(op)
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"  Values {self.names[self.function.sym_name.data]}(Values args) {{\n{body}  }}\n"

    def _arguments(self) -> None:
        for position, argument in enumerate(self.function.body.block.args):
            self._declare(argument, f"args[{position}]", f"a{position}")
        self.lines.append("args.clear();")
        for attribute in self.function.symbols:
            declared = attribute.data
            if declared.arg is None:
                continue
            source = f"a{declared.arg}"
            if declared.dim is not None:
                source += f".size({declared.dim})"
            elif declared.stride is not None:
                source += f".stride({declared.stride})"
            self._symbol(declared.name, source)

    def _symbol(self, name: str, source: str) -> None:
        if name not in self.symbols:
            self.symbols[name] = f"s{len(self.symbols)}"
            self.lines.append(f"[[maybe_unused]] const int64_t {self.symbols[name]} = {source};")

    def _declare(self, value: SSAValue, made: str, name: str = "") -> str:
        """A variable for what a value of the dispatcher's holds."""
        kind = value.type
        name = name or self._name()
        self.variables[value] = name
        for class_, ctype, getter in _GETTERS:
            if isinstance(kind, class_):
                self.lines.append(f"[[maybe_unused]] {ctype} {name} = {made}.{getter}();")
                return name
        raise UnsupportedError(f"a runner has no value of the type {kind}")

    def _name(self) -> str:
        self._count += 1
        return f"t{self._count}"

    def _fresh(self, value: SSAValue, made: str) -> None:
        name = self.variables[value] = self._name()
        self.lines.append(f"at::Tensor {name} = {made};")

    def _expr(self, expr: Expr, more: Mapping[str, str] | None = None) -> str:
        names = {**self.symbols, **(more or {})}
        return IndexPrinter(lambda symbol: Code(names[symbol], ATOM), _NOTHING_KNOWN, _SYNTAX).print(expr).text

    def _sizes(self, exprs: Sequence[Expr]) -> str:
        return f"{{{', '.join(map(self._expr, exprs))}}}"

    def _layout(self, kind: TensorType) -> str:
        return f"{self._sizes(kind.shape)}, {self._sizes(kind.strides)}"

    def _op(self, op: Operation) -> None:
        if isinstance(op, host.LaunchOp):
            given = [f"address({self.variables[value]})" for value in op.buffers]
            given += map(self._expr, op.symbols.data)
            self.lines.append(f"{self.shared.kernel(op.kernel.root_reference.data)}({{{', '.join(given)}}});")
        elif isinstance(op, host.FreeOp):
            tensors = [v for v in op.values if isinstance(v.type, TensorType) and v in self.variables]
            self.lines += [f"{self.variables[value]}.reset();" for value in tensors]
        elif isinstance(op, host.EmptyOp):
            self._empty(op)
        elif isinstance(op, host.ViewOp):
            kind = _tensor(op.out)
            offset = self._expr(op.offset.data * ITEM_SIZES[torch_name(kind.element)])
            arguments = f"{self.variables[op.source]}, {offset}, {self._layout(kind)}, {_dtype(kind)}"
            self._fresh(op.out, f"view({arguments})")
        elif isinstance(op, SymIntOp):
            name = self.variables[op.result] = self._name()
            self.lines.append(f"[[maybe_unused]] const int64_t {name} = {self._expr(op.value.data)};")
        elif isinstance(op, host.CopyOp):
            self.lines.append(f"{self.variables[op.target]}.copy_({self.variables[op.source]});")
        elif isinstance(op, host.ReturnOp):
            self.lines.append(f"return {{{', '.join(self.variables[value] for value in op.values)}}};")
        elif isinstance(op, host.CallOp):
            self._call_part(op)
        elif isinstance(op, AtenOp):
            self._call(op)
        else:
            raise UnsupportedError(f"a runner has no {op.target if isinstance(op, CallOp) else op.name}")

    def _empty(self, op: host.EmptyOp) -> None:
        kind = _tensor(op.out)
        if op.offset is not None:
            where = f"{self.variables[op.pool[0]]}, {self._expr(op.offset.data)}"
            self._fresh(op.out, f"view({where}, {self._layout(kind)}, {_dtype(kind)})")
        elif op.kept is not None:
            self._fresh(op.out, f"{self.shared.kept()}.memory({self._expr(kind.shape[0])})")
        else:
            self._fresh(op.out, f"empty({self._layout(kind)}, {_dtype(kind)})")

    def _call_part(self, op: host.CallOp) -> None:
        """What is computed of weights alone is kept, as long as they stay where they are."""
        given = f"{{{', '.join(self.variables[value] for value in op.arguments)}}}"
        part = self.names[op.callee.root_reference.data]
        results = self._name()
        made = f"{part}({given})"
        if op.kept is not None and self.shared.keeps:
            made = f"{self.shared.kept()}.results({given}, [this](Values given) {{ return {part}(std::move(given)); }})"
        self.lines.append(f"Values {results} = {made};")
        for number, out in enumerate(op.out):
            self._declare(out, f"{results}[{number}]")

    def _call(self, op: AtenOp) -> None:
        packet, _, overload = op.target.removeprefix("aten.").partition(".")
        operator = self.shared.operator(f"aten::{packet}", "" if overload == "default" else overload)
        arguments: list[str] = []
        for argument in op.schema.arguments:
            given = argument.is_tensor or argument.name in op.properties or argument.default is REQUIRED
            arguments.append(self._argument(argument, op.arg(argument.name)) if given else "Argument()")
        while arguments and arguments[-1] == "Argument()":
            arguments.pop()
        made = f"{operator}({{{', '.join(arguments)}}})"
        if not op.results:
            self.lines.append(f"{made};")
            return
        results = self._name()
        if any(each.is_list for each in op.schema.returns):
            if len(op.schema.returns) != 1:
                raise UnsupportedError(f"a runner has no {op.target}")
            self.lines.append(f"const std::vector<at::Tensor> {results} = {made}[0].toTensorVector();")
            for number, out in enumerate(op.results):
                self._fresh(out, f"{results}[{number}]")
        else:
            self.lines.append(f"const Values {results} = {made};")
            for number, out in enumerate(op.results):
                self._declare(out, f"{results}[{number}]")
        self._look_at_results(op)

    def _look_at_results(self, op: AtenOp) -> None:
        """Sizes that data decided, sizes that were compiled in, and strides that kernels and views rely on."""
        for each in bindings(op) if op.binds else ():
            measured = self.variables[op.results[each.result]]
            if each.dim is not None:
                measured += f".size({each.dim})"
            elif each.stride is not None:
                measured += f".stride({each.stride})"
            self._symbol(each.name, self._expr(each.value, {MEASURED: measured}))
        for out in op.results:
            if not isinstance(out.type, TensorType):
                continue
            name = self.variables[out]
            if CHECKED in op.attributes:
                self.lines.append(f"check_size({name}, {self._sizes(out.type.shape)}, {json.dumps(op.target)});")
            if any(isinstance(use.operation, host.LaunchOp | host.ViewOp) for use in out.uses):
                self.lines.append(f"{name} = fit({name}, {self._layout(out.type)});")

    def _argument(self, argument: Argument, value: Any) -> str:
        if value is None:
            return "none()"
        if isinstance(value, tuple | list):
            return self._list(argument, value)
        if argument.is_list and argument.kind == "int" and not isinstance(value, SSAValue):
            return f"list(std::vector<int64_t>{{{self._item(argument, value)}}})"
        return self._item(argument, value)

    def _list(self, argument: Argument, items: Sequence[Any]) -> str:
        if argument.kind not in _ITEMS:
            raise UnsupportedError(f"a runner has no list of {argument.kind}")
        ctype = _ITEMS[argument.kind]
        texts = [self._item(argument, item) for item in items]
        if argument.optional_items:
            ctype = f"std::optional<{ctype}>"
            texts = ["std::nullopt" if item is None else text for item, text in zip(items, texts, strict=True)]
        return f"list(std::vector<{ctype}>{{{', '.join(texts)}}})"

    def _item(self, argument: Argument, value: Any) -> str:
        if value is None:
            return "none()"
        if isinstance(value, SSAValue):
            return self.variables[value]
        if isinstance(value, Expr):
            return f"int64_t({self._expr(value)})"
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, int) and argument.kind != "float":
            return f"int64_t({value})"
        if isinstance(value, int | float):
            return double(float(value))
        if isinstance(value, complex):
            return f"c10::complex<double>({double(value.real)}, {double(value.imag)})"
        if isinstance(value, Device):
            return f"c10::Device({json.dumps(str(value))})"
        if isinstance(value, Layout):
            return _enumerator("c10::Layout", {"strided": "Strided"}, str(value))
        if isinstance(value, MemoryFormat):
            known = {
                "contiguous_format": "Contiguous", "preserve_format": "Preserve", "channels_last": "ChannelsLast",
                "channels_last_3d": "ChannelsLast3d",
            }  # fmt: skip
            return _enumerator("c10::MemoryFormat", known, str(value))
        if isinstance(value, Attribute):
            return scalar_type(torch_name(value))
        if isinstance(value, str):
            return f"std::string({json.dumps(value)})"
        raise UnsupportedError(f"a runner has no argument {value!r:.60}")


def double(value: float) -> str:
    """A number as C++. The very number, in hexadecimal digits."""
    if math.isnan(value):
        return "double(NAN)"
    if math.isinf(value):
        return "double(INFINITY)" if value > 0 else "-double(INFINITY)"
    return value.hex()


def _enumerator(enumeration: str, known: Mapping[str, str], name: str) -> str:
    if name not in known:
        raise UnsupportedError(f"a runner has no {enumeration} {name}")
    return f"{enumeration}::{known[name]}"


def _tensor(value: SSAValue) -> TensorType:
    assert isinstance(value.type, TensorType)
    if value.type.device != "cpu":
        raise UnsupportedError(f"a runner has no tensors on {value.type.device}")
    return value.type


def _dtype(kind: TensorType) -> str:
    return scalar_type(torch_name(kind.element))
