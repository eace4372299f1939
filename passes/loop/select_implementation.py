"""`loop-select-implementation`: which library runs a matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import Float32Type, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...dialects.aten import AtenOp
from ...dialects.aten.types import TensorType
from ...dialects.sym import ONE, Expr, Ranges, bounds
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
    """Choose the library for each product of float32 matrices on the CPU.

    level:         loop
    precondition:  the strides of operands are final, as after `loop-assign-layouts`
    guarantee:     the same values but for the order of sums. With `products` "blas", as by default, nothing changes:
                   `aten.mm` and `aten.addmm` call the BLAS that torch was built with. With "onednn" the ops are marked
                   to call oneDNN instead where it is faster: more than one row, and a second matrix that is large or
                   a product that is much work. The first matrix has to be row-major, the second dense in either
                   order, sizes positive, and the bias one of columns.

    MKL runs AVX-512 code on Intel's processors only, so `torch.compile` asks for "onednn" on others that have AVX-512.
    Measured on two cores of an AMD EPYC, BLAS's time over oneDNN's, for rows x inner x columns: 1x768x3072 0.5 to 1.1,
    2x768x768 1.0 to 1.6, 8x768x3072 1.9 to 2.5, 128x64x64 0.8, 128x256x256 1.0 to 1.15, 256x512x512 1.2, 128x768x3072
    1.4, 512x1024x2816 1.25, 128x768x50257 2.1. A first matrix that is not row-major is copied, which takes what is won.

        %y = aten.mm(%x, %w) : !aten.tensor<128x3072xf32>
    becomes
        %y = aten.mm(%x, %w) {implementation = "onednn"} : !aten.tensor<128x3072xf32>
    """

    name = "loop-select-implementation"
    level: ClassVar[str] = "loop"

    products: str = BLAS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on every function of the module. UserError for an unknown library."""
        if self.products not in LIBRARIES:
            raise UserError(f"unknown library {self.products!r} for products", f"it is one of {', '.join(LIBRARIES)}")
        if self.products != ONEDNN:
            return
        for function, block in functions(op):
            estimates, ranges = Estimates(function), symbol_ranges(function)
            for product in block.ops:
                if not _is_product(product):
                    continue
                reason = _objection(product, estimates, ranges)
                if reason is not None:
                    remark("missed", self.name, product, f"not by oneDNN: {reason}")
                elif counter(self.name):
                    product.attributes[IMPLEMENTATION] = StringAttr(ONEDNN)
                    remark("passed", self.name, product, "by oneDNN")


def _is_product(op: Operation) -> bool:
    if not isinstance(op, AtenOp) or op.name not in ("aten.mm", "aten.addmm"):
        return False
    result = cast(TensorType, op.results[0].type)
    return isinstance(result.element, Float32Type) and result.device == "cpu"


def _objection(op: Operation, estimates: Estimates, ranges: Ranges) -> str | None:
    """Why a product is left to the BLAS; None when it is not."""
    assert isinstance(op, AtenOp)
    *bias, left, right = (cast(TensorType, value.type) for value in op.operands)
    (rows, inner), columns = left.shape, right.shape[1]
    if bias and (bias[0].shape != (columns,) or op.arg("beta") != 1 or op.arg("alpha") != 1):
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
