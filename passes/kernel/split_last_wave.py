"""The pass `kernel-split-last-wave`."""

from __future__ import annotations

from ...dialects import kernel
from ...dialects.sym import ZERO, SymAttr, as_expr
from ...machines import GpuTarget
from ...machines.product_tiles import Waves
from ...records import dataclass
from ..analysis.loops import loops_in
from ..common.choices import chosen_tile
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .products import ProductTile
from .scheduled import all_for_gpu
from .tiles import is_grid, tile_of
from .transforms import perfect_chain, set_mapping


@dataclass(frozen=True)
class KernelSplitLastWave(KernelPass, kernels=all_for_gpu):
    """Compute what is left of a product, when each processor has as many tiles as the others, in smaller tiles.

    Level: kernel.

    Precondition: behind `kernel-map-products`.
    Guarantee: the same programs for the rows of tiles that are whole waves, one or more for each processor, and for the
    rows behind them a second nest in the same launch, whose tiles are smaller, so that all processors have some of
    them: 150 tiles for 132 processors take as long as 264. The tile that was chosen says which by its last three
    numbers, or the options do. Each element is the same sum. A kernel with symbols, with several nests, or whose
    programs take tiles in turns stays as it is, and so does one whose tiles are whole waves.

        kernel.for i0 in 0 to 3136 map grid tile 128 { kernel.for i1 in 0 to 768 map grid tile 128 {
          %s = kernel.reduce sum i2 in 0 to 3072 map matrix tile 64 { ... }  ...  kernel.store %v, %y[768*i0 + i1] } }
    becomes, with 132 processors and tiles of 64 x 32 in steps of 128,
        kernel.for i0 in 0 to 2816 map grid tile 128 { ... the same ... }
        kernel.for i0 in 2816 to 3136 map grid tile 64 { kernel.for i1 in 0 to 768 map grid tile 32 {
          %s = kernel.reduce sum i2 in 0 to 3072 map matrix tile 128 { ... }  ... } }
    """

    name = "kernel-split-last-wave"
    last_rows: int = 0
    last_columns: int = 0
    last_depth: int = 0

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Split the last wave of one kernel."""
        chosen = ProductTile.chosen(chosen_tile(function) or ())
        rows = self.last_rows or chosen.last_rows
        columns, depth = self.last_columns or chosen.last_columns, self.last_depth or chosen.last_depth
        if not rows or not columns or not depth:
            return
        last = _last_of(function, facts.target)
        if isinstance(last, str):
            remark("missed", self.name, function, f"the last wave has the same tiles: {last}")
        elif counter(self.name):
            count = last.waves.count
            tiles, what = -(-count // rows) * -(-last.wide // columns), f"tiles of {rows} x {columns}"
            remark("passed", self.name, function, f"{what} behind whole waves", rows=count, tiles=tiles)
            _split(last, rows, columns, depth)


@dataclass(frozen=True)
class _Last:
    """A product whose last rows are to have other tiles.

    nest:  the loop over rows, which is the outer one
    waves: of its tiles
    wide:  columns
    """

    nest: kernel.ForOp
    waves: Waves
    wide: int


def _last_of(function: kernel.FuncOp, target: GpuTarget) -> _Last | str:
    """What to split of a kernel, or why nothing is."""
    if function.symbols.data or function.programs is not None or function.boxes is not None:
        return "its sizes are not constant, or its programs take tiles in turns"
    nests = list(function.body.block.ops)[:-1]
    chain = perfect_chain(nests[0]) if len(nests) == 1 and isinstance(nests[0], kernel.ForOp) else []
    if len(chain) != 2 or not all(is_grid(each) and each.lo.data is ZERO for each in chain):
        return "it is no one nest of rows and columns"
    found = list(loops_in(chain[1].body.block))
    if not found or any(each.mapping.data != "matrix" for each in found):
        return "its body is more than sums on matrix units"
    high, wide = (loop.hi.data.as_int() for loop in chain)
    if high is None or wide is None:
        return "its sizes are not constant"
    waves = Waves.of(high, wide, (tile_of(chain[0]), tile_of(chain[1])), target.processors)
    return "it has no whole wave and a part of one" if waves is None else _Last(chain[0], waves, wide)


def _split(last: _Last, rows: int, columns: int, depth: int) -> None:
    """Let two nests stand in place of one."""
    block, first = last.nest.parent, SymAttr.of(as_expr(last.waves.first))
    assert block is not None
    rest = last.nest.clone()
    block.insert_op_after(rest, last.nest)
    last.nest.properties["hi"] = rest.properties["lo"] = first
    rest.properties.pop("swizzle", None)
    for loop, tile in zip(perfect_chain(rest), (rows, columns), strict=True):
        set_mapping(loop, "grid", tile)
    for op in loops_in(perfect_chain(rest)[1].body.block):
        set_mapping(op, "matrix", depth)
