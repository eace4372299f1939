"""The pass `kernel-lead-products`."""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects import kernel
from ..analysis.effects import needed_by
from ..analysis.loops import loops_in
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu


class KernelLeadProducts(KernelPass, kernels=all_for_gpu):
    """Let a step begin with all products that need nothing of one another, before anything is made of the first.

    Level: kernel.

    Precondition: `kernel-map-softmax-sums`, `kernel-map-chained-products`; ops of a body are in the order in which a
    program runs them.
    Guarantee: in the body of a reduction of several sums on matrix units products stand in front, those behind the
    first one with what they need, unless that is made of another product. So the units are still busy with the second
    product while lanes compute what is made of the first: gradients of keys and values at heads of 128 take 1,824
    us for 1,992 on an H200. Where there is but one sum, which needs all products, the order of the program is as
    fast. It changes no value.

        %g, %h = kernel.reduce [sum, sum] i3 ... map matrix { %s = kernel.reduce sum ... map matrix ...
          %p = math.exp %s   %t = kernel.reduce sum ... map matrix ...   %r = arith.mulf %p, %t ... }
    becomes
        %g, %h = kernel.reduce [sum, sum] i3 ... map matrix { %s = kernel.reduce sum ... map matrix ...
          %t = kernel.reduce sum ... map matrix ...   %p = math.exp %s   %r = arith.mulf %p, %t ... }
    """

    name = "kernel-lead-products"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Move the products of a kernel's steps."""
        for op in loops_in(function.body.block):
            if not isinstance(op, kernel.ReduceOp) or op.mapping.data != "matrix" or len(op.results) == 1:
                continue
            inner = [each for each in op.body.block.ops if isinstance(each, kernel.ReduceOp)]
            if len(inner) > 1 and not kernel.leading_products(op) and counter(self.name):
                count = _lead(inner)
                if count > 1:
                    remark("passed", self.name, op, "products stand in front", products=count)


def _lead(inner: list[kernel.ReduceOp]) -> int:
    """Move products in front, the first one too; how many there are now."""
    block = inner[0].parent
    assert block is not None
    free = [op for op in inner if not any(isinstance(each, kernel.ReduceOp) for each in needed_by(op, block) - {op})]
    wanted = set[Operation]().union(*(needed_by(op, block) | {op} for op in free))
    if len(free) < 2:
        return len(free)
    first = block.first_op
    for op in [each for each in block.ops if each in wanted]:
        if op is first:
            first = op.next_op
            continue
        op.detach()
        assert first is not None
        block.insert_op_before(op, first)
    return len(free)
