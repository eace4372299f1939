"""Pickles of entries, which name nothing that another process may not have."""

from __future__ import annotations

import copyreg
import io
import pickle
from typing import Any

import torch


def dumps(value: Any) -> bytes:
    """The bytes of a value.

    A memory format says of itself that it is "torch.contiguous_format" of no module, for which pickle takes the first
    module loaded that has something by that name: any that has imported torch, one of a user's too. Here it is torch's.
    """
    made = io.BytesIO()
    pickler = pickle.Pickler(made)
    pickler.dispatch_table = copyreg.dispatch_table | {torch.memory_format: _reduce}
    pickler.dump(value)
    return made.getvalue()


def _reduce(value: torch.memory_format) -> tuple[Any, ...]:
    return memory_format, (str(value).removeprefix("torch."),)


def memory_format(name: str) -> torch.memory_format:
    """One of torch's memory formats."""
    return getattr(torch, name)
