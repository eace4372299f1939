"""Run as `python forked_ranks.py`: forks the two ranks of each job, one job after another, and says how they ended.

It has imported what each rank would import, which takes longer than what most of them do. A job is a script of this
folder with its arguments; standard input holds a list of them as JSON, and standard output gets, for each job, the
exit status and the output of each rank.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import tempfile
import traceback
from pathlib import Path
from typing import IO, Any

import torch
import torch._dynamo
import torch._functorch.aot_autograd
import torch.distributed  # noqa: F401

import inductile.backends.torch_compile  # noqa: F401 - it is imported once


def run_rank(command: list[str], output: IO[Any]) -> int:
    """Run a script in a process of its own, with what it prints in a file; the process."""
    process = os.fork()
    if process:
        return process
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    status = 0
    try:
        path = str(Path(__file__).with_name(command[0]))
        sys.argv = [path, *command[1:]]
        runpy.run_path(path, run_name="__main__")
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def run_job(command: list[str]) -> list[tuple[int, str]]:
    """Exit status and output of each rank."""
    with tempfile.TemporaryFile("w+") as first, tempfile.TemporaryFile("w+") as second:
        files = (first, second)
        ranks = [run_rank([word.format(rank=rank) for word in command], files[rank]) for rank in range(2)]
        statuses = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in ranks]
        for file in files:
            file.seek(0)
        return [(status, file.read()) for status, file in zip(statuses, files, strict=True)]


if __name__ == "__main__":
    json.dump([run_job(command) for command in json.load(sys.stdin)], sys.stdout)
