"""`loop-bufferize`: scatters write in place, and new values of inputs are made in the inputs' memory."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ...dialects.aten import CallOp
from ...dialects.loop import FusionOp, GenerateOp, LoadOp, ScanOp, ScatterOp, YieldOp, yielded
from ...dialects.sym import MapAttr, Ranges, symbol
from ...records import dataclass
from ..analysis.functions import symbol_ranges
from ..analysis.in_place_reads import member_index, reads_apart, reads_only_at, reads_only_own_element
from ..analysis.kept import is_kept_value
from ..analysis.memory import roots, written_value
from ..common.functional_calls import is_wrapper
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import loads_in


@dataclass(frozen=True)
class Bufferize(LoopPass):
    """Decide where memory is reused by what follows.

    level:         loop
    precondition:  `loop-fuse`: every nest is in a fusion
    guarantee:     a scatter has `in_place` when its destination dies there, or is an input that an `aten.copy_` gives
                   the result to; the lowering copies the destinations of the others. A fusion that computes the value
                   of an `aten.copy_` writes it to the input by a scatter in place, which leaves the copy_ nothing to
                   do. Neither happens when something would read the old elements afterwards, at another point of the
                   same kernel, or when the value is returned: an output would alias the input. A kernel may copy one
                   piece of a tensor over another one: what it reads and what it writes lie apart along a dimension.

        %u = loop.fusion (a0 in 4) { %g = loop.generate (i0 in 4) on (a0) { ... } : T  loop.yield %g } : T
        %c = aten.copy_(%p, %u) : T
    becomes
        %u = loop.fusion (a0 in 4) {
          %g = loop.scatter set (i0 in 4) into %p[i0] unique in_place on (a0) { ... } : T
          loop.yield %g
        } : T
        %c = aten.copy_(%p, %u) : T
    """

    name = "loop-bufferize"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        ops = list(block.ops)
        if any(_may_reuse(inner) for inner in ops):
            _Bufferizer(block, ops, symbol_ranges(function)).run()


def _may_reuse(op: Operation) -> bool:
    if written_value(op) is not None:
        return True
    return type(op) is FusionOp and any(type(member) is ScatterOp for member in op.members)


class _Bufferizer:
    """Decides for one function. Positions are those of its ops."""

    def __init__(self, block: Block, ops: list[Operation], ranges: Ranges) -> None:
        self.block = block
        self.ops = ops
        self.ranges = ranges
        #: by memory (its root value), positions of the ops that use it
        self.uses: dict[SSAValue, list[int]] = {}
        self.copies: dict[SSAValue, list[int]] = {}
        #: by memory, positions of the fusions that write it in place
        self.overwrites: dict[SSAValue, list[int]] = {}
        for position, op in enumerate(ops):
            for value in {*op.operands, *self.inner_uses(op)}:
                for root in roots(value):
                    self.uses.setdefault(root, []).append(position)
            written = written_value(op)
            if written is not None:
                self.copies.setdefault(written, []).append(position)

    def inner_uses(self, op: Operation) -> list[SSAValue]:
        """Values from outside that the members of a fusion use."""
        if type(op) is not FusionOp:
            return []
        used = [v for member in op.members for v in member.operands]
        used += [load.operands[0] for load in loads_in(op)]
        return [v for v in used if _is_outside(v, op)]

    def run(self) -> None:
        # Last scatter first: whether a value's memory ends up in an input is known when its own turn comes.
        for position in reversed(range(len(self.ops))):
            fusion = self.ops[position]
            if type(fusion) is FusionOp:
                for member in reversed(fusion.members):
                    if type(member) is ScatterOp and member.in_place is None:
                        self.visit_scatter(position, fusion, member)
        for target, positions in self.copies.items():
            for position in positions:
                self.visit_copy(position, target)

    def visit_scatter(self, position: int, fusion: FusionOp, scatter: ScatterOp) -> None:
        reason = self.objection(position, fusion, scatter)
        if reason is not None:
            remark("missed", "loop-bufferize", scatter, f"its destination is copied: {reason}")
        elif counter("loop-bufferize"):
            remark("passed", "loop-bufferize", scatter, "in place")
            scatter.properties["in_place"] = UnitAttr()
            if _is_outside(scatter.dest, fusion):
                self.join(scatter.dest, _outside_result(fusion, scatter.out))
                self.overwrites.setdefault(scatter.dest, []).append(position)

    def objection(self, position: int, fusion: FusionOp, scatter: ScatterOp) -> str | None:
        """Why a scatter must not write into the memory of its destination."""
        dest = scatter.dest
        if dest.type != scatter.out.type:
            return "the result has another layout"
        if not _is_outside(dest, fusion):
            return None if dest.has_one_use() else "another member uses it"
        if roots(dest) != (dest,):
            return "it is a view"
        result = _outside_result(fusion, scatter.out)
        if result is None:
            return "the result stays in the kernel"
        if sum(1 for member in fusion.members for v in member.operands if v is dest) > 1:
            return "two scatters of the kernel start from it"
        reads = [load for load in loads_in(fusion) if dest in roots(load.source)]
        if not all(self.keeps_old(load, scatter, fusion) for load in reads):
            return "the kernel reads elements of it that other points write"
        if is_kept_value(dest):
            return "it is kept for later calls"
        if isinstance(dest, BlockArgument):
            return self.unwritten(position, dest, result)
        return "it is used later" if self.last_use(dest) > position else None

    def keeps_old(self, load: LoadOp, scatter: ScatterOp, fusion: FusionOp) -> bool:
        """Whether a load of the destination sees old elements when the scatter writes in place.

        What is read through a view has other indices, which tell nothing.
        """
        if not _lies_as(load.source, scatter.dest):
            return False
        return reads_only_own_element(load, scatter, fusion) or reads_apart(load, scatter, fusion, self.ranges)

    def last_use(self, root: SSAValue) -> int:
        return max(self.uses.get(root, ()), default=-1)

    def unwritten(self, position: int, target: SSAValue, value: SSAValue) -> str | None:
        """Why memory of an input must not be written at `position` with what `aten.copy_` writes to it later."""
        copy = next((c for c in self.copies.get(target, ()) if c > position), None)
        if copy is None or value not in roots(self.ops[copy].operands[1]):
            return "it is an input that keeps its elements"
        if any(position < use < copy for use in self.uses.get(target, ())):
            return "its old elements are read later"
        if any(later > copy for later in self.overwrites.get(value, ())):
            return "its memory is reused behind the write"
        last = self.last_use(value)
        if last == len(self.ops) - 1:
            return "the result is returned, and would alias the input"
        if any(copy < later < last for later in self.copies[target]):
            return "the result is read after the input is written again"
        return None

    def join(self, memory: SSAValue, result: SSAValue | None) -> None:
        """Record that a result lives in the memory of another value."""
        if result is not None:
            self.uses.setdefault(memory, []).extend(self.uses.get(result, ()))
            self.overwrites.setdefault(memory, []).extend(self.overwrites.get(result, ()))

    def visit_copy(self, position: int, target: SSAValue) -> None:
        """Let the kernel that computes the value of an `aten.copy_` write it to the input."""
        value = self.ops[position].operands[1]
        fusion = value.owner
        if target in roots(value):
            return  # a scatter has written it there
        if type(fusion) is not FusionOp or roots(value) != (value,) or not isinstance(target, BlockArgument):
            if not _is_wrapper(fusion):  # of those host-reinplace tells
                reason = "the value is copied: it is not what a kernel computes"
                remark("missed", "loop-bufferize", self.ops[position], reason)
            return
        number = fusion.results.index(value)
        inner = yielded(fusion.body)[number]
        reason = self.copy_objection(self.ops.index(fusion), fusion, inner, target, value)
        if reason is not None:
            remark("missed", "loop-bufferize", self.ops[position], f"the value is copied: {reason}")
        elif counter("loop-bufferize"):
            remark("passed", "loop-bufferize", self.ops[position], "computed in place")
            place = self.ops.index(fusion)
            old = tuple(fusion.results)
            self.ops[place] = new = write_to(fusion, number, target)
            for before, now in zip(old, new.results, strict=True):
                self.uses[now] = self.uses.pop(before, [])
                self.overwrites[now] = self.overwrites.pop(before, [])
            self.join(target, new.results[number])

    def copy_objection(
        self, position: int, fusion: FusionOp, inner: SSAValue, target: SSAValue, value: SSAValue
    ) -> str | None:
        if not isinstance(inner.owner, GenerateOp | ScanOp):
            return "another value's memory holds it"
        for load in loads_in(fusion):
            if target in roots(load.source) and not (
                _lies_as(load.source, target) and reads_only_at(load, fusion, member_index(inner.owner))
            ):
                return "the kernel reads elements of the input that other points write"
        if value.type != target.type and any(use.operation.name != "aten.copy_" for use in value.uses):
            return "it has another layout than the input"
        return self.unwritten(position, target, value)


def _is_wrapper(owner: Operation | Block) -> bool:
    return isinstance(owner, CallOp) and is_wrapper(owner)


def write_to(fusion: FusionOp, number: int, target: SSAValue) -> FusionOp:
    """Make a fusion write its result `number` to `target`, by a scatter behind its members."""
    block = fusion.body.block
    last = cast(YieldOp, block.last_op)
    inner = last.operands[number]
    member = inner.owner
    assert isinstance(member, GenerateOp | ScanOp)
    single = len(member.results) == 1 and inner.has_one_use()
    if isinstance(member, GenerateOp) and single and _may_be_last(member, fusion):
        block.detach_op(member)
        body = member.detach_region(0)
    else:
        axes = MapAttr.of(*(symbol(n) for n in member.axes.names))
        load = LoadOp.of(inner, axes, location=member.location)
        body = Region(Block((load, YieldOp.create(operands=load.results))))
    identity = MapAttr.of(*(symbol(n) for n in member.axes.names))
    scatter = ScatterOp.of(
        target, member.axes, identity, body, "set", ("unique", "in_place"), target.type, member.on, member.location
    )
    scatter.out.name_hint = inner.name_hint
    block.insert_op_before(scatter, last)
    last.operands[number] = scatter.out
    return _rebuilt(fusion)


def _may_be_last(member: GenerateOp, fusion: FusionOp) -> bool:
    """Whether a member may be computed behind all others: none behind it writes in place what it reads."""
    read = {root for load in loads_in(member) for root in roots(load.source)}
    members = fusion.members
    behind = members[members.index(member) + 1 :]
    in_place = (op for op in behind if type(op) is ScatterOp and op.in_place is not None)
    return all(read.isdisjoint(roots(scatter.dest)) for scatter in in_place)


def _rebuilt(fusion: FusionOp) -> FusionOp:
    """The fusion with the result types of what its body yields now."""
    block = fusion.parent
    assert block is not None
    new = FusionOp.of(fusion.axes, fusion.inner, fusion.detach_region(0), fusion.location)
    block.insert_op_before(new, fusion)
    for old, result in zip(fusion.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    block.erase_op(fusion)
    return new


def _is_outside(value: SSAValue, fusion: FusionOp) -> bool:
    owner = value.owner
    return isinstance(owner, Block) or owner.parent is not fusion.body.block


def _outside_result(fusion: FusionOp, inner: SSAValue) -> SSAValue | None:
    """The result of a fusion that has the memory of a scatter's result; None when it is not yielded."""
    while (user := inner.get_user_of_unique_use()) is not None and type(user) is ScatterOp and user.in_place:
        inner = user.out
    values = yielded(fusion.body)
    return fusion.results[values.index(inner)] if inner in values else None


def _lies_as(value: SSAValue, dest: SSAValue) -> bool:
    """Whether indices are places of the same memory in both: what scatters write in place, without views."""
    while value is not dest:
        owner = value.owner
        if type(owner) is FusionOp:
            value = yielded(owner.body)[owner.results.index(value)]
        elif type(owner) is ScatterOp:
            value = owner.dest
        else:
            return False
    return True
