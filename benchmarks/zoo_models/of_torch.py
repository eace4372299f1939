"""Published architectures of torch's own parts: recurrent, recommendation, graphs, physics, torch.func, FFT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from .base import BATCHES, LENGTHS, Case, Inputs, Maker, Row, integers, noise, numbers, tokens


def row(name: str, family: str, make: Callable[[], nn.Module], inputs: Maker, **skip: str) -> Row:
    """A row of the zoo."""
    return Row(name, f"torch, {family}", "torch", lambda: Case(make(), inputs), skip)


class DLRM(nn.Module):
    """Naumov et al., 2019: dense and sparse features, their pairwise products, a network on top."""

    def __init__(self, tables: int = 3, width: int = 8) -> None:
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(20, width, mode="sum") for _ in range(tables)])
        self.bottom = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
        self.pairs: torch.Tensor
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        """dense: (batch, 6); sparse: (tables, batch * 3); offsets: (batch,)."""
        low = self.bottom(dense)
        features = [low, *(bag(sparse[k], offsets) for k, bag in enumerate(self.bags))]
        stacked = torch.stack(features, 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        return self.top(torch.cat([low, products[:, self.pairs[0], self.pairs[1]]], 1))


def _clicks(size: int) -> Inputs:
    batch = (4, 6, 7)[size]
    return {"0": noise(batch, 6, seed=size), "1": integers(20, 3, batch * 3, seed=size), "2": torch.arange(batch) * 3}


class GCN(nn.Module):
    """Kipf and Welling, 2017: sums over neighbours, weighted by degrees."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def _sum(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        degree = x.new_ones(x.shape[0]).scatter_add(0, target, torch.ones_like(target, dtype=x.dtype))
        scale = degree.rsqrt()
        messages = x[source] * (scale[source] * scale[target]).unsqueeze(1)
        return x.new_zeros(x.shape).index_add(0, target, messages) + x / degree.unsqueeze(1)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """x: (nodes, 8); edges: (2, edges)."""
        hidden = self._sum(self.first(x), edges[0], edges[1]).relu()
        return self._sum(self.second(hidden), edges[0], edges[1]).log_softmax(1)


class GAT(nn.Module):
    """Veličković et al., 2018: attention over neighbours, normalized for each target."""

    def __init__(self, heads: int = 2, width: int = 8) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.project = nn.Linear(8, heads * width, bias=False)
        self.source, self.target = nn.Parameter(torch.randn(heads, width)), nn.Parameter(torch.randn(heads, width))

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """x: (nodes, 8); edges: (2, edges)."""
        h = self.project(x).view(-1, self.heads, self.width)
        scores = (h * self.source).sum(-1)[edges[0]] + (h * self.target).sum(-1)[edges[1]]
        scores = F.leaky_relu(scores, 0.2)
        index = edges[1].unsqueeze(1).expand_as(scores)
        most = torch.full((x.shape[0], self.heads), -torch.inf, dtype=x.dtype, device=x.device)
        most = most.scatter_reduce(0, index, scores.detach(), "amax")
        weights = (scores - most[edges[1]]).exp()
        total = torch.zeros_like(most).masked_fill(most.isinf(), 0.0).scatter_add(0, index, weights)
        weights = weights / total[edges[1]].clamp_min(1e-12)
        messages = h[edges[0]] * weights.unsqueeze(-1)
        return torch.zeros_like(h).index_add(0, edges[1], messages).flatten(1)


