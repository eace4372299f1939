"""`graph-pack-products`: a library arranges the frozen matrices of products once."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import Float32Type, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp, CallOp
from ...dialects.aten.types import type_of
from ...dialects.machine import target_at
from ...dialects.sym import ONE, bounds
from ...machines.libraries import LSTM, MKL
from ...records import dataclass
from ..analysis.functions import symbol_ranges
from ..analysis.kept import frozen_arguments
from ..analysis.memory import Mutations
from ..analysis.packing import (
    ELEMENTS,
    is_packable,
    is_small_product,
    move_to_kept,
    packed_product,
    packed_recurrence,
)
from ..analysis.sizes import Sizes
from ..common.copies import copy_op
from ..common.implementations import BLAS, IMPLEMENTATION, ONEDNN
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._replacement import Origin, ReplacementBuilder


@dataclass(frozen=True)
class PackProducts(AtenPass):
    """Let oneDNN, or MKL, arrange the frozen right operands of products on the CPU once, in its own layout.

    level:         aten
    precondition:  behind `graph-hoist-weights`; in front of `graph-outline-repeats`, whose functions get the packed
                   matrices as arguments. What only layouts of the level loop allow is `loop-pack-weights`' to do.
    guarantee:     the same values, but for the order of sums. An `aten.mm` or `aten.addmm` whose right operand is a
                   frozen argument, a kept value, or a view of one becomes a call that reads what the kept function
                   packs. So does an `aten.mkldnn_rnn_layer`, a layer of an LSTM in one direction, both of whose
                   matrices are such.

    MKL's product copies a bias to each row, and adds to that: where one kernel reads the result, that adds the bias.
    36 products of ConvNeXt-T on a Xeon, one core: 58.2 ms with their biases, 55.1 without.

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

    Without it the library arranges the weights of a recurrent layer in each call: one core of an AMD EPYC, 650 to 650,
    35 steps of 4 rows, ms without and with a packed weight: float32 13.0 and 9.9, bfloat16 8.2 and 4.8.
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
        known: dict[Any, CallOp] = {}
        for op in list(block.ops):
            if not isinstance(op, AtenOp) or op.packet not in _MATRICES:
                continue
            roots = [_views_of(matrix)[0] for matrix in _matrices(op)]
            is_fixed = all(is_packable(each, self.packed_weights) and not mutations.writes_to(each) for each in roots)
            by_mkl = op.packet != _RECURRENT and self._is_of_mkl(op)
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
        if op.packet == _RECURRENT:
            return _is_packed_layer(op, ranges)
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


_RECURRENT = "mkldnn_rnn_layer"
#: packet -> positions of the matrices among the operands
_MATRICES = {"mm": (-1,), "addmm": (-1,), _RECURRENT: (1, 2)}


def _matrices(op: AtenOp) -> list[SSAValue]:
    return [op.operands[position] for position in _MATRICES[op.packet]]


def _is_packed_layer(op: AtenOp, ranges: Any) -> bool:
    """Whether the library reads packed matrices in a recurrent layer: an LSTM in inference, of one step or more."""
    x, *matrices = (type_of(value) for value in (op.operands[0], *_matrices(op)))
    least = [bounds(size, ranges)[0] for size in x.shape]
    is_filled = all(each is not None and each > 0 for each in least)
    is_known = all(matrix.is_contiguous and all(size.as_int() for size in matrix.shape) for matrix in matrices)
    has_library = target_at(op, x.device).family.library.has_onednn
    is_inference = op.arg("mode") == LSTM and not op.arg("train") and op.results[3].first_use is None
    return has_library and is_inference and is_filled and is_known


def _views_of(value: SSAValue) -> tuple[SSAValue, list[AtenOp]]:
    """What a value is a view of, and the views, from the outermost one."""
    views: list[AtenOp] = []
    while isinstance(view := value.owner, AtenOp) and view.schema.is_view and len(view.operands) == 1:
        views.append(view)
        value = view.operands[0]
    return value, views[::-1]


#: packets of libraries, which read what a product made from memory
_OF_LIBRARIES = ("mm", "addmm", "bmm", "baddbmm", "convolution", _RECURRENT)


def _is_read_by_a_kernel(value: SSAValue) -> bool:
    """Whether one op alone reads a value, or a view of it, and becomes a nest, which can add a bias on its way."""
    readers = list({use.operation for use in value.uses})
    if len(readers) != 1 or not isinstance(reader := readers[0], AtenOp):
        return False
    if reader.schema.is_view:
        return _is_read_by_a_kernel(reader.results[0])
    return reader.packet not in _OF_LIBRARIES and "attention" not in reader.packet


def _pack(op: AtenOp, block: Block, sizes: Sizes, known: dict[Any, CallOp], by_mkl: bool) -> list[Operation]:
    """Replace an op by a call with packed matrices; what packs them, views of the weights included."""
    matrices = _matrices(op)
    views = list(dict.fromkeys(view for matrix in matrices for view in _views_of(matrix)[1]))
    values: dict[SSAValue, SSAValue] = {}
    made: list[Operation] = [copy_op(view, values) for view in views]
    sources = [values.get(matrix, matrix) for matrix in matrices]
    apart: SSAValue | None = None
    if op.packet == _RECURRENT:
        pack, call = packed_recurrence(op, sources)
    else:
        apart = op.operands[0] if by_mkl and op.packet == "addmm" and _is_read_by_a_kernel(op.results[0]) else None
        pack, call = packed_product(op, sources[0], sizes, by_mkl, apart is None)
    for value, named in (*zip(pack.results, matrices, strict=True), *zip(call.results, op.results, strict=False)):
        value.name_hint = named.name_hint
    same = (*matrices, pack.callee, pack.positional)
    if same in known:
        packed: dict[SSAValue, SSAValue] = dict(zip(pack.results, known[same].results, strict=True))
        call.operands = [packed.get(value, value) for value in call.operands]
        made = []
    else:
        known[same] = pack
        made.append(pack)
    for each in (*made, call):
        block.insert_op_before(each, op)
    results: list[SSAValue] = list(call.results)
    if apart is not None:
        added = ReplacementBuilder(op, Origin(op.location, {})).add.Tensor(
            results[0], apart, types=[op.results[0].type]
        )
        results = [cast(SSAValue, added)]
    for old, new in zip(op.results, results, strict=False):  # a workspace that nobody reads is no result
        old.replace_all_uses_with(new)
    block.erase_op(op)
    for view in reversed(views):
        if view.results[0].first_use is None:
            block.erase_op(view)
    return made
