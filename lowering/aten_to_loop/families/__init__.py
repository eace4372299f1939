"""The families of ops; importing this package fills the table `rules.RULES`."""

from . import (
    activation,
    arithmetic,
    comparison,
    creation,
    gather,
    mathematics,
    normalization,
    normalization_gradient,
    pooling,
    reductions,
    resampling,
    scans,
    scatter,
    softmax,
    views,
)

__all__ = [
    "activation",
    "arithmetic",
    "comparison",
    "creation",
    "gather",
    "mathematics",
    "normalization",
    "normalization_gradient",
    "pooling",
    "reductions",
    "resampling",
    "scans",
    "scatter",
    "softmax",
    "views",
]
