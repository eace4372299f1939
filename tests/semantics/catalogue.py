"""What a case of the semantic tests is, and the check that it holds compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from .. import eager_compare

NAN, INF = float("nan"), float("inf")


@dataclass(frozen=True)
class Case:
    """A function of tensors that must mean compiled what it means in eager.

    inputs:  makes the arguments anew for each run
    values:  False where eager's values are not owed, as with random numbers
    options: those of torch.compile under which the case is owed
    """

    function: Callable[..., Any]
    inputs: Callable[[], tuple[torch.Tensor, ...]]
    values: bool = True
    options: dict[str, Any] = field(default_factory=dict)


Cases = dict[str, Case]


def parametrized(cases: Cases) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Each case with static and with symbolic sizes, at each commit one of both."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        dynamic = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
        rows = pytest.mark.parametrize("case", cases.values(), ids=list(cases))
        return pytest.mark.rotates(3, each="case")(dynamic(rows(test)))

    return decorate


def check(case: Case, dynamic: bool) -> None:
    """Fail with what differs from eager: values, dtypes, strides, aliasing, inputs afterwards, errors."""
    faults = eager_compare.compare(
        case.function, case.inputs(), values=case.values, dynamic=dynamic, options=case.options
    )
    assert not faults, faults


def tensors(*values: Any, dtype: torch.dtype | None = None) -> Callable[[], tuple[torch.Tensor, ...]]:
    """Inputs made of lists and numbers."""
    return lambda: tuple(torch.tensor(v, dtype=dtype) for v in values)
