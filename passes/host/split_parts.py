"""The pass `host-split-parts`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field, replace
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IndexType, ModuleOp, SymbolRefAttr, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects import host
from ...dialects.aten import CallOp, TensorType
from ...dialects.machine import TargetsAttr, targets_of
from ...dialects.raw import operands_of, ops_of
from ...dialects.sym import SymAttr, SymbolAttr, SymbolDeclaration, SymIntOp, symbol
from ...records import dataclass
from ..analysis.functions import bodies, kernels_of
from ..analysis.mentions import mentioned_symbols, symbols_of_type
from ..common.copies import copy_op
from ..counters import counter
from ..remarks import remark
from ._capturable import KEPT_RESULTS, obstacles
from ._parts import Dependences, Part, few_parts, is_place, reasons

_INDEX = IndexType()


@dataclass(frozen=True)
class HostSplitParts(ModulePass):
    """Divide a program into parts that a CUDA graph can record and parts that run.

    Level: host.

    Precondition: nothing is freed yet; other passes of this level are done. Does nothing unless `cudagraphs`
    and `graph_partition` are set.
    Guarantee: a program on a CUDA device all of whose ops can be recorded stays as it is. Of another one each stretch
    that can be recorded, of `least` launches and calls at least, is a function of its own that is `recorded` and that
    the program calls. Steps that do not depend on each other changed places so that there are few stretches; effects,
    random numbers and writes to arguments stay in order. A part takes the symbols that it mentions as integers, and
    returns nothing that lies in memory of its arguments. The last `constants` arguments are the same tensors in each
    call, so that a recording of the whole program may read them in the CPU's memory.

        host.launch @a(%x, %y)
        %n = aten.nonzero(%x) binds [u0] : U
        host.launch @b(%y, %z)
        host.return %n, %z
    becomes
        %z = host.call @f_part_0(%x) : T             // host.func @f_part_0(%x: T) -> (T) recorded { ... }
        %n = aten.nonzero(%x) binds [u0] : U
        host.return %n, %z
    """

    name = "host-split-parts"
    level: ClassVar[str] = "host"
    optional: ClassVar[bool] = True

    cudagraphs: bool = False
    graph_partition: bool = True
    least: int = 4
    constants: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split every host function on a device whose launches can be recorded."""
        if not (self.cudagraphs and self.graph_partition):
            return
        kernels, inner = kernels_of(op), bodies(op)
        for function in [each for each in op.body.block.ops if isinstance(each, host.FuncOp)]:
            if function.sym_name.data in inner:
                continue  # a body runs where its call does, which is between two parts
            device = _recorded_device(function, targets_of(op))
            if device is None:
                continue
            count = len(function.body.block.args)
            fixed = range(count - self.constants, count)
            found = {each.reason for each in obstacles(function, kernels, fixed)}
            is_foreign = _has_foreign_argument(function, device, fixed)
            if function.kept is not None or not (found or is_foreign):
                continue
            steps = Dependences(function, kernels, device).steps(function.body.block)
            # where nothing else is in the way, all but the look at the weights is one recording, however short
            is_whole = found == {KEPT_RESULTS} and not is_foreign
            parts = few_parts(steps, 1 if is_whole else self.least)
            for step, reason in reasons(parts):
                remark("missed", self.name, step.op, f"{_named(step.op)}runs between recorded parts: {reason}")
            recorded = sum(part.recorded for part in parts)
            if recorded and counter(self.name):
                _Splitter(op.body.block, function).run(parts)
                remark("passed", self.name, function, f"{_described(parts)}", recorded=recorded)


def _named(op: Operation) -> str:
    """What an op calls, where its own name does not say so."""
    if isinstance(op, host.LaunchOp):
        return f"{op.kernel.root_reference.data} "
    return f"{op.target} " if isinstance(op, CallOp) else ""


def _recorded_device(function: host.FuncOp, targets: TargetsAttr) -> str | None:
    """The device that most of a function is on, of those whose launches can be recorded; None where there is none."""
    devices: dict[str, int] = {}
    for op in function.body.block.ops:
        for result in op.results if not isinstance(op, host.LaunchOp) else op.operands:
            if isinstance(result.type, TensorType):
                devices[result.type.device] = devices.get(result.type.device, 0) + 1
    recorded = [device for device in devices if targets.target(device).family.records]
    return max(recorded, key=lambda each: devices[each], default=None)


def _has_foreign_argument(function: host.FuncOp, device: str, fixed: Collection[int]) -> bool:
    types = [argument.type for number, argument in enumerate(function.body.block.args) if number not in fixed]
    return any(type_.device != device if isinstance(type_, TensorType) else type_ != _INDEX for type_ in types)


def _described(parts: Sequence[Part]) -> str:
    kinds = [f"{len(p.steps)} {'recorded' if p.recorded else 'run'}" for p in parts]
    return f"launches and calls in parts: {', '.join(kinds)}"


