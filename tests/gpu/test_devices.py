"""Several GPUs: one graph over two of them, programs on the one that is not current, training with DDP over NCCL."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ..training.processes import in_two_processes

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs"),
]


def _over_both(x: torch.Tensor, y: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """`x` is on the first device, `y` on the second, `scale` a number in the CPU's memory."""
    first = (x * scale).softmax(-1)
    second = (y + first.to(y.device)).tanh() * scale
    return first + second.to(x.device).sum(0), second


def test_a_graph_over_two_devices() -> None:
    x, y = torch.randn(64, 33, device="cuda:0"), torch.randn(64, 33, device="cuda:1")
    scale = torch.tensor(1.5)
    got, want = torch.compile(_over_both, backend="inductile")(x, y, scale), _over_both(x, y, scale)
    torch.testing.assert_close(got, want)
    assert [t.device for t in got] == [x.device, y.device]
    assert torch.cuda.current_device() == 0


def test_gradients_over_two_devices() -> None:
    x, y = (torch.randn(64, 33, device=f"cuda:{k}", requires_grad=True) for k in range(2))
    scale = torch.tensor(1.5)
    wanted = [
        torch.autograd.grad([t.sum() for t in call(x, y, scale)], (x, y))
        for call in (_over_both, torch.compile(_over_both, backend="inductile"))
    ]
    torch.testing.assert_close(wanted[1], wanted[0], rtol=1e-4, atol=1e-5)


def test_a_device_that_is_not_current_and_its_stream() -> None:
    x = torch.randn(1000, 65, device="cuda:1")
    run = torch.compile(lambda x: torch.nn.functional.layer_norm(x @ x.t(), (1000,)).sum(0), backend="inductile")
    want = torch.nn.functional.layer_norm(x @ x.t(), (1000,)).sum(0)
    torch.testing.assert_close(run(x), want, rtol=1e-3, atol=1e-3)
    stream = torch.cuda.Stream("cuda:1")
    stream.wait_stream(torch.cuda.current_stream("cuda:1"))
    with torch.cuda.stream(stream):
        got = run(x)
    stream.synchronize()
    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-3)
    assert torch.cuda.current_device() == 0


@pytest.mark.parametrize("mode", ["ddp", "fsdp"])
def test_two_processes_over_nccl(mode: str, tmp_path: Path) -> None:
    outputs = in_two_processes("distributed_worker.py", mode, "{rank}", str(tmp_path / "rendezvous"), "cuda")
    assert all(f"rank {rank} agrees" in output for rank, output in enumerate(outputs))
