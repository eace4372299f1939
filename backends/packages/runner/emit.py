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
from ....dialects.aten import AtenOp, CallOp, Device, Layout, MemoryFormat, TensorType
from ....dialects.aten.schema import Argument
from ....dialects.aten.types import torch_name
from ....dialects.sym import Expr, Ranges
from ....dialects.sym.expr import Atom
from ....errors import UnsupportedError
from ....passes.analysis.functions import called
from ...host.products import implementation_of
from ...host.walk import HostWalk, arguments_of, tensor_type
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
        """A member for results that stay from call to call."""
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
        members.append("  Arena arena;\n")
        made = [
            f"k_{name}(kernels({json.dumps(name)}, {{{', '.join(map(json.dumps, self._errors[name]))}}}))"
            for name in self._kernels
        ]
        head = (
            f"  explicit Program(const Kernels& kernels){' : ' if made else ''}{', '.join(made)} {{ (void)kernels; }}\n"
        )
        return "struct Program {\n" + "".join(members) + "\n" + head + "\n" + "\n".join(functions) + "};\n"


class _Function(HostWalk):
    """One function: a member of the struct."""

    def __init__(self, function: host.FuncOp, names: Mapping[str, str], shared: _Shared) -> None:
        super().__init__(function)
        self.names, self.shared = names, shared
        self._results = 0
        self._lists: set[str] = set()

    def text(self) -> str:
        """The member function."""
        self.walk()
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"  Values {self.names[self.function.sym_name.data]}(Values args) {{\n{body}  }}\n"

    @override
    def _take_arguments(self, names: Sequence[str]) -> None:
        for number, argument in enumerate(self.function.body.block.args):
            self._unpack(argument, names[number], f"args[{number}]")
        self._do("args.clear()")

    @override
    def _begin(self) -> None:
        pass  # nothing is looked up

    @override
    def _allocates(self, op: Operation) -> None:
        pass  # nobody records it

    # how C++ spells it

    @override
    def _let(self, name: str, value: str) -> None:
        self._do(f"at::Tensor {name} = {value}")

    @override
    def _let_integer(self, name: str, value: str) -> None:
        self._do(f"[[maybe_unused]] const int64_t {name} = {value}")

    @override
    def _let_list(self, name: str, value: str) -> None:
        self._do(f"{name} = {value}" if name in self._lists else f"Values {name} = {value}")
        self._lists.add(name)

    @override
    def _do(self, statement: str) -> None:
        self.lines.append(f"{statement};")

    @override
    def _drop(self, names: Sequence[str]) -> None:
        self.lines.append(" ".join(f"{name}.reset();" for name in names))

    @override
    def _return(self, values: Sequence[str]) -> None:
        self._do(f"return {self._list(values)}")

    @override
    def _list(self, names: Sequence[str]) -> str:
        return f"{{{', '.join(names)}}}"

    @override
    def _spell(self, expr: Expr, more: Mapping[str, str] | None = None) -> str:
        names = {**self.symbols, **(more or {})}
        return IndexPrinter(lambda symbol: Code(names[symbol], ATOM), _NOTHING_KNOWN, _SYNTAX).print(expr).text

    @override
    def _tuple(self, exprs: Sequence[Expr]) -> str:
        return f"{{{', '.join(map(self._spell, exprs))}}}"

    @override
    def _text(self, text: str) -> str:
        return json.dumps(text)

    @override
    def _dtype(self, kind: TensorType) -> str:
        return scalar_type(torch_name(kind.element))

    @override
    def _address(self, variable: str) -> str:
        return f"address({variable})"

    @override
    def _function_named(self, name: str) -> str:
        return name

    @override
    def _fresh_memory(self, op: host.EmptyOp) -> str:
        kind = tensor_type(op.out)
        return f"empty({self._layout(kind)}, {self._dtype(kind)})"

    @override
    def _fresh(self, value: SSAValue) -> str:
        if isinstance(value.type, TensorType) and value.type.device != "cpu":
            raise UnsupportedError(f"a runner has no tensors on {value.type.device}")
        return super()._fresh(value)

    def _unpack(self, value: SSAValue, name: str, made: str) -> None:
        """A variable for what a value of the dispatcher's holds, which has it no longer: it lives as long as that."""
        for class_, ctype, getter in _GETTERS:
            if isinstance(value.type, class_):
                self._do(f"[[maybe_unused]] {ctype} {name} = std::move({made}).{getter}()")
                return
        raise UnsupportedError(f"a runner has no value of the type {value.type}")

    # launches

    @override
    def _launch(self, op: host.LaunchOp) -> None:
        given = [*map(self._pointer, op.buffers), *map(self._spell, op.symbols.data)]
        self._pending.append(f"{self.shared.kernel(op.kernel.root_reference.data)}({{{', '.join(given)}}})")

    @override
    def _write_launches(self) -> None:
        for each in self._pending:
            self._do(each)

    @override
    def _takes_address(self, launch: host.LaunchOp, value: SSAValue) -> bool:
        return True

    # calls

    def _list_of_results(self) -> str:
        self._results += 1
        return f"r{self._results}"

    @override
    def _run_part(self, op: host.CallOp, given: str) -> None:
        """What is computed of weights alone is kept, as long as they stay where they are."""
        part, results = self.names[op.callee.root_reference.data], self._list_of_results()
        given = f"std::move({given})" if given.isidentifier() else given
        made = f"{part}({given})"
        if op.kept is not None and self.shared.keeps:
            run = f"[this](Values given) {{ return {part}(std::move(given)); }}"
            made = f"{self.shared.kept()}.results({given}, {run})"
        self._do(f"Values {results} = {made}")
        for number, out in enumerate(op.out):
            self._unpack(out, self._fresh(out), f"{results}[{number}]")

    @override
    def _call(self, op: AtenOp | CallOp) -> None:
        if isinstance(op, CallOp):
            raise UnsupportedError(f"a runner has no {op.target}")
        instead = implementation_of(op)
        if instead is not None:
            given = ", ".join(
                self._item(argument, op.arg(argument.name)) for argument, is_given in arguments_of(op) if is_given
            )
            self._let(self._fresh(op.results[0]), f"{instead.__name__}({given})")
        else:
            self._by_dispatcher(op)
        self._look_at_results(op)

    def _by_dispatcher(self, op: AtenOp) -> None:
        packet, _, overload = op.target.removeprefix("aten.").partition(".")
        operator = self.shared.operator(f"aten::{packet}", "" if overload == "default" else overload)
        arguments = [
            self._argument(argument, op.arg(argument.name)) if given else "Argument()"
            for argument, given in arguments_of(op)
        ]
        while arguments and arguments[-1] == "Argument()":
            arguments.pop()
        made = f"{operator}({{{', '.join(arguments)}}})"
        if not op.results:
            self._do(made)
            return
        results = self._list_of_results()
        if any(each.is_list for each in op.schema.returns):
            if len(op.schema.returns) != 1:
                raise UnsupportedError(f"a runner has no {op.target}")
            self._do(f"std::vector<at::Tensor> {results} = {made}[0].toTensorVector()")
            for number, out in enumerate(op.results):
                self._let(self._fresh(out), f"std::move({results}[{number}])")
            return
        self._do(f"Values {results} = {made}")
        for number, out in enumerate(op.results):
            self._unpack(out, self._fresh(out), f"{results}[{number}]")

    def _argument(self, argument: Argument, value: Any) -> str:
        if value is None:
            return "none()"
        if isinstance(value, tuple | list):
            return self._argument_list(argument, value)
        if argument.is_list and argument.kind == "int" and not isinstance(value, SSAValue):
            return f"list(std::vector<int64_t>{{{self._item(argument, value)}}})"
        return self._item(argument, value)

    def _argument_list(self, argument: Argument, items: Sequence[Any]) -> str:
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
            return self._variable(value)
        if isinstance(value, Expr):
            return f"int64_t({self._spell(value)})"
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
