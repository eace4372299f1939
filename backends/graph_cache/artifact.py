"""Entries that travel: the content of one, with the machine code of the kernels that it names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..c_like.cache import cache_dir, digest, find_entry, is_refusal, keep_library, warn_of_refusal, write_entry

_MAGIC = b"inductile artifact 1\n"


def pack(content: bytes, kernels: Mapping[str, str]) -> bytes:
    """The bytes of an artifact; `kernels` are the C names of kernels by their keys. One that is lost is left out."""
    folder = cache_dir("cpp")
    places = {key: find_entry(folder, key, set()) for key in kernels}
    found = {key: place for key, place in places.items() if place is not None and place[1] == kernels[key]}
    libraries = {path.name: path.read_bytes() for path, _ in found.values()}
    head = {
        "content": len(content),
        "libraries": {name: len(code) for name, code in libraries.items()},
        "kernels": {key: [path.name, symbol] for key, (path, symbol) in found.items()},
    }
    text = json.dumps(head).encode()
    return b"".join((_MAGIC, f"{len(text)}\n".encode(), text, content, *libraries.values()))


def unpack(artifact: bytes) -> bytes:
    """The content of an artifact; its kernels are in the cache from now on, or built again where that takes none.

    Raises ValueError for what is no artifact.
    """
    if not artifact.startswith(_MAGIC):
        raise ValueError("it is no artifact")
    length, _, rest = artifact[len(_MAGIC) :].partition(b"\n")
    head = json.loads(rest[: int(length)])
    position = int(length)
    content = rest[position : (position := position + head["content"])]
    libraries: dict[str, bytes] = {}
    for name, size in head["libraries"].items():
        libraries[name] = rest[position : (position := position + size)]
        if f"{digest(libraries[name])}.so" != name:
            raise ValueError(f"{name} is damaged")
    folder = cache_dir("cpp")
    try:
        _keep(folder, libraries, head["kernels"])
    except OSError as error:
        if not is_refusal(error):
            raise
        warn_of_refusal(folder, str(error.strerror))
    return content


def _keep(folder: Path, libraries: Mapping[str, bytes], kernels: Mapping[str, Sequence[str]]) -> None:
    """Write libraries, and which of them holds which kernel, where the cache does not know it."""
    paths = {name: keep_library(folder, code) for name, code in libraries.items()}
    for key, (name, symbol) in kernels.items():
        if not (folder / f"{Path(key).name}.json").exists():
            write_entry(folder, Path(key).name, paths[name], symbol)
