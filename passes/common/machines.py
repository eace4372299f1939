"""Machines for estimates: what they move and compute in a second. Figures are data; a file may give others."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

from ...errors import UserError


@dataclass(frozen=True)
class Machine:
    """Upper bounds of a machine.

    bandwidth:  bytes a second between memory and kernels, reads plus writes, as a copy reaches them
    operations: scalar float32 operations a second
    launch:     seconds that starting a kernel costs
    """

    name: str
    bandwidth: float
    operations: float
    launch: float = 0.0


#: bandwidths of GPUs are those that copies reached; operations are the makers' figures without matrix units
MACHINES: dict[str, Machine] = {
    machine.name: machine
    for machine in (
        Machine("cpu-core", 1.2e10, 6.4e10, 1e-6),
        Machine("cpu-2", 2.2e10, 1.3e11, 5e-6),
        Machine("h100", 3.0e12, 6.7e13, 5e-6),
        Machine("h200", 4.3e12, 6.7e13, 5e-6),
    )
}


def machine_named(name: str) -> Machine:
    """A machine by its name, or from a JSON file with the fields of `Machine`. UserError when there is none."""
    if name in MACHINES:
        return MACHINES[name]
    if not name.endswith(".json"):
        raise UserError(f"unknown machine {name!r}", f"name a .json file or one of: {', '.join(MACHINES)}")
    try:
        data = json.loads(Path(name).read_text())
        return Machine(**{field.name: data[field.name] for field in fields(Machine) if field.name in data})
    except (OSError, ValueError, TypeError) as error:
        wanted = ", ".join(field.name for field in fields(Machine))
        raise UserError(f"{name}: error: no description of a machine ({error})", f"give {wanted}") from error
