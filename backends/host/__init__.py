"""Host programs: the Python around the kernels, as an executable."""

from .program import HostProgram, build

__all__ = ["HostProgram", "build"]
