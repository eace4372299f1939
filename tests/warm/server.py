"""Run as `python server.py SOCKET`: forks a process for each command line that `client.py` hands over.

It has imported torch and the compiler, which takes ten times as long as what most scripts of the tests do. Nothing was
computed here, so that a fork has neither threads to miss nor a state that a fresh process would not have. It ends with
its standard input.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import struct
import sys
import threading
import traceback
import types
from typing import Any

#: what torch imports while it compiles for the first time
OF_A_FIRST_COMPILE = (
    "torch._dynamo.backends.inductor",
    "torch._dynamo.repro.after_dynamo",
    "torch._functorch.aot_autograd",
    "torch._inductor.codecache",
    "torch._inductor.compiler_bisector",
    "torch._subclasses.schema_check_mode",
    "torch.export._trace",
    "torch.fx.experimental.validator",
)
PACKAGES = (
    "dialects",
    "passes",
    "lowering",
    *(f"backends.{x}" for x in ("c_like", "cpp", "graphs", "host", "reference")),
)


def warm_up() -> None:
    """Import what a first compile imports."""
    for name in ("torch", "inductile.backends.compile_graph", "inductile.tools.opt", *OF_A_FIRST_COMPILE):
        importlib.import_module(name)
    for name in PACKAGES:
        package = importlib.import_module(f"inductile.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def serve(path: str) -> dict[str, Any] | None:
    """Take requests; in a forked process, return the one that it is for, at the end None."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    waker, wake = socket.socketpair()
    waker.setblocking(False)
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    selector = selectors.DefaultSelector()
    for source in (sys.stdin, listener, waker):
        selector.register(source, selectors.EVENT_READ)
    running: dict[int, socket.socket] = {}
    while True:
        for key, _ in selector.select():
            source = key.fileobj
            if source is sys.stdin:
                for process in running:
                    _kill(process)
                return None
            if source is waker:
                waker.recv(4096)
                _report_ends(running, selector)
            elif source is listener:
                connection, _ = listener.accept()
                request, streams = _receive(connection)
                process = os.fork()
                if not process:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    selector.close()
                    for each in (listener, waker, wake, connection, *running.values()):
                        each.close()
                    os.setsid()
                    for number, stream in enumerate(streams):
                        os.dup2(stream, number)
                        os.close(stream)
                    return request
                for stream in streams:
                    os.close(stream)
                running[process] = connection
                selector.register(connection, selectors.EVENT_READ)
            else:  # the client was stopped
                for process, connection in running.items():
                    if connection is source:
                        _kill(process)
                selector.unregister(source)


def _receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A request, and the three standard streams that come with its length."""
    head, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * 4))
    streams = array.array("i")
    streams.frombytes(ancillary[0][2])
    (length,) = struct.unpack("<I", head)
    text = b""
    while len(text) < length:
        text += connection.recv(length - len(text))
    return json.loads(text), list(streams)


def _report_ends(running: dict[int, socket.socket], selector: selectors.BaseSelector) -> None:
    """Tell clients how their processes ended."""
    while running:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            return
        connection = running.pop(process)
        with contextlib.suppress(KeyError):
            selector.unregister(connection)
        with contextlib.suppress(BrokenPipeError):
            connection.sendall(struct.pack("<i", os.waitstatus_to_exitcode(status)))
        connection.close()


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)


def run(request: dict[str, Any]) -> None:
    """Be the process that a command line asks for: of a script, of `-c` or of `-m`."""
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    more = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each and each not in before]
    kind, *rest = request["arguments"]
    here = "" if kind == "-c" else os.getcwd() if kind == "-m" else os.path.dirname(os.path.abspath(kind))
    sys.path[:1] = [here, *more]
    importlib.invalidate_caches()
    if kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        exec(compile(rest[0], "<string>", "exec"), vars(module))
    elif kind == "-m":
        sys.argv = rest
        sys.modules.pop(rest[0], None)
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [kind, *rest]
        runpy.run_path(kind, run_name="__main__")


def run_to_the_end(request: dict[str, Any]) -> int:
    """Run, and do what the interpreter does in the end but for freeing what the server imported; the exit status."""
    status = 0
    try:
        run(request)
    except SystemExit as leave:
        if isinstance(leave.code, str):
            print(leave.code, file=sys.stderr)
        status = leave.code if isinstance(leave.code, int) else int(leave.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    for end in (threading._shutdown, atexit._run_exitfuncs):  # pyright: ignore[reportAttributeAccessIssue]
        end()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return status & 0xFF


if __name__ == "__main__":
    warm_up()
    asked = serve(sys.argv[1])
    if asked is not None:
        os._exit(run_to_the_end(asked))
