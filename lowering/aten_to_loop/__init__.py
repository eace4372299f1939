"""aten -> loop: every ATen op that has a lowering becomes nests of scalar bodies or a view.

`rules` holds the one table, the modules of `families` fill it, `scalar_builder` and `nests` are what lowerings are
written with.
"""

from .lower import LowerAtenToLoop
from .rules import RULES
from .support import unlowered_reason

__all__ = ["RULES", "LowerAtenToLoop", "unlowered_reason"]
