from __future__ import annotations

import pickle

import pytest

from inductile.errors import CompilerNotFoundError, InductileError, PassError, UnsupportedError, UserError

MESSAGES = [
    (UserError("no pass named 'fuse'"), "no pass named 'fuse'"),
    (
        UserError("no pass named 'fuse'", "did you mean 'loop-fuse'?"),
        "no pass named 'fuse'; did you mean 'loop-fuse'?",
    ),
    (
        CompilerNotFoundError("C++ compiler", "g++"),
        "no C++ compiler found; install the package g++, or let the environment variable CXX name a compiler",
    ),
    (UnsupportedError("aten.foo"), "aten.foo"),
    (PassError("loop-fuse", "cycle"), "pass 'loop-fuse' failed: cycle"),
    (
        PassError("loop-fuse", "cycle", "/tmp/r.mlir"),
        "pass 'loop-fuse' failed: cycle; replay it with: inductile-opt --run-reproducer /tmp/r.mlir",
    ),
]


@pytest.mark.parametrize(("error", "message"), MESSAGES, ids=lambda value: type(value).__name__)
def test_message_survives_another_process(error: InductileError, message: str) -> None:
    assert str(error) == message
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), message, vars(error))


def test_a_missing_compiler_is_told_as_a_user_error() -> None:
    with pytest.raises(UserError, match="install the package g"):
        raise CompilerNotFoundError("C++ compiler", "g++")
