"""`loop-spread-copies`: where several small inputs on a GPU get one value, one kernel writes them all."""

from __future__ import annotations

from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, LoadOp, YieldOp
from ...dialects.machine import TargetsAttr, targets_of
from ...dialects.sym import AxesAttr, MapAttr, symbol
from ...machines import GpuTarget
from ..analysis.functions import functions
from ..analysis.memory import written_value
from ..analysis.sizes import Sizes
from ..counters import counter
from ..remarks import remark


class SpreadCopies(ModulePass):
    """Give each small input that gets the same value as another one a nest of its own, so that no copy is a launch.

    level:         loop
    precondition:  `loop-cse`, which would merge the nests, has run. `loop-fuse` and `loop-bufferize`, which make one
                   kernel of the nests that writes to the inputs, run later
    guarantee:     a small `aten.copy_` on a GPU has a value that is computed for it alone: a nest copies the value if
                   an earlier `aten.copy_` has the same one, or if it is an argument. A copy is small if it moves fewer
                   bytes than the memory moves in the time of a launch. Without this pass a kernel that computes one
                   value for several inputs, such as the lengths of the caches of all layers, would write it to one
                   of them, and each of the others would take a launch. Nothing changes in a function with only one
                   such copy.

        %c = aten.copy_(%p, %v) : T
        %d = aten.copy_(%q, %v) : T
    becomes, if there are more of them,
        %c = aten.copy_(%p, %v) : T
        %w = loop.generate () { %e = loop.load %v[]  loop.yield %e } : T
        %d = aten.copy_(%q, %w) : T
    """

    name = "loop-spread-copies"
    level: ClassVar[str] = "loop"
    optional: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on every function of the module."""
        targets = targets_of(op)
        for function, block in functions(op):
            estimates = Sizes.of_function(function)
            copies = [each for each in _repeated(block) if _is_small(each, targets, estimates)]
            for copy in copies if len(copies) > 1 else ():
                if counter(self.name):
                    remark("passed", self.name, copy, "copied by a nest")
                    _spread(block, copy)


def _repeated(block: Block) -> list[Operation]:
    """Copies whose value is an argument, or that of a copy before them."""
    found: list[Operation] = []
    seen: set[SSAValue] = set()
    for op in block.ops:
        if op.name == "aten.copy_" and written_value(op) is not None:
            value = op.operands[1]
            if value.type == op.operands[0].type and (value in seen or isinstance(value, BlockArgument)):
                found.append(op)
            seen.add(value)
    return found


def _is_small(copy: Operation, targets: TargetsAttr, estimates: Sizes) -> bool:
    type_ = copy.operands[1].type
    assert isinstance(type_, TensorType)
    target = targets.target(type_.device)
    size = 2 * estimates.bytes(type_)
    return isinstance(target, GpuTarget) and size < target.launch_bytes


def _spread(block: Block, copy: Operation) -> None:
    """Let a nest make the value of a copy."""
    value = copy.operands[1]
    type_ = value.type
    assert isinstance(type_, TensorType)
    names = [f"i{k}" for k in range(len(type_.shape))]
    load = LoadOp.of(value, MapAttr.of(*map(symbol, names)), location=copy.location)
    body = Region(Block([load, YieldOp.create(operands=load.results)]))
    axes = AxesAttr.of(*zip(names, type_.shape, strict=True))
    nest = GenerateOp.of(axes, body, [type_], location=copy.location)
    nest.results[0].name_hint = value.name_hint
    block.insert_op_before(nest, copy)
    copy.operands = [copy.operands[0], nest.results[0]]
