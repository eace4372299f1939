"""The pass `lower-aten-to-loop`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import loop
from ...dialects.aten.call import CallOp
from ...dialects.aten.ops import CHECKED, AtenOp
from ...dialects.aten.types import TensorType
from ...dialects.machine import TargetsAttr, targets_of
from ...dialects.raw import hint_of, set_hint
from ...dialects.sym import Ranges
from ...errors import UnsupportedError, UserError
from ...passes.analysis.functions import symbol_ranges
from ...passes.analysis.region_calls import EAGER
from ...passes.common.choices import CHOSEN_FOR, STREAMED, TILE
from ...passes.common.implementations import IMPLEMENTATION, NEST
from ...passes.common.numbering import AttributeTokens
from ...passes.common.rounding import ROUNDED, is_rounded
from ...passes.counters import counter
from ...passes.remarks import remark
from ...records import dataclass
from . import families  # noqa: F401 - fills the table of rules
from .nests import LoopBuilder
from .rules import CALLS, RULES, Call, add_extensions, is_ours
from .support import unmet
from .templates import Key, Template, template_key

_OWN_RULES = dict(RULES)
_NEST = StringAttr(NEST)
_WRITE = "aten.copy_"
"""How a program writes to an input: every level has it."""


@dataclass(frozen=True)
class LowerAtenToLoop(ModulePass):
    """Rebuild each function with ATen ops as loop nests and views.

    level:         aten -> loop
    precondition:  ops are functional, besides `aten.copy_` to inputs
    guarantee:     a pointwise op is a `loop.generate` of its own, a reduction a generate whose body is a `loop.reduce`,
                   a view a `loop.view`. What has no lowering, or no scalar code for its element types, is still there
                   and will be an ATen call, which a remark says. Results keep their types, so their strides, and
                   locations are passed on. The debug counter of the pass's name decides op by op, so that a wrong
                   lowering can be found by bisection.

        %0 = aten.add.Tensor(%x, %y) : !aten.tensor<4x3xf32>
        ==>
        %0 = loop.generate (i0 in 4, i1 in 3) {
          %1 = loop.load %x[i0, i1]
          %2 = loop.load %y[i1]
          %3 = arith.addf %1, %2 : f32
          loop.yield %3
        } : !aten.tensor<4x3xf32>
    """

    name = "lower-aten-to-loop"
    level: ClassVar[str] = "aten -> loop"

    emulate_precision_casts: bool = False
    """Round low-precision results between ops as eager does, instead of keeping them in float32 inside a kernel."""
    deterministic: bool = False
    """Leave to ATen what writes or adds at indices that may be equal, on other devices than the CPU: there the order
    is the hardware's, while ATen has deterministic kernels, or says that it has none."""
    fallback_by_default: bool = False
    """Leave every ATen op to ATen."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower every function of the module in place."""
        add_extensions()
        targets = targets_of(op)
        for function in op.body.block.ops:
            if isinstance(function, FuncOp) and not self.fallback_by_default:
                ranges = symbol_ranges(function)
                for block in function.body.blocks:
                    lower_block(block, ranges, targets, self.emulate_precision_casts, self.deterministic)


def lower_block(
    block: Block,
    ranges: Ranges,
    targets: TargetsAttr,
    emulate_precision_casts: bool = False,
    deterministic: bool = False,
) -> None:
    """Replace the lowerable ATen ops of a function's block; the others stay the same objects."""
    ops = list(block.ops)
    for op in ops:
        op.detach()
    builder = LoopBuilder(block, ranges, targets, emulate_precision_casts)
    values: dict[SSAValue, SSAValue] = {}
    lowered: list[Operation] = []
    templates = _Templates(builder, values)
    for op in ops:
        template = templates.find(op)
        reason = _reason_to_keep(op, ranges, targets, template is not None)
        if reason is None and template is not None:
            templates.append(template, op)
            lowered.append(op)
            continue
        if reason is None:
            last = block.last_op
            try:
                results = _lower(builder, op, values)
            except UnsupportedError as error:
                reason = str(error)
            else:
                if not (deterministic and _has_races(block, last, targets)):
                    templates.record(_behind(block, last), results)
                    _replace(op, results, values)
                    lowered.append(op)
                    continue
                reason = "its order on this device is not deterministic"
            for made in reversed(_behind(block, last)):
                block.erase_op(made)
        if isinstance(op, AtenOp) and op.name != _WRITE:  # loop-bufferize and host-reinplace tell of those
            remark("missed", LowerAtenToLoop.name, op, reason, suggestion="it will be an ATen call")
        elif isinstance(op, CallOp) and EAGER in op.attributes:
            why = f"{op.target} runs its bodies op by op: {cast(StringAttr, op.attributes[EAGER]).data}"
            remark("missed", LowerAtenToLoop.name, op, why, suggestion="torch runs it in eager")
        _keep(block, op, values)
    for op in lowered:
        op.drop_all_references()


def _behind(block: Block, last: Operation | None) -> list[Operation]:
    """The ops behind one, or all."""
    ops: list[Operation] = []
    op = block.first_op if last is None else last.next_op
    while op is not None:
        ops.append(op)
        op = op.next_op
    return ops


