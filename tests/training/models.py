"""Small modules to train, each about one thing that a partition has to get right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """A transformer block, with attention written by hand or torch's."""

    def __init__(self, width: int = 16, heads: int = 2, dropout: float = 0.0, fused: bool = False) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads, self.dropout, self.fused = heads, dropout, fused

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(width, dim=-1)
        )
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
            hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
            weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
            mixed = F.dropout(weights, self.dropout, self.training) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + F.dropout(self.attend(self.norm1(x)), self.dropout, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout, self.training)


class Checkpointed(nn.Module):
    """Two blocks, each run again in backward."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(dropout=dropout) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)  # pyright: ignore[reportAssignmentType]
        return x.square()


class Function(nn.Module):
    """A function with some parameters."""

    def __init__(self, function: Callable[..., Any], *shapes: tuple[int, ...]) -> None:
        super().__init__()
        for number, shape in enumerate(shapes):
            self.register_parameter(f"weight{number}", nn.Parameter(torch.randn(*shape)))
        self.count = len(shapes)
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        weights = [getattr(self, f"weight{number}") for number in range(self.count)]
        return self.function(*weights, *inputs)


class Counting(nn.Module):
    """Reads a buffer in the way of the gradient, then writes it."""

    count: torch.Tensor

    def __init__(self, no_grad: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))
        self.register_buffer("count", torch.zeros(4))
        self.no_grad = no_grad

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(self.count + 0.3) * self.weight * x
        with torch.set_grad_enabled(not self.no_grad):
            self.count.add_(1)
        return y.exp()


def _views(w: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = (x @ w).sigmoid()
    return y[:, ::2], y.t(), y.view(-1)[1:3], x.unsqueeze(0)


def _unused(w: torch.Tensor, unused: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x * w
    return y.tanh(), (y * 2).detach()


def _inplace(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    y = x * w
    y.mul_(2).add_(0.1)
    y[0] = w * 2
    return y.cumsum(0)


def _embedding(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(F.embedding(indices, table), (8,)).logsumexp(-1)


def _losses(w: torch.Tensor, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(x @ w, target, label_smoothing=0.1) + F.smooth_l1_loss(x @ w, x[:, :3])


def _conv_bn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, bias=False),
        nn.BatchNorm2d(4), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))


def _x(*shape: int, grad: bool = True) -> torch.Tensor:
    return torch.randn(*shape).requires_grad_(grad)


#: name -> module and inputs, made after seeding
MODELS: dict[str, Callable[[], tuple[nn.Module, tuple[Any, ...]]]] = {
    "mlp": lambda: (_mlp(), (_x(5, 8),)),
    "conv_bn": lambda: (_conv_bn(), (_x(3, 2, 8, 8),)),
    "attention": lambda: (Block(), (_x(2, 6, 16),)),
    "attention_fused": lambda: (Block(fused=True), (_x(2, 6, 16),)),
    "checkpoint": lambda: (Checkpointed(), (_x(2, 6, 16),)),
    "lstm": lambda: (nn.LSTM(4, 6, batch_first=True), (_x(2, 5, 4),)),
    "gru_cell": lambda: (nn.GRUCell(4, 6), (_x(3, 4), _x(3, 6))),
    "group_norm": lambda: (nn.Sequential(nn.GroupNorm(2, 4), nn.Mish()), (_x(2, 4, 5),)),
    "views": lambda: (Function(_views, (3, 4)), (_x(5, 3),)),
    "unused": lambda: (Function(_unused, (4,), (4,)), (_x(3, 4),)),
    "inplace": lambda: (Function(_inplace, (4,)), (_x(3, 4),)),
    "embedding": lambda: (Function(_embedding, (10, 8)), (torch.randint(10, (4, 3)),)),
    "losses": lambda: (Function(_losses, (5, 3)), (_x(4, 5), torch.tensor([0, 2, 1, 2]))),
    "input_as_output": lambda: (Function(lambda w, x: (x, x * w, w), (4,)), (_x(3, 4),)),
    "no_input_gradient": lambda: (_mlp(), (_x(5, 8, grad=False),)),
    "buffer_written": lambda: (Counting(no_grad=False), (_x(3, 4),)),
    "buffer_written_no_grad": lambda: (Counting(no_grad=True), (_x(3, 4),)),
    "empty": lambda: (Function(lambda w, x: x * w, (4,)), (_x(0, 4),)),
    "double_precision": lambda: (_mlp().double(), (torch.randn(5, 8).double().requires_grad_(),)),
}
