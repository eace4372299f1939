"""Kernels by hand run in C++ and, a third of them with each commit, in plain C."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .programs import Target


@pytest.fixture(scope="module", params=["cpp", pytest.param("c", marks=pytest.mark.rotates(3))])
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    """What kernels of the module are for."""
    Target.name = request.param
    yield Target.name
    Target.name = "cpp"
