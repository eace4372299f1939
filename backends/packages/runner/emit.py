"""A `host.func` as C++ over libtorch; see `runtime.h`, and `gpu.h` for GPUs, for what it calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override
from xdsl.dialects.builtin import Float64Type, IndexType, IntegerType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import host
from ....dialects.aten import AtenOp, CallOp, TensorType
from ....dialects.aten.types import torch_name
from ....dialects.sym import Expr
from ....errors import UnsupportedError
from ....machines import HOST
from ....passes.analysis.functions import called
from ....records import dataclass
from ...host.emit import main_device
from ...host.gpu import is_gpu
from ...host.products import implementation_of
from ...host.walk import arguments_of, tensor_type
from .arguments import Arguments, scalar_type

if TYPE_CHECKING:
    from ...triton.kernel import TritonKernel

_GETTERS: tuple[tuple[type[Attribute], str, str], ...] = (
    (TensorType, "at::Tensor", "toTensor"),
    (IndexType, "int64_t", "toInt"),
    (Float64Type, "double", "toDouble"),
    (IntegerType, "bool", "toBool"),
)
"""Type of a value, its type in C++, and what takes it out of a value of the dispatcher's."""


_COMPARISONS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "eq": "==", "ne": "!="}
"""Functions of Python's operator module that programs call of sizes which only a call finds, as C++."""


@dataclass(frozen=True)
class Launched:
    """A kernel that a program launches: what its statuses mean, from 1, and its text where it is for a GPU."""

    errors: Sequence[str]
    on_gpu: TritonKernel | None = None


