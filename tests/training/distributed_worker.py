"""Run by `test_distributed.py` in processes of its own: python distributed_worker.py MODE RANK FILE [cuda]."""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

WORLD = 2


def model(device: str) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).to(device)


def batch(rank: int, device: str) -> torch.Tensor:
    return torch.randn(6, 8, generator=torch.Generator().manual_seed(rank)).to(device)


def wrapped(mode: str, device: str) -> Any:
    """The model as the mode distributes it, compiled."""
    module = model(device)
    if mode == "ddp":
        return torch.compile(nn.parallel.DistributedDataParallel(module), backend="inductile")
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.partition(":")[0], (WORLD,))
    for layer in module.children():
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
            layer.compile(backend="inductile")
    return fully_shard(module, mesh=mesh)


def whole(tensor: torch.Tensor | None) -> torch.Tensor:
    assert tensor is not None
    full = getattr(tensor, "full_tensor", None)
    return tensor if full is None else full()


def main(mode: str, rank: int, file: str, kind: str = "cpu") -> None:
    torch.set_num_threads(1)
    device = kind if kind == "cpu" else f"{kind}:{rank}"
    if kind != "cpu":
        torch.get_device_module(kind).set_device(device)
    library = "gloo" if kind == "cpu" else "nccl"
    dist.init_process_group(library, init_method=f"file://{file}", rank=rank, world_size=WORLD)
    module = wrapped(mode, device)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    reference = model(device)
    expected = torch.optim.SGD(reference.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        module(batch(rank, device)).square().mean().backward()
        optimizer.step()
        expected.zero_grad()
        for each in range(WORLD):
            (reference(batch(each, device)).square().mean() / WORLD).backward()
        expected.step()
    for got, want in zip(module.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(whole(got.data), want.data)
        torch.testing.assert_close(whole(got.grad), want.grad)
    dist.destroy_process_group()
    print(f"rank {rank} agrees")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
