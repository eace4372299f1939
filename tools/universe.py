"""What stock `xdsl-opt` sees of us: dialects and passes, through the entry point group `xdsl.universe`."""

from __future__ import annotations

from xdsl.universe import Universe

from ..dialects.context import DIALECTS
from ..lowering.registry import available_passes

UNIVERSE = Universe(all_dialects=dict(DIALECTS), all_passes=available_passes())
