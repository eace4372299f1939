"""The pass `kernel-split-last-wave`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, Float32Type, ModuleOp, StringAttr
from xdsl.ir import Block, Region, SSAValue

from ...dialects import host, kernel
from ...dialects.aten.types import TensorType
from ...dialects.kernel import BufferType
from ...dialects.sym import ONE, ZERO, Expr, MapAttr, SymAttr, as_expr, symbol
from ...machines import GpuTarget
from ..analysis.effects import needed_by
from ..analysis.functions import kernels_of
from ..analysis.launches import launches_in
from ..analysis.loops import fresh_axis, kernel_names, loops_in, substitute_axes
from ..common.choices import chosen_tile
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .one_launch import free_name
from .products import ProductTile
from .scheduled import all_for_gpu
from .simplify_block import remove_dead
from .tiles import is_grid, tile_of
from .transforms import perfect_chain, set_mapping, set_range


@dataclass(frozen=True)
class KernelSplitLastWave(KernelPass, kernels=all_for_gpu):
    """Sum parts of the depth of the tiles that are left over when each processor has as many whole ones (stream-K).

    Level: kernel.

    Precondition: behind `kernel-map-products`; in front of `kernel-map`, which maps the kernel that this pass adds.
    Guarantee: the same values, the sums of the last rows in another order, the same in each call. Where the tile that
    was chosen says so by its last number, or `last_parts` does, a product whose tiles are no multiple of the
    processors is two nests of one launch: rows of tiles that are whole waves, and for the rows behind them partial sums
    of so many parts of the depth, a program each, in memory. A kernel behind it sums these, and does what was done with
    the sums. The number of parts is the largest that divides the steps. A kernel with symbols, with several nests, or
    whose programs take tiles in turns stays as it is. After Osama et al., Stream-K: Work-centric Parallel Decomposition
    for Dense Matrix-Matrix Multiplication on the GPU, 2023, with its data-parallel waves.

        kernel.for i0 in 0 to 3136 map grid tile 128 { kernel.for i1 in 0 to 768 map grid tile 128 {
          %s = kernel.reduce sum i2 in 0 to 3072 map matrix tile 64 { ... }  ...  kernel.store %v, %y[768*i0 + i1] } }
    becomes, with 132 processors and 6 parts,
        kernel.for i0 in 0 to 2816 map grid tile 128 { ... the same ... }
        kernel.for i3 in 0 to 6 map grid {
          kernel.for i0 in 2816 to 3136 map grid tile 128 { kernel.for i1 in 0 to 768 map grid tile 128 {
            %s = kernel.reduce sum i2 in 512*i3 to 512*i3 + 512 map matrix tile 64 { ... }
            kernel.store %s, %parts[245760*i3 + 768*i0 + i1 - 2162688] } } }
    and in a kernel behind it
        kernel.for i0 in 0 to 320 { kernel.for i1 in 0 to 768 {
          %s = kernel.reduce sum i3 in 0 to 6 { %p = kernel.load %parts[245760*i3 + 768*i0 + i1] ... }  ... } }
    """

    name = "kernel-split-last-wave"
    last_parts: int = 0
    """Parts of every product, to try others than were chosen; 1: none."""

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Split the last wave of one kernel."""
        wanted = self.last_parts or ProductTile.chosen(chosen_tile(function) or ()).last
        module = function.parent_op()
        if wanted < 2 or not isinstance(module, ModuleOp):
            return
        wave = _wave_of(function, facts.target, wanted)
        if isinstance(wave, str):
            remark("missed", self.name, function, f"the last wave stays whole: {wave}")
        elif counter(self.name):
            told = {"rows": wave.count, "parts": wave.parts}
            remark("passed", self.name, function, "parts of the depth for the rows behind whole waves", **told)
            _split(module, function, wave)


