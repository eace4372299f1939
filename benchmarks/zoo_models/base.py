"""What a row of the zoo is, and what its inputs are made of."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import nn

Inputs: TypeAlias = dict[str, Any]
#: number of a size, from 0, to the arguments by name; those named "0", "1" and so on are given by position
Maker: TypeAlias = Callable[[int], Inputs]


class MissingError(Exception):
    """A package, or a class of it, that is not installed."""


@dataclass(frozen=True)
class Case:
    """A model with random weights and its inputs at several sizes."""

    module: nn.Module
    inputs: Maker


@dataclass(frozen=True)
class Row:
    """A model of the zoo.

    make:         builds it; called with a fixed seed
    without:      mode -> why the model has no such mode, in eager
    """

    name: str
    family: str
    package: str
    make: Callable[[], Case]
    without: Mapping[str, str] = field(default_factory=dict)

    def build(self) -> Case:
        """The model, in evaluation mode, without dropout. Same row, same weights. Raises MissingError."""
        if importlib.util.find_spec(self.package) is None:
            raise MissingError(f"{self.package} is not installed")
        torch.manual_seed(0)
        case = self.make()
        _no_randomness(case.module)
        _no_constant_weights(case.module)
        case.module.eval()
        return case


def attribute(package: str, name: str) -> Any:
    """A class of a package. Raises MissingError."""
    found = getattr(importlib.import_module(package), name, None)
    if found is None:
        raise MissingError(f"{package} has no {name}")
    return found


_RANDOM = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
#: where modules that call `dropout` themselves keep how often
_RATES = (
    "drop_prob", "drop_rate", "dropout_prob", "attention_dropout", "activation_dropout", "dropout_p", "dropout",
)  # fmt: skip


def _no_randomness(module: nn.Module) -> None:
    """Switch off what draws numbers in training: eager and compiled would draw others."""
    for part in module.modules():
        if isinstance(part, _RANDOM):
            part.p = 0.0
        elif isinstance(part, nn.MultiheadAttention | nn.LSTM | nn.GRU | nn.RNN):
            part.dropout = 0.0
        for name in _RATES:
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, 0.0)


def _no_constant_weights(module: nn.Module) -> None:
    """Vary weights that are all the same: with a scale of 1 and a bias of 0, some faults change nothing."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in module.parameters():
            if weight.is_floating_point() and weight.numel() > 1 and bool((weight == weight.flatten()[0]).all()):
                weight.add_(0.05 * torch.randn(weight.shape, generator=generator).to(weight.dtype))


# makers of inputs

#: lengths of sequences; the second and third are what another call has
LENGTHS = (16, 24, 29)
BATCHES = (2, 3, 5)


def _generator(size: int) -> torch.Generator:
    return torch.Generator().manual_seed(size)


def noise(*shape: int, seed: int = 0, scale: float = 1.0) -> torch.Tensor:
    """Normal numbers, the same for a seed."""
    return scale * torch.randn(shape, generator=_generator(seed))


def integers(high: int, *shape: int, seed: int = 0, low: int = 0) -> torch.Tensor:
    """Integers from `low` to below `high`."""
    return torch.randint(low, high, shape, generator=_generator(seed))


def tokens(name: str = "input_ids", vocabulary: int = 99, mask: bool = True, batch: int = 2, factor: int = 1) -> Maker:
    """Sequences of tokens of varying length; with a mask that hides the end of the second one."""

    def make(size: int) -> Inputs:
        length = LENGTHS[size] * factor
        found: Inputs = {name: integers(vocabulary, batch, length, seed=size, low=3)}
        if mask:
            found["attention_mask"] = torch.ones(batch, length, dtype=torch.int64)
            found["attention_mask"][-1, -4:] = 0
        return found

    return make


def sequences_to_sequences(mask: bool = True, **more: Any) -> Maker:
    """Tokens for an encoder and fewer for a decoder."""

    def make(size: int) -> Inputs:
        return tokens(mask=mask)(size) | {"decoder_input_ids": integers(99, 2, LENGTHS[size] // 2, low=3)} | more

    return make


def numbers(name: str, *shape: int, axis: int = 0, sizes: tuple[int, ...] = BATCHES, scale: float = 1.0) -> Maker:
    """A tensor of normal numbers whose size of one axis, 0 in `shape` or not, varies."""

    def make(size: int) -> Inputs:
        full = list(shape)
        full[axis] = sizes[size]
        return {name: noise(*full, seed=size, scale=scale)}

    return make


def pixels(size: int = 32, channels: int = 3, name: str = "pixel_values") -> Maker:
    """Images, in batches of varying size."""
    return numbers(name, 0, channels, size, size)


def waves(length: int = 1600, name: str = "input_values") -> Maker:
    """Two pieces of audio of varying length."""
    return numbers(name, 2, 0, axis=1, sizes=(length, length + 400, length + 720))


def together(*makers: Maker, **more: Callable[[int], Any]) -> Maker:
    """The inputs of several makers, and more that depend on the number of the size."""

    def make(size: int) -> Inputs:
        found: Inputs = {}
        for each in makers:
            found |= each(size)
        return found | {name: of(size) for name, of in more.items()}

    return make
