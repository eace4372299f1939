"""Our programs in the entries of AOTAutograd, where Inductor's have their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


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
    """A backward graph, and how AOTAutograd calls it."""

    backward_state_indices: list[int]
    num_symints_saved_for_bw_: int

    def post_compile(self, result: Any, fx_config: Any) -> Any:
        """The graph, which Dynamo must not trace."""
        made = super().post_compile(result, fx_config)
        return torch._dynamo.disable(made, reason="do not trace generated backwards pass")
