"""`graph-pad-products`: matrix products whose rows begin at unaligned addresses reach the library's fast kernels."""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from ...dialects.aten import AtenOp, Device, MemoryFormat, TensorType
from ...dialects.machine import target_at
from ...dialects.raw import ops_of
from ...dialects.sym import ONE
from ...machines import GpuTarget
from ...machines.products import LAUNCH, TF32
from ...records import dataclass
from ..analysis.kept import mark_packing
from ..analysis.memory import Mutations
from ..analysis.product_times import factor_bytes, product_nanoseconds
from ..analysis.sizes import Sizes
from ..common.implementations import ALIGNMENT, IMPLEMENTATION, SCRATCH, SCRATCH_BYTES, TURNS, alignment, turns
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._operands import COLUMNS, ROWS, Arranger, Matrix, only_nests_read, padding, transposed
from ._replacement import Origin, ReplacementBuilder, type_of

_PRODUCTS = ("aten.mm", "aten.addmm", "aten.bmm")
_BITS = {BFloat16Type: 16, Float16Type: 16, Float32Type: 32}
_GAIN = 0.9
"""A product is changed where it is estimated to take less than this part of its time."""


@dataclass(frozen=True)
class PadProducts(AtenPass):
    """Let matrix products on a GPU read and write rows that begin at multiples of 16 bytes, where that pays.

    level:         aten
    precondition:  none; before `graph-outline-repeats`, so that equal layers stay equal
    guarantee:     the same values but for the order of sums, in tensors of the same sizes and strides. Decided by
                   estimates (`product_times.py`) for the device's target; where no rates are known for it nothing
                   changes, as with `pad_products` off.

    - A depth that is no multiple of 8 elements of 16 bits, or of 4 in TF32, gets zeros in both operands; the pad is an
      op of its own, which fuses with what computes the operand.
    - Rows of the result, where they are elements side by side of the first operand, get zeros, too; what is added is
      cut off by a view.
    - Columns of the result are not padded, because a result has eager's strides, and may be an output. The product is
      marked to be computed in turns, which needs no memory, or, if it has few rows, by way of scratch memory
      (`implementations.py`). A bias becomes a row more of the depth, since it could not be added by the library then.
      Batches of products get zeros and are cut by a copy, which fuses with nests that read it.

    With a weight of 30,522 rows, as a masked language model has,
        %y = aten.addmm(%b, %x, %w) : !aten.tensor<8192x30522xbf16, device = "cuda:0">
    becomes
        %l = aten.constant_pad_nd(%x, pad = [0, 8], value = 1.0) : !aten.tensor<8192x776xbf16, device = "cuda:0">
        %r = aten.cat([%w^T, %b, zeros], dim = 1), transposed
        %y = aten.mm(%l, %r) {implementation = "turns"} : !aten.tensor<8192x30522xbf16, device = "cuda:0">
    """

    name = "graph-pad-products"

    pad_products: bool = True
    allow_tf32: bool = False
    """Products of float32 are computed in TF32, as torch's setting says."""
    always: bool = False
    """Do it wherever rows are unaligned, for tests and measurements."""

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        ops = [each for each in ops_of(block) if isinstance(each, AtenOp) and each.target in _PRODUCTS]
        products = [each for each in ops if IMPLEMENTATION not in each.attributes]
        if not products or not self.pad_products:
            return
        estimates, arranger = Sizes.of_function(function), Arranger(Mutations(block))
        for product in products:
            target = target_at(product, type_of(product.results[0]).device)
            if isinstance(target, GpuTarget) and target.family.library.aligned_bytes == ALIGNMENT:
                self._improve(product, target, estimates, arranger)

    def _improve(self, op: AtenOp, target: GpuTarget, estimates: Sizes, arranger: Arranger) -> None:
        plan = _plan(op)
        if plan is None:
            return
        problem = plan if isinstance(plan, str) else self._problem_of_time(plan, target, estimates)
        if problem is not None and (isinstance(plan, str) or not self.always):
            remark("missed", self.name, op, f"its rows begin at unaligned addresses, but {problem}")
        elif isinstance(plan, _Plan) and counter(self.name):
            remark("passed", self.name, op, str(plan))
            _replace(plan, arranger)

    def _problem_of_time(self, plan: _Plan, target: GpuTarget, estimates: Sizes) -> str | None:
        """Why a plan does not pay, from estimates, which it keeps."""
        result = type_of(plan.op.results[0])
        bits = _BITS[type(result.element)]
        if bits == 32 and self.allow_tf32:
            bits = TF32
        *batch, rows, columns = result.shape
        depth = plan.left.type.shape[-1]
        sizes = (estimates.product(batch), estimates.of(rows), estimates.of(depth), estimates.of(columns))
        before = product_nanoseconds(target, bits, plan.before, sizes)
        after = product_nanoseconds(target, bits, ALIGNMENT, sizes)
        if before is None or after is None:
            return f"no rates are known of {target.name} for products of {result.element}"
        if plan.turns > 1:
            after = _choose_implementation(plan, target, bits, sizes, after)
        moved = sum(each.extra_copies() * estimates.product(each.type.shape) for each in (plan.left, plan.right))
        if any(plan.cut) and not _is_dense_cut(plan) and not only_nests_read(plan.op.results[0]):
            moved += 2 * estimates.product(result.shape)
        after += moved * factor_bytes(bits) / target.bandwidth + LAUNCH * (moved > 0)
        plan.nanoseconds = before, after
        if after < _GAIN * before:
            return None
        return f"aligned ones are estimated at {after / 1e3:.0f} us instead of {before / 1e3:.0f}"


