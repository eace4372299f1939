"""The file of a package: a zip of members that are stored as they are, with their sizes and digests in one of them.

Members are found by name and compared with what `package.json` says before anything is made of them, so that damage is
one message. That is no signature: whoever can change the file can change what it says too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ...errors import UserError

INDEX = "package.json"
WEIGHTS = "weights.bin"
ALIGNMENT = 64
"""Of the bytes of weights in the file, which tensors are made of without a copy."""
_MOST = 64 << 20
"""Bytes of the index."""
_TIME = (1980, 1, 1, 0, 0, 0)
"""Of all members: equal programs make equal files."""
_LOCAL, _LARGE, _PADDING = 30, 20, 0xD935
"""Bytes of a member's head, those that zipfile adds for a large member, and the kind of extra field that is padding."""


_BLOCK = 4 << 20
"""Bytes of which a large member has a checksum each, so that threads compute them."""


def _digest(data: bytes | memoryview) -> str:
    """SHA-256 of a member; of a large one, as weights are, that of the checksums of its blocks.

    Against damage both do; checksums take a third of the time, which is most of that of a load.
    """
    if len(data) <= _BLOCK:
        return hashlib.sha256(data).hexdigest()
    whole = memoryview(data)
    blocks = [whole[start : start + _BLOCK] for start in range(0, len(whole), _BLOCK)]
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        sums = list(pool.map(zlib.crc32, blocks))
    return hashlib.sha256(struct.pack(f"<{len(sums)}I", *sums)).hexdigest()


def damaged(path: Path, reason: object) -> UserError:
    """The error for a file that is not whole."""
    return UserError(f"the package {path} is damaged: {reason}", "copy it again, or make it again")


def write_archive(path: Path, index: dict[str, Any], members: Mapping[str, bytes]) -> None:
    """Write a package; whoever reads the path sees all of it, or what was there before."""
    index["files"] = {name: [len(data), _digest(data)] for name, data in members.items()}
    handle, partial = tempfile.mkstemp(dir=path.absolute().parent, prefix=".tmp-")
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name, data in {INDEX: json.dumps(index, indent=1).encode(), **members}.items():
                info = zipfile.ZipInfo(name, _TIME)
                info.external_attr = 0o644 << 16
                here = file.tell() + _LOCAL + len(name) + 4
                here += _LARGE if len(data) * 1.05 > zipfile.ZIP64_LIMIT else 0
                info.extra = struct.pack("<HH", _PADDING, -here % ALIGNMENT) + bytes(-here % ALIGNMENT)
                archive.writestr(info, data)
        Path(partial).chmod(0o666 & ~_umask())
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


class Archive:
    """A package that was opened; its members are checked when they are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            file = path.open("rb")
        except OSError as error:
            raise UserError(f"the package {path} cannot be read: {error.strerror}", "name another file") from error
        with file:
            try:
                # private: programs write to buffers, and the file stays as it is
                is_empty = not os.fstat(file.fileno()).st_size
                self._map = b"" if is_empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
                with contextlib.closing(zipfile.ZipFile(file)) as archive:
                    self._members = {each.filename: each for each in archive.infolist()}
                    self.index = self._read_index(archive)
            except Exception as error:  # zipfile meets damage with errors of many kinds
                raise damaged(path, error) from error

    def _read_index(self, archive: zipfile.ZipFile) -> dict[str, Any]:
        if INDEX not in self._members or self._members[INDEX].file_size > _MOST:
            raise ValueError("it has no index")
        index = json.loads(archive.read(INDEX))
        if not isinstance(index, dict) or not isinstance(index.get("files"), dict):
            raise ValueError("its index says nothing of its members")
        return index

    def read(self, name: str) -> memoryview:
        """The bytes of a member, in memory of the process that the file fills. UserError for damage."""
        expected, found = self.index["files"].get(name), self._members.get(name)
        if expected is None or found is None or found.compress_type != zipfile.ZIP_STORED:
            raise damaged(self.path, f"{name} is missing")
        whole = memoryview(self._map)
        head = whole[found.header_offset : found.header_offset + _LOCAL]
        if len(head) != _LOCAL:
            raise damaged(self.path, f"{name} ends early")
        start = found.header_offset + _LOCAL + sum(struct.unpack("<HH", head[26:30]))
        content = whole[start : start + found.file_size]
        if [len(content), _digest(content)] != expected:
            raise damaged(self.path, f"{name} is not what it was")
        return content
