"""Products and attention of a graph as questions: which ops a nest would fuse, as a function of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, FunctionType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from ...dialects.aten import AtenOp, TensorType, torch_name
from ...dialects.effects import is_pure
from ...dialects.raw import operands_of
from ...dialects.sym import SymbolAttr
from ...machines import HOST
from ...machines.nests import ATTENTION, PRODUCT, NestShape
from ...records import dataclass
from ..analysis.kept import is_frozen, is_kept_value, mark_frozen
from ..analysis.sizes import Sizes
from ..common.choices import is_open
from ..common.copies import copy_op
from ..printing import module_text
from ._operands import source_of_view
from ._score_steps import GATHERS, computes, depending, steps_of
from ._segments import is_anchor, is_pointwise, is_view, readers

_SOFTMAXES = ("_softmax", "_safe_softmax")
#: a function of more ops is no question about a product
MOST_OPS = 64
_SHORT = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}


@dataclass(frozen=True)
class Group:
    """Ops that one candidate computes, in the order of their block, with the products among them."""

    ops: tuple[Operation, ...]
    products: tuple[AtenOp, ...]
    is_attention: bool = False

    def shape(self, sizes: Sizes) -> NestShape:
        """What is computed, by sizes."""
        last = self.products[-1]
        left, right = (_type(value) for value in last.operands[-2:])
        *batch, rows, depth = (sizes.of(size) for size in left.shape)
        count, columns = (batch[0] if batch else 1), sizes.of(right.shape[-1])
        element = torch_name(_type(last.results[0]).element)
        if self.is_attention:
            numbers = (count, rows, depth, columns)
            names = steps_of(self.ops, self.products, sizes)
        else:
            numbers = (count, rows, columns, depth)
            between = (op for op in self.ops if op not in self.products)
            names = sorted(op.packet for op in between if isinstance(op, AtenOp) and computes(op))
        kind = ATTENTION if self.is_attention else PRODUCT
        return NestShape(kind, _SHORT.get(element, element), numbers, tuple(names))


def groups_of(ops: Sequence[Operation]) -> list[Group]:
    """Attention first, as it stands in a block, then the products that are none of it.

    What is done with two products, such as a gate with what it gates, is behind the first one: no question is about
    both, whose sums would take twice the registers in one nest.
    """
    taken: set[Operation] = set()
    found: list[Group] = []
    candidates = [op for op in ops if is_open(op)]
    order = {op: k for k, op in enumerate(ops)} if candidates else {}
    for op in candidates:
        if isinstance(op, AtenOp) and (group := _attention(op, order)) is not None and taken.isdisjoint(group.products):
            found.append(group)
            taken.update(group.products)
    for op in candidates:
        if isinstance(op, AtenOp) and op not in taken:
            group = Group((op, *_behind(op, taken)), (op,))
            taken.update(group.ops)
            found.append(group)
    return found


def _attention(last: AtenOp, order: Mapping[Operation, int]) -> Group | None:
    """The products and what is between them, where a product weighs by a softmax of products; else None."""
    members: set[Operation] = {last}
    waiting: list[SSAValue] = [last.operands[-2]]
    products = [last]
    while waiting:
        op = waiting.pop().owner
        if not isinstance(op, Operation) or op in members or op not in order or len(members) > MOST_OPS:
            continue
        if is_open(op):
            assert isinstance(op, AtenOp)
            products.append(op)
        elif not is_between(op):
            continue
        else:
            waiting += operands_of(op)
        members.add(op)
    if len(products) < 2 or not any(isinstance(op, AtenOp) and op.packet in _SOFTMAXES for op in members):
        return None
    chosen = sorted(members, key=order.__getitem__)
    between = depending(chosen, products)
    used = (use.operation for op in [*between, *products] if op is not last for r in op.results for use in r.uses)
    if not all(each in members for each in used):
        return None  # scores that others read are in memory anyway
    return Group(tuple(chosen), tuple(sorted(products, key=order.__getitem__)), is_attention=True)


def is_between(op: Operation) -> bool:
    """Whether a nest may have an op within itself: of elements, views, softmax, tables, what is made of nothing."""
    if not isinstance(op, AtenOp) or op.regions or not is_pure(op):
        return False
    return is_pointwise(op) or is_view(op) or op.packet in (*_SOFTMAXES, GATHERS) or not operands_of(op)


def _behind(op: AtenOp, taken: Collection[Operation]) -> list[Operation]:
    """What is done with a product, op by op, as long as each result has one reader, which works element by element.

    Nothing, where the kernel of what reads the last result would do that. What is taken by another group is not asked.
    """
    found: list[Operation] = []
    while len(found) < MOST_OPS:
        uses = list(op.results[0].uses)
        user = uses[0].operation if len(uses) == 1 else None
        if not isinstance(user, AtenOp) or not (is_pointwise(user) or is_view(user)) or len(user.results) != 1:
            break
        if not is_pure(user) or user.regions or user in taken:
            break
        found.append(user)
        op = user
    while found and not computes(found[-1]):  # views behind the last op say nothing
        found.pop()
    return found if found and all(map(_reads_memory, readers(found[-1].results[0]))) else []


def _reads_memory(op: Operation) -> bool:
    """Whether what an op reads lies in memory.

    What anything else reads would be computed in its kernel, which a library's product needs as much: a layer norm
    reads the product and the residual, and nothing is saved by adding them in front of it.
    """
    return is_anchor(op) or op.has_trait(IsTerminator) or not is_pure(op) or getattr(op, "packet", "") == "convolution"


def text_of(group: Group, function: FuncOp) -> str | None:
    """A group as a function at the sizes that were seen; None where it reads more than tensors, or nobody saw sizes.

    What stays from call to call on a CPU stays in the function too, so that what is timed reads packed weights as the
    program will.
    """
    values: dict[SSAValue, SSAValue] = {}
    inside = {result for op in group.ops for result in op.results}
    given = dict.fromkeys(v for op in group.ops for v in operands_of(op) if v not in inside)
    if not all(isinstance(value.type, TensorType) for value in given):
        return None
    block = Block(arg_types=[value.type for value in given])
    values.update(zip(given, block.args, strict=True))
    for op in group.ops:
        block.add_op(copy_op(op, values))
    last = values[group.ops[-1].results[0]]
    block.add_op(ReturnOp(last))
    for value in (result for op in block.ops for result in op.results):
        value.name_hint = None
    type_ = FunctionType.from_lists([arg.type for arg in block.args], [last.type])
    made = FuncOp("f", type_, Region(block))
    mark_frozen(made, [number for number, value in enumerate(given) if _stays(value)])
    return at_hints(module_text(made), function)


def _stays(value: SSAValue) -> bool:
    """Whether a tensor on a CPU is a weight, or a view of one."""
    if _type(value).device != HOST:
        return False
    while (source := source_of_view(value)) is not None:
        value = source
    return is_frozen(value) or is_kept_value(value)


def at_hints(text: str, function: FuncOp) -> str | None:
    """The text with their hints for the symbols of a function."""
    declared = function.attributes.get("symbols")
    symbols = [s.data for s in declared.data if isinstance(s, SymbolAttr)] if isinstance(declared, ArrayAttr) else []
    hints = {symbol.name: symbol.hint for symbol in symbols}
    names = re.compile(r"(?<![%@\w])[suz]+\d+\b")
    if any(hints.get(name) is None for name in names.findall(text)):
        return None
    return names.sub(lambda match: str(hints[match[0]]), text)


def _type(value: SSAValue) -> TensorType:
    assert isinstance(value.type, TensorType)
    return value.type
