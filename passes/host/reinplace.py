"""The pass `host-reinplace`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import host
from ...dialects.aten.types import type_of
from ...dialects.raw import operands_of, ops_of
from ..analysis.kept import is_kept_value
from ..analysis.lifetimes import Lifetimes, is_tensor
from ..analysis.tensor_bytes import bytes_of
from ..common.functional_calls import FunctionalCall, functional_call, is_wrapper
from ..counters import counter
from ..function_pass import HostPass
from ..remarks import format_location, remark

#: ops that read and write nothing: they only say where memory is
_PLACES = (host.EmptyOp, host.ViewOp, host.FreeOp)


class HostReinplace(HostPass):
    """Let operators write their arguments where they lie, as the program says, instead of copies.

    Level: host.

    Precondition: nothing is freed, planned or reused yet.
    Guarantee: a call that functionalization wrapped, so that it returns new values of what its operator writes, is a
    call of the operator itself. It writes a tensor in place that nothing uses behind it: memory of the program's own,
    or an argument that the program writes back anyway, whose `host.copy` then goes away. Else it writes a copy that the
    program allocates, and a remark says why. Wrappers stay around operators that return what they write, and graphs.

        %n, %c = aten.call "higher_order::auto_functionalized_v2"(#aten.operator<"m::write">, v = %v,
                     _cache_base_index = 0, _all_bases = [%cache]) {mutates = ["cache"]} : none, T
        host.launch @sum(%c, %y)
        host.copy %c to %cache
    becomes
        aten.call "m::write"(v = %v, cache = %cache) writes [1]
        host.launch @sum(%cache, %y)
    """

    name = "host-reinplace"

    def on_program(self, function: host.FuncOp) -> None:
        """Reinplace the calls of every host function."""
        wrappers = [each for each in ops_of(function.body.block) if is_wrapper(each)]
        if wrappers:
            _Reinplacer(function.body.block).run(wrappers)


class _Reinplacer:
    """Works on one function.

    Positions and uses are those from before. A value that comes to lie in another's memory hands its uses over.
    """

    def __init__(self, block: Block) -> None:
        self.lifetimes = Lifetimes(block)
        self.position = self.lifetimes.position
        self.root: dict[SSAValue, SSAValue] = {}
        """The memory in which a value lies that had its own."""
        self.uses: dict[SSAValue, list[Operation]] = {}
        """For each memory the ops that read or write it, in order."""
        for op in block.ops:
            if not isinstance(op, _PLACES):
                for root in {root for operand in operands_of(op) for root in self._roots(operand)}:
                    self.uses.setdefault(root, []).append(op)

    def run(self, wrappers: Sequence[Operation]) -> None:
        """Rewrite the calls in order; one may write what another has written."""
        for call in filter(None, map(functional_call, wrappers)):
            reasons = [self._reason_to_copy(call, number) for number in range(len(call.bases))]
            if not counter(HostReinplace.name):
                continue
            memory = [self._memory(call, number, reason) for number, reason in enumerate(reasons)]
            _rewrite(call, memory)

    def _memory(self, call: FunctionalCall, number: int, reason: str | None) -> SSAValue:
        """What the operator writes for a base."""
        base, value = call.bases[number], call.values[number]
        size = str(bytes_of(type_of(base)))
        if reason is not None:
            remark("missed", HostReinplace.name, call.op, f"{call.shown} writes a copy: {reason}", bytes=size)
            copy = _copy(call, base)
            self._hand_over(value, copy)
            return copy
        remark("passed", HostReinplace.name, call.op, f"{call.shown} writes in place", bytes=size)
        (root,) = self._roots(base)
        self._hand_over(value, root)
        return base

    def _hand_over(self, value: SSAValue, root: SSAValue) -> None:
        self.root[value] = root
        uses = self.uses.get(root, []) + self.uses.pop(value, [])
        self.uses[root] = sorted(uses, key=self.position.__getitem__)

    def _roots(self, value: SSAValue) -> set[SSAValue]:
        """The memory that a value may lie in, as it is now."""
        if not is_tensor(value):
            return set()
        return {self._root(root) for root in self.lifetimes.roots(value)}

    def _root(self, value: SSAValue) -> SSAValue:
        while value in self.root:
            value = self.root[value]
        return value

    def _behind(self, memory: SSAValue, op: Operation) -> list[Operation]:
        """The ops behind one that use a memory."""
        return [each for each in self.uses.get(memory, ()) if self.position[each] > self.position[op] and each.parent]

    def _reason_to_copy(self, call: FunctionalCall, number: int) -> str | None:
        """Why the operator must write a copy of a base; None where it may write the base."""
        base, value = call.bases[number], call.values[number]
        roots = self._roots(base)
        if base.type != value.type:
            return "the new value has another layout"
        if len(roots) != 1:
            return "it may be a view of several tensors"
        (memory,) = roots
        if sum(memory in self._roots(operand) for operand in operands_of(call.op)) > 1:
            return "another argument lies in the same memory"
        behind = self._behind(memory, call.op)
        if isinstance(memory.owner, Block):
            return self._reason_of_argument(memory, value, behind)
        if is_kept_value(memory):
            return "it is kept for later calls"
        if is_wrapper(memory.owner):
            return "its memory may be that of another result"
        if behind:
            return f"{_described(behind[0])} uses the old elements"
        return "a view would be returned" if base is not memory and self._is_returned(value) else None

    def _reason_of_argument(self, memory: SSAValue, value: SSAValue, behind: Sequence[Operation]) -> str | None:
        """The same for an argument of the function: it is written back behind the call, or must not be written."""
        back = next((op for op in behind if isinstance(op, host.CopyOp) and op.target is memory), None)
        if back is None:
            return "the caller's tensor keeps its elements"
        reader = behind[0] if behind[0] is not back else back if memory in self._roots(back.source) else None
        if reader is not None:
            return f"{_described(reader)} uses the old elements"
        if self._is_returned(value):
            return "the new elements are returned, and a result is no argument"
        last = max((self.position[op] for op in self._behind(value, back)), default=-1)
        others = [op for op in behind if op is not back and self.position[op] <= last]
        if last >= 0 and (others or back.source is not value):
            return "the new elements are used behind the next write"
        return None

    def _is_returned(self, value: SSAValue) -> bool:
        return any(isinstance(op, host.ReturnOp) for op in self.uses.get(value, ()))


def _described(op: Operation) -> str:
    where = format_location(op.location)
    name = op.kernel.root_reference.data if isinstance(op, host.LaunchOp) else op.name
    return f"{name} at {where}" if where else name


def _copy(call: FunctionalCall, base: SSAValue) -> SSAValue:
    """A copy of a base in front of a call."""
    empty = host.EmptyOp.of(base.type, location=call.op.location)
    copy = host.CopyOp.create(operands=(base, empty.out), location=call.op.location)
    block = call.op.parent
    assert block is not None
    block.insert_ops_before((empty, copy), call.op)
    return empty.out


def _rewrite(call: FunctionalCall, memory: Sequence[SSAValue]) -> None:
    """Put the operator's own call in the place of the wrapper."""
    new, block = call.write(memory), call.op.parent
    assert block is not None
    for old, result in zip(call.op.results, new.results, strict=False):
        old.replace_all_uses_with(result)
    for old, written in zip(call.values, memory, strict=True):
        written.name_hint = written.name_hint or old.name_hint
        old.replace_all_uses_with(written)
        for user in {use.operation for use in written.uses}:
            if isinstance(user, host.CopyOp) and user.source is user.target:
                block.erase_op(user)
    block.erase_op(call.op)
