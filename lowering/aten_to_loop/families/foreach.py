"""Lists of tensors: each item is lowered as the op of one tensor."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from ....dialects.aten.types import TensorType
from ....dialects.parametric import parametric
from ..nests import LoopBuilder
from ..rules import RULES, Call, Replacement, Rule, add_rule
from . import activation, arithmetic, creation, mathematics, reductions

_RULES_OF = (activation, arithmetic, creation, mathematics, reductions)  # they fill the table that is read here

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round "
    "rsqrt sigmoid sign sin sinh sqrt tan tanh trunc clone copy zero"
)
_LISTS = ".List .Scalar .ScalarList"
_SECOND = ("other", "scalar", "scalars")
#: packet -> (its overloads, the overload that lowers an item, the latter's arguments -> the list op's)
_ITEMS: dict[str, tuple[str, str, dict[str, tuple[str, ...]]]] = {
    "add": (f"{_LISTS} .Tensor", "add.Tensor", {"other": _SECOND}),
    "sub": (_LISTS, "sub.Tensor", {"other": _SECOND}),
    "mul": (f"{_LISTS} .Tensor", "mul.Tensor", {"other": _SECOND}),
    "div": (f"{_LISTS} .Tensor", "div.Tensor", {"other": _SECOND}),
    "maximum": (_LISTS, "maximum", {"other": _SECOND}),
    "minimum": (_LISTS, "minimum", {"other": _SECOND}),
    "clamp_max": (_LISTS, "clamp_max.Tensor", {"max": _SECOND}),
    "clamp_min": (_LISTS, "clamp_min.Tensor", {"min": _SECOND}),
    "addcmul": (".Scalar .ScalarList", "addcmul", {"value": ("value", "scalars")}),
    "addcdiv": (".Scalar .ScalarList", "addcdiv", {"value": ("value", "scalars")}),
    "lerp": (_LISTS, "lerp.Tensor", {"end": ("tensors1",), "weight": ("weight", "weights")}),
    "pow": (f"{_LISTS} .ScalarAndTensor", "pow.Tensor_Tensor", {}),
    "norm": (".Scalar", "linalg_vector_norm", {}),
}
_DEFAULTS = {"alpha": 1, "value": 1}


class Item(Call):
    """One position of a list op, seen as the op of one tensor."""

    __slots__ = ("_names", "_position")

    def __init__(self, call: Call, position: int, names: dict[str, tuple[str, ...]]) -> None:
        super().__init__(call.op, call.values)
        self._position = position
        self._names = names

    def _of_list_op(self, name: str) -> str | None:
        return next((n for n in self._names.get(name, (name,)) if super(Item, self).has(n)), None)

    def has(self, name: str) -> bool:
        """Whether the list op takes it; lists of tensors are reduced whole."""
        return self._of_list_op(name) is not None

    def argument(self, name: str) -> Any:
        """The argument's item at this position."""
        found = self._of_list_op(name)
        if found is None:
            return _DEFAULTS[name]
        value = super().argument(found)
        if isinstance(value, tuple):
            value = value[self._position]
        return self.values.get(value, value) if isinstance(value, SSAValue) else value

    __getitem__ = argument
    tensor = argument
    optional = argument

    @property
    def type(self) -> TensorType:
        """The type of the item's result."""
        return self.types[0]

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The type of the item's result."""
        return (self.op.results[self._position].type,)  # pyright: ignore[reportReturnType]


@parametric
def _each(b: LoopBuilder, call: Call, rule: Rule, names: dict[str, tuple[str, ...]]) -> Replacement:
    results: list[SSAValue] = []
    for position in range(len(call.op.results)):
        item = rule.lower(b, Item(call, position, names))
        results.append(item if isinstance(item, SSAValue) else item[0])
    return results


@parametric
def _any_rejected(call: Call, rule: Rule, names: dict[str, tuple[str, ...]]) -> str | None:
    items = (Item(call, position, names) for position in range(len(call.op.results)))
    return next((reason for item in items if rule.reject and (reason := rule.reject(item))), None)


def _enter(packet: str, suffixes: list[str], overload: str, names: dict[str, tuple[str, ...]]) -> None:
    rule = RULES[f"aten.{overload}"]
    overloads = " ".join(f"_foreach_{packet}{suffix}" for suffix in suffixes)
    add_rule(overloads, _each(rule, names), _any_rejected(rule, names))


for _packet in _UNARY.split():
    _enter(_packet, [""], _packet, {})
for _packet, (_suffixes, _overload, _arguments) in _ITEMS.items():
    _enter(_packet, _suffixes.split(), _overload, _arguments)