def emit_program(module: ModuleOp, kernels: Mapping[str, Launched], keeps: bool) -> str:
    """The struct `Program`, whose `run` takes and returns values as the module's outer host function does.

    keeps: whether results of weights alone are kept from call to call: nothing writes weights

    Raises UnsupportedError for what has no C++ here.
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, host.FuncOp)}
    inner = called(module)
    outer = next(name for name in functions if name not in inner)
    devices = [main_device(function) for function in functions.values()]
    shared = _Shared(kernels, keeps, next(filter(is_gpu, devices), HOST))
    names = {name: f"part{number}" for number, name in enumerate(each for each in functions if each != outer)}
    names[outer] = "run"
    bodies = [_Function(function, names, shared).text() for name, function in functions.items()]
    return shared.program(bodies)


class _Shared:
    """Kernels, operators and memory that the functions of a program name; the GPU that they are on, or the CPU."""

    def __init__(self, kernels: Mapping[str, Launched], keeps: bool, device: str) -> None:
        self._known = kernels
        self.keeps, self.device = keeps, device
        self._kernels: dict[str, Launched] = {}
        self._operators: dict[tuple[str, str], str] = {}
        self._kept: list[str] = []

    def kernel(self, name: str) -> Launched:
        """A kernel, of which `k_` and its name are the member. UnsupportedError for one that is not there."""
        if name not in self._known:
            raise UnsupportedError(f"a runner has no kernel {name}")
        return self._kernels.setdefault(name, self._known[name])

    def operator(self, name: str, overload: str) -> str:
        """The member that an operator is."""
        return self._operators.setdefault((name, overload), f"op{len(self._operators)}")

    def kept(self) -> str:
        """A member for results that stay from call to call."""
        self._kept.append(f"kept{len(self._kept)}")
        return self._kept[-1]

    def program(self, functions: Sequence[str]) -> str:
        """The text of the struct."""
        on_gpu = is_gpu(self.device)
        members = ["  const Gpu& gpu;\n  const c10::Device device = gpu.device;\n"] if on_gpu else []
        for name, each in self._kernels.items():
            members.append(f"  const {'Kernel' if each.on_gpu is None else 'GpuKernel'} k_{name};\n")
        members += [
            f"  const Operator {member}{{{json.dumps(name)}, {json.dumps(overload)}}};\n"
            for (name, overload), member in self._operators.items()
        ]
        members += [f"  Kept {name};\n" for name in self._kept]
        members.append("  Arena arena;\n")
        made = ", ".join((["gpu(on_gpu.gpu())"] if on_gpu else []) + list(self._made()))
        parameters = "[[maybe_unused]] const Kernels& kernels"
        parameters += ", [[maybe_unused]] const GpuKernels& on_gpu" if on_gpu else ""
        head = f"  explicit Program({parameters}){' : ' if made else ''}{made} {{}}\n"
        checks = [f"k_{name}.check();" for name, each in self._kernels.items() if each.on_gpu and each.errors]
        head += f"  void check() const {{ {' '.join(checks)} }}\n" if on_gpu else ""
        return "struct Program {\n" + "".join(members) + "\n" + head + "\n" + "\n".join(functions) + "};\n"

    def _made(self) -> Iterator[str]:
        """How the members that are kernels are made."""
        for name, each in self._kernels.items():
            if each.on_gpu is not None:
                yield f"k_{name}(on_gpu({json.dumps(name)}))"
            else:
                yield f"k_{name}(kernels({json.dumps(name)}, {{{', '.join(map(json.dumps, each.errors))}}}))"


class _Function(Arguments):
    """One function: a member of the struct."""

    def __init__(self, function: host.FuncOp, names: Mapping[str, str], shared: _Shared) -> None:
        super().__init__(function)
        self.names, self.shared = names, shared
        self.device = shared.device
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
            self._check_device(argument)
            self._unpack(argument, names[number], f"args[{number}]")
        self._do("args.clear()")

    @override
    def _begin(self) -> None:
        launches = (op for op in self.function.body.block.ops if isinstance(op, host.LaunchOp))
        if any(self._kernel_of(op).on_gpu for op in launches):
            self._do("void* const stream = gpu.stream()")

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
        device = ", device" if is_gpu(kind.device) else ""
        return f"empty({self._layout(kind)}, {self._dtype(kind)}{device})"

    @override
    def _fresh(self, value: SSAValue) -> str:
        self._check_device(value)
        return super()._fresh(value)

    def _check_device(self, value: SSAValue) -> None:
        """UnsupportedError for a tensor on a second GPU."""
        if isinstance(value.type, TensorType) and is_gpu(value.type.device) and value.type.device != self.device:
            raise UnsupportedError(f"a runner has tensors on one GPU, and this program also on {value.type.device}")

    def _unpack(self, value: SSAValue, name: str, made: str) -> None:
        """A variable for what a value of the dispatcher's holds, which has it no longer: it lives as long as that."""
        for class_, ctype, getter in _GETTERS:
            if isinstance(value.type, class_):
                self._do(f"[[maybe_unused]] {ctype} {name} = std::move({made}).{getter}()")
                return
        raise UnsupportedError(f"a runner has no value of the type {value.type}")

    # launches

    def _kernel_of(self, op: host.LaunchOp) -> Launched:
        return self.shared.kernel(op.kernel.root_reference.data)

    @override
    def _launch(self, op: host.LaunchOp) -> None:
        kernel, name = self._kernel_of(op), f"k_{op.kernel.root_reference.data}"
        integers = list(map(self._spell, op.symbols.data))
        if kernel.on_gpu is None:
            given = [*map(self._pointer, op.buffers), *integers]
            self._pending.append(f"{name}({{{', '.join(given)}}})")
        else:
            self._pending.append(self._launch_on_gpu(op, name, kernel.on_gpu, integers))

    def _launch_on_gpu(self, op: host.LaunchOp, name: str, kernel: TritonKernel, integers: Sequence[str]) -> str:
        """A launch with the number of programs, and the length of the longest buffer where offsets depend on it."""
        given = dict(zip(kernel.symbols, (f"({each})" for each in integers), strict=True))
        programs, longest = self._spell(kernel.grid, given), "0"
        if kernel.chooses_index:
            lengths = dict.fromkeys(self._spell(extent, given) for extent in kernel.extents)
            longest = f"max({', '.join(['0', *lengths])})"
        moved: list[str] = []
        pointers: list[str] = []
        for value in op.buffers:
            if is_gpu(tensor_type(value).device):
                pointers.append(self._pointer(value))
            else:
                moved.append(f"const at::Tensor moved{len(moved)} = to_device({self._variable(value)}, device);")
                pointers.append(f"address(moved{len(moved) - 1})")
        launch = f"{name}(stream, {programs}, {longest}, {{{', '.join([*pointers, *integers])}}})"
        return f"{{ {' '.join(moved)} {launch}; }}" if moved else launch

    @override
    def _write_launches(self) -> None:
        for each in self._pending:
            self._do(each)

    @override
    def _takes_address(self, launch: host.LaunchOp, value: SSAValue) -> bool:
        return self._kernel_of(launch).on_gpu is None or is_gpu(tensor_type(value).device)  # else it is moved

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
            self._compare(op)
            return
        instead = implementation_of(op)
        if instead is not None:
            given = ", ".join(
                self._item(argument, op.arg(argument.name)) for argument, is_given in arguments_of(op) if is_given
            )
            self._let(self._fresh(op.results[0]), f"{instead.__name__}({given})")
        else:
            self._by_dispatcher(op)
        self._look_at_results(op)

    def _compare(self, op: CallOp) -> None:
        """A comparison of two sizes. UnsupportedError for any other call by name."""
        sign = _COMPARISONS.get(op.target.removeprefix("operator::"))
        given = op.args()
        if sign is None or not all(isinstance(each, SSAValue | Expr | int | float) for each in given):
            raise UnsupportedError(f"a runner has no {op.target}")
        left, right = (self._number(each) for each in given)
        self._do(f"const bool {self._fresh(op.results[0])} = {left} {sign} {right}")

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
