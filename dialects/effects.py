"""Which ops may be removed, and which may also be merged and moved, at every level.

An op is *pure* when running it twice, at another time, or not at all shows nowhere but in its results. Ops that write,
draw random numbers, check something, launch, or define symbols (which attributes use, not operands) have a *side
effect*: they stay, in order. Between the two are ops that may be removed but not merged: fresh memory, and reads.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from xdsl.ir import Operation
from xdsl.traits import MemoryEffect, MemoryReadEffect, NoMemoryEffect, RecursiveMemoryEffect

from .aten.call import CallOp
from .aten.ops import AtenOp


class Effect(Enum):
    """What may be done with an op; a region op is as bad as the worst op inside."""

    NONE = 0
    """Remove, merge, move."""
    REMOVABLE = 1
    """Remove, but do not merge with an equal one, nor move over a write."""
    WRITE = 2
    """Leave alone."""


_BY_REGIONS: Final = None
#: ops whose traits say too little
_SPECIAL: dict[str, Effect | None] = {
    "loop.reduce": _BY_REGIONS,
    "loop.empty": Effect.REMOVABLE,
    "loop.yield": Effect.NONE,
    "kernel.local": Effect.REMOVABLE,
    "kernel.yield": Effect.NONE,
    "host.empty": Effect.REMOVABLE,
    "host.view": Effect.NONE,
}
_CLASSES: dict[type[Operation], Effect | None] = {}


def effect_of(op: Operation) -> Effect:
    """The effect of an op with all that its regions hold."""
    cls = type(op)
    if issubclass(cls, AtenOp):
        pure = cls.schema.is_pure and "binds" not in op.properties
        return Effect.NONE if pure else Effect.WRITE
    if cls is CallOp:
        pure = "pure" in op.properties and "binds" not in op.properties
        return Effect.NONE if pure else Effect.WRITE
    if cls not in _CLASSES:
        _CLASSES[cls] = _class_effect(cls)
    effect = _CLASSES[cls]
    return _region_effect(op) if effect is None else effect


def is_pure(op: Operation) -> bool:
    """Whether an op may be removed, merged with an equal one, and moved."""
    return effect_of(op) is Effect.NONE


def has_side_effect(op: Operation) -> bool:
    """Whether an op must stay, in order, even when nothing uses its results."""
    return effect_of(op) is Effect.WRITE


def _region_effect(op: Operation) -> Effect:
    if "in_place" in op.properties:  # loop.scatter, when its destination is the memory of a value that lives on
        return Effect.WRITE
    worst = Effect.NONE
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                effect = effect_of(inner)
                if effect is Effect.WRITE:
                    return effect
                worst = effect if effect is Effect.REMOVABLE else worst
    return worst


def _class_effect(cls: type[Operation]) -> Effect | None:
    """The effect of all ops of a class, from its traits; `_BY_REGIONS` when it depends on what they hold."""
    if cls.name in _SPECIAL:
        return _SPECIAL[cls.name]
    traits = [trait for trait in cls.traits if isinstance(trait, MemoryEffect)]
    if any(isinstance(trait, RecursiveMemoryEffect) for trait in traits):
        return _BY_REGIONS
    if traits and all(isinstance(trait, NoMemoryEffect) for trait in traits):
        return Effect.NONE
    if traits and all(isinstance(trait, NoMemoryEffect | MemoryReadEffect) for trait in traits):
        return Effect.REMOVABLE
    # arith and math declare too little for some of their ops, but none of them touches memory
    return Effect.NONE if cls.name.partition(".")[0] in ("arith", "math", "scalar") else Effect.WRITE
