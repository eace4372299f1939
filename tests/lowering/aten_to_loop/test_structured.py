"""Views, reductions, norms, reads and writes at indices, pools: against eager."""

from __future__ import annotations

import pytest

from .harness import faults
from .structured_cases import GROUPS, Case


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [
    pytest.param(case, id=f"{group}-{number}-{case[0]}")
    for group, cases in GROUPS.items() for number, case in enumerate(cases)
])  # fmt: skip
def test_as_eager(case: Case) -> None:
    name, arguments, keywords = case
    assert faults(name, *arguments, **keywords) == []
