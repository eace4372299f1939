"""The interpreter that every lowering is compared with; it calls no lowering."""

from __future__ import annotations

from .compare import Outcome, compare_modules, differences, observe, outcome_differences, random_inputs
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
    "Outcome",
    "RaceError",
    "UninitialisedReadError",
    "compare_modules",
    "differences",
    "observe",
    "outcome_differences",
    "random_inputs",
    "run_module",
]
