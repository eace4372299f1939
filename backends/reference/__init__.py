"""The interpreter that every lowering is compared with; it calls no lowering."""

from __future__ import annotations

from .errors import (
    InputError,
    InterpretationError,
    LifetimeError,
    OutOfBoundsError,
    RaceError,
    UninitialisedReadError,
)
from .run import run_module

__all__ = [
    "InputError",
    "InterpretationError",
    "LifetimeError",
    "OutOfBoundsError",
    "RaceError",
    "UninitialisedReadError",
    "run_module",
]
