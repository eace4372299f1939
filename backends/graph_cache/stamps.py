"""Facts of files that change with what they hold, so that nobody has to read them again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator


def facts(file: str, status: os.stat_result) -> str:
    """Size, times and inode of a file; a write changes one of them, even where somebody sets its time back."""
    return f"{file} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def files_below(folder: str) -> Iterator[tuple[str, str]]:
    """Paths and facts of all files below a folder, in a fixed order; caches of Python and hidden files are left out."""
    folders = [folder]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if entry.is_dir():
                    folders += [entry.path] if entry.name != "__pycache__" else []
                elif not entry.name.startswith("."):
                    yield entry.path, facts(entry.path, entry.stat())


def stamp_of_folder(folder: str) -> str:
    """The facts of all files below a folder, as a digest."""
    return hashlib.sha256("\n".join(each for _, each in files_below(folder)).encode()).hexdigest()
