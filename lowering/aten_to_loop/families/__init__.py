"""The families of ops; importing this package fills the table `rules.RULES`."""

from . import (
    activation,
    arithmetic,
    comparison,
    creation,
    gather,
    mathematics,
    normalization,
    reductions,
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
    "reductions",
    "scans",
    "scatter",
    "softmax",
    "views",
]
