"""Packages for a GPU: made where there may be none, and run in a process without Dynamo; graphs from the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import inductile
from inductile.errors import UserError
from inductile.lowering.fx_machines import target_of_device
from inductile.tools import run

from ..scripts import load_benchmark

pytestmark = pytest.mark.gpu

models = load_benchmark("models")


class Calling(torch.nn.Module):
    """A model, whose first output is its result."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.inner = getattr(function, "module", function)
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


LOAD = """
import sys, torch
import inductile
torch.backends.cudnn.allow_tf32 = False
package = inductile.load_package(sys.argv[1])
inputs = [x.cuda() for x in torch.load(sys.argv[2])]
results = [package(*inputs).cpu() for _ in range(2)]
assert package.target.startswith("cuda:"), package.target
assert not {"torch._dynamo", "xdsl", "triton"} & sys.modules.keys(), sys.modules.keys()
torch.save(results, sys.argv[3])
"""
MAKE = """
import sys, torch
import inductile
assert not torch.cuda.is_available()
inductile.package(torch.export.load(sys.argv[1]), sys.argv[2], targets=[sys.argv[3], "cpp"])
"""


def _python(script: str, *arguments: object, **environment: str) -> None:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["gpt2", "bert", "resnet50", "llama"])
def test_made_without_a_gpu(name: str, tmp_path: Path) -> None:
    function, inputs = models.build(name, small=True)
    with torch.no_grad():
        program = torch.export.export(Calling(function).eval(), inputs)
    torch.export.save(program, tmp_path / "model.pt2")
    torch.save(inputs, tmp_path / "inputs.pt")
    made = tmp_path / "model.pt2i"
    _python(MAKE, tmp_path / "model.pt2", made, target_of_device("cuda:0"), CUDA_VISIBLE_DEVICES="")
    _python(LOAD, made, tmp_path / "inputs.pt", tmp_path / "results.pt")
    with torch.no_grad():
        expected = program.module()(*inputs)
    for result in torch.load(tmp_path / "results.pt"):
        torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(inductile.load_package(made, target="cpp")(*inputs), expected, rtol=1e-4, atol=1e-4)


def test_exported_on_a_gpu_with_a_size_that_varies(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Softmax(-1)).cuda()
    rows = torch.export.Dim("rows", min=2, max=4096)
    program = torch.export.export(module, (torch.randn(4, 8, device="cuda"),), dynamic_shapes=({0: rows},))
    package = inductile.load_package(inductile.package(program, tmp_path / "made.pt2i"))
    for size in (2, 7, 16, 4096):
        x = torch.randn(size, 8, device="cuda")
        torch.testing.assert_close(package(x), module(x), rtol=1e-3, atol=1e-4)
    assert run.main([str(tmp_path / "made.pt2i"), "--random", "1"]) == 0


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_loaded_on_another_gpu(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Embedding(10, 64), torch.nn.Linear(64, 64), torch.nn.Softmax(-1)).cuda()
    x = torch.arange(10, device="cuda")
    made = inductile.package(torch.export.export(module, (x,)), tmp_path / "made.pt2i")
    expected = module(x)
    for device in ("cuda:1", "cuda:0"):
        package = inductile.load_package(made, device=device)
        result = package(x.to(device))
        assert str(result.device) == device and torch.cuda.current_device() == 0
        torch.testing.assert_close(result.cpu(), expected.cpu(), rtol=1e-3, atol=1e-4)
        with pytest.raises(UserError, match=f"on {device}"):
            package(x.to("cuda:1" if device == "cuda:0" else "cuda:0"))
    with torch.cuda.device(1):
        assert inductile.load_package(made, device="cuda")(x.to("cuda:1")).device.index == 1


CACHED = """
import sys, torch
from torch._dynamo.utils import counters
torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.LayerNorm(64)).cuda()
x = torch.randn(16, 32, device="cuda")
result = torch.compile(module, backend="inductile")(x)
result.square().mean().backward()
torch.testing.assert_close(result, module(x), rtol=1e-3, atol=1e-4)
gradient = module[0].weight.grad.clone()
module.zero_grad()
module(x).square().mean().backward()
torch.testing.assert_close(gradient, module[0].weight.grad, rtol=1e-3, atol=1e-4)
assert counters["inductile"]["graphs from the cache"] == int(sys.argv[1]), counters["inductile"]
"""


def test_a_second_process_takes_graphs_from_the_cache(tmp_path: Path) -> None:
    folders = {"INDUCTILE_CACHE_DIR": str(tmp_path), "INDUCTILE_GRAPH_CACHE": "1"}
    for hits in (0, 1):
        _python(CACHED, hits, **folders, TRITON_CACHE_DIR=str(tmp_path / f"triton{hits}"))
