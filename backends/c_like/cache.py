"""The compile cache on disk: files named by content, written atomically, checked when read.

A library is stored as `<sha256 of its bytes>.so`; an entry `<key>.json` says which library holds a kernel. Any number
of processes may use one folder: nothing is changed in place, and an entry is written after its library.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

from ...errors import UserError
from ...lowering.cache_root import VARIABLE, cache_root

MadeT = TypeVar("MadeT")
#: how the names of the folders begin in which compilers work, and those of files that are not whole yet
BUILD, _PARTIAL = "build-", ".tmp-"
#: seconds after which such things are what a killed process left
_LEFTOVER = 24 * 60 * 60
#: what a disk answers that takes no more, or not this
_REFUSALS = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EROFS,
        errno.EACCES,
        errno.EPERM,
        errno.EISDIR,
        errno.EIO,
        errno.ESTALE,
    }
)


def cache_dir(part: str) -> Path:
    """The folder `part` of the cache: under INDUCTILE_CACHE_DIR, or ~/.cache/inductile. Made when it is absent.

    Code is loaded from there, so the folder must belong to this user and be writable by nobody else. Where there is
    no such folder, a private temporary one serves this process, and a warning says so. One that somebody has removed
    since the last call is made again.
    """
    root = cache_root()
    folder = _checked(root, part)
    if folder is not None and not folder.is_dir():
        _checked.cache_clear()
        folder = _checked(root, part)
    return folder or private_dir(part)  # not kept: a fork has a private folder of its own


def private_dir(part: str) -> Path:
    """A folder `part` that only this process uses and that is removed when it ends; a fork gets its own."""
    folder = _private_dir(part, os.getpid())
    if not folder.is_dir():  # what cleans folders of temporary files has taken it
        _private_dir.cache_clear()
        folder = _private_dir(part, os.getpid())
    return folder


@cache
def _private_dir(part: str, process: int) -> Path:
    root = Path(tempfile.mkdtemp(prefix="inductile-"))
    atexit.register(_remove, root, process)
    folder = root / part
    folder.mkdir()
    return folder


def _remove(root: Path, process: int) -> None:
    """Remove a private folder at the end of its process; a fork inherits the call, but not the folder."""
    if os.getpid() == process:
        shutil.rmtree(root, ignore_errors=True)


@cache
def _checked(root: Path, part: str) -> Path | None:
    """The folder; None, with a warning, where it cannot be made or is not safe."""
    folder = root / part
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for each in (folder, folder.parent):
            if each.stat().st_uid != os.geteuid():
                _tell_of_no_cache(root, "it belongs to another user")
                return None
            _close_to_others(each)
    except OSError as error:
        _tell_of_no_cache(root, error.strerror or str(error))
        return None
    return folder


def _close_to_others(folder: Path) -> None:
    mode = folder.stat().st_mode
    if mode & 0o022:
        folder.chmod(mode & 0o755)


@cache
def _tell_of_no_cache(root: Path, reason: str) -> None:
    """Once for all folders of a cache."""
    text = f"no compile cache in {root}: {reason}; set {VARIABLE} to a folder of your own that can be written"
    warnings.warn(text, stacklevel=4)


@cache
def remove_leftovers(folder: Path) -> None:
    """Remove, once for each folder, what processes that were killed left in it more than a day ago.

    A source that the compiler rejected is kept that long too.
    """
    before = time.time() - _LEFTOVER
    for each in [*folder.glob(f"{BUILD}*"), *folder.glob(f"{_PARTIAL}*")]:
        try:
            if each.lstat().st_mtime > before:
                continue
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink()
        except OSError:  # another process was quicker, or nothing may be removed here
            continue


def is_refusal(error: OSError) -> bool:
    """Whether a disk took no more: it is full, or it may only be read."""
    return error.errno in _REFUSALS


def in_some_folder(part: str, folder: Path, make: Callable[[Path], MadeT]) -> MadeT:
    """What `make` makes in the folder `part` of the cache, or in a private one where the disk takes no more.

    A warning tells of the private one. UserError where that takes no more either, as under a limit of file sizes.
    """
    try:
        return make(folder)
    except OSError as error:
        if not is_refusal(error):
            raise
        refusal = error
    private = private_dir(part)
    if folder != private:
        try:
            made = make(private)
        except OSError as error:
            if not is_refusal(error):
                raise
            refusal = error
        else:
            warn_of_refusal(folder, str(refusal.strerror))
            return made
    problem = f"what is compiled cannot be written, in {folder.parent} or in {private.parent}: {refusal.strerror}"
    remedy = f"make room there, set {VARIABLE} or TMPDIR to other folders, or raise the limit of file sizes (ulimit -f)"
    raise UserError(problem, remedy) from refusal


def warn_of_refusal(folder: Path, reason: str) -> None:
    """Warn once, for all folders of a cache, that its disk takes nothing."""
    _tell_of_refusal(folder.parent, reason)


@cache
def _tell_of_refusal(root: Path, reason: str) -> None:
    text = f"what is compiled is not kept: {root}: {reason}; set {VARIABLE} to a folder that can be written"
    warnings.warn(text, stacklevel=3)


def forget_refusals() -> None:
    """Warn again of what was warned of, as a new process does."""
    _tell_of_refusal.cache_clear()


def remove_file(path: Path) -> None:
    """Remove a damaged file, where that is allowed; where it is not, each process finds the damage anew."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def digest(data: bytes) -> str:
    """Hash that names content in the cache."""
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Make `path` hold `data`; a reader sees all of it or what was there before."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_PARTIAL)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def store_library(folder: Path, built: Path) -> Path:
    """Move a library that was built inside `folder`'s file system to the name of its content."""
    path = folder / f"{digest(built.read_bytes())}.so"
    os.replace(built, path)
    return path


def keep_library(folder: Path, content: bytes) -> Path:
    """Write a library under the name of its content, where it is not there, or damaged."""
    path = folder / f"{digest(content)}.so"
    if not path.is_file() or path.read_bytes() != content:
        write_atomically(path, content)
    return path


def write_entry(folder: Path, key: str, library: Path, symbol: str) -> None:
    """Record that `library` holds the kernel `key` under the C name `symbol`."""
    entry = {"library": library.name, "symbol": symbol}
    write_atomically(folder / f"{key}.json", json.dumps(entry).encode())


def find_entry(folder: Path, key: str, trusted: set[Path]) -> tuple[Path, str] | None:
    """Library and C name of a kernel, None when it is not there or damaged; damage is warned of and removed.

    Libraries in `trusted` were checked before by this process; those checked now are added.
    """
    path = folder / f"{key}.json"
    try:
        text = path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):  # the folder that stands in its place is told when it is written
        return None
    try:
        entry = json.loads(text)
        library, symbol = folder / Path(entry["library"]).name, str(entry["symbol"])
        if library in trusted or digest(library.read_bytes()) == library.stem:
            trusted.add(library)
            return library, symbol
        remove_file(library)
        reason = f"{library.name} is damaged"
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
    drop_entry(folder, key, reason)
    return None


def drop_entry(folder: Path, key: str, reason: str) -> None:
    """Remove a damaged entry and warn of it."""
    path = folder / f"{key}.json"
    remove_file(path)
    warnings.warn(f"compile cache entry {path.name} is built anew ({reason})", stacklevel=5)
