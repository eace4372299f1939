"""The interpreter that every lowering is compared with; it calls no lowering.

A name loads its module when it is first used: compiles ask modules of this package what a dtype is, and interpret
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_MODULES = {
    "compare": ("Outcome", "compare_modules", "differences", "observe", "outcome_differences", "random_inputs"),
    "errors": (
        "InputError", "InterpretationError", "LifetimeError", "OutOfBoundsError", "RaceError",
        "UninitialisedReadError",
    ),
    "run": ("run_module",),
}  # fmt: skip
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f".{_PLACES[name]}", __name__), name)
    return value
