"""The files that Triton reads kernels from, where the disk of the cache takes no more."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inductile.backends.c_like import cache
from inductile.backends.triton import loading, source


def test_a_disk_that_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(source, "file_text", lambda kernels: "# a kernel\n")
    write = loading.write_atomically

    def refuse(path: Path, data: bytes) -> None:
        if tmp_path in path.parents:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, data)

    monkeypatch.setattr(loading, "write_atomically", refuse)
    cache.forget_refusals()
    kernel: Any = SimpleNamespace()
    with pytest.warns(UserWarning, match="what is compiled is not kept.*No space left"):
        path = loading.file_of(kernel)
    assert Path(path).read_text() == "# a kernel\n"
    assert loading.file_of(kernel) == path  # no second warning
