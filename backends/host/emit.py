"""A `host.func` as the source of a Python function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import torch
from xdsl.ir import Operation, SSAValue

from ...dialects import host, kernel
from ...dialects.aten import CHECKED, TRITON_KERNEL, AtenOp, CallOp, TensorType
from ...dialects.aten.binding import MEASURED, bindings
from ...dialects.aten.types import ITEM_SIZES, torch_name
from ...dialects.host.places import number_of, place_of
from ...dialects.sym import Expr, SymIntOp
from ...errors import UnsupportedError
from ...passes.common.implementations import IMPLEMENTATION
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


class HostEmitter:
    """Writes one function. Every name is of our own numbering: a0 (argument), t0 (tensor), s0 (symbol), ...

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
        self.function = function
        self.functions = functions
        self.is_a_body = is_a_body
        self.carriers = carriers
        self.kernels = kernels
        self.launchers = launchers
        self.parts: dict[str, str] = {}
        """The variables of the parts that the program calls, by their names."""
        self.constants = Constants()
        self.lines: list[str] = []
        self.symbols: dict[str, str] = {}
        self.variables: dict[SSAValue, str] = {}
        self.pointers: dict[SSAValue, str] = {}
        """Addresses of tensors that only launches use; no tensor object is made for them."""
        self._sizes = SharedSizes()
        self._printer = self.printer(self.constants, self._variable, self.symbols, references, self._body, self._expr)
        self._pending: list[Launch] = []
        self._freed: list[str] = []
        self._given: list[str] = []
        self._regions: list[tuple[int, int, list[str]]] = []
        """Lines that launch, from and to, and the same as regions of a profile."""
        self._allocations: list[tuple[int, Operation]] = []
        """Lines that allocate, and for what."""
        self._dropped: set[SSAValue] = set()
        """Values that a part was given to drop."""
        self._places: dict[SSAValue, dict[int, str]] = {}
        """The variables of the places of each pool, by their numbers."""
        self._positions: dict[Operation, int] = {}
        self.device = main_device(function)
        """The device that is current while the program runs."""

    def source(self) -> str:
        """The function `run(args)`: takes one list of inputs, clears it, returns a list."""
        self._arguments()
        for op in self.function.body.block.ops:
            self._op(op)
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
        if self.device != "cpu":
            self.constants.fixed("on_device", on_device)
            head = f"@on_device({self.constants.bind('device', torch.device(self.device))})\n"
        return f"{head}def {name}(args):\n{body}"

    def _arguments(self) -> None:
        names: list[str] = []
        for position, argument in enumerate(self.function.body.block.args):
            names.append(f"a{position}")
            self.variables[argument] = names[-1]
        if names:
            self.lines.append(f"{', '.join(names)}, = args")
        carries = check_of_inputs(self.function, self.carriers, self.constants)
        if carries:
            self.constants.fixed("run_on_copies", run_on_copies(self.function, self.kernels))
            self.lines += [f"if {carries}:", "    return run_on_copies(run, args)"]
        self.lines.append("args.clear()")
        for attribute in self.function.symbols:
            declared = attribute.data
            if declared.arg is None:
                continue
            name, source = self._symbol(declared.name), f"a{declared.arg}"
            if declared.dim is not None:
                source += f".size({declared.dim})"
            elif declared.stride is not None:
                source += f".stride({declared.stride})"
            self.lines.append(f"{name} = {source}")
        self._sizes.begin(list(self.symbols.values()), len(self.lines))
        for argument in self.function.body.block.args if self.is_a_body else ():
            self._take(argument)
        if self.device != "cpu" and any(isinstance(op, host.LaunchOp) for op in self.function.body.block.ops):
            self.constants.fixed("current_stream", gpu(torch.device(self.device).type).current_stream)
            self.lines.append(f"stream = current_stream({torch.device(self.device).index})")

    def _take(self, argument: SSAValue) -> None:
        """Give an argument of a body the strides that it is compiled for."""
        kind, name = argument.type, self.variables[argument]
        if isinstance(kind, TensorType) and kind.shape:
            fit = self.constants.fixed("fit", runtime.fit)
            self.lines.append(f"{name} = {fit}({name}, {self._layout(kind)})")

    def _body(self, name: str) -> str | None:
        """The variable of a function that is a body; None for another name."""
        return self.parts.setdefault(name, f"part{len(self.parts)}") if name in self.functions else None

    def _symbol(self, name: str) -> str:
        return self.symbols.setdefault(name, f"s{len(self.symbols)}")

    def _fresh(self, value: SSAValue) -> str:
        name = self.variables[value] = f"t{len(self.variables)}"
        return name

    def _variable(self, value: SSAValue) -> str:
        name = self.variables.get(value)
        if name is None:
            raise UnsupportedError(f"a host program uses {value} before it is made")
        return name

    def _expr(self, expr: Expr) -> str:
        return self._shared(expression(expr, self.symbols), (expr,))

    def _tuple(self, exprs: Sequence[Expr]) -> str:
        return self._shared(expressions(exprs, self.symbols), exprs)

    def _shared(self, text: str, exprs: Iterable[Expr]) -> str:
        """The variable of a text that is made of some expressions, where their symbols are sizes of arguments."""
        return self._sizes.share(text, {self.symbols[name] for expr in exprs for name in expr.free_symbols})

    def _layout(self, kind: TensorType) -> str:
        """Sizes and strides."""
        return f"{self._tuple(kind.shape)}, {self._tuple(kind.strides)}"

    # Launches that follow each other are collected, so that Python pays once for all of them. Allocations and views
    # in between move before them, frees behind them; an allocation after a free starts a new run, so that the
    # memory that was freed can serve it.

    def _op(self, op: Operation) -> None:
        if isinstance(op, host.LaunchOp):
            self._launch(op)
        elif isinstance(op, host.FreeOp):
            self._free(op)
        elif isinstance(op, host.EmptyOp):
            if self._freed:
                self._flush()
            self._empty(op)
        elif isinstance(op, host.ViewOp):
            self._view(op)
        elif isinstance(op, SymIntOp):
            self.lines.append(f"{self._fresh(op.result)} = {expression(op.value.data, self.symbols)}")
        else:
            self._flush()
            self._statement(op)

    def _statement(self, op: Operation) -> None:
        if isinstance(op, host.ReturnOp):
            self.lines.append(f"return [{', '.join(map(self._variable, op.values))}]")
        elif isinstance(op, host.CopyOp):
            self._copy(op)
        elif isinstance(op, AtenOp | CallOp):
            self._call(op)
        elif isinstance(op, host.CallOp):
            self._call_part(op)
        else:
            raise UnsupportedError(f"no host program for {op.name}")

    def _copy(self, op: host.CopyOp) -> None:
        self.lines.append(f"{self._variable(op.target)}.copy_({self._variable(op.source)})")

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

    def _flush(self) -> None:
        """Write the launches that wait, then the frees behind them."""
        if self._pending:
            launcher = self.launchers[generator_of(self._pending[0].function)]
            lines = launcher.write(self._pending, self.constants)
            self._regions.append((len(self.lines), len(self.lines) + len(lines), self._watched(launcher, lines)))
            self.lines += lines
            self._pending = []
        self.lines += [f"arena.give({name})" for name in self._given]
        self._given = []
        if self._freed:
            self.lines.append(f"del {', '.join(self._freed)}")
            self._freed = []

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

    def _is_kept(self, value: SSAValue) -> bool:
        """Whether memory goes back to the arena at its end of life."""
        owner = value.owner
        return isinstance(owner, host.EmptyOp) and owner.kept is not None and _tensor_type(value).device == "cpu"

    def _free(self, op: host.FreeOp) -> None:
        values = [value for value in op.values if value in self.variables and value not in self._dropped]
        self._freed += [self.variables[value] for value in values if not self._is_placed(value)]
        for value in values:
            self._freed += self._places.get(value, {}).values()
        self._given += [self.variables[value] for value in op.values if self._is_kept(value)]
        if not self._pending:
            self._flush()

    def _is_placed(self, value: SSAValue) -> bool:
        """Whether a variable is of a place in a pool, which lives as long as that."""
        return isinstance(value.owner, Operation) and number_of(value.owner) is not None

    def _pointer(self, value: SSAValue) -> str:
        known = self.pointers.get(value)
        return known if known is not None else f"{self._variable(value)}.data_ptr()"

    def _empty(self, op: host.EmptyOp) -> None:
        kind = _tensor_type(op.out)
        layout = self._layout(kind)
        dtype = self._dtype(kind)
        if op.offset is not None:
            offset = self._expr(op.offset.data)
            if self._only_launched(op.out, views_are_placed=True) and self._outlives(op.pool[0], op.out):
                if op.pool[0] not in self.pointers:
                    self._set_pointer(op.pool[0], self._pointer(op.pool[0]))
                base = self._pointer(op.pool[0])
                self._set_pointer(op.out, base if offset == "0" else f"{base} + {offset}")
                return
            self._in_pool(op)
            return
        self._allocations.append((len(self.lines), op))
        if op.kept is not None and kind.device == "cpu":
            arena = self.constants.fixed("arena", shared_arena())
            self.lines.append(f"{self._fresh(op.out)} = {arena}.take({self._expr(kind.shape[0])})")
        elif kind.device == "cpu":
            self.constants.fixed("empty", runtime.empty_cpu)
            self.lines.append(f"{self._fresh(op.out)} = empty({layout}, {dtype})")
        elif kind.device == self.device and is_gpu(self.device):
            self.constants.fixed("empty_gpu", gpu(torch.device(self.device).type).empty)
            self.lines.append(f"{self._fresh(op.out)} = empty_gpu({layout}, {dtype})")
        else:
            self.constants.fixed("empty_strided", torch.empty_strided)
            device = self.constants.bind("device", torch.device(kind.device))
            self.lines.append(f"{self._fresh(op.out)} = empty_strided({layout}, dtype={dtype}, device={device})")

    def _in_pool(self, op: host.EmptyOp | host.ViewOp) -> None:
        """Make a tensor at a place of a pool; there is one already where an earlier op has the same number."""
        where = place_of(op)
        assert where is not None
        pool, offset, _ = where
        places, number = self._places.setdefault(pool, {}), number_of(op)
        if number is not None and number in places:
            self.variables[op.out] = places[number]
            return
        kind = _tensor_type(op.out)
        self.constants.fixed("in_pool", runtime.in_pool)
        arguments = f"{self._variable(pool)}, {self._expr(offset)}, {self._layout(kind)}, {self._dtype(kind)}"
        self.lines.append(f"{self._fresh(op.out)} = in_pool({arguments})")
        if number is not None:
            places[number] = self.variables[op.out]

    def _view(self, op: host.ViewOp) -> None:
        kind, offset = _tensor_type(op.out), self._expr(op.offset.data)
        if self._only_launched(op.out) and self._outlives(op.source, op.out):
            base, item = self._pointer(op.source), _item_size(kind)
            self._set_pointer(op.out, base if offset == "0" else f"{base} + {self._expr(op.offset.data * item)}")
            return
        if place_of(op) is not None and (op.source not in self.variables or op.place is not None):
            self._in_pool(op)
            return
        source = self._variable(op.source)
        layout = self._layout(kind)
        if kind.element == _tensor_type(op.source).element:
            self.constants.fixed("strided", runtime.strided)
            self.lines.append(f"{self._fresh(op.out)} = strided({source}, {layout}, {offset})")
            return
        self.constants.fixed("retyped", runtime.retyped)  # dead memory that was of another type
        dtype = self.constants.bind("dtype", runtime.torch_dtype(kind.element))
        self.lines.append(f"{self._fresh(op.out)} = retyped({source}, {offset}, {layout}, {dtype})")

    def _set_pointer(self, value: SSAValue, text: str) -> None:
        """Keep an address in a variable, unless it is one already."""
        if text.isidentifier():
            self.pointers[value] = text
            return
        name = self.pointers[value] = f"p{len(self.pointers)}"
        self.lines.append(f"{name} = {text}")

    def _only_launched(self, value: SSAValue, views_are_placed: bool = False) -> bool:
        """Whether an address is all that is needed of a tensor.

        With `views_are_placed` also where views of it are tensors, which are made at their own places of its pool.
        """
        for use in value.uses:
            user = use.operation
            if isinstance(user, host.FreeOp):
                continue
            if isinstance(user, host.ViewOp) and (views_are_placed or self._only_launched(user.out)):
                continue
            if not isinstance(user, host.LaunchOp):
                return False
            function = self.kernels.get(user.kernel.root_reference.data)
            if function is None or self.launchers[generator_of(function)].needs_tensors:
                return False
            if not runs_on_host(function) and _tensor_type(value).device == "cpu":
                return False  # it is moved before the launch
        return True

    def _outlives(self, memory: SSAValue, value: SSAValue) -> bool:
        """Whether a tensor is alive at every use of an address inside of it. A tensor of its own keeps memory alive."""
        ends = [self._position(use.operation) for use in memory.uses if isinstance(use.operation, host.FreeOp)]
        return not ends or self._last_use(value) < min(ends)

    def _last_use(self, value: SSAValue) -> int:
        last = -1
        for use in value.uses:
            user = use.operation
            if isinstance(user, host.ViewOp):
                last = max(last, self._last_use(user.out))
            elif not isinstance(user, host.FreeOp):
                last = max(last, self._position(user))
        return last

    def _position(self, op: Operation) -> int:
        if not self._positions:
            self._positions = {each: k for k, each in enumerate(self.function.body.block.ops)}
        return self._positions[op]

    def _call(self, op: AtenOp | CallOp) -> None:
        call = self._printer.call(op)
        names = [self._fresh(out) for out in op.results]
        if names:
            self._allocations.append((len(self.lines), op))
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
            flatten = self.constants.fixed("flatten", runtime.flatten)
            self.lines.append(f"{', '.join(names)}, = {flatten}({call})")
        self._bind_symbols(op)
        if CHECKED in op.attributes:
            self._check_sizes(op)
        runs_functions = self._printer.runs_functions(op)
        for name, out in zip(names, op.results, strict=True):
            # ATen ops and our own programs get no input with a bit, and set none themselves
            if isinstance(op, CallOp) and may_carry(out) and not runs_functions:
                self.lines.append(f"{name} = {self.constants.fixed('plain', plain)}({name})")
            self._fit(op, name, out, runs_functions)

    def _call_part(self, op: host.CallOp) -> None:
        """A part takes one list, which it clears: what nothing else holds is free as soon as it is used there."""
        name = op.callee.root_reference.data
        part = self.parts.setdefault(name, f"part{len(self.parts)}")
        given = f"[{', '.join(map(self._variable, op.arguments))}]"
        following = op.next_op
        freed = set(following.operands) & set(op.arguments) if isinstance(following, host.FreeOp) else set()
        freed = {value for value in freed if not self._is_placed(value)}
        if freed:
            self._dropped |= freed
            self.lines += [
                f"given = {given}",
                f"del {', '.join(self.variables[v] for v in op.arguments if v in freed)}",
            ]
            given = "given"
        names = "".join(f"{self._fresh(out)}, " for out in op.out)
        self.lines.append(f"{names}= {part}({given})" if names else f"{part}({given})")

    def _fit(self, op: AtenOp | CallOp, name: str, out: SSAValue, always: bool = False) -> None:
        """Give a result the strides that kernels and views rely on, or `always`."""
        if isinstance(out.type, TensorType) and (always or (_is_launched(out) and not _is_row_major(op, out.type))):
            fit = self.constants.fixed("fit", runtime.fit)
            self.lines.append(f"{name} = {fit}({name}, {self._layout(out.type)})")

    def _bind_symbols(self, op: AtenOp | CallOp) -> None:
        """Values of the symbols that an op defines: sizes and strides of its tensors, or its integers in order."""
        for each in bindings(op) if op.binds else ():
            if each.name not in self.symbols:
                measured = self.variables[op.results[each.result]]
                if each.dim is not None:
                    measured += f".size({each.dim})"
                elif each.stride is not None:
                    measured += f".stride({each.stride})"
                value = expression(each.value, {**self.symbols, MEASURED: measured})
                self.lines.append(f"{self._symbol(each.name)} = {value}")

    def _check_sizes(self, op: AtenOp | CallOp) -> None:
        check = self.constants.fixed("check_size", runtime.check_size)
        called = self.constants.bind("text", op.target)
        for out in op.results:
            if isinstance(out.type, TensorType):
                sizes = self._tuple(out.type.shape)
                self.lines.append(f"{check}({self.variables[out]}, {sizes}, {called})")

    def _dtype(self, kind: TensorType) -> str:
        return self.constants.bind("dtype", runtime.torch_dtype(kind.element))


