"""Which values of Dynamo's graph a call writes to: torch-level calls may change their arguments in place."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

import torch
import torch.nn.functional as F
from torch.fx import GraphModule, Node

from ..records import dataclass

_WRITING = "setitem iadd isub imul iand ior ixor itruediv ifloordiv imod ipow imatmul ilshift irshift delitem"
_SETTERS = frozenset(getattr(operator, name) for name in _WRITING.split()) | {
    f"__{name}__" for name in _WRITING.split()
}
_NOT_IN_PLACE = frozenset((operator.and_, operator.or_, operator.not_, operator.is_))

#: functions, operators and methods whose results are tensors of their own, whatever their arguments are
_NEW = (
    "abs add and arange baddbmm bitwise_and bitwise_not bitwise_or bmm cat clamp clone cos cumsum diff div einsum "
    "embedding eq exp floordiv full ge gelu gather gt index_select invert layer_norm le linear logical_and logical_not "
    "logical_or lt masked_fill matmul mean mod mul ne neg new_full new_ones new_zeros ones or pow relu rsqrt rsub "
    "silu sin softmax sqrt square stack sub sum tanh tensor tril triu truediv where xor zeros"
)
_FRESH_NAMES = frozenset(_NEW.split())


def is_fresh(node: Node) -> bool:
    """Whether what a call returns shares no memory with its arguments."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if name.startswith("__") and name.endswith("__"):
        name = name.strip("_")
    if node.target in _NOT_IN_PLACE:
        name = name.rstrip("_")
    if name not in _FRESH_NAMES or "out" in node.kwargs or node.kwargs.get("inplace") or True in node.args:
        return False
    return node.op == "call_method" or any(
        getattr(module, name, None) is node.target or getattr(module, f"{name}_", None) is node.target
        for module in (operator, torch, F)
    )


def use_results(graph: GraphModule, is_meant: Callable[[Node], bool]) -> None:
    """Let later calls read the result of a method that writes in place, instead of what it wrote to: they are one."""
    for node in graph.graph.nodes:
        base = node.args[0] if node.op == "call_method" and node.args else None
        name = str(node.target)
        if not isinstance(base, Node) or not name.endswith("_") or name.endswith("__") or not is_meant(base):
            continue
        for user in [each for each in base.users if each is not node and node < each]:
            user.replace_input_with(base, node)


def ancestors(nodes: Iterable[Node]) -> set[Node]:
    """Nodes and all that they are computed from."""
    found: set[Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.all_input_nodes
    return found


@dataclass
class Writes:
    """The writes of a graph, and what shares memory with what.

    values: all that a call may write to, and what may share memory with that
    """

    graph: GraphModule
    values: set[Node] = field(init=False)
    _roots: dict[Node, frozenset[Node]] = field(default_factory=dict)
    _places: dict[Node, int] = field(default_factory=dict)
    _events: list[tuple[int, Node, frozenset[Node]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for place, node in enumerate(self.graph.graph.nodes):
            self._places[node] = place
            sources = [] if is_fresh(node) else [self._roots[each] for each in node.all_input_nodes]
            self._roots[node] = frozenset({node}).union(*sources)
        for node in self._places:
            for written in _written_by(node):
                self._events.append((self._places[node], node, self._roots[written]))
        everything = frozenset[Node]().union(*(roots for *_, roots in self._events))
        self.values = {node for node, roots in self._roots.items() if roots & everything}

    def between(self, reads: Mapping[Node, Node], last: Node, own: Sequence[Node]) -> Iterator[Node]:
        """Calls that write to the memory of what is read, between where it is read and a later call.

        reads: value -> the call that reads it, or the value itself for any time after it is made
        own:   calls that may write
        """
        for value, reader in reads.items():
            for place, node, written in self._events:
                is_between = self._places[reader] < place <= self._places[last]
                if is_between and node not in own and written & self._roots[value]:
                    yield node


def _written_by(node: Node) -> list[Node]:
    """The arguments that a call may write to."""
    target = node.target
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    overload = isinstance(target, torch._ops.OpOverload | torch._ops.OpOverloadPacket)
    opaque = node.op == "call_module" or isinstance(target, torch._ops.HigherOrderOperator)
    if opaque or (overload and node.is_impure()) or "out" in node.kwargs or node.kwargs.get("inplace"):
        return node.all_input_nodes
    if node.op in ("call_method", "call_function") and (
        target in _SETTERS
        or name in _SETTERS
        or (name.endswith("_") and not name.endswith("__") and target not in _NOT_IN_PLACE)
    ):
        return node.all_input_nodes[:1]
    return []


def written_values(graph: GraphModule) -> set[Node]:
    """Values that a call may write to, and what may share memory with them."""
    return Writes(graph).values
