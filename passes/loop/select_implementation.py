"""`loop-select-implementation`: who computes a matrix product or a convolution, and what of it."""

from __future__ import annotations

from typing import TypeGuard, cast

from xdsl.dialects.builtin import Float32Type, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ...dialects.aten import AtenOp
from ...dialects.aten.types import TensorType
from ...dialects.loop import LoadOp
from ...dialects.machine import target_at
from ...dialects.sym import ONE, Expr, Ranges, bounds
from ...records import dataclass
from ..analysis.functions import symbol_ranges
from ..analysis.sizes import Sizes
from ..common.implementations import BLAS, IMPLEMENTATION, ONEDNN
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from .bias import add_bias_behind, adds_columns, is_apart_on_gpu

#: a product that oneDNN gets has two rows and a second matrix of so many elements, or so many multiplications
LARGE_MATRIX = 1 << 19
MUCH_WORK = 1 << 25


@dataclass(frozen=True)
class SelectImplementation(LoopPass):
    """Choose how each product of float32 matrices is computed, and who adds the bias on a GPU.

    level:         loop
    precondition:  the strides of operands are final, as after `loop-assign-layouts`; `loop-inline` comes behind
    guarantee:     the same values but for the order of sums. On the CPU, with `products` "blas", as by default,
                   nothing changes: `aten.mm` and `aten.addmm` call the BLAS that torch was built with. With "onednn"
                   the ops are marked to call oneDNN instead where it is faster: more than one row, and a second matrix
                   that is large or a product that is much work. The first matrix has to be row-major, the second dense
                   in either order, sizes positive, and the bias one of columns. What carries an implementation,
                   which `graph-choose-products` chose, keeps it where that is possible. On a GPU an `aten.addmm` of
                   float32 and an `aten.convolution` with a bias, whose result only nests read, lose the bias to a nest
                   that adds it, which `loop-inline` puts into them (`bias.py`).

    MKL and oneDNN change places from one processor to the next: `torch.compile` measures which one it asks for.
    Measured on two cores of an AMD EPYC, BLAS's time over oneDNN's, for rows x inner x columns: 1x768x3072 0.5 to 1.1,
    2x768x768 1.0 to 1.6, 8x768x3072 1.9 to 2.5, 128x64x64 0.8, 128x256x256 1.0 to 1.15, 256x512x512 1.2, 128x768x3072
    1.4, 512x1024x2816 1.25, 128x768x50257 2.1. A first matrix that is not row-major is copied, which takes what is won.

        %y = aten.mm(%x, %w) : !aten.tensor<128x3072xf32>
    becomes, with "onednn",
        %y = aten.mm(%x, %w) {implementation = "onednn"} : !aten.tensor<128x3072xf32>
    and
        %y = aten.addmm(%b, %x, %w) : !aten.tensor<128x3072xf32, device = "cuda:0">
    becomes
        %p = aten.mm(%x, %w) : !aten.tensor<128x3072xf32, device = "cuda:0">
        %y = loop.generate (i0 in 128, i1 in 3072) {
          %v = loop.load %p[i0, i1]  %a = loop.load %b[i1]  %s = arith.addf %v, %a : f32  loop.yield %s
        } : !aten.tensor<128x3072xf32, device = "cuda:0">
    """

    name = "loop-select-implementation"

    products: str = BLAS

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        for each in [op for op in block.ops if is_apart_on_gpu(op)]:
            self._separate_bias(cast(AtenOp, each))
        products = [product for product in block.ops if _is_product(product)]
        estimates, ranges = Sizes.of_function(function), symbol_ranges(function)
        for product in products:
            chosen = product.attributes.get(IMPLEMENTATION)
            if chosen == StringAttr(ONEDNN) and (reason := objection_to_onednn(product, ranges)) is not None:
                del product.attributes[IMPLEMENTATION]
                remark("missed", self.name, product, f"not by oneDNN, which was chosen: {reason}")
            elif chosen is None and self.products == ONEDNN:
                self._mark(product, _objection(product, estimates, ranges))

    def _mark(self, product: Operation, objection: str | None) -> None:
        if objection is not None:
            remark("missed", self.name, product, f"not by oneDNN: {objection}")
        elif counter(self.name):
            product.attributes[IMPLEMENTATION] = StringAttr(ONEDNN)
            remark("passed", self.name, product, "by oneDNN")

    def _separate_bias(self, op: AtenOp) -> None:
        if not all(isinstance(use.operation, LoadOp) for use in op.results[0].uses):
            remark("missed", self.name, op, "the bias stays where it is: others than nests read the sum")
        elif counter(self.name):
            remark("passed", self.name, op, "the bias is added by those who read the sum")
            add_bias_behind(op)


def _is_product(op: Operation) -> TypeGuard[AtenOp]:
    if not isinstance(op, AtenOp) or op.name not in ("aten.mm", "aten.addmm"):
        return False
    type_ = cast(TensorType, op.results[0].type)
    return isinstance(type_.element, Float32Type) and target_at(op, type_.device).family.library.has_onednn


def _objection(op: AtenOp, estimates: Sizes, ranges: Ranges) -> str | None:
    """Why a product is left to the BLAS; None when it is not."""
    if (reason := objection_to_onednn(op, ranges)) is not None:
        return reason
    rows, (inner, columns) = cast(TensorType, op.results[0].type).shape[0], cast(TensorType, op.operands[-1].type).shape
    matrix = estimates.product((inner, columns))
    if estimates.of(rows) < 2 or (matrix < LARGE_MATRIX and estimates.of(rows) * matrix < MUCH_WORK):
        return "it is too small"
    return None


def objection_to_onednn(op: AtenOp, ranges: Ranges) -> str | None:
    """Why oneDNN does not compute an `aten.mm` or `aten.addmm` at all; None where it may."""
    *bias, left, right = (cast(TensorType, value.type) for value in op.operands)
    (rows, inner), columns = left.shape, right.shape[1]
    if bias and not adds_columns(op):
        return "what is added is no bias of the columns"
    if not left.is_contiguous:
        return "its first matrix is not row-major"
    if right.strides not in ((columns, ONE), (ONE, inner)):
        return "its second matrix is not dense"
    if not all(_is_positive(size, ranges) for size in (rows, inner, columns)):
        return "it may be empty"
    return None


def _is_positive(size: Expr, ranges: Ranges) -> bool:
    least = bounds(size, ranges)[0]
    return least is not None and least > 0
