"""Entries on disk: `graphs/KEY/DIGEST`, written atomically, and read only where this user alone may have written.

What an entry holds is unpickled, which may run anything. So neither a folder nor a file of somebody else, nor one that
others may write to, is opened; and what is read has to have the digest that its name says.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from ..c_like.cache import cache_dir, digest, is_refusal, remove_file, warn_of_refusal, write_atomically

FOLDER = "graphs"
LIMIT = "INDUCTILE_GRAPH_CACHE_BYTES"
"""The variable that says how much entries may take together."""
_MAGIC = b"inductile graph 1\n"
_DAY = 24 * 60 * 60.0
_OLDEST = 30 * _DAY
"""An entry that nobody has read for so long is removed; that of other code or another torch is never read again."""
_MOST_BYTES = 1 << 30
_CLEANED = ".cleaned"


class Store:
    """The entries under one folder of the cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def contents(self, key: str) -> Iterator[tuple[Path, bytes]]:
        """What lies under a key; of what may not be read, or is damaged, a warning tells once."""
        place = self.folder / key
        try:
            names = sorted(os.listdir(place)) if is_own(place) else []
        except FileNotFoundError:
            return
        except NotADirectoryError:
            names = []
        for name in names:
            if name.startswith("."):
                continue
            content = read(place / name)
            if content is not None:
                yield place / name, content

    def write(self, key: str, content: bytes) -> None:
        """Keep a content under a key. A disk that takes no more is told once."""
        try:
            try:
                self._write(key, content)
            except FileNotFoundError:  # another process has just removed the folder, which was empty
                self._write(key, content)
            clean_daily(self.folder)
        except OSError as error:
            if not is_refusal(error) and not isinstance(error, FileExistsError | NotADirectoryError):
                raise
            warn_of_refusal(self.folder, str(error.strerror))

    def _write(self, key: str, content: bytes) -> None:
        place = self.folder / key
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(place / digest(content), _MAGIC + content)

    def drop(self, key: str) -> None:
        """Remove all entries of a key."""
        shutil.rmtree(self.folder / key, ignore_errors=True)


@cache
def clean_daily(folder: Path) -> None:
    """Remove what nobody reads any more, once a process and once a day."""
    mark = folder / _CLEANED
    with suppress(OSError):
        if time.time() - mark.stat().st_mtime < _DAY:
            return
    with suppress(OSError):
        mark.touch(mode=0o600)
        given = os.environ.get(LIMIT, "")
        clean(folder, int(given) if given.isdecimal() else _MOST_BYTES, time.time() - _OLDEST)


def clean(folder: Path, most_bytes: int, oldest: float) -> None:
    """Remove entries that were last read before a time, and the oldest of those that take too much together."""
    found: list[tuple[float, int, Path]] = []
    for path in folder.glob("*/*"):
        with suppress(OSError):
            status = path.lstat()
            found.append((status.st_mtime, status.st_size, path))
    total = 0
    for last, size, path in sorted(found, reverse=True):
        total += size
        if last < oldest or total > most_bytes:
            with suppress(OSError):  # another process was quicker
                path.unlink()
                path.parent.rmdir()  # where it was the last one; else this fails


def own_store() -> Store:
    """The store under INDUCTILE_CACHE_DIR, or one for this process alone where that folder may not be used."""
    return Store(cache_dir(FOLDER))


def is_own(path: Path) -> bool:
    """Whether a folder or file belongs to this user and nobody else may write to it, with a warning if not.

    Raises FileNotFoundError where nothing is.
    """
    return _is_own(path, os.lstat(path))


def _is_own(path: Path, status: os.stat_result) -> bool:
    if stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        _warn(f"{path} is not read: it is a link, belongs to another user, or others may write to it")
        return False
    return True


def read(path: Path) -> bytes | None:
    """The content of an entry that this user alone may have written; None, with a warning, for any other, or damage."""
    content = read_bytes(path)
    if content is None:
        return None
    if content.startswith(_MAGIC) and digest(content[len(_MAGIC) :]) == path.name:
        return content[len(_MAGIC) :]
    discard(path, "it is damaged")
    return None


def read_bytes(path: Path) -> bytes | None:
    """The bytes of a file that this user alone may have written; None, with a warning, for any other."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn(f"{path} is not read: {error.strerror}")
        return None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        _warn(f"{path} is not read: it is no file")
        return None
    with os.fdopen(handle, "rb") as file:
        if not _is_own(path, status):
            return None
        if time.time() - status.st_mtime > _DAY:
            with suppress(OSError):  # the folder may be one that is only read
                os.utime(handle)
        return file.read()


def discard(path: Path, reason: str) -> None:
    """Remove an entry that is of no use, with a warning."""
    _warn(f"the cached graph {path} is made anew: {reason}")
    remove_file(path)


@cache
def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=4)


class Remembered:
    """Answers of one kind that are on disk, by what they depend on."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def get(self, stamp: str, make: Callable[[], str]) -> str:
        """The answer for a stamp; made, and kept, where it is not there."""
        store = own_store()
        key = f"{self.kind}-{digest(stamp.encode())}"
        for _, content in store.contents(key):
            return content.decode()
        answer = make()
        store.write(key, answer.encode())
        return answer