@dataclass
class _Plan:
    """How a product is to be computed.

    turns:  how many rows of the result are between two of one turn; 1 where its rows are aligned
    by:     the implementation of one whose rows are not
    cut:    elements to be cut off from the last two dimensions of the result
    bias:   what a column more of the first operand adds
    """

    op: AtenOp
    left: Matrix
    right: Matrix
    before: int
    turns: int = 1
    by: str = TURNS
    cut: tuple[int, int] = (0, 0)
    bias: SSAValue | None = None
    nanoseconds: tuple[float, float] = field(default=(0.0, 0.0))

    def __str__(self) -> str:
        done = [
            f"its {name} operand is {'padded' if any(matrix.pads) else 'copied'}"
            for name, matrix in (("first", self.left), ("second", self.right))
            if matrix.is_fresh
        ]
        if self.turns > 1:
            how = f"in {self.turns} turns" if self.by == TURNS else "into scratch memory"
            done.append(f"its rows are computed {how}")
        before, after = self.nanoseconds
        estimate = f"; estimated at {after / 1e3:.0f} us instead of {before / 1e3:.0f}" if before else ""
        return f"its rows begin at unaligned addresses: {', '.join(done)}{estimate}"


def _plan(op: AtenOp) -> _Plan | str | None:
    """How the rows of a product become aligned; None where they are, text where that is not done."""
    result = type_of(op.results[0])
    bits = _BITS.get(type(result.element))
    if bits is None:
        return None
    size, (left_value, right_value) = bits // 8, op.operands[-2:]
    left, right = Matrix.of(left_value), Matrix.of(right_value)
    columns = result.shape[-1]
    if left is None or right is None:
        return None
    steps = [alignment(step, size) for step in (left.step, right.step, columns)]
    plan = _Plan(op, left, right, before=min(steps))
    if plan.before == ALIGNMENT:
        return None
    if left.type.element != result.element or right.type.element != result.element:
        return "its operands are of other types than its result"
    if not result.is_contiguous or any(n is ONE for n in (*result.shape[-2:], left.type.shape[-1])):
        return "it is a product with a vector, or has other strides than row-major ones"
    per = ALIGNMENT // size
    if steps[2] < ALIGNMENT and (problem := _with_columns(plan, per, size)):
        return problem
    return _with_operands(plan, steps[0] < ALIGNMENT, steps[1] < ALIGNMENT, per)


def _with_columns(plan: _Plan, per: int, size: int) -> str | None:
    """Plan for unaligned rows of the result; what is in the way."""
    columns = plan.right.type.shape[-1].as_int()
    assert columns is not None
    if plan.op.target == "aten.bmm":
        plan.right.lay_out(plan.right.inner, columns=-columns % per)
        plan.cut = (0, -columns % per)
        return None
    if columns < 4 * per:
        return "it has few columns"
    plan.turns = turns(columns, size)
    plan.left.lay_out(COLUMNS)
    plan.right.lay_out(ROWS)
    if plan.op.target == "aten.addmm":
        bias = plan.op.operands[0]
        if type_of(bias).shape != (plan.right.type.shape[-1],) or plan.op.arg("beta") != 1 or plan.op.arg("alpha") != 1:
            return "what is added is no bias of its columns"
        plan.bias = bias
    return None


def _with_operands(plan: _Plan, left_is_bad: bool, right_is_bad: bool, per: int) -> _Plan | str:
    """Complete a plan with what the operands need."""
    left, right = plan.left, plan.right
    left_is_bad |= left.is_fresh
    right_is_bad |= right.is_fresh
    depth = left.type.shape[-1]
    pad = padding(depth, per)
    needs_depth = (
        plan.bias is not None or (left_is_bad and left.inner == COLUMNS) or (right_is_bad and right.inner == ROWS)
    )
    if needs_depth and pad is None:
        return f"its depth {depth} is a symbol"
    extra = 0 if not needs_depth or pad is None else pad
    if plan.bias is not None:
        extra = extra or per
        left.fill = 1.0
    if extra:
        left.lay_out(left.inner, columns=extra)
        right.lay_out(right.inner, rows=extra)
    left_is_bad |= left.is_fresh
    right_is_bad |= right.is_fresh
    if left_is_bad and left.inner == ROWS:
        rows = padding(left.type.shape[-2], per)
        if rows is None:
            return f"its rows {left.type.shape[-2]} are a symbol"
        if plan.op.target == "aten.addmm" and len(type_of(plan.op.operands[0]).shape) != 1:
            return "what is added is a matrix"
        left.lay_out(ROWS, rows=rows)
        plan.cut = (rows, plan.cut[1])
    if right_is_bad and right.inner == COLUMNS and not plan.cut[1]:
        columns = padding(right.type.shape[-1], per)
        if columns is None:
            return f"its columns {right.type.shape[-1]} are a symbol"
        right.lay_out(COLUMNS, columns=columns)
        plan.cut = (plan.cut[0], columns)
    left.is_fresh |= left_is_bad
    right.is_fresh |= right_is_bad
    return plan


