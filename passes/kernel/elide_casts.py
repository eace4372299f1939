"""The pass `kernel-elide-casts`."""

from __future__ import annotations

import math

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import FloatAttr, IntegerType, Signedness, f32
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import kernel
from ...dialects.raw import ops_in
from ...dialects.scalar import CastOp, NarrowOp, WidenOp, number_of
from ...records import dataclass
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .simplify_block import remove_dead


@dataclass(frozen=True)
class KernelElideCasts(KernelPass):
    """Keep values of low precision in the type they are computed in, as long as they stay inside a kernel.

    Level: kernel.

    Precondition: `kernel-merge-loops`, which lets values meet, and before tiling.
    Guarantee: no `scalar.widen` of what `scalar.narrow` made from the same type, directly, through selects that nothing
    wants narrow, or through a local buffer: the selects and the buffer take the wide values. What reaches memory is
    rounded; casts that the program wrote stay, but for those that change no number: of what was chosen among values of
    the narrow type, and of integers of 8 bits, which 16 bits hold exactly and which become the wide float at once,
    where no product is to read the narrow one. With `emulate_precision_casts` nothing is done, and a kernel rounds
    wherever eager would. A whole number of float32 that was clamped to what a byte holds is not cast there and back,
    whatever the option says; what is no number becomes 0, as it does in the byte.

        %n = scalar.narrow %x : f32 to bf16
        kernel.store %n, %row[i1]
        ...
        %v = kernel.load %row[i1]
        %w = scalar.widen %v : bf16 to f32
    becomes
        kernel.store %x, %row[i1]
        ...
        %w = kernel.load %row[i1]
    """

    name = "kernel-elide-casts"
    emulate_precision_casts: bool = False

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Elide casts in every kernel."""
        for op in ops_in(function):
            if isinstance(op, CastOp):
                _stay_float(op)
        if self.emulate_precision_casts:
            return
        elide_casts(function)


def _stay_float(op: CastOp) -> None:
    """cast(cast(min(max(x, 0), n))) == min(x > 0 ? x : 0, n) for a whole x and a byte in between, which holds n."""
    byte = op.value.owner
    if not isinstance(byte, CastOp) or op.source_element != _BYTE:
        return
    if byte.source_element != f32 or op.target_element != f32:
        return
    high = _bounded(byte.value, _GREATER)
    low = None if high is None else _bounded(high.rhs, _LESS)
    if high is None or low is None or not _is_whole(low.rhs) or number_of(low.lhs) != 0:
        return
    most, block = number_of(high.lhs), op.parent
    if most is None or most != int(most) or not 0 <= most <= _MOST_OF_BYTE or not counter("kernel-elide-casts"):
        return
    assert block is not None
    is_more = arith.CmpfOp(low.rhs, low.lhs, "ogt")
    least = arith.SelectOp(is_more.result, low.rhs, low.lhs)
    is_most = arith.CmpfOp(least.result, high.lhs, "ogt")
    made = arith.SelectOp(is_most.result, high.lhs, least.result)
    new = [is_more, least, is_most, made]
    for each in new:
        each.location = byte.location
    block.insert_ops_before(new, op)
    op.results[0].replace_all_uses_with(made.result)
    block.erase_op(op)


_BYTE, _MOST_OF_BYTE = IntegerType(8, Signedness.UNSIGNED), 255
_GREATER, _LESS = 2, 4
"""Numbers of the predicates `ogt` and `olt`."""


def _bounded(value: SSAValue, predicate: int) -> arith.SelectOp | None:
    """The select that takes its second value where a comparison of the third one with that one is true."""
    op = value.owner
    compared = op.cond.owner if isinstance(op, arith.SelectOp) else None
    if not isinstance(op, arith.SelectOp) or not isinstance(compared, arith.CmpfOp):
        return None
    is_bound = compared.predicate.value.data == predicate and (compared.lhs, compared.rhs) == (op.rhs, op.lhs)
    return op if is_bound else None


def _is_whole(value: SSAValue) -> bool:
    """Whether a float is a whole number, infinite or none: it was rounded to one, or is the sum of two."""
    op = value.owner
    if isinstance(op, arith.AddfOp):
        return _is_whole(op.lhs) and _is_whole(op.rhs)
    number = number_of(value)
    return isinstance(op, math_dialect.RoundEvenOp) or (number is not None and number == int(number))


def elide_casts(function: kernel.FuncOp) -> None:
    """Elide casts in one kernel: locals first, which lets more casts meet."""
    ops = ops_in(function)
    if not any(isinstance(op, WidenOp) for op in ops):
        return
    for op in ops:
        if isinstance(op, kernel.LocalOp):
            _widen_local(op)
    waiting = [op for op in ops_in(function) if isinstance(op, WidenOp)]
    while waiting:
        op = waiting.pop()
        _elide(op)
        waiting += _widen_select(op)
    remove_dead(function.body.block)


def _elide(op: WidenOp) -> None:
    narrow = op.operands[0].owner
    if isinstance(narrow, CastOp) and not _is_exact(narrow, op):
        _cast_at_once(op, narrow)
        return
    if isinstance(narrow, CastOp) and counter("kernel-elide-casts"):
        op.results[0].replace_all_uses_with(narrow.operands[0])
        return
    if not isinstance(narrow, NarrowOp) or narrow.source_element != op.target_element:
        return
    if counter("kernel-elide-casts"):
        op.results[0].replace_all_uses_with(narrow.operands[0])


def _is_exact(cast: CastOp, widen: WidenOp) -> bool:
    """Whether what a cast rounds is a number of the narrow type, which the widening gives back."""
    return cast.source_element == widen.target_element and _is_narrow(cast.operands[0], widen.source_element)


def _is_narrow(value: SSAValue, element: Attribute) -> bool:
    """Whether a wide value was chosen among values of a narrow type: only these, a zero, and an infinity can be it."""
    op = value.owner
    if isinstance(op, WidenOp):
        return op.source_element == element
    if isinstance(op, arith.ConstantOp):
        return isinstance(op.value, FloatAttr) and op.value.value.data in (0.0, math.inf, -math.inf)
    if isinstance(op, arith.SelectOp | arith.MaximumfOp | arith.MinimumfOp):
        return all(_is_narrow(each, element) for each in op.operands[-2:])
    return False


def _cast_at_once(op: WidenOp, cast: CastOp) -> None:
    """widen(cast(n)) == cast(n) for n of 8 bits: significands of bf16 have 8 bits, those of f16 11."""
    is_exact = isinstance(cast.source_element, IntegerType) and cast.source_element.width.data == 8
    is_read_narrow = any(kernel.PRECISION in use.operation.attributes for use in op.results[0].uses)
    block = op.parent
    if not is_exact or is_read_narrow or block is None or not counter("kernel-elide-casts"):
        return
    new = CastOp.of(cast.operands[0], cast.source_element, op.target_element)
    new.location = cast.location
    block.insert_op_before(new, op)
    op.results[0].replace_all_uses_with(new.results[0])


def _widen_select(op: WidenOp) -> list[WidenOp]:
    """Let a select choose between wide values; the widening ops that this makes.

    widen(select(c, x, y)) == select(c, widen(x), widen(y)), as widening is exact. Done where it takes the rounding away
    of a value, and where nothing else wants the narrow one, which would need a select of its own.
    """
    select = op.operands[0].owner
    if not isinstance(select, arith.SelectOp) or op.results[0].first_use is None:
        return []
    if not _is_rounded(select, op) or not _only_widened(select, op) or not counter("kernel-elide-casts"):
        return []
    block = op.parent
    assert block is not None
    made = [WidenOp.of(value, op.source_element, op.target_element) for value in select.operands[1:]]
    wide = arith.SelectOp(select.cond, *(each.results[0] for each in made))
    wide.location = select.location
    block.insert_ops_before([*made, wide], op)
    op.results[0].replace_all_uses_with(wide.result)
    return made


def _is_rounded(select: arith.SelectOp, widen: WidenOp) -> bool:
    """Whether something that selects choose from was narrowed from the type that it is widened to."""
    for value in select.operands[1:]:
        owner = value.owner
        if isinstance(owner, NarrowOp) and owner.source_element == widen.target_element:
            return True
        if isinstance(owner, CastOp) and _is_exact(owner, widen):
            return True
        if isinstance(owner, arith.SelectOp) and _is_rounded(owner, widen):
            return True
    return False


def _only_widened(select: arith.SelectOp, widen: WidenOp) -> bool:
    """Whether all uses of a select widen it alike, directly or behind another select."""
    for use in select.result.uses:
        user = use.operation
        if isinstance(user, arith.SelectOp) and use.index:
            if not _only_widened(user, widen):
                return False
        elif not isinstance(user, WidenOp) or user.target_element != widen.target_element:
            return False
    return True


def _widen_local(op: kernel.LocalOp) -> None:
    """Let a local buffer hold what its stores narrow, if all of them narrow from one type."""
    users = [use.operation for use in op.buffer.uses]
    loads = [user for user in users if isinstance(user, kernel.LoadOp)]
    stores = [user for user in users if isinstance(user, kernel.StoreOp)]
    wide = _stored_type(stores)
    type_ = op.buffer.type
    if wide is None or not isinstance(type_, kernel.BufferType) or not counter("kernel-elide-casts"):
        return
    if any(load.mask is not None for load in loads) or any(store.kind.data != "set" for store in stores):
        return
    block = op.parent
    assert block is not None
    new = kernel.LocalOp.create(result_types=(kernel.BufferType.get(wide, type_.extent, True),), location=op.location)
    block.insert_op_before(new, op)
    for store in stores:
        narrow = store.value.owner
        assert isinstance(narrow, NarrowOp)
        store.operands[0] = narrow.operands[0]
    op.buffer.replace_all_uses_with(new.buffer)
    for load in loads:
        _reload(load, type_.element)
    block.erase_op(op)


def _stored_type(stores: list[kernel.StoreOp]) -> Attribute | None:
    """The type that everything stored is narrowed from."""
    owners: list[Operation | object] = [store.value.owner for store in stores]
    types = {owner.source_element if isinstance(owner, NarrowOp) else None for owner in owners}
    return types.pop() if len(types) == 1 else None


def _reload(load: kernel.LoadOp, narrow_type: Attribute) -> None:
    """Load the wide value, narrowed again for those that want it so."""
    block = load.parent
    assert block is not None
    new = kernel.LoadOp.of(load.buffer, load.map, tuple(load.dynamic), location=load.location)
    buffer = load.buffer.type
    assert isinstance(buffer, kernel.BufferType)
    narrow = NarrowOp.of(new.value, buffer.element, narrow_type)
    block.insert_ops_before([new, narrow], load)
    load.value.replace_all_uses_with(narrow.results[0])
    block.erase_op(load)
