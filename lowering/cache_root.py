"""The folder below which things are kept from one process to the next."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

VARIABLE = "INDUCTILE_CACHE_DIR"


def cache_root() -> Path:
    """INDUCTILE_CACHE_DIR, or ~/.cache/inductile; it need not be there.

    A user without a home, as in a container that is started under a bare number, has a folder by that number among
    the temporary ones.
    """
    try:
        return Path(os.environ.get(VARIABLE) or os.path.join("~", ".cache", "inductile")).expanduser()
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"inductile-user-{os.geteuid()}"