def main_device(function: host.FuncOp) -> str:
    """The GPU that most tensors of a program are on, by its index; the CPU where there is none."""
    block = function.body.block
    values = [*block.args, *(result for op in block.ops for result in op.results)]
    devices = Counter(v.type.device for v in values if isinstance(v.type, TensorType) and is_gpu(v.type.device))
    chosen = max(devices, key=lambda device: devices[device], default="cpu")
    return f"{chosen}:0" if is_gpu(chosen) and ":" not in chosen else chosen


def _tensor_type(value: SSAValue) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type


def _item_size(kind: TensorType) -> int:
    return ITEM_SIZES[torch_name(kind.element)]


def _returns_one(op: AtenOp | CallOp) -> bool:
    """Whether the Python call returns the one result itself instead of a list or tuple."""
    if len(op.results) != 1 or isinstance(op, CallOp):
        return False
    returns = op.schema.returns
    return len(returns) == 1 and not returns[0].is_list


def _returns_tensors(op: AtenOp | CallOp) -> bool:
    """Whether the Python call returns a tuple of just the results."""
    if isinstance(op, CallOp):
        return False
    returns = op.schema.returns
    return 1 < len(returns) == len(op.results) and not any(r.is_list for r in returns)


#: ATen's products: their meta functions, which types come from, are the first half of what computes them
_ROW_MAJOR = frozenset({"mm", "addmm", "bmm", "baddbmm"})


def _is_row_major(op: AtenOp | CallOp, kind: TensorType) -> bool:
    """Whether an op is sure to give rows one behind the other, as its type says: ATen's products do, ours by parts."""
    is_product = isinstance(op, AtenOp) and op.packet in _ROW_MAJOR and IMPLEMENTATION not in op.attributes
    return is_product and kind.is_contiguous


def _is_launched(value: SSAValue) -> bool:
    users: Sequence[Operation] = [use.operation for use in value.uses]
    return any(isinstance(user, host.LaunchOp | host.ViewOp) for user in users)
