"""A python that has imported torch and the compiler already, for tests that start processes.

`python()` is the path of an executable to use in place of `sys.executable`; what it starts is a process of its own,
with its own folder, environment and streams, and is forked instead of started. Tests about imports, options of the
interpreter or variables that torch reads when it is imported use `sys.executable`.
"""

from __future__ import annotations

import atexit
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from .client import read_at_import

HERE = Path(__file__).parent


@cache
def python() -> str:
    """The executable; the first use starts the process that it forks, which ends with this one."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    path, executable = folder / "socket", folder / "python"
    server = subprocess.Popen([sys.executable, str(HERE / "server.py"), str(path)], stdin=subprocess.PIPE)
    atexit.register(_end, server, folder)
    client = [
        sys.executable,
        "-E",
        "-S",
        str(HERE / "client.py"),
        str(path),
        json.dumps(read_at_import(dict(os.environ))),
    ]
    executable.write_text(f'#!/bin/sh\nexec {shlex.join(client)} "$@"\n')
    executable.chmod(0o755)
    while not path.exists():
        assert server.poll() is None, "tests/warm/server.py ended, as its messages say"
        time.sleep(0.05)
    return str(executable)


def _end(server: subprocess.Popen[bytes], folder: Path) -> None:
    assert server.stdin is not None
    server.stdin.close()
    server.wait()
    shutil.rmtree(folder)
