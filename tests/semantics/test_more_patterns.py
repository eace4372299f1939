"""What the benchmark of further patterns compiles, at small sizes: eager's values, by kernels alone."""

from __future__ import annotations

import pytest
import torch
from torch.utils._pytree import tree_leaves

from inductile.backends.compiled import REPORTS

from ..scripts import load_benchmark
from ..versions import torch_version

_more = load_benchmark("more_patterns")
#: what is called of ATen beside kernels
CALLED = {"gate": {"aten.topk"}, "scattered_gate": {"aten.topk"}}
if torch_version() >= (2, 12):  # 2.11 asserts nothing
    CALLED["one_hot"] = {"aten._assert_async.msg"}


@pytest.mark.rotates(3)
@pytest.mark.parametrize("name", list(_more.CASES))
def test_equals_eager(name: str) -> None:
    function, inputs = _more.build(name, rows=16)
    torch._dynamo.reset()
    with torch.no_grad():
        REPORTS.clear()
        got, expected = torch.compile(function, backend="inductile")(*inputs), function(*inputs)
    for one, other in zip(tree_leaves(got), tree_leaves(expected), strict=True):
        assert one.stride() == other.stride()
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert set(REPORTS[-1].aten_calls) == CALLED.get(name, set())
