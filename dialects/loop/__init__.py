"""The loop dialect: tensors as scalar bodies over named axes, reductions, scatters, views, and fusions of them."""

from xdsl.ir import Dialect

from .body import (
    AssertOp,
    IndexOp,
    LoadOp,
    ReduceOp,
    YieldOp,
    combiner_attr,
    verify_combiners,
    yielded,
)
from .fusion import FusionOp, Member, fusion_of, inner_values
from .monoids import MONOIDS, Monoid
from .nests import COMBINES, EmptyOp, GenerateOp, Parts, ScanOp, ScatterOp, ViewOp
from .syntax import axis_names

Loop = Dialect(
    "loop",
    [AssertOp, EmptyOp, FusionOp, GenerateOp, IndexOp, LoadOp, ReduceOp, ScanOp, ScatterOp, ViewOp, YieldOp],
)

__all__ = [
    "COMBINES", "MONOIDS", "AssertOp", "EmptyOp", "FusionOp", "GenerateOp", "IndexOp", "LoadOp", "Loop", "Member",
    "Monoid", "Parts", "ReduceOp", "ScanOp", "ScatterOp", "ViewOp", "YieldOp", "axis_names", "combiner_attr",
    "fusion_of", "inner_values", "verify_combiners", "yielded",
]  # fmt: skip
