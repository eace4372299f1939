"""The folder below which things are kept from one process to the next."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "INDUCTILE_CACHE_DIR"


def cache_root() -> Path:
    """INDUCTILE_CACHE_DIR, or ~/.cache/inductile; it need not be there."""
    return Path(os.environ.get(VARIABLE) or os.path.join("~", ".cache", "inductile")).expanduser()
