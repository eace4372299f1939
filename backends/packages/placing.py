"""The device that a program of a package runs on: the one that it was exported on, or another one like it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from ...errors import UserError
from ..graph_cache.frozen import FrozenProgram, Recipe
from ..host.gpu import gpu, is_gpu

_REMEDY = 'name one that is here: load_package(..., device="cuda:0")'


def wanted_device(name: str | torch.device | None) -> torch.device | None:
    """The device that somebody names, with its index: without one it is the current one. UserError for no device."""
    if name is None:
        return None
    try:
        device = torch.device(name)
        if not is_gpu(device.type):
            return device
        kind = gpu(device.type)
    except (RuntimeError, TypeError) as error:
        raise UserError(f"this torch knows no device {name!r}", _REMEDY) from error
    if device.index is None and kind.is_available:
        device = torch.device(device.type, kind.current_device())
    _check_is_here(device)
    return device


def placed(
    part: dict[str, Any], program: FrozenProgram, device: torch.device | None
) -> tuple[dict[str, Any], FrozenProgram]:
    """The description and the program for a device; as they are without one.

    UserError for a program on several GPUs, and for one on a device that this machine has not.
    """
    found = sorted(devices_of(part))
    if device is None or not found:
        for name in found:
            _check_is_here(torch.device(name))
        return part, program
    if len(found) > 1:
        raise UserError(
            f"the program is for several devices, {', '.join(found)}, and cannot be placed on {device}",
            "load it without device=, where those are",
        )
    there = {found[0]: str(device)}
    inputs = [{**each, **_renamed(each, "device", there)} for each in part["inputs"]]
    devices = {name: there.get(each, each) for name, each in part["devices"].items()}
    return {**part, "inputs": inputs, "devices": devices}, _on(program, torch.device(found[0]), device)


def devices_of(part: Mapping[str, Any]) -> set[str]:
    """The GPUs that inputs and weights of a program are on."""
    named = [*part["devices"].values(), *(each["device"] for each in part["inputs"] if "device" in each)]
    named += _devices_in(part["program"])
    return {name for name in named if is_gpu(name)}


def _devices_in(program: Mapping[str, Any]) -> Iterator[str]:
    """The devices that the text of a program names."""
    for _, made_from in program["names"].values():
        if isinstance(made_from, dict) and "device" in made_from:
            yield made_from["device"]
    for each in (*program["parts"].values(), *program["kept"].values()):
        yield from _devices_in(each)


def _renamed(data: Mapping[str, Any], key: str, names: Mapping[str, str]) -> dict[str, str]:
    return {key: names.get(data[key], data[key])} if key in data else {}


def _on(program: FrozenProgram, old: torch.device, new: torch.device) -> FrozenProgram:
    """The program with what it names of one device on another."""
    return replace(
        program,
        recipes={name: _recipe(name, each, old, new) for name, each in program.recipes.items()},
        parts={name: _on(each, old, new) for name, each in program.parts.items()},
        kept={name: _on(each, old, new) for name, each in program.kept.items()},
        code=b"",
    )


def _recipe(name: str, recipe: Recipe, old: torch.device, new: torch.device) -> Recipe:
    kind, made_from = recipe
    if kind == "plain":
        if made_from == old and isinstance(made_from, torch.device):
            return kind, new
        return (kind, new.index) if name.startswith("index") and made_from == old.index else recipe
    if kind in ("gpu launch", "resume"):
        from ..triton.frozen import on_device

        return on_device(recipe, old.index, new.index)
    return recipe


def _check_is_here(device: torch.device) -> None:
    """UserError for a GPU that this machine has not."""
    count = gpu(device.type).module.device_count() if gpu(device.type).is_available else 0
    if device.index is None or device.index >= count:
        raise UserError(f"this machine has no {device}: it has {count} devices of the type {device.type}", _REMEDY)
