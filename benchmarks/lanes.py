"""Many measurements at once, each on a core of its own: `python benchmarks/lanes.py --cores 6-15 --seconds 320 JOBS`.

JOBS has a command a line, the first ones first. A core takes the next when it is free; the process is bound to it, has
one thread, and shares its compilers' caches with the others, which lock what they write. `{until}` in a command stands
for the time, in seconds since 1970, at which all should have prepared what they measure; `--reserve` seconds later what
still runs is ended. Lines of output go to `--log`, with the core before them.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO

from processes import CACHES

ALONE = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
}


def cores_of(text: str) -> list[int]:
    """The numbers in a list such as 0,4-7."""
    ends = [part.split("-") for part in text.split(",")]
    return [core for each in ends for core in range(int(each[0]), int(each[-1]) + 1)]


def work(core: int, jobs: deque[str], ends: float, least: float, log: IO[str], folder: Path) -> None:
    """Take commands until there are none, or no time."""
    environment = os.environ | ALONE | {"OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    environment |= {name: str(folder / cache) for name, cache in CACHES.items()}
    while time.time() < ends - least:
        try:
            command = jobs.popleft()
        except IndexError:
            return
        log.write(f"{core} $ {command}\n")
        started = time.time()
        process = subprocess.Popen(
            ["taskset", "-c", str(core), *shlex.split(command)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True,
        )  # fmt: skip
        timer = threading.Timer(max(ends - started, 0), os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        assert process.stdout is not None
        for line in process.stdout:
            log.write(f"{core} {line[:400].rstrip()}\n")
        log.write(f"{core} {process.wait()} after {time.time() - started:.0f} s: {command}\n")
        log.flush()
        timer.cancel()


def main() -> None:
    """Run the commands of a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("jobs", type=Path)
    parser.add_argument("--cores", type=cores_of, default=list(range(os.cpu_count() or 1)))
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--reserve", type=float, default=30, help="of these, to measure what is prepared")
    parser.add_argument("--least", type=float, default=60, help="seconds with less of which left nothing starts")
    parser.add_argument("--log", default="/dev/stdout")
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("TMPDIR", "/tmp")) / "lanes")
    given = parser.parse_args()
    ends = time.time() + given.seconds
    lines = [line.strip() for line in given.jobs.read_text().splitlines() if line.strip()]
    jobs = deque(line.replace("{until}", f"{ends - given.reserve:.0f}") for line in lines)
    with open(given.log, "a") as log:
        lanes = [
            threading.Thread(target=work, args=(core, jobs, ends, given.least, log, given.folder), daemon=True)
            for core in given.cores
        ]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join(max(ends - time.time(), 0) + 5)
        log.write(f"{len(jobs)} of {len(lines)} commands were not started\n")
    print(f"{len(lines) - len(jobs)} of {len(lines)} commands", file=sys.stderr)


if __name__ == "__main__":
    main()
