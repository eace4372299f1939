"""Kernels for a GPU as data, and back: what they were compiled to, and their text for what they were not.

Light to import: a program that is loaded needs Triton only where a launch asks for a variant that is not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...records import dataclass
from ..c_like.cache import digest, write_atomically
from ..host.gpu import gpu
from .bound import BoundKernel, DeviceKernel
from .kernel import TritonKernel
from .native import is_direct
from .request import Binary
from .run_table import Resume, Row, Table
from .targets import triton_target
from .variants import Variant


@dataclass(frozen=True)
class KnownGrid:
    """Stands for the number of programs of a kernel, which host programs compute: 0, or what it always is."""

    count: int

    def evaluate(self, values: Mapping[str, int]) -> int:
        """That number, as an expression has it."""
        return self.count


@dataclass(frozen=True)
class FrozenBinary:
    """A variant as the driver takes it.

    described: what Triton says of it, as JSON
    ending:    of the name of its file, ".cubin"
    signature: argument -> type
    """

    variant: Variant
    described: str
    ending: str
    content: bytes
    signature: dict[str, str]

    def binary(self, folder: Path) -> Binary:
        """The variant in files of a folder, under the names of their contents."""
        files = {
            f"kernel{self.ending}": _kept(folder, self.content, self.ending),
            "kernel.json": _kept(folder, self.described.encode(), ".json"),
        }
        return Binary(files, self.signature)


@dataclass(frozen=True)
class FrozenTriton:
    """A kernel for a target such as "cuda:90"; its grid is a `KnownGrid`."""

    kernel: TritonKernel
    target: str
    binaries: tuple[FrozenBinary, ...]


def _kept(folder: Path, content: bytes, ending: str) -> str:
    """The path of a file with a content, which is written where it is not there, or damaged."""
    path = folder / f"{digest(content)}{ending}"
    if not path.is_file() or path.read_bytes() != content:
        write_atomically(path, content)
    return str(path)


def freeze_kernel(bound: BoundKernel) -> FrozenTriton:
    """A kernel with the variants that were compiled so far, as far as torch's launchers take them."""
    source = bound.source
    count = 0 if source.symbols else source.programs({})
    plain = replace(source, grid=KnownGrid(count), extents=())  # pyright: ignore[reportArgumentType]
    compiled = bound.variants.items()
    made = [_freeze_binary(*each) for each in compiled if is_direct(each[1], bound.target.needs.launcher)]
    return FrozenTriton(plain, bound.target.name, tuple(made))


def _freeze_binary(variant: Variant, compiled: Any) -> FrozenBinary:
    files = {name: Path(path) for name, path in compiled.metadata_group.items()}
    described = next(path for name, path in files.items() if name.endswith(".json"))
    binary = next(path for name, path in files.items() if name.endswith((".cubin", ".hsaco")))
    signature = dict(compiled.src.signature)
    return FrozenBinary(variant, described.read_text(), binary.suffix, binary.read_bytes(), signature)


def thaw_kernels(frozen: Mapping[str, FrozenTriton], folder: Path) -> dict[str, BoundKernel]:
    """The kernels by name. What the driver loads lies in files of a folder then."""
    found: dict[str, BoundKernel] = {}
    for name, each in frozen.items():
        bound = found[name] = BoundKernel(each.kernel, triton_target(each.target))
        if bound.target.is_here:
            for binary in each.binaries:
                bound.take(binary.variant, binary.binary(folder))
    return found


class Launches:
    """How programs name kernels for a GPU: as what is called, in runs, and by the word for their errors."""

    def __init__(self, kernels: Mapping[str, BoundKernel]) -> None:
        self._entries: dict[int, tuple[str, int]] = {}
        self._statuses: dict[int, str] = {}
        for name, bound in kernels.items():
            for device, each in bound.devices.items():
                self._entries |= dict.fromkeys(map(id, each.entries), (name, device))
                if each.status_pointer:
                    self._statuses[each.status_pointer] = name

    def recipe(self, name: str, value: Any) -> tuple[str, Any] | None:
        """How an object that a program names is made again by `RECIPES`; None for one that is none of these."""
        if name.startswith("status") and value in self._statuses:
            return ("status", self._statuses[value])
        if isinstance(value, Resume):
            return ("resume", (tuple(map(self._row, value.table.rows)), value.values))
        if id(value) in self._entries:
            return ("gpu launch", self._entries[id(value)])
        return None

    def _row(self, row: Row) -> tuple[Any, ...]:
        places = (row.buffers, row.integers, row.places, row.programs, row.longest)
        return (*self._entries[id(row.kernel)], *places)


