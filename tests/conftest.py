"""Shared set-up of all tests: environment, hypothesis profile, GPU marker, `.mlir` tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

from inductile import extensions
from inductile.lowering.pre_grad import PRE_GRAD
from inductile.passes.graph.patterns import PATTERNS

from . import twice
from .filecheck_runner.plugin import pytest_addoption as pytest_addoption
from .filecheck_runner.plugin import pytest_collect_file as pytest_collect_file
from .rotation import rotated

# Spinning OpenMP threads of two test processes would take turns on the same cores; read when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Compiles make the time of an example vary too much for a deadline; CI must not fail by the luck of the draw.
settings.register_profile("inductile", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("inductile")


@pytest.fixture(scope="session", autouse=True)
def _private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the tests out of the user's compile cache, and a stale cache out of the tests; workers share one."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    cache = root / "inductile-cache"
    cache.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INDUCTILE_CACHE_DIR", str(cache))
        # most tests are about what happens while a graph is compiled
        patch.setenv("INDUCTILE_GRAPH_CACHE", "0")
        yield


@pytest.fixture(autouse=True)
def _plugins_of_its_own() -> Iterator[None]:
    """What a test loads as a plugin ends with it: others would run its passes, and no graph is cached beside them."""
    added = {group: dict(members) for group, members in extensions._added.items()}
    files, patterns, pre_grad = dict(extensions._plugin_files), list(PATTERNS), dict(PRE_GRAD)
    yield
    if added == extensions._added and patterns == PATTERNS and pre_grad == PRE_GRAD:
        return
    tables: list[tuple[dict[Any, Any], dict[Any, Any]]] = [
        (extensions._added, added), (extensions._plugin_files, files), (PRE_GRAD, pre_grad)
    ]  # fmt: skip
    for known, before in tables:
        known.clear()
        known.update(before)
    PATTERNS[:] = patterns
    extensions.table.cache_clear()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tables rotate. What is slow comes first: no process waits at the end for another that has just begun with it."""
    kept = rotated(config, items)
    others = set(items).difference(kept)
    config.hook.pytest_deselected(items=[item for item in items if item in others])
    items[:] = kept
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    twice.draw(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Some tests run twice, the second time with graphs from the cache."""
    if twice.DRAWN not in item.stash or not isinstance(item, pytest.Function):
        return None
    twice.run_protocol(item, nextitem)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    with twice.run_call(item):
        return (yield)


def pytest_collection_finish() -> None:
    """What the imports of all tests made is never looked at again by the collector of garbage."""
    gc.collect()
    gc.freeze()


def _leave_guards_unmeasured() -> None:
    """Dynamo measures guards as it makes them, and empties the processor's caches for that: a tenth of a compile."""
    guards = sys.modules.get("torch._dynamo.guards")
    if guards is not None and hasattr(guards, "profile_guard_manager"):
        vars(guards)["profile_guard_manager"] = lambda *_: 0.0


def pytest_runtest_setup(item: pytest.Item) -> None:
    _leave_guards_unmeasured()
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")
