"""`module-attach-target`: a module says for which machine it is compiled, and its tensors are there."""

from __future__ import annotations

from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects import kernel
from ...dialects.machine import TARGETS, TargetsAttr, targets_of
from ...errors import UserError
from ...machines import HOST, Target, default_target, target_named
from ...records import dataclass
from ..common.moving import devices_in, move_tensors
from ..remarks import remark


@dataclass(frozen=True)
class AttachTarget(ModulePass):
    """Say for which machine a module is compiled, as the flag `--target` of the tools does.

    level:         any
    precondition:  none
    guarantee:     the attribute `machine.targets` names `target` for its type of device, and the CPU of the host. Where
                   no tensor is on such a device, and all are on one other type of device, they move: a graph that was
                   written for the CPU computes on the GPU then, and the other way round. Numbers of the host beside
                   another device's tensors stay where they are. Ops that name a device name the new one. Kernels that
                   are already scheduled for another machine cannot move.

    With `target = "cuda:90"`,
        builtin.module { func.func @f(%x: !aten.tensor<8xf32>) -> ... { %y = aten.exp(%x) : !aten.tensor<8xf32> ... } }
    becomes
        builtin.module attributes {machine.targets = #machine.targets<cpu = "cpp", cuda = "cuda:90">} {
          func.func @f(%x: !aten.tensor<8xf32, device = "cuda:0">) -> ... {
            %y = aten.exp(%x) : !aten.tensor<8xf32, device = "cuda:0"> ... } }
    """

    name = "module-attach-target"
    level: ClassVar[str] = ""

    target: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Set the attribute. UserError for an unknown target, or tensors that cannot move there."""
        target = target_named(self.target)
        devices = devices_in(op)
        types = {device.partition(":")[0] for device in devices}
        if types and target.device not in types:
            moved = types if len(types) == 1 else types - {HOST}  # what is beside a GPU's tensors stays with the host
            _check_move(op, moved, target)
            places = {each: _place(each, target) for each in devices if each.partition(":")[0] in moved}
            move_tensors(op, places)
            remark("analysis", self.name, op, f"tensors move from {', '.join(sorted(moved))} to {target.device}")
        names = {HOST: default_target(HOST).name, **dict(targets_of(op).data), target.device: target.name}
        op.attributes[TARGETS] = TargetsAttr.of(names)


def _place(device: str, target: Target) -> str:
    """The device that stands for one: with the same number, which the host has none of."""
    _, _, number = device.partition(":")
    return HOST if target.device == HOST else f"{target.device}:{number or 0}"


def _check_move(module: ModuleOp, types: set[str], target: Target) -> None:
    if len(types) > 1:
        problem = f"no tensor is on a {target.device!r} device, but on {', '.join(sorted(types))}"
        raise UserError(f"the target is {target.name!r}: {problem}", "name the target of one of these")
    for op in module.body.block.ops:
        if isinstance(op, kernel.FuncOp) and op.target is not None:
            problem = f"@{op.sym_name.data} is scheduled for {op.target.data!r} already"
            raise UserError(f"the target is {target.name!r}, and {problem}", "start from IR in front of the schedule")