@dataclass
class _Place:
    """A block that is being filled: copies of what only says where memory is are made as they are needed.

    values: for values of the program those that stand for them here
    own:    allocations that belong here
    taken:  values of the program that come from elsewhere, in the order in which they were asked for
    """

    block: Block
    own: set[Operation]
    values: dict[SSAValue, SSAValue] = field(default_factory=dict)
    taken: list[SSAValue] = field(default_factory=list)

    def add(self, op: Operation) -> None:
        """Append a copy of an op, behind what it needs."""
        for operand in operands_of(op):
            self.value(operand)
        self.block.add_op(copy_op(op, self.values))

    def value(self, value: SSAValue) -> SSAValue:
        """What stands for a value of the program."""
        found = self.values.get(value)
        if found is not None:
            return found
        owner = value.owner
        if isinstance(owner, Operation) and is_place(owner) and (owner in self.own or not _allocates(owner)):
            self.add(owner)
            return self.values[value]
        new = self.values[value] = self.block.insert_arg(value.type, len(self.block.args))
        new.name_hint = value.name_hint
        self.taken.append(value)
        return new


def _allocates(op: Operation) -> bool:
    return isinstance(op, host.EmptyOp)


class _Splitter:
    """Rewrites one function; `home` says in which part each allocation is first used."""

    def __init__(self, module: Block, function: host.FuncOp) -> None:
        self.module = module
        self.function = function
        self.declared = {each.data.name: each for each in function.symbols}
        self.home: dict[Operation, Part] = {}
        self.made: dict[SSAValue, Part] = {}

    def run(self, parts: Sequence[Part]) -> None:
        """Move what is recorded into functions, and let the program call them."""
        block = self.function.body.block
        returned = ops_of(block)[-1]
        for part in parts:
            for step in part.steps:
                self.made |= dict.fromkeys(step.op.results, part)
                for empty in _allocations(step.op):
                    self.home.setdefault(empty, part)
        needed = self._needed(parts, returned)
        body = Block()
        main = _Place(body, {op for op in ops_of(block) if self._is_run(op)})
        for argument in block.args:
            new = main.values[argument] = body.insert_arg(argument.type, len(body.args))
            new.name_hint = argument.name_hint
        last: Operation = self.function
        for part in parts:
            if not part.recorded:
                for step in part.steps:
                    main.add(step.op)
                continue
            callee = self._callee(part, needed[id(part)], main)
            self.module.insert_op_after(callee, last)
            last = callee
        main.add(returned)
        assert not main.taken
        self.function.body.detach_block(block)
        block.erase(safe_erase=False)
        self.function.body.add_block(body)

    def _is_run(self, op: Operation) -> bool:
        return op not in self.home or not self.home[op].recorded

    def _needed(self, parts: Sequence[Part], returned: Operation) -> dict[int, list[SSAValue]]:
        """For each part the values that it makes and that others use."""
        found: dict[int, list[SSAValue]] = {id(part): [] for part in parts}
        for part in (*parts, None):
            ops = [step.op for step in part.steps] if part is not None else [returned]
            for value in dict.fromkeys(source for op in ops for source in _used_behind_views(op)):
                maker = self.made.get(value)
                if maker is None and isinstance(value.owner, Operation):
                    maker = self.home.get(value.owner)
                if maker is not None and maker is not part and value not in found[id(maker)]:
                    found[id(maker)].append(value)
        return found

    def _callee(self, part: Part, results: Sequence[SSAValue], main: _Place) -> host.FuncOp:
        """The function of a part; its call is appended to the program."""
        own = {op for op, home in self.home.items() if home is part}
        place = _Place(Block(), own)
        for step in part.steps:
            place.add(step.op)
        names = set().union(
            *(mentioned_symbols(op) for op in place.block.ops),
            *(symbols_of_type(value.type) for value in place.block.args),
        )
        names &= self.declared.keys()
        symbols: list[SymbolAttr] = []
        arguments = [main.value(value) for value in place.taken]
        for name in sorted(names, key=list(self.declared).index):
            number = SymIntOp(SymAttr.of(symbol(name)))
            main.block.add_op(number)
            arguments.append(number.results[0])
            place.block.insert_arg(_INDEX, len(place.block.args)).name_hint = name
            symbols.append(_as_argument(self.declared[name].data, len(arguments) - 1))
        place.block.add_op(host.ReturnOp.create(operands=[place.values[value] for value in results]))
        number = sum(isinstance(op, host.FuncOp) and op.recorded is not None for op in self.module.ops)
        name = f"{self.function.sym_name.data}_part_{number}"
        types = [value.type for value in results]
        callee = host.FuncOp.of(name, types, ArrayAttr(symbols), Region(place.block), part.steps[0].op.location)
        callee.properties["recorded"] = UnitAttr()
        call = host.CallOp.of(SymbolRefAttr(name), arguments, types, part.steps[0].op.location)
        main.block.add_op(call)
        for value, result in zip(results, call.results, strict=True):
            result.name_hint = value.name_hint
            main.values[value] = result
        return callee


def _as_argument(declared: SymbolDeclaration, number: int) -> SymbolAttr:
    return SymbolAttr(replace(declared, arg=number, dim=None, stride=None))


def _allocations(op: Operation) -> Iterable[Operation]:
    return [s.owner for s in _used_behind_views(op) if isinstance(s.owner, host.EmptyOp)]


def _used_behind_views(op: Operation) -> list[SSAValue]:
    """What an op uses, looking through views."""
    found: list[SSAValue] = []
    waiting = list(operands_of(op))
    while waiting:
        value = waiting.pop()
        owner = value.owner
        if isinstance(owner, Operation) and is_place(owner) and operands_of(owner):
            waiting += operands_of(owner)
            if isinstance(owner, host.EmptyOp):
                found.append(value)
        else:
            found.append(value)
    return found
