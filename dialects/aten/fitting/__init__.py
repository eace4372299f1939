"""Whether the arguments of an ATen op fit each other and the types of its results, by the op's own rule.

    %1 = aten.permute(%0, dims = [0, 2, 1, 3, 0, 2, 1, 3]) : ...   // takes 4 dimensions, and 8 are given

Sizes are compared where they are known to differ; a type that torch would not give is told before a lowering meets it.
torch's meta functions know more, and take seconds to load; what is read from a file is not run with them.
"""

from .check import misfit

__all__ = ["misfit"]
