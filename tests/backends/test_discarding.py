"""The option `freezing_discard_parameters`: weights that only kept results were made of are released."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any, cast

import pytest
import torch
from torch import nn
from torch._inductor import config

from inductile.backends.host.discarded import DiscardedWeight
from inductile.backends.host.kept import KeptResults
from inductile.errors import UserError


class Scaled(nn.Module):
    """A layer with a weight that is made of two, and a buffer."""

    scale: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Parameter(torch.randn(64, 32) / 8)
        self.right = nn.Parameter(torch.randn(32, 48) / 8)
        self.register_buffer("scale", torch.rand(64) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.left @ self.right
        return torch.tanh(nn.functional.linear(x, weight * self.scale[:, None]))


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected)


class Folded(Scaled):
    """The same with a convolution and a batch norm in front, a tied weight and a view that shares memory with one."""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4))
        self.tied = self.left
        self.view = self.right.detach()[:8]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(self.front(x[:, None, None]).mean((1, 2)) + x) + self.tied.sum()


DISCARDING: dict[str, Any] = {"freezing": True, "freezing_discard_parameters": True}


def _discarded(model: nn.Module) -> list[str]:
    return [name for name, each in model.state_dict(keep_vars=True).items() if isinstance(each, DiscardedWeight)]


def test_discarded_weights_are_released() -> None:
    model, x = Folded().eval(), torch.randn(8, 48)
    view = torch.clone(cast(torch.Tensor, model.view))
    weights = cast(list[torch.Tensor], [model.left, model.front[0].weight, model.scale])
    storages = [weakref.ref(each.untyped_storage()) for each in weights]
    del weights
    torch.compiler.reset()
    run = torch.compile(model, backend="inductile", options=DISCARDING)
    with torch.no_grad():
        expected, other = model(x), model(x + 1)
        for _ in range(2):
            close(run(x), expected)
            close(run(x + 1), other)
        gc.collect()
        assert not any(each() is not None for each in storages)
        names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
        assert set(names) <= set(_discarded(model)) and model.tied is model.left
        close(model.view, view)
        for use in (lambda: model(x), model.state_dict, lambda: copy.deepcopy(model), lambda: model.left[0]):
            with pytest.raises(UserError, match="was discarded"):
                use()
        assert model.left.shape == (64, 32) and "(left," in repr(model.left)


def test_new_weights_are_discarded_too_and_sizes_are_checked() -> None:
    model, other, x = Scaled().eval(), Scaled().eval(), torch.randn(8, 48)
    torch.compiler.reset()
    run = torch.compile(model, backend="inductile", options=DISCARDING)
    with torch.no_grad():
        run(x)
        expected = other(x)
        model.load_state_dict(other.state_dict(), assign=True)
        close(run(x), expected)
        close(run(x), expected)
        assert set(_discarded(model)) == {"left", "right", "scale"}
        model.left = nn.Parameter(torch.randn(64, 32))
        with pytest.raises(UserError, match="needed again"):
            run(x)
        model.load_state_dict(Scaled().state_dict() | {"left": torch.randn(32, 64).t()}, assign=True)
        with pytest.raises(UserError, match="reset"):
            run(x)


def test_what_programs_read_themselves_is_not_discarded() -> None:
    class Both(Scaled):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).sum() + self.left * x[0, 0]

    model, x = Both().eval(), torch.randn(8, 48)
    torch.compiler.reset()
    with config.patch(DISCARDING), torch.no_grad():
        expected = model(x)
        run = torch.compile(model, backend="inductile")
        close(run(x), expected)
        close(run(x), expected)
        assert "left" not in _discarded(model) and "right" in _discarded(model)
        model.left.add_(1)


def test_results_go_with_discarded_weights() -> None:
    model, x = Scaled().eval(), torch.randn(8, 48)
    torch.compiler.reset()
    with torch.no_grad():
        run = torch.compile(model, backend="inductile", options=DISCARDING)
        run(x)
        gc.collect()
        kept = [each for each in gc.get_objects() if type(each) is KeptResults and each.discards is not None]
        before = sum(each.bytes_kept for each in kept)
        model.load_state_dict(Scaled().state_dict(), assign=True)
        gc.collect()
        assert sum(each.bytes_kept for each in kept) == before - 64 * 48 * 4
