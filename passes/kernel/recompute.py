"""Local buffers that no register tile can hold: what reads them computes the values again instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import Expr, MapAttr, Ranges, SymAttr, symbol
from ..counters import counter
from .axes import Loop, loops_in, substitute_axes
from .effects import written_buffers
from .simplify_block import BlockSimplifier, is_pure, remove_dead
from .tiles import is_persistent

#: loads of locals that one kernel may have replaced; chains of locals grow the code
_MOST_LOADS = 256


def enclosing_loops(op: Operation, until: Block) -> tuple[Loop, ...]:
    """The loops around an op inside a block, outermost first."""
    found: list[Loop] = []
    block = op.parent
    while block is not None and block is not until:
        parent = block.parent_op()
        assert isinstance(parent, Loop)
        found.append(parent)
        block = parent.parent
    return tuple(reversed(found))


def locals_of(function: kernel.FuncOp) -> list[kernel.LocalOp]:
    """The local buffers of a kernel."""
    return [op for op in function.walk() if isinstance(op, kernel.LocalOp)]


def fits_registers(op: kernel.LocalOp, ranges: Ranges) -> bool:
    """Whether every element that is read lies in a tile of the program when it is read.

    So it is where all loops between the buffer and its accesses are covered by one tile each, those aside that carry
    the buffer, and where an element is read in the iteration that stored it.
    """
    block = op.parent
    assert block is not None
    stores = _users(op, kernel.StoreOp)
    for store in stores:
        if store.mask is not None or store.kind.data != "set":
            return False
    carrying = carrying_loops(op)
    loops = {user: enclosing_loops(user, block) for user in (*stores, *_users(op, kernel.LoadOp))}
    if all(is_persistent(loop, ranges) or loop in carrying for around in loops.values() for loop in around):
        return all(_aligned(stores, load, carrying) for load in _users(op, kernel.LoadOp))
    return len(stores) == 1 and all(
        _same_step(stores[0], load) and load.map == stores[0].map for load in _users(op, kernel.LoadOp)
    )


def _same_step(store: kernel.StoreOp, load: kernel.LoadOp) -> bool:
    """Whether a load is in the block of a store, or in what a scan does with running values while its body stores."""
    scan = load.parent_op()
    return load.parent is store.parent or (
        isinstance(scan, kernel.ScanOp) and load.parent is scan.then.block and store.parent is scan.body.block
    )


def carrying_loops(op: kernel.LocalOp) -> set[Loop]:
    """The loops that carry a local buffer: an iteration loads what the one before has stored, or what stood before all.

    They run one after the other, not in lanes, and access places that do not depend on their axes.
    """
    block = op.parent
    assert block is not None
    stores, loads = _users(op, kernel.StoreOp), _users(op, kernel.LoadOp)
    axes = frozenset[str]().union(*(user.map.data[0].free_symbols for user in (*stores, *loads)))
    read = {loop for load in loads for loop in enclosing_loops(load, block)}
    return {
        loop
        for store in stores
        for loop in enclosing_loops(store, block)
        if isinstance(loop, kernel.ForOp)
        and loop in read
        and loop.tile is None
        and loop.mapping.data == "serial"
        and loop.axis.data not in axes
        and any(_stands_before(other, loop, block) for other in stores)
    }


def _stands_before(op: Operation, loop: Loop, block: Block) -> bool:
    """Whether an op is, or lies in, an op of a block in front of the one that a loop is or lies in."""
    first, second = (next(iter(enclosing_loops(each, block)), each) for each in (op, loop))
    later = first.next_op
    while later is not None and later is not second:
        later = later.next_op
    return later is second


def _users(op: kernel.LocalOp, kind: type) -> list:  # pyright: ignore[reportMissingTypeArgument]
    return [use.operation for use in op.buffer.uses if isinstance(use.operation, kind)]


def _aligned(stores: list[kernel.StoreOp], load: kernel.LoadOp, carrying: set[Loop]) -> bool:
    """Whether lanes read what the same lanes stored: equal indices, but for the names of axes over one range."""
    local = load.buffer.owner
    assert isinstance(local, kernel.LocalOp) and local.parent is not None
    block = local.parent
    axes = [loop for loop in enclosing_loops(load, block) if loop not in carrying]
    if load.dynamic:
        return False
    for store in stores:
        own = [loop for loop in enclosing_loops(store, block) if loop not in carrying]
        if store.dynamic or len(own) != len(axes):
            return False
        if any(_range(a) != _range(b) or a.tile != b.tile for a, b in zip(own, axes, strict=True)):
            return False
        names = {a.axis.data: symbol(b.axis.data) for a, b in zip(own, axes, strict=True)}
        if store.map.data[0].subs(names) is not load.map.data[0]:
            return False
    return True


def _range(op: Loop) -> tuple[Expr, Expr]:
    return op.lo.data, op.hi.data


def recompute_locals(function: kernel.FuncOp, ranges: Ranges) -> list[kernel.LocalOp]:
    """Replace loads of locals that do not fit registers by what was stored, computed again where it is read.

    Returns the locals for which that is impossible: what is stored depends on a scan, on a buffer that the kernel
    writes, or on more than one store, or the counter `kernel-tile-recompute` forbids it.
    """
    block = function.body.block
    refused: dict[kernel.LocalOp, None] = {}
    replaced = 0
    work = True
    while work:
        work = False
        for op in locals_of(function):
            if op in refused or fits_registers(op, ranges):
                continue
            if not counter("kernel-tile-recompute"):
                refused[op] = None
                continue
            for load in _users(op, kernel.LoadOp):
                replaced += 1
                if replaced > _MOST_LOADS or not _Recomputation(load, written_buffers(block)).run():
                    refused[op] = None
                    break
                work = True
    BlockSimplifier(written_buffers(block)).run(block)
    while remove_dead(block):
        pass
    return [op for op in locals_of(function) if op in refused]


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
        stores = _users(local, kernel.StoreOp)
        if len(stores) != 1 or self.load.dynamic or stores[0].dynamic:
            return False
        (store,) = stores
        if store.mask is not None or store.kind.data != "set":
            return False
        self.loops = enclosing_loops(store, local.parent)
        own = enclosing_loops(self.load, local.parent)
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

    def _is_stored_everywhere(self, values: Mapping[str, Expr], own: tuple[Loop, ...]) -> bool:
        """Whether the place of a masked load was stored also where the mask is false, so that it can be computed.

        So it is where each axis of the store is an axis of the load over the same range.
        """
        axes = {symbol(op.axis.data): _range(op) for op in own}
        return all(axes.get(values.get(op.axis.data, symbol(op.axis.data))) == _range(op) for op in self.loops)

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
            return all(self._can_copy(v, seen) for v in self._outside_operands(op))
        if isinstance(op, kernel.LoadOp):
            is_local = op.buffer.type.local  # pyright: ignore[reportAttributeAccessIssue]
            if op.buffer in self.written and not is_local:
                return False
        elif not is_pure(op):
            return False
        return all(self._can_copy(v, seen) for v in op.operands)

    def _outside_operands(self, op: Operation) -> Iterator[SSAValue]:
        """Values that a loop and what is nested in it use from around."""
        for inner in op.walk():
            for value in inner.operands:
                owner = value.owner
                block = owner if isinstance(owner, Block) else owner.parent
                while block is not None and block.parent_op() is not op:
                    parent = block.parent_op()
                    block = None if parent is None else parent.parent
                if block is None:
                    yield value

    def _inner_axes(self, value: SSAValue) -> set[str]:
        """Axes of reductions that would be copied."""
        found: set[str] = set()
        todo, seen = [value.owner], set[Operation]()
        while todo:
            op = todo.pop()
            if isinstance(op, Block) or op in seen or not self._is_inside(op):
                continue
            seen.add(op)
            if isinstance(op, Loop):
                found.update([op.axis.data, *(i.axis.data for r in op.regions for i in loops_in(r.block))])
                todo.extend(v.owner for v in self._outside_operands(op))
            else:
                todo.extend(v.owner for v in op.operands)
        return found

    def _copy(self, value: SSAValue) -> SSAValue:
        op = value.owner
        if isinstance(op, Block) or not self._is_inside(op):
            return value
        if value not in self.copies:
            self._copy_op(op)
        return self.copies[value]

    def _copy_op(self, op: Operation) -> None:
        operands = list(self._outside_operands(op)) if op.regions else list(op.operands)
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