def _has_races(block: Block, last: Operation | None, targets: TargetsAttr) -> bool:
    """Whether an op behind `last` writes at indices that may be equal, on a device that keeps no order."""
    scatters = [op for op in _behind(block, last) if isinstance(op, loop.ScatterOp) and op.unique is None]
    types = [result.type for op in scatters for result in op.results]
    return any(isinstance(type_, TensorType) and not targets.target(type_.device).keeps_order for type_ in types)


def _reason_to_keep(op: Operation, ranges: Ranges, targets: TargetsAttr, known: bool) -> str | None:
    """Why an op stays as it is; None when it is lowered. One like a `known` op is, unless the counter forbids it."""
    rule = RULES.get(op.name)
    if known or (isinstance(op, CallOp) and op.target in CALLS):
        reason = None
    elif rule is None or not isinstance(op, AtenOp):
        return f"{op.name} has no lowering"
    else:
        reason = unmet(rule, op, ranges, targets)
    if reason is None and CHECKED in op.attributes:
        reason = "data decides its sizes"
    if reason is None and not counter(LowerAtenToLoop.name):
        return "switched off by the debug counter"
    return reason


class _Templates:
    """Lowers an op as an equal one before it; for rules of our own, which look at nothing but what the key holds."""

    def __init__(self, builder: LoopBuilder, values: dict[SSAValue, SSAValue]) -> None:
        self.builder = builder
        self.values = values
        self.tokens = AttributeTokens()
        self.known: dict[Key, Template | None] = {}
        self._key: Key | None = None
        self._tensors: list[SSAValue] = []

    def find(self, op: Operation) -> Template | None:
        """What an op becomes, if its like is known; remembers the key for `record`."""
        rule = RULES.get(op.name)
        self._key = None
        if rule is None or rule is not _OWN_RULES.get(op.name) or not isinstance(op, AtenOp):
            return None
        self._key, self._tensors = template_key(op, self.values, self.tokens)
        return self.known.get(self._key)

    def append(self, template: Template, op: Operation) -> None:
        """Lower the op for which a template was just found."""
        _replace(op, template.append(self.builder.block, self._tensors, op.location), self.values)

    def record(self, made: list[Operation], results: Sequence[SSAValue]) -> None:
        """Remember what the op that was just lowered became."""
        if self._key is not None and self._key not in self.known:
            self.known[self._key] = Template.record(self._tensors, made, results)


def _lower(builder: LoopBuilder, op: Operation, values: dict[SSAValue, SSAValue]) -> Sequence[SSAValue]:
    """Append what the op lowers to; the values of its results."""
    builder.s.start(op.location, is_rounded(op))
    if isinstance(op, CallOp):
        builder.s.device = next((r.type.device for r in op.results if isinstance(r.type, TensorType)), builder.s.device)
        result = CALLS[op.target](builder, op, values) if is_ours(op.target) else _lower_foreign(builder, op, values)
    else:
        assert isinstance(op, AtenOp)
        call = Call(op, values, targets=builder.targets)
        builder.s.device = call.type.device
        result = RULES[op.name].lower(builder, call)
    return (result,) if isinstance(result, SSAValue) else result


def _lower_foreign(builder: LoopBuilder, op: CallOp, values: dict[SSAValue, SSAValue]) -> list[SSAValue]:
    """What the lowering of somebody's own operator makes. UserError that names it where it fails or makes the wrong."""
    lowering = CALLS[op.target]
    code = getattr(lowering, "__code__", None)
    place = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    whose, remedy = f"the lowering of {op.target}{place}", "mend it; without one the operator is called as it is"
    try:
        made = lowering(builder, op, values)
        results = [made] if isinstance(made, SSAValue) else list(made)
    except (UnsupportedError, UserError):
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise UserError(f"{whose} failed: {said}", remedy) from error
    wanted = [result.type for result in op.results if isinstance(result.type, TensorType)]
    if list(map(_kind, results)) != [(type_.element, len(type_.shape)) for type_ in wanted]:
        returned = ", ".join(str(each.type) if isinstance(each, SSAValue) else repr(each) for each in results)
        raise UserError(f"{whose} returns {returned or 'nothing'}, not {', '.join(map(str, wanted))}", remedy)
    return results


def _kind(value: object) -> object:
    """Element type and rank of a tensor; None for anything else."""
    type_ = value.type if isinstance(value, SSAValue) else None
    return (type_.element, len(type_.shape)) if isinstance(type_, TensorType) else None


def _replace(op: Operation, replacements: Sequence[SSAValue], values: dict[SSAValue, SSAValue]) -> None:
    """Record the values of an op's results."""
    results = [result for result in op.results if isinstance(result.type, TensorType)]
    for old, new in zip(results, replacements, strict=True):
        values[old] = new
        if new.name_hint is None:
            set_hint(new, hint_of(old))


def _keep(block: Block, op: Operation, values: dict[SSAValue, SSAValue]) -> None:
    """Append the op itself, with replaced operands, also inside its regions."""
    op.attributes.pop(ROUNDED, None)  # what a call gives is rounded
    if op.attributes.get(IMPLEMENTATION) == _NEST:
        del op.attributes[IMPLEMENTATION]  # then the library has it
        for name in (TILE, STREAMED, CHOSEN_FOR):
            op.attributes.pop(name, None)
    for each in op.walk():
        if any(operand in values for operand in each.operands):
            each.operands = [values.get(operand, operand) for operand in each.operands]
    block.add_op(op)
