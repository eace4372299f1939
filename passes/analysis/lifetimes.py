"""Which values of a host function share memory, and between which ops each lives. Derived from the IR every time."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import host
from ...dialects.aten import AtenOp, CallOp
from ...dialects.aten.types import TensorType
from ...dialects.raw import maker_of, operands_of, ops_of, type_of, users_of
from ...dialects.sym import ZERO, Expr, Ranges, const, prove_le, prove_nonneg
from ...errors import InductileError
from ..common.own_products import is_own_product
from .memory import may_return_alias
from .tensor_bytes import bytes_of


class LifetimeError(InductileError):
    """A value is used behind the end of its life, or two values that live at once share memory."""


def is_used_by_call(value: SSAValue) -> bool:
    """Whether an op sees the storage of a value or a view of it, which then has to be the value's own.

    An operator that is neither ATen's nor ours may: nobody knows what it keeps. ATen's `as_strided` family counts
    places from where the storage starts.
    """
    for user in users_of(value):
        if type(user) is host.LaunchOp or is_own_product(user):
            continue
        if isinstance(user, CallOp) or (isinstance(user, AtenOp) and "storage_offset" in user.schema.by_name):
            return True
        if any(value in sources(result) and is_used_by_call(result) for result in user.results):
            return True
    return False


def is_tensor(value: SSAValue) -> bool:
    """Whether a value has memory."""
    return type(type_of(value)) is TensorType


def sources(value: SSAValue) -> tuple[SSAValue, ...]:
    """The values that `value` may be a view of, one step up; empty when its memory is its own."""
    maker = maker_of(value)
    return () if maker is None else _sources_of_results(maker)


def _sources_of_results(op: Operation) -> tuple[SSAValue, ...]:
    kind = type(op)
    if kind is host.ViewOp or kind is host.EmptyOp:
        return operands_of(op)
    if may_return_alias(op):
        return tuple([operand for operand in operands_of(op) if is_tensor(operand)])
    return ()


def viewed(value: SSAValue) -> SSAValue:
    """What a `host.view`, or a view of a view, is made of; the value itself where it is none."""
    while isinstance(value.owner, host.ViewOp):
        value = value.owner.source
    return value


class Lifetimes:
    """Positions of ops in a host function, and the last use of each value's memory.

    last[value] is the position of the last op that uses a value or anything that may be a view of it; `end` for what
    the function returns. A `host.free` is no use.
    """

    def __init__(self, block: Block) -> None:
        ops = ops_of(block)
        self.position: dict[Operation, int] = {op: position for position, op in enumerate(ops)}
        self.end = len(ops) - 1
        self.last: dict[SSAValue, int] = {}
        self.values: list[SSAValue] = [a for a in block.args if is_tensor(a)]
        self._roots: dict[SSAValue, frozenset[SSAValue]] = {}
        # By identity: a hash of a value is a call of Python, and values are looked up several times each.
        own: dict[int, int] = {}
        made: list[tuple[int, tuple[SSAValue, ...]]] = [(-1, ())] * len(self.values)
        for position, op in enumerate(ops):
            results = [result for result in op.results if type(type_of(result)) is TensorType]
            if results:
                self.values += results
                made += [(position, _sources_of_results(op))] * len(results)
            if type(op) is not host.FreeOp:
                own.update(dict.fromkeys(map(id, operands_of(op)), position))
        # Views come behind their sources, so that going backwards each last use is final when it is handed up.
        for value, (start, above) in zip(reversed(self.values), reversed(made), strict=True):
            own_last = own.get(id(value), -1)
            last = self.last[value] = own_last if own_last > start else start
            for source in above:
                if own.get(id(source), -1) < last:
                    own[id(source)] = last

    def start(self, value: SSAValue) -> int:
        """Position of the op that makes a value; -1 for an argument."""
        maker = maker_of(value)
        return -1 if maker is None else self.position[maker]

    def roots(self, value: SSAValue) -> frozenset[SSAValue]:
        """The values whose own memory `value` may lie in."""
        found = self._roots.get(value)
        if found is None:
            above = sources(value)
            found = frozenset().union(*(self.roots(s) for s in above)) if above else frozenset((value,))
            self._roots[value] = found
        return found

    def merge(self, fresh: SSAValue, old: SSAValue, user: Operation) -> None:
        """Know that all uses of `fresh`, which had memory of its own, became uses of `old`, which is no view of it.

        The op that made it is gone; positions stay, with a hole there. Where `old` is a new view, it stands directly in
        front of its first `user`, and counts as made there.
        """
        last = self.last.pop(fresh)
        pending = [old]
        while pending:
            value = pending.pop()
            self.last[value] = max(self.last.get(value, last), last)
            pending += sources(value)
        kept = [value for value in self.values if value is not fresh]
        maker = maker_of(old)
        if maker is not None and maker not in self.position:
            self.position[maker] = self.position[user]
            kept.append(old)
        self.values = kept
        self._roots.clear()

    def escapes(self, value: SSAValue) -> bool:
        """Whether a value or a view of it is returned."""
        return self.last[value] >= self.end


def verify_frees(block: Block) -> None:
    """Check that nothing is used behind its `host.free`, by itself or through a view, nor freed twice.

    Raises LifetimeError.
    """
    freed: set[int] = set()  # by identity: a hash of a value is a call of Python
    for op in ops_of(block):
        for operand in operands_of(op) if freed else ():
            if id(operand) in freed or not freed.isdisjoint(map(id, _views_up(operand))):
                raise LifetimeError(f"{op.name} uses %{operand.name_hint or '?'} behind its host.free")
        if isinstance(op, host.FreeOp):
            freed.update(map(id, op.values))


def verify_pools(block: Block, ranges: Ranges) -> None:
    """Check that tensors of one pool that live at once do not overlap, for all values of the symbols.

    Raises LifetimeError.
    """
    pooled = [op for op in ops_of(block) if type(op) is host.EmptyOp and op.offset is not None]
    if not pooled:
        return
    lifetimes = Lifetimes(block)
    tenants: dict[SSAValue, list[tuple[int, host.EmptyOp]]] = {}
    for op in pooled:
        pool = operands_of(op)[0]
        begin, last = lifetimes.position[op], lifetimes.last[op.out]
        if not _at_most(_end(op), _bytes(pool), ranges):
            raise LifetimeError(f"%{op.out.name_hint or '?'} does not fit into its pool")
        earlier = tenants.setdefault(pool, [])
        for end, other in earlier:
            if begin <= end and not _disjoint(op, other, ranges):
                names = f"%{other.out.name_hint or '?'} and %{op.out.name_hint or '?'}"
                raise LifetimeError(f"{names} live at once and overlap in their pool")
        earlier.append((last, op))


def _disjoint(first: host.EmptyOp, second: host.EmptyOp, ranges: Ranges) -> bool:
    return _at_most(_end(first), _offset(second), ranges) or _at_most(_end(second), _offset(first), ranges)


def _at_most(left: Expr, right: Expr, ranges: Ranges) -> bool:
    return prove_le(left, right, ranges) or prove_nonneg(_without_quotients(right - left), ranges)


def _without_quotients(expr: Expr) -> Expr:
    """Rounded sizes as `k*(x floordiv k) == x - x mod k`, whose remainder has known bounds."""
    total = ZERO
    for monomial, coefficient in expr.terms:
        term = const(coefficient)
        for atom in monomial:
            divisor = atom.args[1].as_int() if atom.kind == "floordiv" else None
            whole = term.as_int()
            if divisor and whole is not None and whole % divisor == 0:
                term = whole // divisor * (atom.args[0] - atom.args[0] % divisor)
            else:
                term = term * atom.expr
        total = total + term
    return total


def _offset(op: host.EmptyOp) -> Expr:
    assert op.offset is not None
    return op.offset.data


def _end(op: host.EmptyOp) -> Expr:
    return _offset(op) + _bytes(op.out)


def _bytes(value: SSAValue) -> Expr:
    assert isinstance(value.type, TensorType)
    return bytes_of(value.type)


def _views_up(value: SSAValue) -> list[SSAValue]:
    """The sources of a `host.view`, all the way up: memory that a reference to the view does not keep."""
    found: list[SSAValue] = []
    while type(maker := maker_of(value)) is host.ViewOp:
        value = maker.source
        found.append(value)
    return found
