"""Verifying a module: every op's own checks, and that every value is defined before it is used.

xDSL 0.75 checks no dominance: an op may use a value that is defined below it, and the text of such a module does not
parse back. It also checks each op anew at 35 microseconds, which was a third of what compiling a model cost us. What
the verifier of nearly all ops looks at is their signature: types of operands and results, properties, and of each
region what its block takes and ends in. A model repeats few signatures; one that has passed is remembered, with the
names that it uses in index expressions: those must be declared around it, by axes, by functions, or by ops before it.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import (
    HasAncestor,
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    SymbolOpInterface,
    SymbolTable,
    SymbolUserOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from ..dialects import host, kernel
from ..dialects.aten import CallOp
from ..dialects.loop import FusionOp
from ..dialects.machine import TARGETS, TargetsAttr
from ..dialects.raw import op_behind, operands_of, successors_of, type_of
from ..records import dataclass
from .analysis.functions import call_cycle, header_problem, kernels_of
from .analysis.kept import kept_problem
from .analysis.region_calls import Function, functions_by_name, referenced, region_problem
from .common.index_checks import ACCESSES, access_problem
from .common.launch_checks import assert_problem, launch_problem
from .common.results import result_problem
from .common.scope import Facts, Range, declared_by, facts_of, undeclared
from .printing import first_line
from .remarks import format_location


@dataclass(frozen=True)
class Violation:
    """The first op that does not verify, and why."""

    op: Operation | None
    reason: str

    def __str__(self) -> str:
        if self.op is None:
            return self.reason
        where = format_location(self.op.location)
        return f"{self.op.name}: {self.reason}, in: {first_line(self.op)}{f' ({where})' if where else ''}"


def find_violation(module: ModuleOp) -> Violation | None:
    """The first op that does not verify; None for a valid module."""
    return _Walk(module).violation


#: dialects whose verifiers look at an op's signature, but for a fusion's, which looks at its members
_BY_SIGNATURE = frozenset({"arith", "math", "scalar", "sym", "aten", "loop", "kernel", "host"})
#: traits that look at what is around an op or inside it
_LOOK_AROUND = (HasAncestor, HasParent, IsolatedFromAbove, SymbolOpInterface, SymbolTable, SymbolUserOpInterface)
#: ops that are checked against axes, kernels and functions around them
_CALLS = frozenset({CallOp, func.CallOp, host.CallOp})
#: calls of functions, and what those functions are
_FUNCTION_CALLS: dict[type[Operation], type[Operation]] = {func.CallOp: FuncOp, host.CallOp: host.FuncOp}
_LOOK_BEYOND = ACCESSES | _CALLS | {host.LaunchOp, kernel.AssertOp}
#: dialects whose ops have no meaning in the body of a function, or in that of a nest at the loop level
_FOREIGN: dict[type[Operation], frozenset[str]] = {
    kernel.FuncOp: frozenset({"aten", "func", "host", "loop", "sym"}),
    host.FuncOp: frozenset({"func", "kernel", "loop"}),
    FuncOp: frozenset({"host", "kernel"}),
}
_IN_NESTS = frozenset({"aten", "func", "host", "kernel"})
_at_home: dict[frozenset[str], set[type[Operation]]] = {}
"""classes of ops that were seen where ops of these dialects may not stand"""
_MEMO_LIMIT = 1 << 16
_valid: dict[tuple[object, ...], Facts] = {}
"""signature -> what the names of such an op are"""
_seen: dict[tuple[object, ...], tuple[Facts, tuple[object, ...]]] = {}
"""the same by the identity of types and properties, which equal ones nearly always share, and those themselves"""


@dataclass(frozen=True)
class _Kind:
    """What the walk asks of a class of ops."""

    by_signature: bool
    is_terminator: bool
    is_isolated: bool


_kinds: dict[type[Operation], _Kind] = {}


def _kind(cls: type[Operation]) -> _Kind:
    found = _kinds.get(cls)
    if found is None:
        known = cls.name.partition(".")[0] in _BY_SIGNATURE and cls is not FusionOp
        by_signature = known and not any(isinstance(trait, _LOOK_AROUND) for trait in cls.traits)
        found = _kinds[cls] = _Kind(by_signature, cls.has_trait(IsTerminator), cls.has_trait(IsolatedFromAbove))
    return found


def _identity(op: Operation) -> tuple[tuple[object, ...], tuple[object, ...]] | None:
    """The signature of an op without regions with numbers for types and properties, quick to hash; and these."""
    if op.attributes or op.regions or successors_of(op):
        return None
    operands, results, properties = operands_of(op), op.results, op.properties
    named = (*map(type_of, operands), *map(type_of, results), *properties.values())
    return (type(op), len(operands), *properties, *map(id, named)), named


def _signature(op: Operation) -> tuple[object, ...] | None:
    """All that the verifier of an op looks at, if it is verified by its signature."""
    if op.attributes or successors_of(op):
        return None
    types = map(type_of, operands_of(op))
    key = (type(op), *types, None, *map(type_of, op.results), None, *op.properties.items())
    return (*key, *map(_edges, op.regions)) if op.regions else key


def _edges(region: Region) -> object:
    """What the block of a region takes and ends in; something that is like nothing else for any other region."""
    block = region.first_block
    last = None if block is None else block.last_op
    if block is None or last is None or block is not region.last_block:
        return object()
    return (*[a.type for a in block.args], type(last), *[operand.type for operand in operands_of(last)])


def _is_hollow(region: Region) -> bool:
    """Whether a region has a block in which nothing stands; one without blocks is a declaration."""
    block = region.first_block
    return block is not None and block.first_op is None


def _check_op(op: Operation, is_last: bool = False) -> Facts | Violation:
    """Run an op's own verifier, without what is in its regions. A terminator stands last, and nothing else does."""
    kind = _kind(type(op))
    if not kind.by_signature or kind.is_terminator != is_last:
        return _checked(op, None)
    identity = _identity(op)
    if identity is not None and (seen := _seen.get(identity[0])) is not None:
        return seen[0]
    key = _signature(op)
    known = None if key is None else _valid.get(key)
    found = _checked(op, key) if known is None else known
    if identity is not None and not isinstance(found, Violation) and len(_seen) < _MEMO_LIMIT:
        _seen[identity[0]] = found, identity[1]
    return found


