"""Upper bounds of a machine for estimates: what it moves and computes in a second."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

from ..errors import UserError
from ..records import dataclass
from .lookup import TARGETS, target_named
from .target import Target


@dataclass(frozen=True)
class Roofline:
    """What bounds a kernel.

    bandwidth:  bytes a second between memory and kernels, reads plus writes, as a copy reaches them where one was timed
    operations: scalar float32 operations a second
    launch:     seconds that starting a kernel costs
    """

    name: str
    bandwidth: float
    operations: float
    launch: float = 0.0

    @staticmethod
    def of(target: Target) -> Roofline:
        """Those of a target. UserError where its description has no rates."""
        bandwidth, rate = target.copied or target.bandwidth, target.rates.get(32)
        if not bandwidth or not rate:
            problem = f"the description of {target.name!r} has no bandwidth or rate of float32"
            raise UserError(problem, "name another machine, or a .json file")
        return Roofline(target.name, bandwidth * 1e9, rate * 1e9, target.launch_nanoseconds / 1e9)


#: models that differ from the common one of their architecture
MODELS: dict[str, Roofline] = {
    machine.name: machine
    for machine in (
        Roofline("cpu-core", 1.2e10, 6.4e10, 1e-6),  # one core of those of `cpp`, copying float32
        Roofline("h200", 4.3e12, 6.7e13, 5e-6),  # copying float32
    )
}


def roofline_named(name: str) -> Roofline:
    """That of a target, of a model, or of a JSON file with the fields of `Roofline`. UserError when there is none."""
    if name in MODELS:
        return MODELS[name]
    if not name.endswith(".json"):
        try:
            return Roofline.of(target_named(name))
        except UserError as error:
            known = ", ".join((*TARGETS, *MODELS))
            raise UserError(f"unknown machine {name!r}", f"name a .json file or one of: {known}") from error
    try:
        data = json.loads(Path(name).read_text())
        return Roofline(**{field.name: data[field.name] for field in fields(Roofline) if field.name in data})
    except (OSError, ValueError, TypeError) as error:
        wanted = ", ".join(field.name for field in fields(Roofline))
        raise UserError(f"{name}: error: no description of a machine ({error})", f"give {wanted}") from error