class MessagePassing(nn.Module):
    """Gilmer et al., 2017: messages of edges, a GRU at the nodes, mean and maximum of the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 8))
        self.update = nn.GRUCell(8, 8)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """x: (nodes, 8); edges: (2, edges)."""
        for _ in range(2):
            messages = self.message(torch.cat([x[edges[0]], x[edges[1]]], 1))
            index = edges[1].unsqueeze(1).expand_as(messages)
            mean = torch.zeros_like(x).scatter_reduce(0, index, messages, "mean", include_self=False)
            x = self.update(mean, x)
        return torch.cat([x.mean(0), x.amax(0)])


def _graph(size: int) -> Inputs:
    nodes, edges = (12, 16, 19)[size], (40, 60, 71)[size]
    return {"0": noise(nodes, 8, seed=size), "1": integers(nodes, 2, edges, seed=size)}


class PINN(nn.Module):
    """Raissi et al., 2019: the residual of Burgers' equation; derivatives by torch.func inside the network."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """points: (n, 2), time and place."""

        def value(point: torch.Tensor) -> torch.Tensor:
            return self.network(point).squeeze(-1)

        def residual(point: torch.Tensor) -> torch.Tensor:
            first = torch.func.grad(value)(point)
            second = torch.func.jacrev(torch.func.grad(value))(point)
            return first[0] + value(point) * first[1] - 0.003 * second[1, 1]

        return torch.func.vmap(residual)(points)


