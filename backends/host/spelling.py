"""What a language has to spell of host programs, for the walk that writes them; see `walk.py`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from ...dialects import host
from ...dialects.aten import AtenOp, CallOp, TensorType
from ...dialects.sym import Expr


class Spelling(ABC):
    """Statements and expressions of a language."""

    @abstractmethod
    def _take_arguments(self, names: Sequence[str]) -> None:
        """Give the arguments their names; who calls holds them no longer."""

    @abstractmethod
    def _let(self, name: str, value: str) -> None:
        """A variable for a tensor."""

    @abstractmethod
    def _let_integer(self, name: str, value: str) -> None:
        """A variable for an integer: a size, an address."""

    @abstractmethod
    def _do(self, statement: str) -> None:
        """A statement."""

    @abstractmethod
    def _drop(self, names: Sequence[str]) -> None:
        """End the lives of variables."""

    @abstractmethod
    def _return(self, values: Sequence[str]) -> None:
        """What the function returns."""

    @abstractmethod
    def _spell(self, expr: Expr, more: Mapping[str, str] | None = None) -> str:
        """An expression of sizes; `more` gives the variables of further symbols."""

    @abstractmethod
    def _tuple(self, exprs: Sequence[Expr]) -> str:
        """Several of them."""

    @abstractmethod
    def _text(self, text: str) -> str:
        """A constant text."""

    @abstractmethod
    def _dtype(self, kind: TensorType) -> str:
        """The type of elements."""

    @abstractmethod
    def _address(self, variable: str) -> str:
        """The address of a tensor."""

    @abstractmethod
    def _function_named(self, name: str) -> str:
        """A function of the runtime, which has the same ones in every language."""

    @abstractmethod
    def _fresh_memory(self, op: host.EmptyOp) -> str:
        """A new tensor."""

    @abstractmethod
    def _launch(self, op: host.LaunchOp) -> None:
        """Let a launch wait in `_pending`."""

    @abstractmethod
    def _write_launches(self) -> None:
        """Write the launches that wait."""

    @abstractmethod
    def _takes_address(self, launch: host.LaunchOp, value: SSAValue) -> bool:
        """Whether a launch needs but the address of a tensor."""

    @abstractmethod
    def _call(self, op: AtenOp | CallOp) -> None:
        """Call an operator, and look at what it returns."""

    @abstractmethod
    def _run_part(self, op: host.CallOp, given: str) -> None:
        """Call a function of the module with these arguments."""

    @abstractmethod
    def _list(self, names: Sequence[str]) -> str:
        """Arguments of a function of the module."""

    @abstractmethod
    def _let_list(self, name: str, value: str) -> None:
        """A variable for them."""

    @abstractmethod
    def _begin(self) -> None:
        """What stands behind the symbols of the arguments."""

    @abstractmethod
    def _allocates(self, op: Operation) -> None:
        """The next line allocates, for this op."""
