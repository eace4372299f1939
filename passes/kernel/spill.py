"""The pass `kernel-spill`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ...dialects import host, kernel
from ...dialects.aten.types import TensorType
from ...dialects.kernel import BufferType
from ...dialects.sym import ONE, ZERO, Expr, MapAttr, Ranges, as_expr, symbol, upper_expr
from ...errors import UnsupportedError
from ...machines import HOST
from ..analysis.loops import Loop, loops_around
from .kernel_pass import KernelFacts, KernelPass
from .register_tiles import fits_registers, locals_of
from .scheduled import tiled_for_gpu


class KernelSpill(KernelPass, kernels=tiled_for_gpu):
    """Put local buffers that fit no register tile into memory.

    Level: kernel, with the host programs that launch the kernels.

    Precondition: `kernel-tile` for a GPU; other kernels stay as they are. It pays off behind `kernel-privatize` and
    `kernel-rematerialize`, which leave few such buffers.
    Guarantee: every local buffer fits a register tile. One that did not is a new last parameter of its kernel, a piece
    for each iteration of the loops around it; each launch passes a fresh tensor. Elements of a `columnwise` buffer lie
    beside those of neighbouring iterations, other pieces one behind the other. No buffer is `columnwise` any more.

        kernel.func @f(%x: T) target "cuda:90" { kernel.for i0 in 0 to 64 map grid {
          %row = kernel.local : !kernel.buffer<f32, 1024, local>  ... kernel.store %e, %row[i1] ... } }
        host.launch @f(%x)
    becomes
        kernel.func @f(%x: T, %row: !kernel.buffer<f32, 65536>) target "cuda:90" { kernel.for i0 in 0 to 64 map grid {
          ... kernel.store %e, %row[1024*i0 + i1] ... } }
        %0 = host.empty : !aten.tensor<65536xf32>
        host.launch @f(%x, %0)
    """

    name = "kernel-spill"
    optional: ClassVar[bool] = False

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Spill what has to be in every kernel for a GPU."""
        for local in locals_of(function):
            if not fits_registers(local, facts.ranges):
                spill_local(function, local)
            else:
                local.properties.pop("columnwise", None)


def spill_local(function: kernel.FuncOp, op: kernel.LocalOp) -> None:
    """Move a local buffer into a new last parameter of its kernel; every launch passes a fresh tensor for it."""
    type_ = op.buffer.type
    assert isinstance(type_, BufferType)
    base, pieces = _place_of_iteration(op)
    columnwise = op.columnwise is not None
    buffer = BufferType.get(type_.element, pieces * type_.extent)
    block = function.body.block
    argument = block.insert_arg(buffer, len(block.args))
    argument.name_hint = op.buffer.name_hint or "scratch"
    for use in list(op.buffer.uses):
        user = use.operation
        assert isinstance(user, kernel.LoadOp | kernel.StoreOp)
        place = user.map.data[0]
        user.properties["map"] = MapAttr.of(place * pieces + base if columnwise else base * type_.extent + place)
    op.buffer.replace_all_uses_with(argument)
    parent = op.parent
    assert parent is not None
    parent.erase_op(op)
    pass_scratch(function, buffer)


def _place_of_iteration(op: kernel.LocalOp) -> tuple[Expr, Expr]:
    """(number of the iteration of all loops around the buffer, how many there are at most)."""
    number, count = ZERO, ONE
    loops = loops_around(op)
    for loop in reversed(loops):
        number = number + (symbol(loop.axis.data) - loop.lo.data) * count
        count = count * _most_trips(loop, loops)
    return number, count


def _most_trips(loop: Loop, around: Sequence[Loop]) -> Expr:
    """How often a loop runs at most, whatever the axes of loops around are."""
    trips = loop.hi.data - loop.lo.data
    axes = {each.axis.data for each in around}
    atom = trips.as_atom
    bounds = atom.args if atom is not None and atom.kind == "min" else (trips,)
    fixed = next((bound for bound in bounds if bound.free_symbols.isdisjoint(axes)), None)
    most = fixed or upper_expr(trips, Ranges.of_axes([(each.axis.data, each.hi.data) for each in around]))
    if most is None:
        raise UnsupportedError(f"nothing bounds how often the loop over {loop.axis.data} runs")
    return most


def pass_scratch(function: kernel.FuncOp, buffer: BufferType) -> None:
    """Let each launch of a kernel pass fresh memory for its last buffer."""
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
    device = next((v.type.device for v in launch.buffers if isinstance(v.type, TensorType)), HOST)
    shape = (size,)
    empty = host.EmptyOp.of(TensorType.get(shape, element, (as_expr(1),), device), location=launch.location)
    parent = launch.parent
    assert parent is not None
    parent.insert_op_before(empty, launch)
    return empty.out