class DoubleBackward(nn.Module):
    """The same by torch.autograd.grad with create_graph, as most such code is written."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """points: (n, 2)."""
        with torch.enable_grad():
            points = points.detach().requires_grad_()
            value = self.network(points)
            (first,) = torch.autograd.grad(value.sum(), points, create_graph=True)
            (second,) = torch.autograd.grad(first[:, 1].sum(), points, create_graph=True)
            return first[:, 0] + value[:, 0] * first[:, 1] - 0.003 * second[:, 1]


class PerSampleGradients(nn.Module):
    """Gradients of each sample, clipped, as differentially private training has them."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """x: (n, 6); y: (n,) classes."""
        weights: dict[str, torch.Tensor] = dict(self.network.named_parameters())

        def loss(weights: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return F.cross_entropy(torch.func.functional_call(self.network, weights, (x[None],)), y[None])

        gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(weights, x, y)
        norms = torch.stack([g.flatten(1).square().sum(1) for g in gradients.values()]).sum(0).sqrt()
        scale = (1.0 / norms).clamp_max(1.0)
        return tuple(torch.einsum("n,n...->...", scale, g) for g in gradients.values())


class Hessian(nn.Module):
    """Forward over reverse: products of the Hessian of a network with directions."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1))

    def forward(self, x: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
        """x and direction: (n, 4)."""

        def value(x: torch.Tensor) -> torch.Tensor:
            return self.network(x).sum()

        return torch.func.jvp(torch.func.grad(value), (x,), (direction,))[1]


class FourierOperator(nn.Module):
    """Li et al., 2021: linear in the lowest frequencies, with complex weights."""

    def __init__(self, width: int = 8, modes: int = 4) -> None:
        super().__init__()
        self.modes = modes
        self.lift, self.project = nn.Conv1d(2, width, 1), nn.Conv1d(width, 1, 1)
        self.spectral = nn.ParameterList([
            nn.Parameter(torch.randn(width, width, modes, dtype=torch.cfloat) / width) for _ in range(2)
        ])  # fmt: skip
        self.local = nn.ModuleList([nn.Conv1d(width, width, 1) for _ in range(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, 2, points)."""
        x = self.lift(x)
        for weight, local in zip(self.spectral, self.local, strict=True):
            spectrum = torch.fft.rfft(x)
            low = torch.einsum("bix,iox->box", spectrum[..., : self.modes], weight)
            full = F.pad(low, (0, spectrum.shape[-1] - self.modes))
            x = F.gelu(torch.fft.irfft(full, n=x.shape[-1]) + local(x))
        return self.project(x)


class GlobalFilter(nn.Module):
    """Rao et al., 2021: images mixed by a product of spectra."""

    def __init__(self, size: int = 8, width: int = 8) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.weight = nn.Parameter(torch.randn(size, size // 2 + 1, width, 2))
        self.mix = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, 8, 8, width)."""
        spectrum = torch.fft.rfft2(self.norm(x), dim=(1, 2), norm="ortho") * torch.view_as_complex(self.weight)
        return x + self.mix(torch.fft.irfft2(spectrum, s=x.shape[1:3], dim=(1, 2), norm="ortho"))


class ComplexNetwork(nn.Module):
    """Trabelsi et al., 2018: complex layers with modReLU."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 8, dtype=torch.cfloat), nn.Linear(8, 3, dtype=torch.cfloat)
        self.bias = nn.Parameter(torch.randn(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, 6, 2), real and imaginary parts."""
        h = self.first(torch.view_as_complex(x))
        h = torch.polar(F.relu(h.abs() + self.bias), h.angle())
        return self.second(h).abs()


class Recurrent(nn.Module):
    """Tokens, a recurrent network over packed or whole sequences, classes."""

    def __init__(self, kind: Callable[..., nn.Module], **options: Any) -> None:
        super().__init__()
        self.embed = nn.Embedding(99, 16)
        self.recurrent = kind(16, 16, batch_first=True, **options)
        self.head = nn.LazyLinear(4)
        with torch.no_grad():
            self(torch.zeros(1, 2, dtype=torch.int64))

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """input_ids: (batch, length)."""
        hidden, _ = self.recurrent(self.embed(input_ids))
        return self.head(hidden)


class CellLoop(nn.Module):
    """A loop over an LSTM cell, as a decoder with feedback has it."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.LSTMCell(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, 8), the first input."""
        h = c = torch.zeros_like(x)
        outputs = []
        for _ in range(5):
            h, c = self.cell(x, (h, c))
            x = self.out(h)
            outputs.append(x)
        return torch.stack(outputs, 1)


_IDS = tokens(mask=False)
_SEQUENCES = numbers("0", 2, 0, 16, axis=1, sizes=LENGTHS)

ROWS: tuple[Row, ...] = (
    row("lstm", "recurrent", lambda: Recurrent(nn.LSTM, num_layers=2), _IDS),
    row("lstm_bidirectional", "recurrent", lambda: Recurrent(nn.LSTM, bidirectional=True), _IDS),
    row("gru", "recurrent", lambda: Recurrent(nn.GRU), _IDS),
    row("rnn", "recurrent", lambda: Recurrent(nn.RNN), _IDS),
    row("lstm_cells", "recurrent", CellLoop, numbers("0", 0, 8)),
    row("transformer_encoder", "transformer", lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True), 2, enable_nested_tensor=False),
        _SEQUENCES),
    row("transformer", "transformer", lambda: nn.Transformer(16, 2, 1, 1, 32, batch_first=True), lambda size: {
        "0": noise(2, LENGTHS[size], 16), "1": noise(2, LENGTHS[size] // 2, 16)}),
    row("dlrm", "recommendation", DLRM, _clicks),
    row("gcn", "graph", GCN, _graph),
    row("gat", "graph", GAT, _graph),
    row("message_passing", "graph", MessagePassing, _graph),
    row("pinn", "torch.func", PINN, numbers("0", 0, 2, sizes=(8, 12, 13))),
    row("pinn_double_backward", "double backward", DoubleBackward, numbers("0", 0, 2, sizes=(8, 12, 13))),
    row("per_sample_gradients", "torch.func", PerSampleGradients, lambda size: {
        "0": noise(BATCHES[size] + 2, 6), "1": integers(3, BATCHES[size] + 2)}),
    row("hessian_products", "torch.func", Hessian, lambda size: {
        "0": noise(BATCHES[size], 4), "1": noise(BATCHES[size], 4, seed=1)}),
    row("fourier_operator", "FFT", FourierOperator, numbers("0", 2, 2, 0, axis=2, sizes=(16, 24, 30))),
    row("global_filter", "FFT", GlobalFilter, numbers("0", 0, 8, 8, 8)),
    row("complex_network", "complex", ComplexNetwork, numbers("0", 0, 6, 2)),
)  # fmt: skip
