"""Views, reductions, norms, reads and writes at indices, pools: against eager."""

from __future__ import annotations

import pytest

from .harness import faults
from .list_cases import FOREACH, SEARCHES
from .loss_cases import LOSSES, VIEW_GRADIENTS
from .structured_cases import CREATION, GATHERS, NORMALIZATION, REDUCTIONS, SCATTERS, VIEWS, Case
from .window_cases import POOLS

GROUPS = {
    "views": VIEWS, "creation": CREATION, "reductions": REDUCTIONS, "normalization": NORMALIZATION,
    "gathers": GATHERS, "scatters": SCATTERS, "pools": POOLS, "searches": SEARCHES, "foreach": FOREACH,
    "losses": LOSSES, "view-gradients": VIEW_GRADIENTS,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [
    pytest.param(case, id=f"{group}-{number}-{case[0]}")
    for group, cases in GROUPS.items() for number, case in enumerate(cases)
])  # fmt: skip
def test_as_eager(case: Case) -> None:
    name, arguments, keywords = case
    assert faults(name, *arguments, **keywords) == []