def _checked(op: Operation, key: tuple[object, ...] | None) -> Facts | Violation:
    """Run the verifier, and keep what it finds for ops of the same signature."""
    try:
        if key is None:
            (_header(op) if type(op) is FuncOp else op).verify(verify_nested_ops=False)
        else:
            _verify_alone(op)
        facts, problem = facts_of(op)
    except Exception as error:
        return Violation(op, _reason(error))
    if problem is None and op.attributes:
        problem = kernel.problem_of_marks(op)
    if problem is None and type(op) is FuncOp:
        problem = header_problem(op) or result_problem(op) or kept_problem(op)
    if problem is not None:
        return Violation(op, problem)
    if key is not None and len(_valid) < _MEMO_LIMIT:
        _valid[key] = facts
    return facts


def _verify_alone(op: Operation) -> None:
    """Run what its class says of an op. What xDSL asks of its place the walk asks: that a terminator stands last, and
    nothing else, and that no operand was erased."""
    try:
        op.verify_()
    except VerifyException:
        op.verify(verify_nested_ops=False)  # says more of it
        raise


def _header(function: FuncOp) -> Operation:
    """A function without the ops of its body: its verifier goes through them all once more to see that they use no
    values from outside, which the walk checks anyway."""
    blocks = list(function.body.blocks)
    if len(blocks) != 1:
        return function
    return FuncOp.create(
        properties=function.properties,
        attributes=function.attributes,
        regions=(Region(Block(arg_types=[a.type for a in blocks[0].args])),),
        location=function.location,
    )


