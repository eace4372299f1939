"""Tests in two processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..warm.python import python


def in_two_processes(worker: str, *arguments: str) -> list[str]:
    """What two processes print; both have to end well."""
    return jobs_in_two_processes([(worker, *arguments)])[0]


def jobs_in_two_processes(jobs: Sequence[Sequence[str]]) -> list[list[str]]:
    """What the two processes of each job print, one job after another; all have to end well."""
    with subprocess.Popen(
        [python(), str(Path(__file__).with_name("forked_ranks.py"))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    ) as parent:  # fmt: skip
        try:
            output, _ = parent.communicate(json.dumps(jobs), timeout=300 * len(jobs))
        except BaseException:
            os.killpg(parent.pid, signal.SIGKILL)
            raise
    assert parent.returncode == 0
    done = json.loads(output)
    for job, ranks in zip(jobs, done, strict=True):
        for status, text in ranks:
            assert status == 0, f"{job}: {text[-3000:]}"
    return [[text for _, text in ranks] for ranks in done]
