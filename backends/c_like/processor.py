"""The processor, as far as generated machine code depends on it. Apart from the toolchain, which loads more."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

#: compilers, tried in this order unless the environment variable CXX names one
CANDIDATES = ("g++", "clang++", "c++")


@cache
def processor() -> str:
    """Instruction sets of this machine, which -march=native depends on; folders may be shared between machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    wanted = ("flags", "Features", "model name", "CPU part")
    found = {line.partition(":")[0].strip(): line for line in reversed(lines)}
    return "\n".join(found[name] for name in wanted if name in found)
