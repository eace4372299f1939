"""Many measurements at once, each on a core of its own: `python benchmarks/lanes.py --cores 6-15 --seconds 320 JOBS`.

JOBS has a command a line, the first ones first. A core takes the next when it is free; the process is bound to it, has
one thread, and shares its compilers' caches with the others, which lock what they write. `{until}` in a command stands
for the time, in seconds since 1970, at which all should have prepared what they measure; `--reserve` seconds later what
still runs is ended. Lines of output go to `--log`, with the core before them.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from processes import CACHES

#: what a process prints that waits to be measured
PREPARED = "prepared"
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


@contextmanager
def alone(lock: str) -> Iterator[None]:
    """While nobody else holds a lock; at once where there is none."""
    if not lock:
        yield
        return
    with open(lock, "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


@contextmanager
def a_core(cores: list[int]) -> Iterator[int]:
    """This process alone, of all that ask so, on one of these cores: the first that is free."""
    folder = Path(os.environ.get("TMPDIR", "/tmp"))
    while True:
        for core in cores:
            with open(folder / f"core_{core}.lock", "a") as held:
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                os.sched_setaffinity(0, {core})
                yield core
                return
        time.sleep(0.1)


@dataclass
class Lanes:
    """Commands that wait, when all ends, how many seconds before that nothing starts, a log, a folder for caches."""

    jobs: deque[str]
    ends: float
    least: float
    log: IO[str]
    folder: Path
    readers: list[threading.Thread] = field(default_factory=list)

    def work(self, core: int) -> None:
        """Take commands until there are none, or no time."""
        environment = os.environ | ALONE | {"OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1"}
        environment |= {name: str(self.folder / cache) for name, cache in CACHES.items()} | {"PYTHONWARNINGS": "ignore"}
        while time.time() < self.ends - self.least:
            try:
                command = self.jobs.popleft()
            except IndexError:
                return
            process = subprocess.Popen(
                ["taskset", "-c", str(core), *shlex.split(command)],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True,
            )  # fmt: skip
            free = threading.Event()
            reader = threading.Thread(target=self.follow, args=(process, f"{core} $ {command}", free), daemon=True)
            self.readers.append(reader)
            reader.start()
            free.wait()

    def follow(self, process: subprocess.Popen[str], name: str, free: threading.Event) -> None:
        """Log what a process prints, and end it when it is time; its core is free when it has ended, or is prepared."""
        started, core = time.time(), name.partition(" ")[0]
        self.log.write(f"{name}\n")
        timer = threading.Timer(max(self.ends - started, 0), os.killpg, (process.pid, signal.SIGKILL))
        timer.daemon = True
        timer.start()
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == PREPARED:
                free.set()
            self.log.write(f"{core} {time.time() - started:.0f} s: {line[:400].rstrip()}\n")
        code = process.wait()
        timer.cancel()
        self.log.write(f"{code} after {time.time() - started:.0f} s: {name}\n")
        self.log.flush()
        free.set()


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
        lanes = Lanes(jobs, ends, given.least, log, given.folder)
        cores = [threading.Thread(target=lanes.work, args=(core,), daemon=True) for core in given.cores]
        for each in cores:
            each.start()
        for each in cores:
            each.join(max(ends - time.time(), 0) + 5)
        for each in lanes.readers:
            each.join(max(ends - time.time(), 0) + 5)
        log.write(f"{len(jobs)} of {len(lines)} commands were not started\n")
    print(f"{len(lines) - len(jobs)} of {len(lines)} commands", file=sys.stderr)


if __name__ == "__main__":
    main()
