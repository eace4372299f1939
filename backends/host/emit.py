"""A `host.func` as the source of a Python function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from typing_extensions import override
from xdsl.ir import Operation, SSAValue

from ...dialects import host, kernel
from ...dialects.aten import TRITON_KERNEL, AtenOp, CallOp, TensorType
from ...dialects.aten.types import ITEM_SIZES, torch_name
from ...dialects.raw import ops_of, type_of
from ...dialects.sym import Expr
from ...errors import UnsupportedError
from ...machines import HOST, in_host_memory
from ...passes.analysis.tensor_bytes import bytes_of
from ...passes.common.own_products import is_own_product
from ..generators import generator_of, runs_on_host
from . import runtime
from .allocations import allocating
from .arena import shared_arena
from .aten_calls import ArgumentPrinter
from .constants import Constants
from .copies import plain
from .expressions import expression, expressions
from .gpu import gpu, is_gpu, on_device
from .launchers import Launch, Launcher
from .lazy_bits import check_of_inputs, may_carry, run_on_copies
from .regions import region_name
from .sizes import SharedSizes
from .walk import FEW_BYTES, HostWalk, tensor_type


class HostEmitter(HostWalk):
    """Writes one function.

    kernels:   the module's kernels by name
    launchers: by code generator, with their kernels compiled
    carriers:  positions of the arguments that may carry the negative or conjugate bit; None where nobody knows
    functions: names of the functions that calls may name as bodies
    is_a_body: whether the function is one, which is given rows and what other bodies return
    """

    printer: ClassVar[type[ArgumentPrinter]] = ArgumentPrinter
    """Writes the arguments of ATen calls."""

    def __init__(
        self,
        function: host.FuncOp,
        kernels: Mapping[str, kernel.FuncOp],
        launchers: Mapping[str, Launcher],
        references: Mapping[str, Any],
        carriers: Collection[int] | None = None,
        functions: Collection[str] = (),
        is_a_body: bool = False,
    ) -> None:
        super().__init__(function)
        self.functions = functions
        self.is_a_body = is_a_body
        self.carriers = carriers
        self.kernels = kernels
        self.launchers = launchers
        self.parts: dict[str, str] = {}
        """The variables of the parts that the program calls, by their names."""
        self.constants = Constants()
        self._sizes = SharedSizes()
        self._printer = self.printer(self.constants, self._variable, self.symbols, references, self._body, self._expr)
        self._regions: list[tuple[int, int, list[str]]] = []
        """Lines that launch, from and to, and the same as regions of a profile."""
        self._allocations: list[tuple[int, Operation]] = []
        """Lines that allocate, and for what."""
        self.device = main_device(function)
        """The device that is current while the program runs."""

    def source(self) -> str:
        """The function `run(args)`: takes one list of inputs, clears it, returns a list."""
        self.walk()
        return self._sizes.function() + self._function("run", self.lines)

    def watched_source(self) -> str:
        """The same program with a region of a profile around each launch, as `run_watched`; behind `source`."""
        lines = list(self.lines)
        for first, end, watched in reversed(self._regions):
            lines[first:end] = watched
        return self._function("run_watched", lines)

    def recorded_source(self) -> str:
        """The same program with a frame of its own around each allocation, as `run_recorded`; behind `source`."""
        lines = list(self.lines)
        for number, op in self._allocations:
            lines[number] = allocating(lines[number], op, self._position)
        return self._function("run_recorded", lines)

    def _function(self, name: str, lines: Sequence[str]) -> str:
        body = "".join(f"    {line}\n" for line in self._sizes.insert(list(lines), self.constants))
        head = ""
        if not in_host_memory(self.device):
            self.constants.fixed("on_device", on_device)
            head = f"@on_device({self.constants.bind('device', torch.device(self.device))})\n"
        return f"{head}def {name}(args):\n{body}"

    @override
    def _take_arguments(self, names: Sequence[str]) -> None:
        if names:
            self.lines.append(f"{', '.join(names)}, = args")
        carries = check_of_inputs(self.function, self.carriers, self.constants)
        if carries:
            self.constants.fixed("run_on_copies", run_on_copies(self.function, self.kernels))
            self.lines += [f"if {carries}:", "    return run_on_copies(run, args)"]
        self.lines.append("args.clear()")

    @override
    def _begin(self) -> None:
        self._sizes.begin(list(self.symbols.values()), len(self.lines))
        for argument in self.function.body.block.args if self.is_a_body else ():
            self._take(argument)
        launches = any(isinstance(op, host.LaunchOp) for op in self.function.body.block.ops)
        if launches and not in_host_memory(self.device):
            self.constants.fixed("current_stream", gpu(torch.device(self.device).type).current_stream)
            index = self.constants.bind("index", torch.device(self.device).index)
            self.lines.append(f"stream = current_stream({index})")

    def _take(self, argument: SSAValue) -> None:
        """Give an argument of a body the strides that it is compiled for."""
        kind, name = argument.type, self.variables[argument]
        if isinstance(kind, TensorType) and kind.shape:
            self._let(name, f"{self._function_named('fit')}({name}, {self._layout(kind)})")

    def _body(self, name: str) -> str | None:
        """The variable of a function that is a body; None for another name."""
        return self.parts.setdefault(name, f"part{len(self.parts)}") if name in self.functions else None

    # how Python spells it

    @override
    def _let(self, name: str, value: str) -> None:
        self.lines.append(f"{name} = {value}")

    _let_integer = _let_list = _let

    @override
    def _do(self, statement: str) -> None:
        self.lines.append(statement)

    @override
    def _drop(self, names: Sequence[str]) -> None:
        self.lines.append(f"del {', '.join(names)}")

    @override
    def _return(self, values: Sequence[str]) -> None:
        self.lines.append(f"return {self._list(values)}")

    @override
    def _list(self, names: Sequence[str]) -> str:
        return f"[{', '.join(names)}]"

    @override
    def _spell(self, expr: Expr, more: Mapping[str, str] | None = None) -> str:
        return expression(expr, {**self.symbols, **more} if more else self.symbols)

    @override
    def _expr(self, expr: Expr) -> str:
        return self._shared(expression(expr, self.symbols), (expr,))

    @override
    def _tuple(self, exprs: Sequence[Expr]) -> str:
        return self._shared(expressions(exprs, self.symbols), exprs)

    def _shared(self, text: str, exprs: Iterable[Expr]) -> str:
        """The variable of a text that is made of some expressions, where their symbols are sizes of arguments."""
        return self._sizes.share(text, {self.symbols[name] for expr in exprs for name in expr.free_symbols})

    @override
    def _text(self, text: str) -> str:
        return self.constants.bind("text", text)

    @override
    def _dtype(self, kind: TensorType) -> str:
        return self.constants.bind("dtype", runtime.torch_dtype(kind.element))

    @override
    def _bytes(self, value: SSAValue) -> int:
        """Of a tensor on a GPU alone: on the CPU launches cost little."""
        kind = value.type
        if in_host_memory(self.device) or not isinstance(kind, TensorType):
            return FEW_BYTES
        size = bytes_of(kind).as_int() if torch_name(kind.element) in ITEM_SIZES else None
        return FEW_BYTES if size is None else size

    @override
    def _address(self, variable: str) -> str:
        return f"{variable}.data_ptr()"

    @override
    def _function_named(self, name: str) -> str:
        found = shared_arena() if name == "arena" else plain if name == "plain" else getattr(runtime, name)
        return self.constants.fixed(name, found)

    @override
    def _allocates(self, op: Operation) -> None:
        self._allocations.append((len(self.lines), op))

    @override
    def _fresh_memory(self, op: host.EmptyOp) -> str:
        kind = tensor_type(op.out)
        layout, dtype = self._layout(kind), self._dtype(kind)
        if in_host_memory(kind.device):
            return f"{self.constants.fixed('empty', runtime.empty_cpu)}({layout}, {dtype})"
        if kind.device == self.device and is_gpu(self.device):
            self.constants.fixed("empty_gpu", gpu(torch.device(self.device).type).empty)
            return f"empty_gpu({layout}, {dtype})"
        self.constants.fixed("empty_strided", torch.empty_strided)
        device = self.constants.bind("device", torch.device(kind.device))
        return f"empty_strided({layout}, dtype={dtype}, device={device})"

    # launches

    @override
    def _launch(self, op: host.LaunchOp) -> None:
        function = self.kernels.get(op.kernel.root_reference.data)
        if function is None:
            raise UnsupportedError(f"the module has no kernel @{op.kernel.root_reference.data}")
        buffers = tuple(op.buffers)
        if len(buffers) != len(function.body.block.args) or len(op.symbols.data) != len(function.symbols.data):
            raise UnsupportedError(f"a launch of @{function.sym_name.data} has the wrong number of arguments")
        if self._pending and generator_of(self._pending[0].function) != generator_of(function):
            self._flush()
        needs_tensors = self.launchers[generator_of(function)].needs_tensors
        tensors = tuple(self._variable(v) if needs_tensors else self.variables.get(v, "") for v in buffers)
        pointers = () if needs_tensors else tuple(map(self._pointer, buffers))
        integers = tuple(expression(each, self.symbols) for each in op.symbols.data)
        extents, share = self._extents(op, function), partial(self._shared, exprs=op.symbols.data)
        self._pending.append(Launch(function, buffers, tensors, pointers, integers, self.device, extents, share))

    def _extents(self, op: host.LaunchOp, function: kernel.FuncOp) -> tuple[str, ...]:
        """What a launch is checked with; nothing here."""
        return ()

    @override
    def _write_launches(self) -> None:
        launcher = self.launchers[generator_of(self._pending[0].function)]
        lines = launcher.write(self._pending, self.constants)
        self._regions.append((len(self.lines), len(self.lines) + len(lines), self._watched(launcher, lines)))
        self.lines += lines

    def _watched(self, launcher: Launcher, lines: Sequence[str]) -> list[str]:
        """The launches that wait as regions. On the CPU, where nothing else shows kernels, each is one by itself."""
        groups = [self._pending]
        if runs_on_host(self._pending[0].function) and len(self._pending) > 1:
            groups = [[launch] for launch in self._pending]
        watched: list[str] = []
        for group in groups:
            names = ", ".join(launch.function.sym_name.data for launch in group)
            name = region_name(names, [launch.function.location for launch in group])
            inside = lines if len(groups) == 1 else launcher.write(group, self.constants)
            watched += [f"with region({self.constants.bind('text', name)}):", *(f"    {line}" for line in inside)]
        return watched

    @override
    def _takes_address(self, launch: host.LaunchOp, value: SSAValue) -> bool:
        function = self.kernels.get(launch.kernel.root_reference.data)
        if function is None or self.launchers[generator_of(function)].needs_tensors:
            return False
        # what lies in the host's memory is moved before a launch on a GPU
        return runs_on_host(function) or not in_host_memory(tensor_type(value).device)

    # calls

    @override
    def _call(self, op: AtenOp | CallOp) -> None:
        call = self._printer.call(op)
        names = [self._fresh(out) for out in op.results]
        if names:
            self._allocates(op)
        if not names:
            if isinstance(op, CallOp) and TRITON_KERNEL in op.attributes:
                call += f"  # {op.shown}"
            self.lines.append(call)
            return
        if _returns_one(op):
            self.lines.append(f"{names[0]} = {call}")
        elif _returns_tensors(op):
            self.lines.append(f"{', '.join(names)} = {call}")
        else:
            self.lines.append(f"{', '.join(names)}, = {self._function_named('flatten')}({call})")
        runs_functions = self._printer.runs_functions(op)
        for name, out in zip(names, op.results, strict=True):
            # ATen ops and our own programs get no input with a bit, and set none themselves
            if isinstance(op, CallOp) and may_carry(out) and not (runs_functions or is_own_product(op)):
                self._let(name, f"{self._function_named('plain')}({name})")
        self._look_at_results(op, always=runs_functions)

    @override
    def _run_part(self, op: host.CallOp, given: str) -> None:
        name = op.callee.root_reference.data
        part = self.parts.setdefault(name, f"part{len(self.parts)}")
        names = "".join(f"{self._fresh(out)}, " for out in op.out)
        self.lines.append(f"{names}= {part}({given})" if names else f"{part}({given})")


def main_device(function: host.FuncOp) -> str:
    """The GPU that most tensors of a program are on, by its index; the CPU where there is none."""
    block = function.body.block
    types = map(type_of, [*block.args, *[result for op in ops_of(block) for result in op.results]])
    named = Counter([each.device for each in types if type(each) is TensorType])
    devices = {device: count for device, count in named.items() if is_gpu(device)}
    chosen = max(devices, key=lambda device: devices[device], default=HOST)
    return f"{chosen}:0" if is_gpu(chosen) and ":" not in chosen else chosen


def _returns_one(op: AtenOp | CallOp) -> bool:
    """Whether the Python call returns the one result itself instead of a list or tuple."""
    if len(op.results) != 1 or isinstance(op, CallOp):
        return len(op.results) == 1 and is_own_product(op)
    returns = op.schema.returns
    return len(returns) == 1 and not returns[0].is_list


def _returns_tensors(op: AtenOp | CallOp) -> bool:
    """Whether the Python call returns a tuple, or a list, of just the results."""
    if isinstance(op, CallOp):
        return is_own_product(op)
    returns = op.schema.returns
    return 1 < len(returns) == len(op.results) and not any(r.is_list for r in returns)