@dataclass(frozen=True)
class _Wave:
    """A product whose last rows are to be split.

    rows, columns: its loops, the outer one first
    sum:           the reduction
    first:         the first of the last rows, `count` of them
    parts, length: of the depth
    """

    rows: kernel.ForOp
    columns: kernel.ForOp
    sum: kernel.ReduceOp
    first: int
    count: int
    parts: int
    length: int

    @property
    def wide(self) -> int:
        """The columns."""
        return _constant(self.columns.hi)

    def place(self, part: Expr, row: Expr, column: Expr) -> Expr:
        """Where a partial sum lies, of a row counted from the first of the last ones."""
        return part * (self.count * self.wide) + row * self.wide + column


def _constant(bound: SymAttr) -> int:
    found = bound.data.as_int()
    assert found is not None
    return found


def _wave_of(function: kernel.FuncOp, target: GpuTarget, wanted: int) -> _Wave | str:
    """What to split of a kernel, or why nothing is."""
    if function.symbols.data or function.errors is not None:
        return "its sizes are not constant, or it reports errors"
    if function.programs is not None or function.boxes is not None:
        return "its programs take tiles in turns"
    nests = list(function.body.block.ops)[:-1]
    chain = perfect_chain(nests[0]) if len(nests) == 1 and isinstance(nests[0], kernel.ForOp) else []
    if len(chain) != 2 or not all(is_grid(each) and each.lo.data is ZERO for each in chain):
        return "it is no one nest of rows and columns"
    found = list(loops_in(chain[1].body.block))
    if len(found) != 1 or not isinstance(op := found[0], kernel.ReduceOp) or op.mapping.data != "matrix":
        return "its body is no one sum on matrix units"
    if [each.type for each in op.results] != [Float32Type()] or op.lo.data is not ZERO or op.operands:
        return "its sum is not of float32 over the whole depth"
    rows, columns = chain
    bounds = [loop.hi.data.as_int() for loop in (rows, columns, op)]
    if any(each is None for each in bounds):
        return "its sizes are not constant"
    high, wide, depth = (each or 0 for each in bounds)
    across = -(-wide // tile_of(columns))
    tiles = -(-high // tile_of(rows)) * across
    whole = tiles // target.processors * target.processors // across
    if not whole or whole * across == tiles:
        return f"{tiles} tiles are no whole wave and a part of one"
    steps = depth // tile_of(op)
    parts = next((n for n in range(min(wanted, steps), 1, -1) if not steps % n), 0)
    if depth % tile_of(op) or not parts:
        return f"no number up to {wanted} divides the steps of its depth"
    first = whole * tile_of(rows)
    return _Wave(rows, columns, op, first, high - first, parts, depth // parts)


def _split(module: ModuleOp, function: kernel.FuncOp, wave: _Wave) -> None:
    """Split a kernel in two nests, add the kernel behind it, and launch that behind each launch."""
    buffer = BufferType.get(Float32Type(), as_expr(wave.parts * wave.count * wave.wide))
    behind, used = _kernel_behind(module, function, wave, buffer)
    block = function.body.block
    partials = block.insert_arg(buffer, len(block.args))
    partials.name_hint = "parts"
    block.insert_op_after(_partial_sums(function, wave, partials), wave.rows)
    wave.rows.properties["hi"] = SymAttr.of(as_expr(wave.first))
    module.body.block.insert_op_after(behind, function)
    name = function.sym_name.data
    for _, launch in list(launches_in(module)):
        if launch.kernel.root_reference.data == name:
            _launch_both(launch, behind, used, buffer)


def _partial_sums(function: kernel.FuncOp, wave: _Wave, partials: SSAValue) -> kernel.ForOp:
    """The nest that sums parts of the depth for the last rows, and stores nothing else."""
    part = symbol(fresh_axis(kernel_names(function)))
    body = wave.columns.body.block
    needed = needed_by(wave.sum, body)
    values: dict[SSAValue, SSAValue] = {}
    ops = [each.clone(values) for each in body.ops if each in needed or each is wave.sum]
    op = ops[-1]
    assert isinstance(op, kernel.ReduceOp)
    low = part * wave.length
    set_range(op, (op.axis.data, low, low + wave.length))
    row, column = symbol(wave.rows.axis.data), symbol(wave.columns.axis.data)
    place = MapAttr.of(wave.place(part, row - wave.first, column))
    inner = Block([*ops, kernel.StoreOp.of(op.results[0], partials, place), kernel.YieldOp.create()])
    bounds = (
        (column, ZERO, wave.columns.hi.data, tile_of(wave.columns)),
        (row, as_expr(wave.first), wave.rows.hi.data, tile_of(wave.rows)),
        (part, ZERO, as_expr(wave.parts), None),
    )
    loop: kernel.ForOp | None = None
    for axis, lo, hi, tile in bounds:
        loop = kernel.ForOp.of(str(axis), lo, hi, Region(inner), "grid", tile, wave.rows.location)
        inner = Block([loop, kernel.YieldOp.create()])
    assert loop is not None
    loop.detach()
    return loop


def _kernel_behind(
    module: ModuleOp, function: kernel.FuncOp, wave: _Wave, buffer: BufferType
) -> tuple[kernel.FuncOp, list[int]]:
    """The kernel that sums the parts and does what was done with the sums, and which buffers of the other it takes."""
    copy = function.clone()
    block = copy.body.block
    nest = block.first_op
    assert isinstance(nest, kernel.ForOp)
    rows, columns = perfect_chain(nest)
    for loop in (rows, columns):
        set_mapping(loop, "serial")
        loop.properties.pop("swizzle", None)
    row = symbol(rows.axis.data)
    substitute_axes(rows.body.block, {rows.axis.data: row + wave.first})
    set_range(rows, (rows.axis.data, ZERO, as_expr(wave.count)))
    partials = block.insert_arg(buffer, len(block.args))
    partials.name_hint = "parts"
    old = next(each for each in columns.body.block.ops if isinstance(each, kernel.ReduceOp))
    part = fresh_axis(kernel_names(function))
    place = wave.place(symbol(part), row, symbol(columns.axis.data))
    load = kernel.LoadOp.of(partials, MapAttr.of(place))
    body = Region(Block([load, kernel.YieldOp.create(operands=(load.value,))]))
    new = kernel.ReduceOp.of(part, ZERO, as_expr(wave.parts), ["sum"], body, location=old.location)
    columns.body.block.insert_op_before(new, old)
    new.results[0].name_hint = old.results[0].name_hint
    old.results[0].replace_all_uses_with(new.results[0])
    columns.body.block.erase_op(old)
    remove_dead(columns.body.block)
    used = [k for k, each in enumerate(function.body.block.args) if block.args[k].first_use is not None]
    for argument in [each for each in block.args if each.first_use is None]:
        block.erase_arg(argument)
    for name in ("target", "num_warps", "num_stages", "streams"):
        copy.properties.pop(name, None)
    copy.properties["sym_name"] = StringAttr(free_name(f"{function.sym_name.data}_last", kernels_of(module)))
    copy.properties["symbols"] = ArrayAttr([])
    return copy, used


def _launch_both(launch: host.LaunchOp, behind: kernel.FuncOp, used: list[int], buffer: BufferType) -> None:
    """Pass memory for the partial sums to a launch, and launch the kernel that reads them behind it."""
    device = next(each.type.device for each in launch.buffers if isinstance(each.type, TensorType))
    memory = TensorType.get((buffer.extent,), buffer.element, (ONE,), device)
    empty = host.EmptyOp.of(memory, location=launch.location)
    buffers = [launch.buffers[k] for k in used]
    launch.operands = [*launch.operands, empty.out]
    parent = launch.parent
    assert parent is not None
    parent.insert_op_before(empty, launch)
    second = host.LaunchOp.of(behind.sym_name.data, [*buffers, empty.out], MapAttr.of(), launch.location)
    parent.insert_op_after(second, launch)
