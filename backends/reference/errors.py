"""What the interpreter reports: each names the op that went wrong and, where there is one, the index."""

from __future__ import annotations

import builtins
from collections.abc import Mapping

import torch
from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from ...dialects.loop.body import ERRORS
from ...errors import InductileError, UserError, of_program


class InterpretationError(InductileError):
    """The program is wrong: what it does has no meaning at this level. Base of the classes below."""


class OutOfBoundsError(InterpretationError):
    """An access outside a tensor or a buffer."""


class RaceError(InterpretationError):
    """Two iterations that may run at once meet in one place, and one of them writes without `atomic`."""

    log: object = None
    """The record of the loop whose iterations they are."""


class UninitialisedReadError(InterpretationError):
    """Memory is read, or returned, that nothing wrote."""


class LifetimeError(InterpretationError):
    """A value is used after the end of its life, or two live tensors overlap in a pool."""


class InputError(UserError):
    """The inputs do not fit the function's arguments."""


def describe(op: Operation) -> str:
    """The first line of an op's text with the user's source line, for messages."""
    text = str(op).strip().split("\n", 1)[0].removesuffix("{").rstrip()
    location = op.location
    if isinstance(location, FileLineColLoc):
        text += f" ({location.filename.data}:{location.line.data})"
    return text


def position_text(symbols: Mapping[str, int | torch.Tensor], shape: tuple[int, ...], wrong: torch.Tensor) -> str:
    """Values of symbols in the first lane where `wrong` (broadcastable to `shape`) holds: "i0 = 3, r0 = 17"."""
    where = tuple(wrong.expand(shape).nonzero()[0].tolist())
    numbers = {
        name: int(value.expand(shape)[where]) if isinstance(value, torch.Tensor) else value
        for name, value in symbols.items()
    }
    return ", ".join(f"{name} = {number}" for name, number in numbers.items())


def exception(name: str, message: str) -> Exception:
    """The built-in exception called `name`, which a program raises by an assert; RuntimeError for other names."""
    return of_program(getattr(builtins, name)(message) if name in ERRORS else RuntimeError(message))
