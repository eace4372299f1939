"""Runners for a GPU, with a driver of the tests' own: its kernels are C++, and the device is the processor."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch.export import Dim, export

import inductile
from inductile.backends.packages.runner.build import build_runner, runner_source
from inductile.errors import UserError

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="a runner is built by a C++ compiler")

DRIVER = r"""
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
template <typename T>
static T given(void** arguments, int number) { return *static_cast<T*>(arguments[number]); }
extern "C" {
int cuInit(unsigned) { return 0; }
int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_OF_TESTS", 0; }
static void* current;
int cuCtxGetCurrent(void** context) { return *context = current, 0; }
int cuCtxSetCurrent(void* context) { return current = context, 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &current, 0; }
int cuModuleLoadData(void** module, const void* code) {
  *module = const_cast<void*>(code);
  return std::memcmp(code, "\x7f" "ELF", 4);
}
int cuModuleGetFunction(void** function, void*, const char* name) { return *function = strdup(name), 0; }
int cuFuncSetAttribute(void*, int, int) { return 0; }
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) { return *memory = std::malloc(bytes), 0; }
int cuLaunchKernel(void* function, unsigned programs, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                   unsigned, void*, void** arguments, void**) {
  const auto* name = static_cast<const char*>(function);
  std::fprintf(stderr, "%s %u\n", name, programs);
  if (current != &current || threads % 32) return 1;
  if (!std::strncmp(name, "gather", 6)) {  // rows of 16 at places
    const auto* places = given<const int64_t*>(arguments, 0);
    const auto* rows = given<const float*>(arguments, 1);
    auto* out = given<float*>(arguments, 2);
    for (int n = 0; n < 3 * given<int32_t>(arguments, 3); ++n) {
      if (places[n] < 0 || places[n] >= 10)
        *given<int32_t*>(arguments, 4) = 1;
      else
        std::memcpy(out + 16 * n, rows + 16 * places[n], 64);
    }
    return 0;
  }
  if (!std::strncmp(name, "softmax", 7)) {  // of rows of 32 with a bias
    const auto* in = given<const float*>(arguments, 0);
    const auto* bias = given<const float*>(arguments, 1);
    auto* out = given<float*>(arguments, 2);
    for (int n = 0; n < 3 * given<int32_t>(arguments, 3); ++n, in += 32, out += 32) {
      float sum = 0;
      for (int k = 0; k < 32; ++k) sum += out[k] = std::exp(in[k] + bias[k]);
      for (int k = 0; k < 32; ++k) out[k] /= sum;
    }
    return 0;
  }
  return 1;
}
}
"""


class Looking(torch.nn.Module):
    """Looks up rows, whose numbers a kernel checks; a product by ATen, and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(10, 16)
        self.linear = torch.nn.Linear(16, 32)

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        return self.linear(self.embedding(places)).softmax(-1)


PLACES = torch.arange(12).reshape(3, 4) % 10


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    exported = export(Looking(), (PLACES,), dynamic_shapes=({1: Dim("length", min=2, max=100)},))
    path = tmp_path_factory.mktemp("packages") / "looking.pt2i"
    return inductile.package(exported, path, targets=["cuda:90", "cpp"])


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a `libcuda.so.1`."""
    folder = tmp_path_factory.mktemp("driver")
    (folder / "driver.cpp").write_text(DRIVER)
    library = folder / "libcuda.so.1"
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", folder / "driver.cpp", "-o", library], check=True)
    return folder


def test_it_launches_what_the_package_holds(package: Path, driver: Path, tmp_path: Path) -> None:
    runner, given, made = build_runner(package, tmp_path / "runner"), tmp_path / "in.npy", tmp_path / "out.npy"

    def run(places: torch.Tensor, *flags: str) -> Any:
        numpy.save(given, places.numpy())
        command = [runner, package, "--input", given, "--output", made, "--device", "cpu", *flags]
        return subprocess.run(
            command, env={**os.environ, "LD_LIBRARY_PATH": str(driver)}, capture_output=True, text=True
        )

    for places in (PLACES, torch.arange(48).reshape(3, 16) % 7):
        done = run(places)
        assert done.returncode == 0, done.stderr
        launched = [line.split()[0] for line in done.stderr.splitlines()]
        assert launched == ["gather_0", "softmax_0"], done.stderr
        torch.testing.assert_close(torch.from_numpy(numpy.load(made)), Looking()(places).detach())
    done = run(PLACES + 5)
    assert done.returncode == 1 and "IndexError: index out of range" in done.stderr
    assert "has to be 2 to 100" in run(PLACES[:, :1]).stderr


def test_each_target_has_a_runner(package: Path) -> None:
    assert "GpuKernel" not in runner_source(package, "cpp")
    source = runner_source(package)
    assert "GpuKernel k_gather_0;" in source and "k_gather_0(stream, " in source
    with pytest.raises(UserError, match="is not for cuda:80"):
        runner_source(package, "cuda:80")