def _reason(error: Exception) -> str:
    lines = [line.strip(" ^-\t") for line in str(error).splitlines() if line.strip(" ^-\t")]
    reason = lines[-1] if lines else "no reason given"
    return reason if isinstance(error, VerifyException) else f"{type(error).__name__}: {reason}"


def _problem_of_targets(module: ModuleOp) -> Violation | None:
    """A module that names its targets by something else than the attribute that checks them."""
    found = module.attributes.get(TARGETS)
    if found is None or isinstance(found, TargetsAttr):
        return None
    return Violation(module, f'names its targets by {found}: write {TARGETS} = #machine.targets<cuda = "cuda:90">')


def _problem_of_calls(module: ModuleOp) -> Violation | None:
    """A function that runs itself: nothing inlines or compiles it, and no run ends."""
    name = call_cycle(module)
    return None if name is None else Violation(module, f"@{name} calls itself, directly or through others")


class _Walk:
    """One walk over a module, with what is visible at the current op."""

    def __init__(self, module: ModuleOp) -> None:
        self.visible: set[int] = set()
        """Identities of the values that are defined before the op, in its block or around it."""
        self.names: dict[str, Range] = {}
        """The symbols and axes that index expressions may use, with the ranges of axes."""
        self.empty = 0
        """How many of the enclosing nests have no point: what is inside never runs."""
        self.foreign: frozenset[str] = frozenset()
        """Dialects whose ops may not stand here."""
        self.kernels: dict[str, kernel.FuncOp] | None = None
        self.functions: dict[str, Function] | None = None
        self.has_calls = False
        self.module = module
        found = _check_op(module)
        problem = found if isinstance(found, Violation) else _problem_of_targets(module)
        self.violation = problem or self._in_blocks(module.body.blocks)
        if self.violation is None and self.has_calls:
            self.violation = _problem_of_calls(module)

    def _in_blocks(self, blocks: Iterable[Block]) -> Violation | None:
        listed = list(blocks)
        if len(listed) > 1:  # control flow between blocks: none of our dialects has it
            for block in listed:
                self.visible.update(map(id, block.args), *(map(id, op.results) for op in block.ops))
        for block in listed:
            found = self._in_block(block)
            if found is not None:
                return found
        return None

    def _in_block(self, block: Block) -> Violation | None:
        visible, names = self.visible, self.names
        own = [*map(id, block.args)]  # of live values, so no two are equal; a hash of values is a call of Python
        visible.update(own)
        bound: list[str] = []
        at_home = _at_home.setdefault(self.foreign, set())
        last = block.last_op
        op = block.first_op
        while op is not None:
            if type(op) not in at_home:
                if op.name.partition(".")[0] in self.foreign:
                    return Violation(op, f"cannot stand in the body of {block.parent_op().name}")  # pyright: ignore
                at_home.add(type(op))
            for operand in operands_of(op):
                if id(operand) not in visible:
                    return _undefined(op, operand)
            facts = (
                self._check_call(op) if type(op) in _FUNCTION_CALLS and op is not last else _check_op(op, op is last)
            )
            if isinstance(facts, Violation):
                return facts
            if facts.needs and not names.keys() >= facts.needs:
                return Violation(op, undeclared(facts.needs - names.keys()))
            if type(op) in _LOOK_BEYOND:
                problem = self._around(op, facts)
                if problem is not None:
                    return Violation(op, problem)
            if op.regions:
                if type(op) is not ModuleOp and any(map(_is_hollow, op.regions)):
                    return Violation(op, "has a body without ops, which ends in no terminator")
                found = self._in_regions(op, facts)
                if found is not None:
                    return found
            for name in facts.binds:
                if name in names:
                    return Violation(op, f"declares {name!r}, which is declared already")
                names[name] = None
                bound.append(name)
            if type(op) is host.FreeOp:
                visible.difference_update(map(id, op.values))
            results = [*map(id, op.results)]
            own += results
            visible.update(results)
            op = op_behind(op)
        visible.difference_update(own)
        for name in bound:
            del names[name]
        return None

    def _check_call(self, op: Operation) -> Facts | Violation:
        """Check the call of a function; xDSL looks for the function in the whole module at each, which is slow."""
        key = _signature(op)
        known = None if key is None else _valid.get(key)
        return known if known is not None and self._calls_as_declared(op) else _checked(op, key)

    def _calls_as_declared(self, op: Operation) -> bool:
        if self.functions is None:
            self.functions = functions_by_name(self.module)
        callee = op.properties["callee"]
        assert isinstance(callee, SymbolRefAttr)
        called = self.functions.get(callee.root_reference.data)
        if called is None or type(called) is not _FUNCTION_CALLS[type(op)] or callee.nested_references.data:
            return False
        if ("kept" in op.properties) != ("kept" in called.properties):
            return False
        types = called.function_type
        given, returned = tuple(map(type_of, operands_of(op))), tuple(map(type_of, op.results))
        return given == types.inputs.data and returned == types.outputs.data

    def _around(self, op: Operation, facts: Facts) -> str | None:
        """Check an op against what is around it: ranges of axes, and kernels that it launches."""
        if isinstance(op, kernel.AssertOp):
            return assert_problem(op)
        if type(op) in _CALLS:
            return self._around_call(op)
        if not isinstance(op, host.LaunchOp):
            return None if self.empty else access_problem(op, facts, self.names)
        if self.kernels is None:
            self.kernels = kernels_of(self.module)
        return launch_problem(op, self.kernels)

    def _around_call(self, op: Operation) -> str | None:
        """Check a call of a higher-order operator against its bodies; calls of functions check themselves."""
        self.has_calls = self.has_calls or not isinstance(op, CallOp) or bool(referenced(op))
        if not isinstance(op, CallOp) or not op.target.startswith("higher_order::"):
            return None
        if self.functions is None:
            self.functions = functions_by_name(self.module)
        return region_problem(op, self.functions)

    def _in_regions(self, op: Operation, facts: Facts) -> Violation | None:
        """Check what is inside an op, which sees the axes of the op and, where it is isolated, nothing else."""
        if _kind(type(op)).is_isolated:
            return self._in_isolated(op)
        for name, _ in facts.axes:
            if name in self.names:
                return Violation(op, f"declares axis {name!r}, which is declared already around it")
        self.names.update(facts.axes)
        self.empty += facts.is_empty
        outer = self.foreign
        if op.name.startswith("loop."):
            self.foreign = _IN_NESTS
        found = None
        for number, region in enumerate(op.regions):
            if number == facts.inside:
                self._leave(facts)
            found = found or self._in_blocks(region.blocks)
        if len(op.regions) <= facts.inside:
            self._leave(facts)
        self.foreign = outer
        return found

    def _leave(self, facts: Facts) -> None:
        self.empty -= facts.is_empty
        for name, _ in facts.axes:
            del self.names[name]

    def _in_isolated(self, op: Operation) -> Violation | None:
        outer = self.visible, self.names, self.empty, self.foreign
        names: tuple[str, ...] = ()
        if isinstance(op, FuncOp | host.FuncOp | kernel.FuncOp):
            names, problem = declared_by(op)
            if problem is not None:
                return Violation(op, problem)
            if len(op.regions[0].blocks) > 1:
                return Violation(op, "has several blocks: there is no control flow between blocks")
        self.visible, self.names, self.empty = set(), dict.fromkeys(names), 0
        self.foreign = _FOREIGN.get(type(op), frozenset())
        found = None
        for region in op.regions:
            found = found or self._in_blocks(region.blocks)
        self.visible, self.names, self.empty, self.foreign = outer
        return found


def _undefined(op: Operation, operand: SSAValue) -> Violation:
    position = op.operands.index(operand)
    name = f" (%{operand.name_hint})" if operand.name_hint else ""
    for use in operand.uses:
        if isinstance(use.operation, host.FreeOp) and use.operation is not op and use.operation.parent is op.parent:
            return Violation(op, f"operand {position}{name} is used after its end of life by host.free")
    return Violation(op, f"operand {position}{name} is not defined before it")
