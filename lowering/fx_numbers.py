"""Numbers that modules own are constants: the pass `settle-numbers` on Dynamo's graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.fx import GraphModule

from ..passes.counters import counter
from ..passes.remarks import remark
from .fx_pre_grad import pre_grad_pass
from .fx_settled import settle

_NAME = "settle-numbers"


@pre_grad_pass(_NAME)
def settle_numbers(graph: GraphModule, inputs: Sequence[Any]) -> None:
    """A float that a module, or a namespace, owns is a constant, as it is where sizes are static.

    Under `dynamic=True` Dynamo passes each as a tensor of the CPU, of which every kernel that reads it needs a copy,
    and a scale that is open keeps attention from its fused kernels. A guard asks for the value of this trace; where it
    was another one before, it stays open, so that a number that changes compiles twice, as it does without
    `dynamic=True`. Numbers that a call is given stay open.

        eps = l_self_eps.item()
        y = torch.rms_norm(x, (64,), None, eps)
    becomes
        y = torch.rms_norm(x, (64,), None, 1e-06)
    """
    for each in settle(graph, lambda: counter("settle-numbers")):
        remark("passed", _NAME, None, f"{each.node} is {each.number}")
