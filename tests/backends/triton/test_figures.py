"""What Triton's compiler made of kernels, read from its files."""

from __future__ import annotations

import dataclasses
import os
import struct
from collections.abc import Iterator

import pytest

from inductile.backends.triton import emit
from inductile.backends.triton.figures import compiled_figures, figures_of, nvidia_figures
from inductile.backends.triton.loading import load_functions
from inductile.backends.triton.targets import triton_target
from inductile.backends.triton.variants import likely_variant, request_of

from .support import parse

#: 64 values a thread that are all needed at once
WIDE = """kernel.func @wide(%x: !kernel.buffer<f32, 8192>, %y: !kernel.buffer<f32, 8192>) target "TARGET" num_warps 1 {
  kernel.for i0 in 0 to 4 map grid {
    %s = kernel.reduce sum i1 in 0 to 2048 map vector tile 2048 {
      %v = kernel.load %x[2048*i0 + i1]
      kernel.yield %v
    }
    kernel.for i1 in 0 to 2048 map vector tile 2048 {
      %v = kernel.load %x[2048*i0 + i1]
      %w = arith.mulf %v, %s : f32
      kernel.store %w, %y[2048*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}
"""
CPP = """kernel.func @other(%x: !kernel.buffer<f32, 4>) target "cpp" {
  kernel.for i0 in 0 to 4 { %v = kernel.load %x[i0]  kernel.store %v, %x[i0]  kernel.yield }
  kernel.yield
}
"""


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", os.fspath(tmp_path_factory.mktemp("triton")))
        yield


def test_figures_of_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    found = figures_of(parse(WIDE.replace("TARGET", "cuda:90") + CPP))
    assert list(found) == ["wide"]
    assert 64 <= found["wide"]["registers"] <= 255
    assert found["wide"]["spills"] == 0
    assert found["wide"]["warps"] == 1
    assert figures_of(parse(CPP)) == {}
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert figures_of(parse(WIDE.replace("TARGET", "cuda:90"))) == {}


@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
def test_registers_that_do_not_suffice(target: str) -> None:
    (source,) = emit(parse(WIDE.replace("TARGET", target)))
    request = request_of(source, triton_target(target), likely_variant(source))
    if target.startswith("cuda"):
        request = dataclasses.replace(request, options={**request.options, "maxnreg": 24})
    found = compiled_figures(request.compile(load_functions([source])[0]))
    assert {"registers", "spills", "shared", "warps"} <= set(found)
    if target.startswith("cuda"):
        assert found["registers"] <= 24
        assert found["spills"] > 0
        assert found["spills"] % 4 == 0


def test_files_that_are_none() -> None:
    assert nvidia_figures(b"") == {}
    assert nvidia_figures(b"\x7fELF\x02" + bytes(20)) == {}
    header = bytearray(64)
    header[:5] = b"\x7fELF\x02"
    assert nvidia_figures(bytes(header)) == {}
    struct.pack_into("<Q", header, 40, 1 << 20)
    struct.pack_into("<HHH", header, 58, 64, 3, 1)
    assert nvidia_figures(bytes(header)) == {}
