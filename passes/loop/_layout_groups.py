"""Values that are computed from one another element by element, so that their layouts are one decision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.ir import Operation, SSAValue

from ...dialects.aten.types import TensorType
from ._accesses import loads_in


def groups(values: Iterable[SSAValue]) -> list[list[SSAValue]]:
    """The values, results of nests, in groups: with each those of its rank that its producer reads or makes too."""
    group_of: dict[SSAValue, list[SSAValue]] = {value: [value] for value in values}
    for value in list(group_of):
        producer = cast(Operation, value.owner)
        for near in (*producer.results, *(load.operands[0] for load in loads_in(producer))):
            if near in group_of and _rank(near) == _rank(value):
                _join(group_of, group_of[value], group_of[near])
    return list({id(group): group for group in group_of.values()}.values())


def _rank(value: SSAValue) -> int:
    return len(cast(TensorType, value.type).shape)


def _join(group_of: dict[SSAValue, list[SSAValue]], one: list[SSAValue], other: list[SSAValue]) -> None:
    if one is not other:
        one += other
        for value in other:
            group_of[value] = one
