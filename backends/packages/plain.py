"""What host programs name as JSON: the values that have no JSON of their own become `{"kind": ...}`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..graph_cache.frozen import FrozenProgram

_OF_TORCH = (torch.dtype, torch.layout, torch.memory_format)


def encode(value: Any) -> Any:
    """JSON for a value. TypeError for one that has none."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}
    if type(value) is complex:
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    if type(value) in (tuple, list):
        items = [encode(each) for each in value]
        return {"tuple": items} if type(value) is tuple else items
    if type(value) is frozenset:
        return {"set": [encode(each) for each in sorted(value)]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, _OF_TORCH):
        return {"torch": str(value).removeprefix("torch.")}
    raise TypeError(f"a {type(value).__name__} has no JSON here")


def _of_torch(name: str) -> Any:
    found = getattr(torch, name)
    if not isinstance(found, _OF_TORCH):
        raise ValueError(f"torch.{name} is no dtype, layout or memory format")
    return found


_DECODERS: dict[str, Callable[[Any], Any]] = {
    "float": float.fromhex,
    "complex": lambda parts: complex(*map(float.fromhex, parts)),
    "bytes": bytes.fromhex,
    "tuple": lambda items: tuple(map(decode, items)),
    "set": lambda items: frozenset(map(decode, items)),
    "device": torch.device,
    "torch": _of_torch,
}


def decode(value: Any) -> Any:
    """The value of what `encode` made. Raises ValueError, KeyError, AttributeError or TypeError for anything else."""
    if isinstance(value, list):
        return [decode(each) for each in value]
    if isinstance(value, dict):
        ((kind, content),) = value.items()
        return _DECODERS[kind](content)
    return value


def encode_program(program: FrozenProgram) -> dict[str, Any]:
    """JSON for a host program. TypeError where it names something that has none."""
    return {
        "source": program.source,
        "watched": program.watched,
        "names": {name: [kind, encode(made_from)] for name, (kind, made_from) in program.recipes.items()},
        "parts": {name: encode_program(part) for name, part in program.parts.items()},
        "called": program.called,
        "kept": {name: encode_program(part) for name, part in program.kept.items()},
    }


def decode_program(data: dict[str, Any]) -> FrozenProgram:
    """The program of what `encode_program` made."""
    return FrozenProgram(
        data["source"],
        data["watched"],
        {name: (kind, decode(made_from)) for name, (kind, made_from) in data["names"].items()},
        {name: decode_program(part) for name, part in data["parts"].items()},
        data["called"],
        kept={name: decode_program(part) for name, part in data["kept"].items()},
    )
