"""What the pass manager says of a pass that fails."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import ModuleType

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from inductile.dialects.context import new_context
from inductile.errors import PassError
from inductile.passes.manager import PassManager


@dataclass(frozen=True)
class Failing(ModulePass):
    """Fails."""

    name = "failing"

    def apply(self, ctx: object, op: ModuleOp) -> None:
        raise KeyError("mapping")


def test_the_line_of_the_pass_is_told() -> None:
    with pytest.raises(PassError, match=r"pass 'failing' failed: KeyError: 'mapping' \(.*test_manager\.py:\d+\)"):
        PassManager([Failing()]).run(new_context(), ModuleOp([]))


def test_a_pass_without_a_file_fails_with_its_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that is typed into an interpreter, whose module has no `__file__`."""
    monkeypatch.setitem(sys.modules, "typed", ModuleType("typed"))
    monkeypatch.setattr(Failing, "__module__", "typed")
    with pytest.raises(PassError, match=r"pass 'failing' failed: KeyError: 'mapping'$"):
        PassManager([Failing()]).run(new_context(), ModuleOp([]))