def _choose_implementation(
    plan: _Plan, target: GpuTarget, bits: int, sizes: tuple[int, int, int, int], aligned: float
) -> float:
    """Let a plan compute unaligned rows in the faster way; how long that takes. An aligned product takes `aligned`."""
    batch, rows, depth, columns = sizes
    part = product_nanoseconds(target, bits, ALIGNMENT, (batch, max(rows // plan.turns, 1), depth, columns))
    edges = product_nanoseconds(target, bits, ALIGNMENT, (batch, rows, depth, 2 * ALIGNMENT))
    assert part is not None and edges is not None
    in_turns = plan.turns * part + 2 * LAUNCH
    size = rows * columns * factor_bytes(bits)
    blocks = -(-size // SCRATCH_BYTES)
    # a copy between rows of different steps moves about half of what the memory could
    by_scratch = aligned + 4 * size / target.bandwidth + (2 * blocks + 1) * LAUNCH
    plan.by = TURNS if in_turns <= by_scratch else SCRATCH
    return min(in_turns, by_scratch) + edges


def _is_dense_cut(plan: _Plan) -> bool:
    """Whether what is left of a padded result is dense, rows at the end having been cut off."""
    return not plan.cut[1] and len(type_of(plan.op.results[0]).shape) == 2


def _replace(plan: _Plan, arranger: Arranger) -> None:
    op, result = plan.op, type_of(plan.op.results[0])
    aten = ReplacementBuilder(op, Origin(op.location, dict(op.attributes)))
    left = arranger.operand(aten, plan.left, op)
    if plan.bias is None:
        right = arranger.operand(aten, plan.right, op)
    else:
        right = _with_bias(aten, plan.right, plan.bias)
    shape = (*result.shape[:-2], result.shape[-2] + plan.cut[0], result.shape[-1] + plan.cut[1])
    types = [TensorType.get(shape, result.element, None, result.device)]
    if op.target == "aten.addmm" and plan.bias is None:
        scales = {name: op.arg(name) for name in ("beta", "alpha")}
        value = aten.addmm(op.operands[0], left, right, **scales, types=types)
    else:
        value = (aten.bmm if op.target == "aten.bmm" else aten.mm)(left, right, types=types)
    if plan.turns > 1:
        value.owner.attributes[IMPLEMENTATION] = StringAttr(plan.by)
    value = _cut(aten, value, result, plan)
    value.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(value)
    block = op.parent
    assert block is not None
    block.erase_op(op)


def _with_bias(aten: ReplacementBuilder, right: Matrix, bias: SSAValue) -> SSAValue:
    """The second operand with the bias as a row more, and zeros below it; in memory its columns are rows."""
    type_ = right.type
    depth, columns = type_.shape
    extra = right.pads[0]
    parts = [transposed(aten, right.value), aten.unsqueeze(bias, dim=1)]
    if extra > 1:
        zeros = TensorType.get((columns, ONE * (extra - 1)), type_.element, None, type_.device)
        parts.append(
            aten.full(size=zeros.shape, fill_value=0.0, dtype=zeros.element, device=Device(type_.device), types=[zeros])
        )
    whole = TensorType.get((columns, depth + extra), type_.element, None, type_.device)
    copy = aten.cat(parts, dim=1, types=[whole])
    mark_packing(copy.owner, right.source)
    return transposed(aten, copy)


def _cut(aten: ReplacementBuilder, value: SSAValue, result: TensorType, plan: _Plan) -> SSAValue:
    """What was asked for of a padded result, in the strides that it had."""
    rank = len(result.shape)
    for dim, cut in ((rank - 2, plan.cut[0]), (rank - 1, plan.cut[1])):
        if cut:
            old = type_of(value)
            shape = (*old.shape[:dim], result.shape[dim], *old.shape[dim + 1 :])
            types = [TensorType.get(shape, old.element, old.strides, old.device)]
            value = aten.slice.Tensor(value, dim=dim, start=0, end=result.shape[dim], types=types)
    if value.type == result:
        return value
    return aten.clone(value, memory_format=MemoryFormat("contiguous_format"), types=[result])
