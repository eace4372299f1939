"""A schedule in a file of its own, for the flag `--transform`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..dialects import kernel, transform
from ..errors import UserError
from ..lowering.registry import parse_passes
from ..records import dataclass
from .diagnostics import read_input
from .source import Source

#: the pass that runs scripts
APPLY = "kernel-apply-schedule"


@dataclass(frozen=True)
class Script:
    """The text of a script."""

    source: Source

    def passes(self, passes: Sequence[ModulePass]) -> list[ModulePass]:
        """The passes with the one that runs the script: where the pipeline has it, else in front of all."""
        if any(each.name == APPLY for each in passes):
            return list(passes)
        return [*parse_passes(APPLY), *passes]

    def add_to(self, module: ModuleOp, context: Context, passes: Sequence[ModulePass]) -> None:
        """Put the sequences of the script into a module.

        UserError for a script that holds anything else, and for a module whose kernels come into being too late.
        """
        script = self.source.parse(context)
        self.source.verify(script)
        self.source.locate_ops()
        ops = list(script.body.block.ops)
        other = next((op for op in ops if not isinstance(op, transform.SequenceOp)), None)
        if other is not None or not ops:
            found = "nothing" if other is None else other.name
            raise UserError(f"{self.source.name}: error: a script has transform.sequence ops, and this has {found}")
        if passes[0].name == APPLY and not any(isinstance(op, kernel.FuncOp) for op in module.body.block.ops):
            problem = f"{self.source.name}: error: the script is for kernels, and the passes make none in front of it"
            raise UserError(problem, f"add --pipeline default, or name {APPLY} behind lower-loop-to-kernel")
        for op in ops:
            op.detach()
            module.body.block.add_op(op)


def read_script(path: str) -> Script:
    """Read a script. UserError for a file that cannot be read."""
    return Script(Source(*read_input(path)))
