"""The one table of lowerings, and how a lowering sees the op it lowers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.ir import SSAValue

from ... import extensions
from ...dialects.aten.call import CallOp
from ...dialects.aten.ops import AtenOp
from ...dialects.aten.types import TensorType
from ...dialects.machine import USUAL, TargetsAttr
from ...dialects.sym import Ranges
from ...machines import Target
from ...records import dataclass
from .nests import LoopBuilder

#: replacement values of those results of an op that are tensors; a single one needs no list
Replacement: TypeAlias = "SSAValue | Sequence[SSAValue]"


class Call:
    """An ATen op with its tensors as they are in the function that is being built.

    ranges: what is known of the function's symbols; None where that is not asked for
    targets: what the module is compiled for; without them, the usual machines
    """

    __slots__ = ("op", "ranges", "targets", "values")

    def __init__(
        self,
        op: AtenOp,
        values: dict[SSAValue, SSAValue],
        ranges: Ranges | None = None,
        targets: TargetsAttr = USUAL,
    ) -> None:
        self.op = op
        self.values = values
        self.ranges = ranges
        self.targets = targets

    @property
    def target(self) -> Target:
        """The machine that the op is for."""
        return self.targets.target(self.type.device)

    def __getitem__(self, name: str) -> Any:
        """The value of an argument that is no tensor: number, symbolic integer, element type, string, None, tuple."""
        return self.op.arg(name)

    def has(self, name: str) -> bool:
        """Whether the overload takes an argument of this name."""
        return name in self.op.schema.by_name

    def argument(self, name: str) -> Any:
        """The value of any argument; tensors are replaced ones."""
        value = self.op.arg(name)
        return self.values.get(value, value) if isinstance(value, SSAValue) else value

    def tensor(self, name: str) -> SSAValue:
        """A tensor argument."""
        value = self.op.arg(name)
        assert isinstance(value, SSAValue)
        return self.values.get(value, value)

    def optional(self, name: str) -> SSAValue | None:
        """A tensor argument that may be None."""
        value = self.op.arg(name)
        return None if value is None else self.values.get(value, value)

    def tensors(self, name: str) -> list[SSAValue | None]:
        """The items of a list of tensors, some of which may be None."""
        return [v if v is None else self.values.get(v, v) for v in self.op.arg(name)]

    @property
    def type(self) -> TensorType:
        """The type of the first tensor among the results."""
        type_ = self.op.results[0].type
        return type_ if isinstance(type_, TensorType) else self.types[0]

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of the results that are tensors; a result that eager leaves undefined is none."""
        return tuple(r.type for r in self.op.results if isinstance(r.type, TensorType))


Lowering: TypeAlias = Callable[[LoopBuilder, Call], Replacement]
Reject: TypeAlias = Callable[[Call], "str | None"]


@dataclass(frozen=True)
class Rule:
    """How an overload is lowered.

    `reject` gives the reason why a particular op stays an ATen call, or None. `any_dtype` says that no
    kernel touches the elements, as with views, so that dtypes will do which only ATen computes with. `converts`
    says that elements are copied or converted, which floats of 8 bits can be (`Target.converts_float8`).
    """

    lower: Lowering
    reject: Reject | None = None
    any_dtype: bool = False
    converts: bool = False


#: op name ("aten.add.Tensor") -> rule
RULES: dict[str, Rule] = {}


#: how an `aten.call` is lowered, which has no schema; tensors are looked up in the dictionary
CallLowering: TypeAlias = Callable[[LoopBuilder, CallOp, dict[SSAValue, SSAValue]], Replacement]

#: callee ("inductile::random") -> lowering
CALLS: dict[str, CallLowering] = {}


_extended: set[str] = set()
"""The names in the tables that others have entered, and may enter again."""
_entered: list[object] = []
"""The table of extensions that was entered last; a new one is made when something is added in this process."""


def add_extensions() -> None:
    """Enter what other packages add to the tables; what we lower ourselves stays as it is."""
    given = extensions.table("inductile.lowerings")
    if _entered and _entered[-1] is given:
        return
    for name in _extended:
        RULES.pop(name, None)
        CALLS.pop(name, None)
    _extended.clear()
    for name, value in given.items():
        if not is_ours(name):
            (RULES if isinstance(value, Rule) else CALLS)[name] = value
            _extended.add(name)
    _entered[:] = [given]


def is_ours(name: str) -> bool:
    """Whether a name has a lowering that nobody else has entered."""
    return (name in RULES or name in CALLS) and name not in _extended


def add_rule(
    names: str, lower: Lowering, reject: Reject | None = None, any_dtype: bool = False, converts: bool = False
) -> None:
    """Enter a rule for overloads given by their names without the dialect, separated by spaces."""
    made = Rule(lower, reject, any_dtype, converts)
    for name in names.split():
        assert f"aten.{name}" not in RULES, name
        RULES[f"aten.{name}"] = made


def lowers(names: str, reject: Reject | None = None, any_dtype: bool = False) -> Callable[[Lowering], Lowering]:
    """Decorator form of `add_rule`."""

    def enter(lower: Lowering) -> Lowering:
        add_rule(names, lower, reject, any_dtype)
        return lower

    return enter
