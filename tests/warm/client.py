"""Run as `python client.py SOCKET ENVIRONMENT COMMAND...`: what python does with COMMAND, forked from `server.py`.

Where the server cannot stand for a fresh process it is a fresh process: with options of the interpreter, or with
another value of a variable that was read while it imported torch.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import struct
import sys

#: variables that are read by imports; ATEN_CPU_CAPABILITY is not: torch reads it when it computes for the first time
AT_IMPORT = ("CUDA", "KMP", "LD_", "MKL", "OMP", "OPENBLAS", "PYTHON", "TORCH", "TRITON")
#: of these names, the ones that are read at each use: torch sets its folders in the process that compiles, and the
#: server adds folders of modules
AT_USE = ("PYTHONPATH", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def read_at_import(environment: dict[str, str]) -> dict[str, str]:
    """The part of an environment that the server has to share."""
    return {k: v for k, v in environment.items() if k.startswith(AT_IMPORT) and k not in AT_USE}


def main(path: str, environment: str, *command: str) -> int:
    is_script = command[:1] and (command[0] in ("-c", "-m") or not command[0].startswith("-"))
    if not is_script or read_at_import(dict(os.environ)) != json.loads(environment):
        os.execv(sys.executable, [sys.executable, *command])
    request = {"arguments": command, "environment": dict(os.environ), "folder": os.getcwd()}
    text = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        streams = array.array("i", (0, 1, 2))
        server.sendmsg([struct.pack("<I", len(text))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
        server.sendall(text)
        (status,) = struct.unpack("<i", server.recv(4, socket.MSG_WAITALL))
    if status < 0:
        if -status not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
