"""Run by `test_distributed.py` in processes of its own: python collectives_worker.py RANK FILE.

Functions with several functional collectives, compiled and in eager. A process that issued them in another order than
its peer would pair different collectives, and get other numbers or hang.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch.utils.checkpoint import checkpoint

WORLD = 2


def world() -> dist.ProcessGroup:
    """All processes."""
    group = dist.group.WORLD
    assert group is not None
    return group


def chained(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """Each collective depends on the one before, with arithmetic in between."""
    total = collectives.all_reduce(x.sin() * 2, "sum", world())
    gathered = collectives.all_gather_tensor(total * y + 1, 0, world())
    part = collectives.reduce_scatter_tensor(gathered.exp() - y.sum(), "sum", 0, world())
    return [total, gathered.sum(1), part * x]


def independent(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """Nothing but the program says which comes first; equal sizes, so that a swap would go unnoticed by gloo."""
    group = world()
    first = collectives.all_reduce(x + 1, "sum", group)
    second = collectives.all_reduce(y * 3, "max", group)
    third = collectives.all_reduce(x - y, "sum", group)
    product = (x * y).cos()
    fourth = collectives.all_reduce(product, "min", group)
    return [fourth + second, first * third, second - first, product]


def waited_late(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """Waits stand far behind the calls, in another order; work that needs none stands between."""
    ops, name = torch.ops._c10d_functional, world().group_name
    started = ops.all_reduce(x * 2, "sum", name)
    gathering = ops.all_gather_into_tensor(y, WORLD, name)
    scattering = ops.reduce_scatter_tensor(torch.cat([x, y]), "sum", WORLD, name)
    between = (x.sigmoid() * y).cumsum(0)
    gathered = ops.wait_tensor(gathering)
    scattered = ops.wait_tensor(scattering)
    return [ops.wait_tensor(started) + between, gathered * 2, scattered - gathered[: x.shape[0]]]


def unused(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """The peers take part in a collective whose result nobody reads."""
    collectives.all_reduce(x.exp(), "sum", world())
    return [collectives.all_reduce(y, "sum", world()) + x]


def twice(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """Two equal collectives are two."""
    group = world()
    return [collectives.all_reduce(x, "sum", group) * collectives.all_reduce(x, "sum", group), y]


def sharded(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """Two layers whose weights are gathered; their gradients are scattered, the last layer's first."""
    group = world()
    first = collectives.all_gather_tensor_autograd(x[:3] * 2, 0, group)
    second = collectives.all_gather_tensor_autograd(y[:3].sin(), 0, group)
    return [((x @ first).tanh() @ second).exp()]


def checkpointed(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """As `sharded`, in a region that runs again for the gradient."""
    return [*checkpoint(sharded, x, y, use_reentrant=False)]  # pyright: ignore


FUNCTIONS: list[Callable[..., list[torch.Tensor]]] = [
    chained, independent, waited_late, unused, twice, sharded, checkpointed,
]  # fmt: skip
TRAINED = (sharded, checkpointed)


def run(function: Callable[..., list[torch.Tensor]], inputs: list[torch.Tensor], with_gradient: bool) -> list[Any]:
    """Results, and the gradients of the inputs on request."""
    if not with_gradient:
        return function(*inputs)
    leaves = [x.clone().requires_grad_() for x in inputs]
    results = function(*leaves)
    return [*results, *torch.autograd.grad(sum(r.square().sum() for r in results), leaves)]  # pyright: ignore


def compare(function: Callable[..., list[torch.Tensor]], rank: int) -> None:
    """Values and gradients, and that no input changed.

    At the end one process runs compiled code while the other runs eager: collectives only meet in the same order.
    A checkpointed region is left out there, because compiled code saves what a collective gave.
    """
    generator = torch.Generator().manual_seed(rank)
    compiled: Any = torch.compile(function, backend="inductile", fullgraph=True)
    trained = function in TRAINED
    for alone in (False, True):
        inputs = [torch.randn(4, 6, generator=generator) / 4 for _ in range(2)]
        before = [x.clone() for x in inputs]
        expected = run(function, inputs, trained)
        got = run(function if alone and (rank == 1 or function is checkpointed) else compiled, inputs, trained)
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(inputs, before, rtol=0, atol=0)


def main(rank: int, file: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=WORLD)
    for function in FUNCTIONS:
        compare(function, rank)
        print(f"rank {rank} agrees on {function.__name__}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
