"""`torch.ops.my_pass.softsign`, a custom op for programs to call."""

from __future__ import annotations

import torch


@torch.library.custom_op("my_pass::softsign", mutates_args=())
def softsign(x: torch.Tensor) -> torch.Tensor:
    return x / (x.abs() + 1)


@softsign.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)
