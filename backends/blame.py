"""Which op gives a result of a function, or writes one of its arguments: what a message about a wrong answer names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ..dialects import host, kernel
from ..dialects.loop import FusionOp, ScatterOp, ViewOp, yielded
from ..passes.analysis.launches import written_by
from .reference.run import find_function


def producer_of_result(module: ModuleOp, number: int, function: str | None = None) -> Operation | None:
    """The op that computes result `number`: a nest, an ATen call, or the last launch that writes its memory."""
    block = find_function(module, function).body.blocks[0]
    last = block.last_op
    if last is None or number >= len(last.operands):
        return None
    return _producer(last.operands[number], block)


def writer_of_input(module: ModuleOp, number: int, function: str | None = None) -> Operation | None:
    """The last op that writes argument `number`, None when there is none."""
    block = find_function(module, function).body.blocks[0]
    return _last_writer(block.args[number], block)


def _producer(value: SSAValue, block: Block) -> Operation | None:
    owner = value.owner
    if isinstance(owner, FusionOp):
        return _producer(yielded(owner.body)[owner.results.index(value)], block)
    if isinstance(owner, ViewOp | host.ViewOp):
        return _producer(owner.operands[0], block)
    if isinstance(owner, Block | host.EmptyOp):
        return _last_writer(value, block)
    return owner


def _last_writer(value: SSAValue, block: Block) -> Operation | None:
    found: Operation | None = None
    for op, written in _writes(block):
        if _base(written) is _base(value):
            found = op
    return found


def _writes(block: Block) -> Iterator[tuple[Operation, SSAValue]]:
    """(op, the value whose memory it writes), in order."""
    kernels = _kernels(block)
    for op in block.ops:
        if isinstance(op, host.LaunchOp):
            yield from ((op, written) for written in written_by(op, kernels.get(op.kernel.root_reference.data)))
        elif isinstance(op, host.CopyOp):
            yield op, op.target
        elif op.name == "aten.copy_":
            yield op, op.operands[0]
        elif isinstance(op, FusionOp):
            yield from ((m, m.dest) for m in op.members if isinstance(m, ScatterOp) and m.in_place is not None)
        elif isinstance(op, ScatterOp) and op.in_place is not None:
            yield op, op.dest


def _kernels(block: Block) -> dict[str, kernel.FuncOp]:
    function = block.parent_op()
    module = function.parent if function is not None else None
    ops: Iterable[Operation] = module.ops if module is not None else ()
    return {op.sym_name.data: op for op in ops if isinstance(op, kernel.FuncOp)}


def _base(value: SSAValue) -> SSAValue:
    owner = value.owner
    if isinstance(owner, ViewOp | host.ViewOp):
        return _base(owner.operands[0])
    if isinstance(owner, ScatterOp) and owner.in_place is not None:
        return _base(owner.dest)
    return value
