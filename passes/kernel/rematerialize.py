"""The pass `kernel-rematerialize`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import Expr, MapAttr, SymAttr, symbol
from ...records import dataclass
from ..analysis.effects import written_buffers
from ..analysis.loops import Loop, loops_around, loops_in, substitute_axes
from ..analysis.slices import backward_slice, inputs_of
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .register_tiles import bounds_of, fits_registers, locals_of, users_of
from .scheduled import tiled_for_gpu
from .simplify_block import is_pure, simplify

#: loads of locals that one kernel may have replaced; chains of locals grow the code
_MOST_LOADS = 256


@dataclass(frozen=True)
class KernelRematerialize(KernelPass, kernels=tiled_for_gpu):
    """Compute values again where they are read, instead of keeping them in a buffer that fits no register tile.

    Level: kernel.

    Precondition: `kernel-tile` for a GPU; other kernels stay as they are.
    Guarantee: a local buffer that is left fits a register tile, or what it holds cannot be computed again: it
    depends on a scan, on a buffer that the kernel writes, or comes from more than one store. Equal values are
    computed once, and values that nothing uses are not computed (`simplify_block.py`).

        kernel.for i1 in 0 to 32768 map vector tile 4096 {
          %v = kernel.load %x[32768*i0 + i1]
          %e = math.exp %v : f32
          kernel.store %e, %row[i1]
          ...
        }
        kernel.for i2 in 0 to 32768 map vector tile 4096 { %f = kernel.load %row[i2] ... }
    becomes
        kernel.for i2 in 0 to 32768 map vector tile 4096 {
          %w = kernel.load %x[32768*i0 + i2]
          %f = math.exp %w : f32
          ...
        }
    """

    name = "kernel-rematerialize"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Replace loads of locals that do not fit registers by what was stored, computed again where it is read."""
        ranges = facts.ranges
        block = function.body.block
        refused: set[kernel.LocalOp] = set()
        replaced = 0
        work = True
        while work:
            work = False
            for op in locals_of(function):
                if op in refused or fits_registers(op, ranges):
                    continue
                if not counter(KernelRematerialize.name):
                    refused.add(op)
                    continue
                for load in users_of(op, kernel.LoadOp):
                    replaced += 1
                    if replaced > _MOST_LOADS or not _Recomputation(load, written_buffers(block)).run():
                        refused.add(op)
                        break
                    work = True
        simplify(block)


