"""The exceptions of inductile: what went wrong, who has to act, and what to do.

Importable from everywhere; imports nothing of the package and no torch. Every class keeps its arguments in
`args`, so that an error raised in a compiler process survives pickling on its way back.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

_Raised = TypeVar("_Raised", bound=BaseException)


class InductileError(Exception):
    """Base of every error that inductile raises on purpose."""


class UserError(InductileError):
    """The input, the options or the machine is at fault, not inductile.

    `problem` says what is wrong and `remedy` what to do about it; together they are the one message that a
    person sees. Command-line tools print it as `error: ...` and exit with status 1, without a traceback.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}; {self.remedy}" if self.remedy else self.problem


class CompilerNotFoundError(UserError):
    """No compiler for generated code was found; names the package that provides one."""

    def __init__(self, compiler: str, package: str) -> None:
        remedy = f"install the package {package}, or let the environment variable CXX name a compiler"
        super().__init__(f"no {compiler} found", remedy)
        self.args = (compiler, package)
        self.compiler = compiler
        self.package = package


class UnsupportedError(InductileError):
    """A valid program asks for something that no lowering handles.

    Where eager can run the operation, the caller answers with an ATen call instead of letting this escape.
    """


class PassError(InductileError):
    """A pass failed or left invalid IR: a bug of ours, or of a pass plugin.

    `pass_name` is the name in the pipeline, `reason` the failure in one line, and `reproducer` the path of a
    file that `inductile-opt --run-reproducer` replays (empty when none was written); `plugins` are the files of
    passes that it takes for that.
    """

    def __init__(self, pass_name: str, reason: str, reproducer: str = "", plugins: Sequence[str] = ()) -> None:
        super().__init__(pass_name, reason, reproducer, tuple(plugins))
        self.pass_name = pass_name
        self.reason = reason
        self.reproducer = reproducer
        self.plugins = tuple(plugins)

    def __str__(self) -> str:
        message = f"pass '{self.pass_name}' failed: {self.reason}"
        if self.reproducer:
            message += "\n" if "\n" in message else "; "
            message += f"replay it with: {replay_command(self.reproducer, self.plugins)}"
        return message


class PassFailureWarning(UserWarning):
    """An optional pass failed, and the program was compiled without it: a bug of ours that costs speed alone."""


def of_program(error: _Raised) -> _Raised:
    """Mark an exception as one that the program that runs raises, as eager would raise it: its type stays eager's.

    A tool that runs a program tells it to the user; any other exception is a fault of the tool.
    """
    vars(error)["of_program"] = True
    return error


def is_of_program(error: BaseException) -> bool:
    """Whether the program that ran raised it: by an assert of its own, or an operator that it calls."""
    return "of_program" in vars(error)


@contextmanager
def program_raises() -> Iterator[None]:
    """What is raised inside, the program raises."""
    try:
        yield
    except Exception as error:
        of_program(error)
        raise


def replay_command(reproducer: str, plugins: Sequence[str] = ()) -> str:
    """What to type to replay a reproducer; its file is untrusted and can load no plugin, so the command does."""
    flags = (f" --load-pass-plugin {shlex.quote(each)}" for each in plugins)
    return f"inductile-opt --run-reproducer {shlex.quote(reproducer)}{''.join(flags)}"
