"""What the hardware is, as data: one description a target. Imports nothing of the package but errors and extensions.

| module        | says                                                                                     |
|---------------|------------------------------------------------------------------------------------------|
| `target.py`   | what a description holds: `CpuTarget`, `GpuTarget`                                        |
| `family.py`   | what all targets of one compiler share: names of torch and Triton, the libraries behind ATen |
| `known.py`    | the descriptions                                                                         |
| `lookup.py`   | a target by its name, or that of a device                                                |
| `libraries.py` | names and numbers that the libraries behind ATen go by                                   |
| `costs.py`    | what an op costs                                                                         |
| `products.py` | how long products and attention of a library take, as measured                           |
| `nests.py`    | products and attention as nests beside the library, as measured (`measured_nests.py`)     |
| `eager.py`    | how eager computes on a type of device: meaning, not speed                               |
| `roofline.py` | upper bounds for estimates                                                               |

A module carries its targets as an attribute (`dialects/machine.py`), and passes ask that. `docs/targets.md` shows how
another package adds one.
"""

from .eager import HOST, ON_GPU, ON_HOST, EagerKernels, eager, in_host_memory
from .family import Family, Library, TritonNeeds
from .lookup import TARGETS, default_target, is_described, library_of, target_named, targets_of_device
from .target import CpuTarget, GpuTarget, Target
from .tuned import Blocks, ChainTiles

__all__ = [
    "HOST", "ON_GPU", "ON_HOST", "TARGETS", "Blocks", "ChainTiles", "CpuTarget", "EagerKernels", "Family",
    "GpuTarget", "Library", "Target", "TritonNeeds", "default_target", "eager", "in_host_memory", "is_described",
    "library_of", "target_named", "targets_of_device",
]  # fmt: skip