@dataclass
class _Recomputation:
    """Computes what one load of a local reads, in front of it."""

    load: kernel.LoadOp
    written: set[SSAValue]
    copies: dict[SSAValue, SSAValue] = field(default_factory=dict)

    def run(self) -> bool:
        """Replace the load; False, with nothing changed, where that cannot be."""
        local = self.load.buffer.owner
        assert isinstance(local, kernel.LocalOp) and local.parent is not None
        stores = users_of(local, kernel.StoreOp)
        if len(stores) != 1 or self.load.dynamic or stores[0].dynamic:
            return False
        (store,) = stores
        if store.mask is not None or store.kind.data != "set":
            return False
        self.loops = loops_around(store, local.parent)
        own = loops_around(self.load, local.parent)
        values = _substitution(store.map.data[0], [op.axis.data for op in self.loops], self.load.map.data[0])
        if values is None or not self._can_copy(store.value, set()):
            return False
        if not {op.axis.data for op in own}.isdisjoint(self._inner_axes(store.value)):
            return False
        if self.load.mask is not None and not self._is_stored_everywhere(values, own):
            return False
        self.values = values
        self._replace(self._copy(store.value))
        return True

    def _is_stored_everywhere(self, values: Mapping[str, Expr], own: list[Loop]) -> bool:
        """Whether the place of a masked load was stored also where the mask is false, so that it can be computed.

        So it is where each axis of the store is an axis of the load over the same range.
        """
        axes = {symbol(op.axis.data): bounds_of(op) for op in own}
        return all(axes.get(values.get(op.axis.data, symbol(op.axis.data))) == bounds_of(op) for op in self.loops)

    def _replace(self, value: SSAValue) -> None:
        """Put a value in place of the load, where its mask lets it."""
        parent = self.load.parent
        assert parent is not None
        if self.load.mask is not None and self.load.other is not None:
            choice = arith.SelectOp(self.load.mask, value, self.load.other)
            parent.insert_op_before(choice, self.load)
            value = choice.result
        self.load.value.replace_all_uses_with(value)
        parent.erase_op(self.load)

    def _is_inside(self, op: Operation) -> bool:
        block = op.parent
        while block is not None:
            parent = block.parent_op()
            if parent in self.loops:
                return True
            block = None if parent is None else parent.parent
        return False

    def _can_copy(self, value: SSAValue, seen: set[Operation]) -> bool:
        op = value.owner
        if isinstance(op, Block):
            return op.parent_op() not in self.loops
        if op in seen or not self._is_inside(op):
            return True
        seen.add(op)
        if isinstance(op, kernel.ReduceOp):
            inner = [i for i in op.walk() if i is not op]
            if any(isinstance(i, kernel.StoreOp | kernel.LocalOp | kernel.ScanOp | kernel.AssertOp) for i in inner):
                return False
            return all(self._can_copy(v, seen) for v in inputs_of(op))
        if isinstance(op, kernel.LoadOp):
            is_local = op.buffer.type.local  # pyright: ignore[reportAttributeAccessIssue]
            if op.buffer in self.written and not is_local:
                return False
        elif not is_pure(op):
            return False
        return all(self._can_copy(v, seen) for v in op.operands)

    def _inner_axes(self, value: SSAValue) -> set[str]:
        """Axes of reductions that would be copied."""
        found: set[str] = set()
        for op in backward_slice([value], self._is_inside):
            if isinstance(op, Loop):
                found.update([op.axis.data, *(i.axis.data for r in op.regions for i in loops_in(r.block))])
        return found

    def _copy(self, value: SSAValue) -> SSAValue:
        op = value.owner
        if isinstance(op, Block) or not self._is_inside(op):
            return value
        if value not in self.copies:
            self._copy_op(op)
        return self.copies[value]

    def _copy_op(self, op: Operation) -> None:
        operands = inputs_of(op)
        mapping = {v: self._copy(v) for v in operands}
        clone = op.clone(dict(mapping))
        parent = self.load.parent
        assert parent is not None
        parent.insert_op_before(clone, self.load)
        if isinstance(clone, kernel.LoadOp):
            clone.properties["map"] = MapAttr.of(clone.map.data[0].subs(self.values))
        elif isinstance(clone, kernel.IndexOp):
            clone.properties["expr"] = SymAttr.of(clone.expr.data.subs(self.values))
        elif isinstance(clone, Loop):
            clone.properties["lo"] = SymAttr.of(clone.lo.data.subs(self.values))
            clone.properties["hi"] = SymAttr.of(clone.hi.data.subs(self.values))
            for region in clone.regions:
                substitute_axes(region.block, self.values)
        self.copies.update(zip(op.results, clone.results, strict=True))


def _substitution(stored: Expr, axes: list[str], read: Expr) -> Mapping[str, Expr] | None:
    """Values of the store's axes at which it wrote the place that is read; None when they are not found."""
    parts = stored.split(axes)
    if parts is None or len(parts[0]) != len(axes):
        return None
    coefficients, rest = parts
    if len(axes) == 1:
        (coefficient,) = coefficients.values()
        if coefficient.as_int() == 1:
            return {axes[0]: read - rest}
    values: dict[str, Expr] = {}
    remaining = read - rest
    for name, coefficient in coefficients.items():
        matches = [n for n in sorted(remaining.free_symbols) if remaining.coefficient(n) is coefficient]
        if len(matches) != 1 or list(coefficients.values()).count(coefficient) > 1:
            return None
        values[name] = symbol(matches[0])
        remaining = remaining - coefficient * symbol(matches[0])
    return values if remaining.as_int() == 0 else None
