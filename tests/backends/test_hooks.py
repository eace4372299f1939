"""What others hook into torch.compile: decompositions, lowerings registered with TorchInductor, tags of custom ops."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import inductile
from inductile.backends import foreign_lowerings
from inductile.backends.compiled import REPORTS
from inductile.errors import UserError


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture(scope="module")
def cube() -> Iterator[Any]:
    """An operator of a user."""
    with torch.library._scoped_library("inductile_hooks", "FRAGMENT") as library:
        library.define("cube(Tensor x) -> Tensor")
        library.impl("cube", lambda x: x * x * x, "CompositeExplicitAutograd")
        library._register_fake("cube", torch.empty_like)
        yield torch.ops.inductile_hooks.cube


def test_decompositions_of_users(cube: Any) -> None:
    x = torch.randn(7)

    def function(x: torch.Tensor) -> torch.Tensor:
        return cube(x) + 1

    torch.testing.assert_close(torch.compile(function, backend="inductile")(x), x**3 + 1)
    assert REPORTS[-1].aten_calls == {"inductile_hooks::cube": 1}
    for op in (cube, cube.default):
        torch.compiler.reset()
        chosen = inductile.backend(decompositions={op: lambda x: x * x * x})
        torch.testing.assert_close(torch.compile(function, backend=chosen)(x), x**3 + 1)
        assert REPORTS[-1].aten_calls == {}
    with pytest.raises(UserError, match=r"'decompositions' has the key 'cube'; write torch.ops"):
        inductile.backend(decompositions={"cube": None})


def test_lowerings_of_inductor_are_told_of(cube: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.lowering import lowerings, register_lowering

    monkeypatch.setattr(foreign_lowerings, "_told", set())
    monkeypatch.setitem(lowerings, cube.default, None)
    register_lowering(cube.default)(lambda x: x)
    x = torch.randn(7)
    with pytest.warns(
        UserWarning, match=r"registered with TorchInductor, here of inductile_hooks.cube.default: each op"
    ):
        explained = inductile.explain(lambda x: cube(x) + x.sin())(x)
    torch.testing.assert_close(explained.result, x**3 + x.sin())
    assert any("inductile_hooks.cube.default" in each.reason for each in explained.remarks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.compile(lambda x: cube(x) - 1, backend="inductile")(x)


TAGS = ("pt2_compliant_tag", "needs_fixed_stride_order", "needs_exact_strides", "flexible_layout", "cudagraph_unsafe")


def test_tagged_operators_get_the_strides_of_eager() -> None:
    """Whatever a tag allows: strides that eager gives are right for all."""
    with torch.library._scoped_library("inductile_tags", "FRAGMENT") as library:
        seen: dict[str, list[Any]] = {}
        known = [each for each in TAGS if hasattr(torch.Tag, each)]
        for name in known:

            def product(x: torch.Tensor, y: torch.Tensor, name: str = name) -> torch.Tensor:
                seen.setdefault(name, []).append((x.stride(), y.stride()))
                return (x * y).contiguous()

            library.define(f"{name}(Tensor x, Tensor y) -> Tensor", tags=(getattr(torch.Tag, name),))
            library.impl(name, product, "CompositeExplicitAutograd")
            library._register_fake(name, lambda x, y: torch.empty(x.shape))

        def function(x: torch.Tensor) -> torch.Tensor:
            one = (x.transpose(1, 2) + 1).relu()
            other = (x.permute(2, 0, 1) * 2).permute(1, 0, 2)
            results = [getattr(torch.ops.inductile_tags, name)(one + k, other) for k, name in enumerate(known)]
            return torch.stack(results).sum(0)

        x = torch.randn(3, 4, 5)
        expected = function(x)
        torch.testing.assert_close(torch.compile(function, backend="inductile")(x), expected)
        assert len(seen) > 3 and all(eager == compiled for eager, compiled in seen.values())
