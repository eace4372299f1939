"""Runners on a GPU: programs over libtorch alone that launch the machine code of a package by NVIDIA's driver."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

import inductile
from inductile.backends.packages.runner.build import build_runner, compile_text, runner_source
from inductile.lowering.fx_machines import target_of_device

from ..scripts import load_benchmark
from .test_packages import Calling

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")]

models = load_benchmark("models")


def run(runner: Path, package: Path, folder: Path, *inputs: torch.Tensor, fails: bool = False) -> Any:
    """The first result of a runner, or the text of its error."""
    command: list[Any] = [runner, package, "--output", folder / "out.npy", "--repeat", "3"]
    for number, value in enumerate(inputs):
        numpy.save(folder / f"in{number}.npy", value.numpy())
        command += ["--input", folder / f"in{number}.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == fails, done.stderr
    return done.stderr or torch.from_numpy(numpy.load(folder / "out.npy"))


class Looking(torch.nn.Module):
    """Looks up rows, whose numbers a kernel checks; writes a buffer; sizes vary; one number is on the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 64)
        self.linear = torch.nn.Linear(64, 96)
        self.register_buffer("calls", torch.zeros(3))
        self.calls: torch.Tensor
        self.number = torch.tensor(1.5)

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        x = self.linear(self.embedding(places)).softmax(-1) * self.calls.sum()
        return x.cumsum(1) + x.amax((0, 2), keepdim=True) * self.number


def test_values_errors_and_streams(tmp_path: Path) -> None:
    module = Looking().cuda()
    places = torch.arange(12).reshape(3, 4) % 10
    length = torch.export.Dim("length", min=2, max=4096)
    exported = torch.export.export(module, (places.cuda(),), dynamic_shapes=({1: length},))
    made = inductile.package(exported, tmp_path / "made.pt2i")
    runner = build_runner(made, tmp_path / "runner")
    for given in (places, torch.arange(96).reshape(3, 32) % 10, torch.arange(3 * 1001).reshape(3, 1001) % 10):
        expected = inductile.load_package(made)(given.cuda()).cpu()
        torch.testing.assert_close(run(runner, made, tmp_path, given), expected, rtol=1e-5, atol=1e-6)
    assert "IndexError: index out of range" in run(runner, made, tmp_path, places + 5, fails=True)
    program = runner_source(made).replace("#ifndef INDUCTILE_LIBRARY", "#if 0") + STREAMS
    done = subprocess.run([compile_text(program, tmp_path / "streams"), made], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


STREAMS = r"""
// A call on another stream and in another thread gives what it gives on the first; inputs on the processor are refused.
#include <thread>
int main(int, char** words) {
  using namespace inductile;
  Model model(words[1]), other(words[1]);
  const Values inputs = model.placed({at::arange(12).view({3, 4}).remainder(10)});
  const at::Tensor expected = model.run(inputs)[0].toTensor();
  model.wait();
  std::string problem = "the other thread ran nothing";
  std::thread([&] {
    try {
      const c10::impl::VirtualGuardImpl guard(c10::kCUDA);
      guard.exchangeStream(guard.getStreamFromGlobalPool(expected.device(), false));
      const at::Tensor found = other.run(inputs)[0].toTensor();
      other.wait();
      problem = at::allclose(found, expected) ? "" : "other values on another stream";
    } catch (const std::exception& error) {
      problem = error.what();
    }
  }).join();
  try {
    model.run({at::arange(12).view({3, 4})});
    problem = "an input on the processor is taken";
  } catch (const std::runtime_error&) {
  }
  if (!problem.empty()) std::cerr << problem << "\n";
  return !problem.empty();
}
"""


@pytest.mark.parametrize("name", ["gpt2", "bert", "resnet50", "llama"])
def test_models(name: str, tmp_path: Path) -> None:
    function, inputs = models.build(name, small=True)
    with torch.no_grad():
        exported = torch.export.export(Calling(function).eval(), inputs)
    made = inductile.package(exported, tmp_path / "made.pt2i", targets=[target_of_device("cuda:0")])
    expected = inductile.load_package(made)(*(each.cuda() for each in inputs)).cpu()
    found = run(build_runner(made, tmp_path / "runner"), made, tmp_path, *inputs)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
