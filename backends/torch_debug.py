"""Torch's debug folder, `TORCH_COMPILE_DEBUG=1`: our traces in it."""

from __future__ import annotations

from pathlib import Path


def torch_debug_folder(chosen: str | None) -> Path:
    """Where traces of ours go: beside `torchinductor`, below the folder of torch's run or the one that was chosen.

    Uses `torch._dynamo.utils.get_debug_dir`, which names the run by its time and process.
    """
    if chosen:
        return Path(chosen) / "inductile"
    from torch._dynamo.utils import get_debug_dir

    return Path(get_debug_dir()) / "inductile"
