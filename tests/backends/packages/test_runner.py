"""Runners: programs over libtorch alone that run a package give what Python gives, and refuse what it refuses."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch.export import Dim, export

import inductile
from inductile.backends.host.products import has_onednn
from inductile.backends.packages.runner.build import build_runner, compile_text, runner_source
from inductile.errors import UserError
from inductile.tools.package import main

from .test_packages import Of

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="a runner is built by a C++ compiler")


class Everything(torch.nn.Module):
    """Writes a buffer, looks up what a kernel checks, takes an integer, divides sizes, calls ATen with all kinds.

    The size of the last result is found by a call.
    """

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(10, 8)
        self.convolution = torch.nn.Conv1d(8, 8, 3, padding=1, bias=False)
        self.register_buffer("calls", torch.zeros(2))
        self.calls: torch.Tensor
        self.constant = torch.tensor([1.0, 2.0])

    def forward(self, x: torch.Tensor, scale: int) -> tuple[Any, ...]:
        self.calls.add_(1)
        rows = self.embedding(x)
        mixed = self.convolution(rows.transpose(1, 2)).softmax(1) * self.calls.sum() * scale + self.constant[1]
        largest, places = mixed.flatten(1).topk(3)
        first, second = mixed.split(4, 1)
        halves = torch.cumsum(x.flatten()[1::2].float(), 0)
        made = first @ second.transpose(1, 2)
        return mixed.to(torch.float64), largest, places, made, halves, x.shape[0], None, x > 3, x[x > 3]


def run(runner: Path, package: Path, folder: Path, *inputs: Any, results: int = 0) -> list[Any]:
    """Results of a runner; the text of its error, where it ends with one."""
    command = [str(runner), str(package)]
    for number, value in enumerate(inputs):
        file = folder / f"in{number}.npy"
        if isinstance(value, torch.Tensor):
            numpy.save(file, value.numpy())
        command += ["--input", str(file) if isinstance(value, torch.Tensor) else str(value)]
    for number in range(results):
        command += ["--output", str(folder / f"out{number}.npy")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == bool(done.stderr), done.stderr
    if done.returncode:
        return [done.stderr]
    files = [folder / f"out{number}.npy" for number in range(results)]
    return [torch.from_numpy(numpy.load(file)) if file.exists() else None for file in files] + [done.stdout]


def test_values_and_errors(tmp_path: Path) -> None:
    x = torch.arange(12).reshape(4, 3) % 10
    rows = {0: Dim("rows", min=2, max=100)}
    made = inductile.package(export(Everything(), (x, 3), dynamic_shapes=(rows, None)), tmp_path / "model.pt2i")
    runner = tmp_path / "runner"
    assert main(["build-runner", str(made), "-o", str(runner)]) == 0
    for given in (x, torch.arange(21).reshape(7, 3) % 10):
        expected = inductile.load_package(made)(given, 3)
        *found, said = run(runner, made, tmp_path, given, results=len(expected))
        assert f"result 5: {len(given)}\n" in said and "result 6: None" in said
        for one, other in zip(found, expected, strict=True):
            expected_one = other if other is None else torch.as_tensor(other)
            torch.testing.assert_close(one, expected_one, rtol=0, atol=0)
    assert "returns 9 results, and 10 files" in run(runner, made, tmp_path, x, results=10)[0]
    for inputs, problem in (
        ((x.double(),), "the package takes x: int64["),
        ((x[:, :2],), "the package takes x: int64["),
        ((x[:1],), "has to be 2 to 100"),
        ((x, 4), "the package takes 1 inputs"),
        ((x + 1,), "IndexError: index out of range"),
    ):
        assert problem in run(runner, made, tmp_path, *inputs)[0]
    other = inductile.package(export(Of(torch.exp), (x.float(),)), tmp_path / "other.pt2i")
    assert "is another one" in run(runner, other, tmp_path, x)[0]
    made.write_bytes(made.read_bytes()[:-100])
    assert "is damaged" in run(runner, made, tmp_path, x)[0]


def test_what_has_no_runner_is_told(tmp_path: Path) -> None:
    softmax = export(torch.nn.Softmax(-1), (torch.randn(2, 4),))
    with pytest.raises(UserError, match="launches kernels of NVIDIA's driver"):
        runner_source(inductile.package(softmax, tmp_path / "amd.pt2i", targets=["hip:gfx942"]))
    text = inductile.package(export(Of(lambda x: (x * 2, "text")), (torch.ones(3),)), tmp_path / "text.pt2i")
    assert inductile.load_package(text)(torch.ones(3))[1] == "text"
    with pytest.raises(UserError, match="has no output 'text'"):
        runner_source(text)
    assert "k_" in runner_source(inductile.package(export(Of(torch.exp), (torch.ones(3),)), tmp_path / "exp.pt2i"))


def test_weights_outside_of_the_package(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3)).eval()
    x = torch.randn(2, 4)
    made = inductile.package(export(model, (x,)), tmp_path / "apart.pt2i", weights=False)
    runner = build_runner(made, tmp_path / "runner")
    numpy.save(tmp_path / "x.npy", x.numpy())
    folder = tmp_path / "weights"
    folder.mkdir()

    def called(*more: Any) -> str:
        words = [runner, made, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy", *more]
        return subprocess.run(words, capture_output=True, text=True).stderr

    assert "the package has no weights inside, and 0." in called()
    for name, tensor in model.state_dict().items():
        numpy.save(folder / f"{name}.npy", tensor.numpy().T)  # as another program may have written it
    assert "lies in the order of Fortran" in called("--weights", folder)
    for name, tensor in model.state_dict().items():
        numpy.save(folder / f"{name}.npy", tensor.numpy())
    assert called("--weights", folder) == ""
    torch.testing.assert_close(torch.from_numpy(numpy.load(tmp_path / "y.npy")), model(x).detach())
    numpy.save(folder / "0.bias.npy", numpy.zeros(5, "float32"))
    assert "the tensor 0.bias is Float[5], the package takes Float[3]" in called("--weights", folder)
    numpy.save(folder / "0.bias.npy", numpy.zeros(3, "float32"))
    numpy.save(folder / "other.npy", numpy.zeros(3, "float32"))
    assert "the package takes no weight other" in called("--weights", folder)
    assert "cannot be read" in called("--weights", tmp_path / "nothing")


PRODUCTS = r"""
#include "products.h"
using namespace inductile;
void same(const at::Tensor& found, const at::Tensor& expected, const char* name) {
  require(found.is_contiguous() && at::allclose(found, expected, 1e-4, 1e-5), name);
}
int main() {
  at::manual_seed(0);
  for (const int64_t columns : {3, 7, 13, 16, 30}) {
    const auto left = at::randn({9, 6}), right = at::randn({6, columns}), bias = at::randn({columns});
    same(mm_in_turns(left, right), at::mm(left, right), "turns");
    same(mm_by_scratch(left, right), at::mm(left, right), "scratch");
    same(mm_by_onednn(left, right), at::mm(left, right), "onednn");
    same(addmm_by_onednn(bias, left, right), at::addmm(bias, left, right), "onednn with a bias");
  }
  const auto left = at::randint(-128, 128, {3, 2500}, at::kChar);
  const auto right = at::randint(-128, 128, {2500, 1100}, at::kChar);
  const auto exact = at::mm(left.to(at::kDouble), right.to(at::kDouble));
  require(int_mm_by_floats(left, right).equal(exact.to(at::kInt)), "floats");
}
"""


@pytest.mark.skipif(not has_onednn(), reason="this torch has no oneDNN")
def test_products_by_others(tmp_path: Path) -> None:
    """Those of products.h give what ATen gives, whatever rows are aligned."""
    done = subprocess.run([compile_text(PRODUCTS, tmp_path / "products")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
