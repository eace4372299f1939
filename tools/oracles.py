"""Oracles of bisecting and reducing: is something wrong with a module?"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from xdsl.dialects.builtin import ModuleOp

from ..errors import UserError
from ..passes.printing import module_text
from ..passes.verification import find_violation

if TYPE_CHECKING:
    import torch


class Oracle(Protocol):
    """Judges a module."""

    def problem(self, module: ModuleOp) -> str | None:
        """What is wrong with a module, in a line; None when nothing is."""
        ...


class AnswerOracle:
    """A module is wrong when it does not verify, or answers otherwise than `original` in the reference backend."""

    def __init__(self, original: ModuleOp, seed: int = 0, inputs: Sequence[torch.Tensor | int] | None = None) -> None:
        from ..backends.numerics import Answers  # imports torch

        self._answers = Answers(original, seed, inputs)

    def problem(self, module: ModuleOp) -> str | None:
        """What differs."""
        violation = find_violation(module)
        if violation is not None:
            return f"the module does not verify: {violation}"
        difference = self._answers.difference(module)
        return None if difference is None else f"the answer changes: {difference}"


class CommandOracle:
    """A module is wrong when a command ends with another status than 0 on a file with it.

    `{}` in the command stands for the file; without it the file is the last argument.
    """

    def __init__(self, command: str, timeout: float = 600.0) -> None:
        self._command = split_command(command)
        self._timeout = timeout

    def problem(self, module: ModuleOp) -> str | None:
        """The command's status."""
        status = run_on_text(self._command, module_text(module, locations=True) + "\n", self._timeout)
        return None if status == 0 else f"the command ends with status {status}"


def split_command(command: str) -> list[str]:
    """Words of a command; UserError for quotes that do not match."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"cannot read the command {command!r} ({error})") from error
    if not words:
        raise UserError("the command is empty", "name a program")
    return words if any("{}" in word for word in words) else [*words, "{}"]


def run_on_text(command: Sequence[str], text: str, timeout: float) -> int:
    """Exit status of a command on a temporary file with some text; 124 when it takes longer than `timeout` seconds."""
    with tempfile.TemporaryDirectory(prefix="inductile-") as folder:
        path = Path(folder) / "module.mlir"
        path.write_text(text)
        words = [word.replace("{}", str(path)) for word in command]
        try:
            return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout).returncode
        except subprocess.TimeoutExpired:
            return 124
        except OSError as error:
            raise UserError(f"cannot run {words[0]}: {error.strerror}") from error
