"""An attention that was chosen to be a nest of ours, and was fused so that matrix units cannot have it, is not one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode

from inductile.backends.triton.offline import OfflineBackend
from inductile.passes.printing import module_text
from inductile.passes.remarks import collecting

Tensor = torch.Tensor


def _capped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Nothing recognises it, and its records say a nest."""
    place = torch.arange(q.shape[-2], device=q.device)
    scores = torch.tanh(q @ k.mT / 30.0) * 30.0
    return scores.masked_fill(place > place[:, None], -torch.inf).softmax(-1) @ v


def _normed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    y = _capped(q, k, v).transpose(1, 2).reshape(4, 2048, 1024)
    return F.layer_norm(torch.relu(y), (1024,))


def _twice(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The second one is lowered as the first, and is the same kernel."""
    return _capped(_capped(q, k, v), k, v)


def _beside(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Only the first one is given back."""
    return _normed(q, k, v), _capped(q[:2], k[:2], v[:2])


@pytest.mark.parametrize(("function", "kernels", "missed"), [(_normed, 0, 1), (_twice, 1, 0), (_beside, 1, 1)])
def test_kernels_of_attention(function: Any, kernels: int, missed: int) -> None:
    backend = OfflineBackend(["cuda:90"])
    torch._dynamo.reset()
    with FakeTensorMode(), torch.no_grad(), collecting() as remarks:
        given = [torch.empty(4, 16, 2048, 64, dtype=torch.bfloat16, device="cuda:0") for _ in range(3)]
        torch.compile(function, backend=backend, dynamic=False)(*given)
    sources = [kernel.source for _, kernel in backend.kernels]
    assert sum("tl.dot(" in each for each in sources) == kernels
    declined = [each for each in remarks if "did not end on matrix units" in each.reason]
    assert len(declined) == missed
    (module,) = [module for *_, module in backend.modules]
    assert ("aten.bmm" in module_text(module)) is (missed > 0)