def _on(place: tuple[str, int], kernels: Mapping[str, BoundKernel]) -> DeviceKernel:
    name, device = place
    found = kernels[name].on(device)
    found.load_likely()
    return found


def _resume(made_from: Any, kernels: Mapping[str, BoundKernel]) -> Resume:
    rows, values = made_from
    return Resume(Table([Row(_on((row[0], row[1]), kernels), *row[2:]) for row in rows]), values)


RECIPES: dict[str, Callable[[Any, Mapping[str, BoundKernel]], Any]] = {
    "status": lambda name, kernels: kernels[name].status_pointer,
    "resume": _resume,
    "gpu launch": lambda place, kernels: _on(place, kernels).entry(),
    "gpu function": lambda names, _: getattr(gpu(names[0]), names[1]),
    "gpu device": lambda device, _: gpu(device).module.device,
}
"""Kind of a recipe -> what makes the object, from what the recipe holds and the kernels by name."""


def on_device(recipe: tuple[str, Any], old: int, new: int) -> tuple[str, Any]:
    """A recipe of launches that are on one device, for another one."""
    kind, made_from = recipe
    if kind == "gpu launch":
        name, device = made_from
        return kind, (name, new if device == old else device)
    rows, values = made_from
    return kind, (tuple((row[0], new if row[1] == old else row[1], *row[2:]) for row in rows), values)


def function_recipe(value: Any, devices: Iterable[str]) -> tuple[str, Any] | None:
    """How what torch offers for a kind of GPU is found again; None for anything else."""
    for device in devices:
        kind = gpu(device)
        for attribute in ("current_stream", "empty"):
            if getattr(kind, attribute) is value:
                return ("gpu function", (device, attribute))
        if kind.module.device is value:
            return ("gpu device", device)
    return None


def checks_of(kernels: Iterable[BoundKernel]) -> list[Callable[[], None]]:
    """For each kernel that reports errors, what raises the one that it has reported so far."""
    return [bound.check for bound in kernels if bound.source.errors]


def to_json(frozen: FrozenTriton, members: dict[str, bytes]) -> dict[str, Any]:
    """JSON for a kernel; binaries become members."""
    kernel = frozen.kernel
    binaries: list[Any] = []
    for each in frozen.binaries:
        member = f"gpu/{digest(each.content)}{each.ending}"
        members[member] = each.content
        variant = [each.variant.wide, sorted(each.variant.unaligned), each.variant.integers]
        binaries.append([variant, json.loads(each.described), each.ending, member, each.signature])
    text = f"gpu/{digest(kernel.source.encode())}.py"
    members[text] = kernel.source.encode()
    return {
        "name": kernel.name, "source": text, "signature": dict(kernel.signature),
        "constexprs": dict(kernel.constexprs), "grid": kernel.programs({}), "symbols": list(kernel.symbols),
        "buffers": kernel.buffers, "errors": list(kernel.errors), "num_warps": kernel.num_warps,
        "num_stages": kernel.num_stages, "divisors": dict(kernel.divisors), "hints": dict(kernel.hints),
        "overlaps": kernel.overlaps, "descriptor_bytes": kernel.descriptor_bytes, "target": frozen.target,
        "binaries": binaries,
    }  # fmt: skip


def from_json(data: Mapping[str, Any], read: Callable[[str], bytes]) -> FrozenTriton:
    """The kernel of what `to_json` made; `read` gives the bytes of a member."""
    names = ("name", "signature", "constexprs", "buffers", "num_warps", "num_stages", "divisors", "hints")
    newer = {"overlaps": False, "descriptor_bytes": 0}  # older packages have none
    given = {name: data[name] for name in names} | {name: data.get(name, value) for name, value in newer.items()}
    grid: Any = KnownGrid(data["grid"])
    kernel = TritonKernel(
        source=read(data["source"]).decode(), grid=grid, symbols=tuple(data["symbols"]), errors=tuple(data["errors"]),
        **given,
    )  # fmt: skip
    binaries = [
        FrozenBinary(variant_of_json(variant), json.dumps(described), ending, read(member), signature)
        for variant, described, ending, member, signature in data["binaries"]
    ]
    return FrozenTriton(kernel, data["target"], tuple(binaries))


def variant_of_json(data: Any) -> Variant:
    """The variant of what `to_json` made of one."""
    wide, unaligned, integers = data
    return Variant(wide, frozenset(unaligned), tuple((divisible, short) for divisible, short in integers))
