"""`loop-select-implementation`: who computes a matrix product, and what of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeGuard, cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass

from ...dialects.aten import AtenOp
from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, LoadOp, YieldOp
from ...dialects.sym import ONE, AxesAttr, Expr, MapAttr, Ranges, bounds, symbol
from ...errors import UserError
from ..common.estimates import Estimates
from ..common.functions import functions, symbol_ranges
from ..counters import counter
from ..remarks import remark

#: the attribute of an op that names its implementation; without it ATen chooses
IMPLEMENTATION = "implementation"

BLAS, ONEDNN = "blas", "onednn"
LIBRARIES = (BLAS, ONEDNN)

#: a product that oneDNN gets has two rows and a second matrix of so many elements, or so many multiplications
LARGE_MATRIX = 1 << 19
MUCH_WORK = 1 << 25


@dataclass(frozen=True)
class SelectImplementation(ModulePass):
    """Choose how each product of float32 matrices is computed.

    level:         loop
    precondition:  the strides of operands are final, as after `loop-assign-layouts`; `loop-inline` comes behind
    guarantee:     the same values but for the order of sums. On the CPU, with `products` "blas", as by default,
                   nothing changes: `aten.mm` and `aten.addmm` call the BLAS that torch was built with. With "onednn"
                   the ops are marked to call oneDNN instead where it is faster: more than one row, and a second matrix
                   that is large or a product that is much work. The first matrix has to be row-major, the second dense
                   in either order, sizes positive, and the bias one of columns. On a GPU an `aten.addmm` whose result
                   only nests read becomes a product and a nest that adds the bias, which `loop-inline` puts into them.

    MKL runs AVX-512 code on Intel's processors only, so `torch.compile` asks for "onednn" on others that have AVX-512.
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
    level: ClassVar[str] = "loop"

    products: str = BLAS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on every function of the module. UserError for an unknown library."""
        if self.products not in LIBRARIES:
            raise UserError(f"unknown library {self.products!r} for products", f"it is one of {', '.join(LIBRARIES)}")
        for function, block in functions(op):
            products = [product for product in block.ops if _is_product(product)]
            if not products:
                continue
            estimates, ranges = Estimates(function), symbol_ranges(function)
            for product in products:
                if cast(TensorType, product.results[0].type).device != "cpu":
                    self._separate_bias(product)
                elif self.products == ONEDNN:
                    self._mark(product, _objection(product, estimates, ranges))

    def _mark(self, product: Operation, objection: str | None) -> None:
        if objection is not None:
            remark("missed", self.name, product, f"not by oneDNN: {objection}")
        elif counter(self.name):
            product.attributes[IMPLEMENTATION] = StringAttr(ONEDNN)
            remark("passed", self.name, product, "by oneDNN")

    def _separate_bias(self, product: AtenOp) -> None:
        if product.name != "aten.addmm" or not _adds_columns(product):
            return
        if not all(isinstance(use.operation, LoadOp) for use in product.results[0].uses):
            remark("missed", self.name, product, "the bias stays in the product: others than nests read the sum")
        elif counter(self.name):
            remark("passed", self.name, product, "the bias is added by those who read the sum")
            _add_bias_behind(product)


def _add_bias_behind(product: AtenOp) -> None:
    bias, left, right = product.operands
    type_ = cast(TensorType, product.results[0].type)
    alone = AtenOp.of("aten.mm", {"self": left, "mat2": right}, [type_], product.location)
    row, column = symbol("i0"), symbol("i1")
    value = LoadOp.of(alone.results[0], MapAttr.of(row, column), location=product.location)
    addend = LoadOp.of(bias, MapAttr.of(column), location=product.location)
    total = arith.AddfOp(value.results[0], addend.results[0])
    total.location = product.location
    body = Region(Block([value, addend, total, YieldOp.create(operands=[total.result])]))
    axes = AxesAttr.of(("i0", type_.shape[0]), ("i1", type_.shape[1]))
    nest = GenerateOp.of(axes, body, [type_], location=product.location)
    block = product.parent
    assert block is not None
    for op in (alone, nest):
        block.insert_op_before(op, product)
    nest.results[0].name_hint = product.results[0].name_hint
    product.results[0].replace_all_uses_with(nest.results[0])
    block.erase_op(product)


def _is_product(op: Operation) -> TypeGuard[AtenOp]:
    if not isinstance(op, AtenOp) or op.name not in ("aten.mm", "aten.addmm"):
        return False
    return isinstance(cast(TensorType, op.results[0].type).element, Float32Type)


def _adds_columns(op: AtenOp) -> bool:
    """Whether what an `aten.addmm` adds is a bias, a number for each column."""
    bias, _, right = (cast(TensorType, value.type) for value in op.operands)
    return bias.shape == (right.shape[1],) and op.arg("beta") == 1 and op.arg("alpha") == 1


def _objection(op: AtenOp, estimates: Estimates, ranges: Ranges) -> str | None:
    """Why a product is left to the BLAS; None when it is not."""
    *bias, left, right = (cast(TensorType, value.type) for value in op.operands)
    (rows, inner), columns = left.shape, right.shape[1]
    if bias and not _adds_columns(op):
        return "what is added is no bias of the columns"
    if not left.is_contiguous:
        return "its first matrix is not row-major"
    if right.strides not in ((columns, ONE), (ONE, inner)):
        return "its second matrix is not dense"
    if not all(_is_positive(size, ranges) for size in (rows, inner, columns)):
        return "it may be empty"
    matrix = estimates.product((inner, columns))
    if estimates[rows] < 2 or (matrix < LARGE_MATRIX and estimates[rows] * matrix < MUCH_WORK):
        return "it is too small"
    return None


def _is_positive(size: Expr, ranges: Ranges) -> bool:
    least = bounds(size, ranges)[0]
    return least is not None and least > 0
