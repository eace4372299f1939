"""Local buffers in memory: a scratch tensor that the program allocates, one piece for each iteration."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ...dialects import host, kernel
from ...dialects.aten.types import TensorType
from ...dialects.kernel import BufferType
from ...dialects.sym import ONE, ZERO, Expr, MapAttr, as_expr, symbol
from .axes import Loop


def spill_local(function: kernel.FuncOp, op: kernel.LocalOp, side_by_side: bool = False) -> None:
    """Move a local buffer into a new last parameter of its kernel; every launch passes a fresh tensor for it.

    side_by_side: whether equal elements of the iterations around are neighbours, for lanes that are these iterations
    """
    type_ = op.buffer.type
    assert isinstance(type_, BufferType)
    base, pieces = _place_of_iteration(op)
    buffer = BufferType.get(type_.element, pieces * type_.extent)
    block = function.body.block
    argument = block.insert_arg(buffer, len(block.args))
    argument.name_hint = op.buffer.name_hint or "scratch"
    for use in list(op.buffer.uses):
        user = use.operation
        assert isinstance(user, kernel.LoadOp | kernel.StoreOp)
        place = user.map.data[0]
        user.properties["map"] = MapAttr.of(place * pieces + base if side_by_side else base * type_.extent + place)
    op.buffer.replace_all_uses_with(argument)
    parent = op.parent
    assert parent is not None
    parent.erase_op(op)
    _pass_scratch(function, buffer)


def _place_of_iteration(op: kernel.LocalOp) -> tuple[Expr, Expr]:
    """(number of the iteration of all loops around the buffer, how many there are)."""
    number, count = ZERO, ONE
    parent: Operation | None = op.parent_op()
    while isinstance(parent, Loop):
        lo, hi = parent.lo.data, parent.hi.data
        number = number + (symbol(parent.axis.data) - lo) * count
        count = count * (hi - lo)
        parent = parent.parent_op()
    return number, count


def _pass_scratch(function: kernel.FuncOp, buffer: BufferType) -> None:
    module = function.parent_op()
    if not isinstance(module, ModuleOp):
        return
    names = [s.data for s in function.symbols]
    for program in module.ops:
        if not isinstance(program, host.FuncOp):
            continue
        for launch in list(program.body.block.ops):
            if isinstance(launch, host.LaunchOp) and _name(launch) == function.sym_name.data:
                values = dict(zip(names, launch.symbols.data, strict=True))
                scratch = _scratch(launch, buffer.element, buffer.extent.subs(values))
                launch.operands = [*launch.operands, scratch]


def _name(launch: host.LaunchOp) -> str:
    return launch.kernel.root_reference.data


def _scratch(launch: host.LaunchOp, element, size: Expr) -> SSAValue:  # pyright: ignore[reportMissingParameterType]
    device = next((v.type.device for v in launch.buffers if isinstance(v.type, TensorType)), "cpu")
    shape = (size,)
    empty = host.EmptyOp.of(TensorType.get(shape, element, (as_expr(1),), device), location=launch.location)
    parent = launch.parent
    assert parent is not None
    parent.insert_op_before(empty, launch)
    return empty.out
