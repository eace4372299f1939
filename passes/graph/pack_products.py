"""`graph-pack-products`: a library arranges the frozen matrices of products once."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import Float32Type, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp
from ...dialects.aten.types import type_of
from ...dialects.machine import target_at
from ...dialects.sym import ONE, bounds
from ...records import dataclass
from ..analysis.functions import symbol_ranges
from ..analysis.kept import frozen_arguments
from ..analysis.memory import Mutations
from ..analysis.packing import ELEMENTS, MKL, is_packable, is_small_product, move_to_kept, packed_product
from ..analysis.sizes import Sizes
from ..common.copies import copy_op
from ..common.implementations import BLAS, IMPLEMENTATION, ONEDNN
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark


@dataclass(frozen=True)
class PackProducts(AtenPass):
    """Let oneDNN, or MKL, arrange the frozen right operands of products on the CPU once, in its own layout.

    level:         aten
    precondition:  behind `graph-hoist-weights`; in front of `graph-outline-repeats`, whose functions get the packed
                   matrices as arguments. What only layouts of the level loop allow is `loop-pack-weights`' to do.
    guarantee:     the same values, but for the order of sums. An `aten.mm` or `aten.addmm` whose right operand is a
                   frozen argument, a kept value, or a view of one becomes a call that reads what the kept function
                   packs.

    packed_weights: the elements of weights that the library can arrange on this machine, such as "f32,bf16"; with "mkl"
                    MKL can those of float32
    products:       who multiplies float32 matrices; where it is not oneDNN these stay as they are, or are MKL's if rows
                    are a number: it packs for so many

        %t = aten.t(%w) : U
        %y = aten.addmm(%b, %x, %t) : T
    becomes
        %p = func.call @f_weights(%w) {kept} : (V) -> U
        %y = aten.call pure "inductile::packed_product"(%x, %p, %b) : T
    where @f_weights has
        %t = aten.t(%w) : U
        %p = aten.call pure "inductile::packed_matrix"(%t, ...) : U
    """

    name = "graph-pack-products"

    packed_weights: str = ""
    products: str = BLAS

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function with frozen arguments."""
        if not frozen_arguments(function) or not set(self.packed_weights.split(",")) & set(ELEMENTS.values()):
            return
        mutations, sizes, ranges = Mutations(block), Sizes.of_function(function), symbol_ranges(function)
        moved: list[Operation] = []
        known: dict[Any, SSAValue] = {}
        for op in list(block.ops):
            if not isinstance(op, AtenOp) or op.packet not in ("mm", "addmm"):
                continue
            root, _ = _views_of(op.operands[-1])
            is_fixed = is_packable(root, self.packed_weights) and not mutations.writes_to(root)
            by_mkl = self._is_of_mkl(op)
            if is_fixed and self._may_be_packed(op, sizes, ranges, by_mkl) and counter(self.name):
                remark("passed", self.name, op, "the library arranges its weight once")
                moved += _pack(op, block, sizes, known, by_mkl)
        if moved:
            move_to_kept(function, block, moved)

    def _is_of_mkl(self, op: AtenOp) -> bool:
        """Whether the BLAS multiplies these matrices, and can arrange one for a number of rows."""
        left, chosen = type_of(op.operands[-2]), op.attributes.get(IMPLEMENTATION)
        by_blas = chosen == StringAttr(BLAS) or (chosen is None and self.products != ONEDNN)
        return by_blas and isinstance(left.element, Float32Type) and MKL in self.packed_weights.split(",")

    def _may_be_packed(self, op: AtenOp, sizes: Sizes, ranges: Any, by_mkl: bool) -> bool:
        """Whether oneDNN, or MKL, may compute a product, and is the faster one."""
        *bias, left, right = (type_of(value) for value in op.operands)
        chosen = op.attributes.get(IMPLEMENTATION)
        rows, (inner, columns) = left.shape[0], right.shape
        if not target_at(op, left.device).family.library.has_onednn:
            return False
        by_onednn = chosen == StringAttr(ONEDNN) or (
            chosen is None and not (isinstance(left.element, Float32Type) and self.products != ONEDNN)
        )
        if not (rows.as_int() is not None if by_mkl else by_onednn):
            return False
        if bias and (bias[0].shape != (columns,) or op.arg("beta") != 1 or op.arg("alpha") != 1):
            return False
        is_dense = right.strides in ((columns, ONE), (ONE, inner))
        known = inner.as_int() and columns.as_int()
        least = bounds(rows, ranges)[0]
        is_filled = bool(known) and least is not None and least > 0
        return left.is_contiguous and is_dense and is_filled and not is_small_product(op, sizes)


def _views_of(value: SSAValue) -> tuple[SSAValue, list[AtenOp]]:
    """What a value is a view of, and the views, from the outermost one."""
    views: list[AtenOp] = []
    while isinstance(view := value.owner, AtenOp) and view.schema.is_view and len(view.operands) == 1:
        views.append(view)
        value = view.operands[0]
    return value, views[::-1]


def _pack(op: AtenOp, block: Block, sizes: Sizes, known: dict[Any, SSAValue], by_mkl: bool) -> list[Operation]:
    """Replace a product by a call with a packed matrix; what packs it, views of the weight included."""
    weight = op.operands[-1]
    _, views = _views_of(weight)
    values: dict[SSAValue, SSAValue] = {}
    made: list[Operation] = [copy_op(view, values) for view in views]
    pack, call = packed_product(op, values.get(weight, weight), sizes, by_mkl)
    pack.results[0].name_hint, call.results[0].name_hint = weight.name_hint, op.results[0].name_hint
    same = (weight, pack.positional, by_mkl)
    if same in known:
        call.operands = [known[same] if value is pack.results[0] else value for value in call.operands]
        made = []
    else:
        known[same] = pack.results[0]
        made.append(pack)
    for each in (*made, call):
        block.insert_op_before(each, op)
    op.results[0].replace_all_uses_with(call.results[0])
    block.erase_op(op)
    for view in reversed(views):
        if view.results[0].first_use is None:
            block.erase_op(view)
    return made
