"""Functions of a table that differ in settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def parametric(function: Callable[..., Result]) -> Callable[..., Callable[..., Result]]:
    """Functions written as one: called with settings, its last parameters, it gives the function that has them."""
    return lambda *settings, **named: lambda *args: function(*args, *settings, **named)
