"""Kernels for GPUs whose chosen products did not end on matrix units."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.raw import ops_in, ops_of
from ...machines import GpuTarget, target_named
from ..common.choices import CHOSEN_FOR, STREAMED


def without_units(module: Operation) -> dict[kernel.FuncOp, set[str]]:
    """Kernels in which a product has a chosen tile, but matrix units do not multiply it, or not in a softmax.

    Something else became part of its nest, or its nest part of something else. Nobody measured that. Of each kernel
    the shapes that such products were chosen for.
    """
    found: dict[kernel.FuncOp, set[str]] = {}
    for function in ops_of(module.regions[0].block):
        if isinstance(function, kernel.FuncOp) and _is_gpu(function):
            for op in ops_in(function):
                shape = op.attributes.get(CHOSEN_FOR)
                if isinstance(shape, StringAttr) and _lacks_units(op):
                    found.setdefault(function, set()).add(shape.data)
    return found


def _is_gpu(function: kernel.FuncOp) -> bool:
    return function.target is not None and isinstance(target_named(function.target.data), GpuTarget)


def _lacks_units(product: Operation) -> bool:
    loop = product.parent_op()
    if not isinstance(loop, kernel.ReduceOp) or loop.mapping.data != "matrix":
        return True
    if STREAMED not in product.attributes:
        return False
    outer = loop.parent_op()
    return not isinstance(outer, kernel.ReduceOp) or "softmax_sum" not in {each.data for each in outer.combiners}
