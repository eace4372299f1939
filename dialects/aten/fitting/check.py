"""The rules of all ops in one table, and whether an op agrees with its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import cast

from ...sym import SymError
from ..masks import left_out
from ..ops import AtenOp
from ..types import TensorType
from . import computations, convolutions, indexing, views
from .elements import misfit_of_elements
from .sizes import Arguments, MisfitError, Results, Rule, Sizes, UnknownError, differ, of_broadcast, text

_RULES: dict[str, Rule] = {**views.RULES, **computations.RULES, **convolutions.RULES, **indexing.RULES}

#: packets whose tensors are broadcast, which torch does not tag as such
_BROADCAST = frozenset({
    "__and__", "__or__", "_masked_scale", "_prelu_kernel", "elu_backward", "floor_divide", "hardshrink_backward",
    "hardsigmoid_backward", "hardswish", "hardswish_backward", "hardtanh_backward", "isclose", "isreal",
    "leaky_relu_backward", "log_sigmoid_backward", "masked_fill", "mish_backward", "rsub", "softplus_backward",
    "softshrink_backward", "true_divide", "where",
})  # fmt: skip


def misfit(op: AtenOp) -> str | None:
    """How arguments and result types of an op disagree; None where they agree, or no rule is known."""
    if (problem := _misfit_of_mask(op)) is not None:
        return problem
    rule = _rule(type(op))
    if rule is None:
        return None
    try:
        results = rule(Arguments(op))
        problem = _misfit_of_results(op, results)
    except MisfitError as error:
        return str(error)
    except (UnknownError, SymError):
        problem = None
    return problem or misfit_of_elements(op)


def _misfit_of_mask(op: AtenOp) -> str | None:
    """A gradient that the op's mask leaves out is no tensor."""
    if not any(argument.name == "output_mask" for argument in op.schema.arguments):
        return None
    for number in left_out(op.packet, cast("Sequence[bool]", op.arg("output_mask"))):
        if number < len(op.results) and isinstance(op.results[number].type, TensorType):
            return f"result {number} is left out by output_mask, and its type is not none"
    return None


@cache
def _rule(op: type[AtenOp]) -> Rule | None:
    """The rule of an overload, of all that share its name, or of what it is a copy of."""
    packet = op.packet
    if any(argument.writes for argument in op.schema.arguments):
        return _RULES.get(packet)
    plain = packet.removesuffix("_copy")
    for name in (op.schema.name, packet, op.schema.name.replace(packet, plain, 1), plain):
        if name in _RULES and not (name == packet and _is_other(op)):
            return _RULES[name]
    is_plain = all(result.kind == "tensor" and not result.is_list for result in op.schema.returns)
    return of_broadcast if is_plain and (op.schema.is_pointwise or packet in _BROADCAST) else None


def _is_other(op: type[AtenOp]) -> bool:
    """Whether an overload has little to do with the others of its name: `max.other` is no reduction."""
    return op.schema.is_pointwise


def _misfit_of_results(op: AtenOp, expected: Results) -> str | None:
    if len(expected) != len(op.results):
        return f"it has {len(expected)} results, and not {len(op.results)}"
    for number, (result, sizes) in enumerate(zip(op.results, expected, strict=True)):
        if isinstance(result.type, TensorType) and sizes is not None and _differs(result.type, sizes):
            return f"result {number} is {text(sizes)}, and not {text(result.type.shape)}"
    return None


def _differs(type_: TensorType, sizes: Sizes) -> bool:
    return len(type_.shape) != len(sizes) or any(map(differ, type_.shape, sizes))
