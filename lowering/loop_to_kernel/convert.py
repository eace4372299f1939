"""The pass `lower-loop-to-kernel`: functions become host programs, fusions kernels and launches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import ArrayAttr, LocationAttr, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import SymbolTable

from ...dialects import host, kernel, loop
from ...dialects.access import is_dynamic_name
from ...dialects.aten.types import TensorType
from ...dialects.raw import hint_of, set_hint
from ...dialects.sym import ONE, ZERO, MapAttr, Ranges, SymAttr, SymbolAttr, symbol
from ...dialects.sym.ranges import NOTHING
from ...errors import UnsupportedError, UserError
from ...passes.analysis.kept import KEPT, is_kept_call, is_kept_function
from ...passes.common.locations import merged
from ...passes.common.numbering import AttributeTokens, Key
from ...passes.counters import counter
from ...records import dataclass
from .kernel_builder import KernelBuilder, Operand
from .memory import strided_view
from .names import kernel_name
from .sharing import SharedKernel, fusion_key


class LowerLoopToKernel(ModulePass):
    """Make kernels of fusions, and host programs of functions.

    Level: loop -> kernel + host.

    Precondition: every nest is a member of a `loop.fusion`; every `loop.view` that is left is linear in the strides
    of its source; every scatter into another member's result is `in_place`.
    Guarantee: no `loop` and `func` ops. Each fusion is a `kernel.func` with its parallel axes as outer loops, the
    members in order inside, and a `host.launch`; fusions of a function that are equal but for what they read share
    one kernel (the debug counter of the pass's name decides each time). Each function is a `host.func` that allocates
    what kernels write; a `func.call` is a `host.call`.
    Loops are serial and without tiles; iterations of a `kernel.for` are independent unless a store is `ordered`.

        func.func @f(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
          %y = loop.fusion (a0 in 4) { %e = loop.generate (i0 in 4) on (a0) { ... } : T  loop.yield %e } : T
          func.return %y : T
        }
    becomes
        kernel.func @exp_0(%x: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f32, 4>) {
          kernel.for i0 in 0 to 4 { %v = kernel.load %x[i0]  ...  kernel.store %w, %y[i0]  kernel.yield }
          kernel.yield
        }
        host.func @f(%x: T) -> (T) { %y = host.empty : T  host.launch @exp_0(%x, %y)  host.return %y }
    """

    name = "lower-loop-to-kernel"
    level: ClassVar[str] = "loop -> kernel + host"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower every function that has a body."""
        numbers: dict[str, int] = {}
        for function in list(op.body.block.ops):
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                FunctionLowering(op.body.block, function, numbers).run()


@dataclass
class FunctionLowering:
    """Lowers one function in place; `numbers` counts kernel names in the module."""

    module: Block
    function: func.FuncOp
    numbers: dict[str, int]
    declared: dict[str, int] = field(default_factory=dict)
    """Declared symbols and their position."""
    ranges: Ranges = NOTHING
    tokens: AttributeTokens = field(default_factory=AttributeTokens)
    shared: dict[Key, SharedKernel] = field(default_factory=dict)
    kernels: list[SharedKernel] = field(default_factory=list)

    def run(self) -> None:
        """Replace the function by a `host.func` and its kernels."""
        symbols = self.function.attributes.get("symbols", ArrayAttr([]))
        assert isinstance(symbols, ArrayAttr)
        declarations = [s for s in symbols.data if isinstance(s, SymbolAttr)]
        self.ranges = Ranges.of_symbols(s.data for s in declarations)
        self.declared = {s.data.name: position for position, s in enumerate(declarations)}
        body = self.function.body.block
        for op in list(body.ops):
            handler = _HANDLERS.get(type(op))
            if handler is not None:
                handler(self, op, body)
            elif op.name == "aten.copy_":
                self._copy(op, body)
        self._finish(body)
        for shared in self.kernels:
            shared.locate()
        self.function.body.detach_block(body)
        results = self.function.function_type.outputs.data
        name, given = self.function.sym_name.data, self.function.attributes.get("given")
        program = host.FuncOp.of(name, results, ArrayAttr(declarations), Region(body), self.function.location)
        if given is not None:
            program.properties["given"] = given
        if is_kept_function(self.function):
            program.properties[KEPT] = UnitAttr()
        self.module.insert_op_before(program, self.function)
        self.module.erase_op(self.function, safe_erase=False)

    def _fusion(self, fusion: loop.FusionOp, body: Block) -> None:
        key, outer = fusion_key(fusion, self.tokens)
        location = merged([fusion.location, *(member.location for member in fusion.members)])
        shared = self.shared.get(key)
        if shared is None or not counter(LowerLoopToKernel.name):
            shared = self.shared[key] = self._build(fusion, location, outer)
            self.kernels.append(shared)
        else:
            shared.locations.append(location)
        operands = [buffer.of(outer) for buffer in shared.buffers]
        buffers = [_provide(operand, fusion, body) for operand in operands]
        for result, position in zip(fusion.results, shared.results, strict=True):
            buffers[position].name_hint = buffers[position].name_hint or result.name_hint
            result.replace_all_uses_with(buffers[position])
        name = shared.function.sym_name.data
        body.insert_op_before(host.LaunchOp.of(name, buffers, shared.symbols, location), fusion)
        body.detach_op(fusion)
        fusion.erase(safe_erase=False)

    def _build(self, fusion: loop.FusionOp, location: LocationAttr, outer: list[SSAValue]) -> SharedKernel:
        """A kernel for a fusion, whose bodies move into it."""
        builder = KernelBuilder(fusion, self.declared, self.ranges)
        builder.build()
        for result, position in zip(fusion.results, builder.results, strict=True):
            argument = builder.block.args[position]
            argument.name_hint = argument.name_hint or result.name_hint
        symbols = self._symbols(builder)
        reads = any(operand.kind == "value" for operand in builder.operands)
        name = self._unique(kernel_name(builder.bodies.strong, builder.bodies.plain, reads))
        function = kernel.FuncOp.of(name, symbols, Region(builder.block), builder.bodies.errors, location=location)
        self.module.insert_op_before(function, self.function)
        return SharedKernel.of(function, MapAttr.of(*(symbol(s) for s in symbols)), builder, outer)

    def _symbols(self, builder: KernelBuilder) -> list[str]:
        """Symbols that a kernel's expressions use, in the order in which the function declares them."""
        symbols = {n for n in builder.mentioned if n not in builder.sizes and not is_dynamic_name(n)}
        unknown = symbols - self.declared.keys()
        if unknown:
            raise UnsupportedError(f"the function does not declare the symbol {min(unknown)}")
        return sorted(symbols, key=self.declared.__getitem__)

    def _unique(self, name: str) -> str:
        number = self.numbers.get(name, 0)
        self.numbers[name] = number + 1
        return f"{name}_{number}"

    def _view(self, view: loop.ViewOp, body: Block) -> None:
        offset = SymAttr.of(strided_view(view, self.ranges))
        _replace(view, host.ViewOp.of(view.source, offset, view.out.type, view.location), body)

    def _finish(self, body: Block) -> None:
        """Allocate what in-place scatters fill; drop what only the fusions used.

        This comes last, because a fusion wants to see that a destination is empty and needs no copy.
        """
        for op in list(body.ops):
            if isinstance(op, loop.EmptyOp) and op.out.first_use is not None:
                _replace(op, host.EmptyOp.of(op.out.type, location=op.location), body)
            elif isinstance(op, loop.EmptyOp | arith.ConstantOp) and op.results[0].first_use is None:
                body.erase_op(op)

    def _copy(self, copy: Operation, body: Block) -> None:
        """`aten.copy_(%arg, %value)`; nothing is to do when a scatter made the value in the argument's memory."""
        target, value = copy.operands[0], copy.operands[1]
        if value is not target:
            view = _broadcast(value, target, copy.location)
            if view is not None:
                body.insert_op_before(view, copy)
                value = view.out
            body.insert_op_before(host.CopyOp.create(operands=(value, target), location=copy.location), copy)
        for result in copy.results:
            result.replace_all_uses_with(target)
        body.erase_op(copy)

    def _call(self, op: func.CallOp, body: Block) -> None:
        callee = SymbolTable.lookup_symbol(op, op.callee)
        if isinstance(callee, func.FuncOp) and callee.is_declaration:
            name = f"@{callee.sym_name.data}"
            raise UserError(f"@{self.function.sym_name.data} calls {name}, which has no body", f"define {name}")
        call = host.CallOp.of(
            op.callee, tuple(op.operands), [r.type for r in op.results], op.location, is_kept_call(op)
        )
        body.insert_op_before(call, op)
        for old, new in zip(op.results, call.results, strict=True):
            set_hint(new, hint_of(old))
            old.replace_all_uses_with(new)
        body.erase_op(op)

    def _return(self, op: func.ReturnOp, body: Block) -> None:
        body.insert_op_before(host.ReturnOp.create(operands=tuple(op.operands), location=op.location), op)
        body.erase_op(op)

    def _stray(self, op: Operation, body: Block) -> None:
        raise UnsupportedError(f"{op.name} outside of a loop.fusion; run loop-fuse before")


def _provide(operand: Operand, fusion: loop.FusionOp, body: Block) -> SSAValue:
    """The program's value for a kernel's buffer, made in front of the fusion where that is needed."""
    if operand.kind == "value":
        assert operand.value is not None
        filled = operand.value.owner
        if isinstance(filled, loop.EmptyOp):
            # From here on it is memory with elements: a later scatter that is not in place must copy it.
            memory = host.EmptyOp.of(filled.out.type, location=filled.location)
            _replace(filled, memory, body)
            return memory.out
        return operand.value
    empty = host.EmptyOp.of(operand.type, location=fusion.location)
    body.insert_op_before(empty, fusion)
    if operand.kind == "copy":
        assert operand.value is not None
        copy = host.CopyOp.create(operands=(operand.value, empty.out), location=fusion.location)
        body.insert_op_before(copy, fusion)
    return empty.out


def _replace(old: Operation, new: Operation, body: Block) -> None:
    body.insert_op_before(new, old)
    old.results[0].replace_all_uses_with(new.results[0])
    body.erase_op(old)


_HANDLERS: dict[type[Operation], Callable[..., None]] = {
    loop.FusionOp: FunctionLowering._fusion,
    loop.ViewOp: FunctionLowering._view,
    func.CallOp: FunctionLowering._call,
    func.ReturnOp: FunctionLowering._return,
    loop.GenerateOp: FunctionLowering._stray,
    loop.ScanOp: FunctionLowering._stray,
    loop.ScatterOp: FunctionLowering._stray,
}


def _broadcast(value: SSAValue, target: SSAValue, location: LocationAttr | None) -> host.ViewOp | None:
    """A view with the sizes of the target, where `aten.copy_` repeats elements; None where it does not."""
    source, wanted = value.type, target.type
    assert isinstance(source, TensorType) and isinstance(wanted, TensorType)
    if source.shape == wanted.shape or len(source.shape) > len(wanted.shape):
        return None
    skipped = len(wanted.shape) - len(source.shape)
    steps = [ZERO] * skipped + [
        ZERO if size == ONE and other != ONE else stride
        for size, other, stride in zip(source.shape, wanted.shape[skipped:], source.strides, strict=True)
    ]
    type_ = TensorType.get(wanted.shape, source.element, tuple(steps), source.device)
    return host.ViewOp.of(value, SymAttr.of(ZERO), type_, location)
