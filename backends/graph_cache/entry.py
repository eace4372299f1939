"""Our programs in the entries of AOTAutograd, where Inductor's have their keys."""

from __future__ import annotations

import pickle
from typing import Any

import torch

from ...records import dataclass
from .pickling import dumps


@dataclass
class StoredForward:
    """A forward or inference graph; the methods are those that AOTAutograd calls, in this order, when it loads."""

    result: Any

    def pre_save(self) -> None:
        """Nothing: it is data."""

    def load(self, example_inputs: Any) -> Any:
        """The graph, which does not run yet."""
        return self.result

    def post_compile(self, result: Any, fx_config: Any) -> Any:
        """The graph, which runs."""
        result.post_compile()
        return result


@dataclass
class StoredBackward(StoredForward):
    """A backward graph, and how AOTAutograd calls it; `given` are the inputs whose memory it may write to."""

    backward_state_indices: list[int]
    num_symints_saved_for_bw_: int
    given: tuple[int, ...]

    def post_compile(self, result: Any, fx_config: Any) -> Any:
        """The graph, which Dynamo must not trace."""
        made = super().post_compile(result, fx_config)
        if self.given:
            made = KeepingGiven(made, self.given)
        return torch._dynamo.disable(made, reason="do not trace generated backwards pass")


class KeepingGiven:
    """A backward graph that may be called again with the same saved tensors, as by `retain_graph=True`.

    Where it is compiled, AOTAutograd knows of the first call, and compiles for that. A graph from the cache was
    compiled for another process, which may not have kept them.
    """

    def __init__(self, run: Any, given: tuple[int, ...]) -> None:
        self._boxed_call = True
        self._run, self._given = run, given

    def __call__(self, args: list[Any]) -> Any:
        """Run, on copies of what it may write to where that is kept."""
        if torch._C._autograd._get_current_graph_task_keep_graph():  # pyright: ignore[reportAttributeAccessIssue]
            for position in self._given:
                args[position] = args[position].clone()
        return self._run(args)


class PostponedModule:
    """The backward graph of an entry as AOTAutograd traced it: bytes until compiled autograd alone asks for it.

    Torch's own `SerializedGraphModule` has the graphs inside of it unpickled with the entry. They are traced anew for
    that, and a graph that calls others, as a branch with branches does, cannot be.
    """

    def __init__(self, module: Any) -> None:
        self._content = dumps(module)

    def deserialize(self) -> Any:
        """The graph."""
        return pickle.loads(self._content).deserialize()
