"""What a call may bring: types, sizes and layouts of inputs, and what has to hold of sizes that are symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ...errors import UserError
from ...machines import in_host_memory
from ...records import dataclass
from ..random_tensors import random_tensor
from .plain import decode
from .sizes import Size, symbols_in, text_of, value_of

_REMEDY = "call with inputs like those of the export, or export with other dynamic shapes"
Bound = tuple[int, int | None]


@dataclass(frozen=True)
class TensorInput:
    """A tensor; `written` says whether a call writes to it."""

    name: str
    dtype: torch.dtype
    device: torch.device
    shape: tuple[Size, ...]
    stride: tuple[Size, ...]
    written: bool

    def __str__(self) -> str:
        written = ", written" if self.written else ""
        return f"{self.name}: {_short(self.dtype)}[{', '.join(map(text_of, self.shape))}]{_place(self.device)}{written}"

    def check(self, value: Any, symbols: dict[str, int]) -> None:
        """Bind symbols. UserError for a value of another kind."""
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            what = (
                f"a tensor of layout {value.layout}" if isinstance(value, torch.Tensor) else f"a {type(value).__name__}"
            )
            raise UserError(f"the input {self.name} is {what}, the package takes {self}", _REMEDY)
        same = (value.dtype, value.device, value.dim()) == (self.dtype, self.device, len(self.shape))
        if same:
            for size, found in zip(self.shape, value.shape, strict=True):
                same &= found == (symbols.setdefault(size, found) if isinstance(size, str) else size) or isinstance(
                    size, list
                )
        if not same:
            found = f"{_short(value.dtype)}{list(value.shape)}{_place(value.device)}"
            where = _binding(symbols, set().union(*map(symbols_in, self.shape)))
            raise UserError(f"the input {self.name} is {found}, the package takes {self}{where}", _REMEDY)

    def check_sizes(self, value: torch.Tensor, symbols: Mapping[str, int]) -> None:
        """UserError where a size is not what its expression says."""
        for number, (size, found) in enumerate(zip(self.shape, value.shape, strict=True)):
            if isinstance(size, list) and value_of(size, symbols) != found:
                where = _binding(symbols, symbols_in(size))
                raise UserError(
                    f"dimension {number} of the input {self.name} is {found}, not {text_of(size)}{where}", _REMEDY
                )

    def arranged(self, value: torch.Tensor, symbols: Mapping[str, int]) -> torch.Tensor:
        """The tensor in the layout that the program reads: itself, or a copy."""
        value = value.resolve_conj().resolve_neg()
        if value.numel() == 0:
            return value
        wanted = [value_of(each, symbols) for each in self.stride]
        pairs = zip(value.shape, value.stride(), wanted, strict=True)
        if all(found == stride or size == 1 for size, found, stride in pairs):
            return value
        made = torch.empty_strided(value.shape, wanted, dtype=value.dtype, device=value.device)
        return made.copy_(value)

    def example(self, symbols: Mapping[str, int], seed: int) -> torch.Tensor:
        """A tensor of normally distributed numbers, or of 0 and 1."""
        shape, stride = ([value_of(each, symbols) for each in sizes] for sizes in (self.shape, self.stride))
        return random_tensor(shape, stride, self.dtype, self.device, torch.Generator().manual_seed(seed))


@dataclass(frozen=True)
class NumberInput:
    """An integer that may change from call to call."""

    name: str
    size: Size

    def __str__(self) -> str:
        return f"{self.name}: int {text_of(self.size)}"

    def example(self, symbols: Mapping[str, int], seed: int) -> int:
        """The number that the example of the export was."""
        return value_of(self.size, symbols)


@dataclass(frozen=True)
class ConstantInput:
    """A value that has been compiled in."""

    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.name} = {self.value!r}"

    def example(self, symbols: Mapping[str, int], seed: int) -> Any:
        """The value."""
        return self.value


Input = TensorInput | NumberInput | ConstantInput


def _place(device: torch.device) -> str:
    return "" if in_host_memory(device.type) else f" on {device}"


def input_of(data: Mapping[str, Any]) -> Input:
    """An input from its JSON."""
    if data["kind"] == "tensor":
        device = torch.device(data["device"])
        shape, stride = tuple(data["shape"]), tuple(data["stride"])
        return TensorInput(data["name"], decode(data["dtype"]), device, shape, stride, bool(data["written"]))
    if data["kind"] == "int":
        return NumberInput(data["name"], data["size"])
    return ConstantInput(data["name"], decode(data["value"]))


@dataclass(frozen=True)
class Conditions:
    """All that has to hold of a call's inputs: bounds of symbols, and relations between them."""

    inputs: tuple[Input, ...]
    bounds: Mapping[str, Bound]
    relations: tuple[Size, ...]

    def bind(self, values: Sequence[Any]) -> dict[str, int]:
        """The values of symbols. UserError for inputs that the program was not compiled for."""
        symbols: dict[str, int] = {}
        for each, value in zip(self.inputs, values, strict=True):
            if isinstance(each, TensorInput):
                each.check(value, symbols)
            elif isinstance(each, ConstantInput):
                if type(value) is not type(each.value) or value != each.value:
                    raise UserError(f"the input {each.name} is {value!r}, the package has {each}", _REMEDY)
            elif type(value) is not int or (
                isinstance(each.size, str) and symbols.setdefault(each.size, value) != value
            ):
                raise UserError(f"the input {each.name} is {value!r}, the package takes {each}", _REMEDY)
        for each, value in zip(self.inputs, values, strict=True):
            if isinstance(each, TensorInput):
                each.check_sizes(value, symbols)
            elif isinstance(each, NumberInput) and value_of(each.size, symbols) != value:
                raise UserError(f"the input {each.name} is {value}, not {text_of(each.size)}", _REMEDY)
        for name, (low, high) in self.bounds.items():
            if symbols[name] < low or (high is not None and symbols[name] > high):
                most = "more" if high is None else str(high)
                raise UserError(f"the size {name} is {symbols[name]}, the package takes {low} to {most}", _REMEDY)
        for relation in self.relations:
            if not value_of(relation, symbols):
                raise UserError(f"{text_of(relation)} does not hold{_binding(symbols, symbols_in(relation))}", _REMEDY)
        return symbols


def _binding(symbols: Mapping[str, int], named: set[str]) -> str:
    known = [f"{name} = {symbols[name]}" for name in sorted(named & symbols.keys())]
    return f", where {', '.join(known)}" if known else ""


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
