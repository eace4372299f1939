"""`host-inline`: called programs stand where they are called."""

from __future__ import annotations

from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import host
from ...dialects.raw import op_behind, operands_of, ops_of
from ..analysis.functions import bodies, called
from ..common.copies import copy_op


class HostInline(ModulePass):
    """Replace calls by the ops of the program that they call.

    level:         host
    precondition:  nothing is freed or planned yet; no program calls itself, directly or not
    guarantee:     there is no `host.call` but of programs whose results are kept, and no other program that one called,
                   but for bodies that calls of operators refer to.
                   What follows sees all allocations, launches
                   and library calls in one program, as if nothing had been outlined. A view of an argument that the
                   caller, or another call, has made already is used again, unless it is returned.

        host.func @f(%x: T) -> (T) { %y = host.call @layer(%x) : T  %z = host.call @layer(%y) : T  host.return %z }
        host.func @layer(%x: T) -> (T) { %y = host.empty : T  host.launch @exp(%x, %y)  host.return %y }
    becomes
        host.func @f(%x: T) -> (T) {
          %y = host.empty : T  host.launch @exp(%x, %y)
          %z = host.empty : T  host.launch @exp(%y, %z)
          host.return %z
        }
    """

    name = "host-inline"
    level: ClassVar[str] = "host"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Inline into every program that is not inlined itself; drop those that were."""
        names = called(op) - bodies(op)
        if not names:
            return
        programs = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, host.FuncOp)}
        for name, program in programs.items():
            if name not in names or program.kept is not None:
                _Inliner(program.body.block, programs).run()
        for name in names & programs.keys():
            if programs[name].kept is None:
                op.body.block.erase_op(programs[name], safe_erase=False)


class _Inliner:
    """Inlines into one program."""

    def __init__(self, block: Block, programs: dict[str, host.FuncOp]) -> None:
        self.block = block
        self.programs = programs
        self.views: dict[tuple[object, ...], SSAValue] = {}

    def run(self) -> None:
        op = self.block.first_op
        while op is not None:
            following = op_behind(op)
            if isinstance(op, host.CallOp) and op.kept is None:
                copies = self.inline(op, self.programs[op.callee.root_reference.data].body.block)
                following = copies[0] if copies else following  # they may hold calls themselves
            elif isinstance(op, host.ViewOp):
                self.views.setdefault(_view_key(op.source, op), op.out)
            op = following

    def inline(self, call: host.CallOp, callee: Block) -> list[Operation]:
        """Put copies of the ops of a program in front of a call of it, and let their values stand for its results."""
        values: dict[SSAValue, SSAValue] = dict(zip(callee.args, operands_of(call), strict=True))
        *body, last = ops_of(callee)
        returned = set(map(id, operands_of(last)))
        copies: list[Operation] = []
        for op in body:
            if isinstance(op, host.ViewOp) and isinstance(op.source.owner, Block) and id(op.out) not in returned:
                known = self.views.get(_view_key(values[op.source], op))
                if known is not None:
                    values[op.out] = known
                    continue
            copies.append(copy_op(op, values))
        self.block.insert_ops_before(copies, call)
        for result, inner in zip(call.results, operands_of(last), strict=True):
            value = values[inner]
            value.name_hint = result.name_hint or value.name_hint
            result.replace_all_uses_with(value)
        self.block.erase_op(call)
        return copies


def _view_key(source: SSAValue, view: host.ViewOp) -> tuple[object, ...]:
    """Equal for views of the same elements: attributes and types of views are interned."""
    return id(source), view.offset.data, view.out.type
