"""The kernel dialect: buffers, linear addresses, and loops mapped to hardware; shared by all targets."""

from xdsl.ir import Dialect

from .boxes import Box, box_of
from .contraction import (
    FLOATS8,
    PRECISION,
    PRECISIONS,
    Product,
    WeightedSum,
    axes_of,
    contraction_of,
    element_of,
    leading_products,
    operand_of,
    products_of,
    tiled_axes,
    weighted_parts,
    weighted_sums_of,
)
from .func import DESCRIPTOR, FuncOp
from .loops import MAPPINGS, ForOp, ReduceOp, ScanOp, YieldOp, float_sums, groupable
from .marks import DIVISOR, TINY, mark_of, problem_of_marks
from .memory import (
    HALVES,
    AssertOp,
    AwaitOp,
    BarrierOp,
    IndexOp,
    LoadOp,
    LocalOp,
    ReleaseOp,
    StoreOp,
    index_of,
    other_half,
    stored_between,
)
from .types import BufferType

Kernel = Dialect(
    "kernel",
    [
        AssertOp,
        AwaitOp,
        BarrierOp,
        ForOp,
        FuncOp,
        IndexOp,
        LoadOp,
        LocalOp,
        ReduceOp,
        ReleaseOp,
        ScanOp,
        StoreOp,
        YieldOp,
    ],
    [BufferType],
)

__all__ = [
    "DESCRIPTOR", "DIVISOR", "FLOATS8", "HALVES", "MAPPINGS", "PRECISION", "PRECISIONS", "TINY", "AssertOp",
    "AwaitOp", "BarrierOp", "Box", "BufferType", "ForOp", "FuncOp", "IndexOp", "Kernel", "LoadOp", "LocalOp",
    "Product", "ReduceOp", "ReleaseOp", "ScanOp", "StoreOp", "WeightedSum", "YieldOp", "axes_of", "box_of",
    "contraction_of", "element_of", "float_sums", "groupable", "index_of", "leading_products", "mark_of", "operand_of",
    "other_half",
    "problem_of_marks", "products_of", "stored_between", "tiled_axes", "weighted_parts", "weighted_sums_of",
]  # fmt: skip
