"""What decides about a graph and is not in it: settings, changed operators, what is installed, and when it changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._decomp import decomposition_table
from torch.nn.attention import SDPBackend, sdpa_kernel

from inductile import extensions
from inductile.backends.graph_cache import front, identity
from inductile.backends.graph_cache.overrides import changed_operator
from inductile.backends.graph_cache.store import Store

from .harness import outcomes, run

X = torch.arange(12.0).reshape(3, 4) / 7 - 0.5
ATEN: Any = torch.ops.aten
_replay_views = vars(torch._C)["_set_view_replay_enabled"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDUCTILE_GRAPH_CACHE", "1")
    monkeypatch.setattr(front, "own_store", lambda: Store(tmp_path))


@contextmanager
def set_to(change: Callable[[Any], object], value: object, before: object) -> Iterator[None]:
    change(value)
    try:
        yield
    finally:
        change(before)


@contextmanager
def attention_in_half() -> Iterator[None]:
    with (
        sdpa_kernel([SDPBackend.MATH]),
        set_to(torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp, True, False),
    ):
        yield


@contextmanager
def other_decomposition() -> Iterator[None]:
    operator = ATEN.pixel_shuffle.default
    before = decomposition_table[operator]
    decomposition_table[operator] = lambda x, factor: before(x, factor) * 1.0
    try:
        yield
    finally:
        decomposition_table[operator] = before


@contextmanager
def other_kernel() -> Iterator[None]:
    library = torch.library.Library("aten", "IMPL")
    library.impl("relu", lambda x: torch.clamp(x, min=0) * 1, "AutogradCPU")
    try:
        yield
    finally:
        library._destroy()


@contextmanager
def other_python_kernel() -> Iterator[None]:
    key = torch._C.DispatchKey.AutogradCPU
    ATEN.hardshrink.default.py_impl(key)(lambda x, lambd=0.5: x)
    try:
        yield
    finally:
        del ATEN.hardshrink.default.py_kernels[key]
        ATEN.hardshrink.default._dispatch_cache.clear()


def double(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


def attention(x: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(x, x, x)


HALVES = torch.linspace(-1, 1, 64, dtype=torch.bfloat16).reshape(1, 2, 4, 8)
CHANGES: dict[str, tuple[Callable[[], AbstractContextManager[Any]], Callable[..., Any], torch.Tensor, str]] = {
    "attention in half": (attention_in_half, attention, HALVES, "miss"),
    "default dtype": (partial(set_to, torch.set_default_dtype, torch.float64, torch.float32), double, X, "miss"),
    "denormals": (partial(set_to, torch.set_flush_denormal, True, False), double, X, "miss"),
    "views are replayed": (partial(set_to, _replay_views, True, False), double, X, "miss"),
    "decomposition": (other_decomposition, lambda x: F.pixel_shuffle(x, 2), X.reshape(1, 4, 3, 1), "bypass"),
    "kernel": (other_kernel, double, X, "bypass"),
    "kernel in Python": (other_python_kernel, double, X, "bypass"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_a_graph_from_outside(name: str) -> None:
    change, function, x, expected = CHANGES[name]
    with sdpa_kernel([SDPBackend.MATH]) if function is attention else set_to(len, "", ""):
        assert run(function, x) == "miss"
    with change():
        assert run(function, x) == expected
    assert changed_operator() == ""


def test_what_views_are_of_is_different() -> None:
    def write(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return y * 2

    for size, expected in ((12, "miss"), (20, "miss"), (12, "hit")):
        memory = torch.arange(float(size))
        assert run(write, memory[:6], memory[3:9]) == expected


def test_a_switch_that_changes_before_the_backward_graph() -> None:
    def compiled() -> torch.Tensor:
        torch.compiler.reset()
        return torch.compile(double, backend="inductile", options={"cache_graphs": True})(X.clone().requires_grad_())

    run(double, X)  # clears the counters
    with set_to(torch.use_deterministic_algorithms, True, False):
        result = compiled()
    result.sum().backward()
    with set_to(torch.use_deterministic_algorithms, True, False):
        compiled()
    assert outcomes().count("hit") == 0


def test_headers_of_kernels_are_code() -> None:
    _, files = identity._sources()
    assert any(file.endswith("prelude.h") for file in files)
    assert not any("__pycache__" in file for file in files)


def test_compilers_that_are_not_there_are_different(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: set[str] = set()
    for wanted in ("/nonexistent/g++", "'/nonexistent/g++' -DX", "'unbalanced"):
        monkeypatch.setenv("CXX", wanted)
        lines.add(identity.compiler_line())
    assert len(lines) == 3
    assert all(line.startswith("compiler none") for line in lines)


@pytest.mark.parametrize("group", ["inductile.passes", "inductile.generators", "inductile.of_tomorrow"])
def test_any_group_is_a_plugin(tmp_path: Path, group: str) -> None:
    folder = tmp_path / "a_plugin-1.0.dist-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_text(f"[console_scripts]{os.linesep}x = y:z\n[{group}]\nx = y:z\n")
    assert extensions.adding((str(tmp_path),)) == ("a_plugin-1.0",)
