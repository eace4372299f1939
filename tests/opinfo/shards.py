"""The database in several processes: each takes a share and is started again while cases of it are left."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from report import Results, load, not_owed

#: exit status of a process that leaves cases for another one
MORE = 75
#: seconds that a process may take beyond the limit of one case before it counts as stuck
GRACE = 30


def parts(out: str, jobs: int) -> list[str]:
    """The files of all shares."""
    return [f"{out}.{number}" for number in range(jobs)]


def run_shares(arguments: Sequence[str], out: str, jobs: int, timeout: float, deadline: float) -> list[str]:
    """Run all shares side by side until none has cases left or the deadline has come; the files that they wrote.

    arguments: of `run.py`, for every share
    timeout:   seconds of one case
    deadline:  of `time.time()`
    """
    files = parts(out, jobs)
    script = str(Path(__file__).parent / "run.py")

    def share(number: int) -> None:
        own = ["--shard", f"{number}/{jobs}", "--out", files[number], "--until", str(deadline)]
        until_done(lambda: [sys.executable, script, *arguments, *own], files[number], timeout + GRACE, deadline)

    threads = [threading.Thread(target=share, args=(number,)) for number in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [file for file in files if Path(file).exists()]


def until_done(command: Callable[[], list[str]], out: str, stuck: float, deadline: float) -> None:
    """Start a process again until it ends with 0; one that ends twice without a new result is given up."""
    idle = 0
    while time.time() < deadline and idle < 2:
        before = _lines(out)
        with open(f"{out}.log", "ab") as log:
            status = _watched(subprocess.Popen(command(), stdout=log, stderr=log), out, stuck, deadline)
        if status == 0:
            return
        idle = idle + 1 if _lines(out) == before else 0


def _watched(process: subprocess.Popen[bytes], out: str, stuck: float, deadline: float) -> int | None:
    """The exit status of a process; None for one killed at the deadline. A case that hangs is killed too."""
    running, started = Path(f"{out}.running"), time.time()
    while process.poll() is None:
        time.sleep(0.2)
        case_began = max(started, running.stat().st_mtime if running.exists() else 0)
        late = time.time() > deadline + 5
        if late or time.time() > case_began + stuck:
            process.kill()
            process.wait()
            if late:
                running.unlink(missing_ok=True)  # the case is not to blame
                return None
    return process.returncode


def _lines(path: str) -> int:
    return len(Path(path).read_bytes().splitlines()) if Path(path).exists() else 0


def summary(results: Results, baseline: Results, wanted: int, title: str) -> tuple[str, bool]:
    """One line on all results, and whether every owed case was run and passes."""
    excused = not_owed(results, baseline)
    wrong = sorted(c for c, r in results.items() if r["status"] != "pass" and c not in excused)
    passed = sum(r["status"] == "pass" for r in results.values())
    line = (
        f"{title}: {len(results)} of {wanted} cases run, {passed} pass, {len(excused)} not owed, "
        f"{len(wrong)} owed and wrong{': ' if wrong else ''}{' '.join(wrong)}"
    )
    return line, not wrong and len(results) >= wanted


def run_all(arguments: Sequence[str], out: str, jobs: int, timeout: float, seconds: float, wanted: int) -> int:
    """All cases in `jobs` processes, what does not pass under aot_eager too, and one line on both; the exit status.

    seconds: when to stop; 0 for never. What was done by then stays, and another call goes on from there
    """
    deadline = time.time() + (seconds or 10**8)
    files = run_shares(arguments, out, jobs, timeout, deadline)
    results = load(files)
    baseline: Results = {}
    if any(r["status"] != "pass" for r in results.values()):
        compared = [*arguments, "--backend", "aot_eager", "--failures-of", *files]
        baseline = load(run_shares(compared, f"{out}.aot_eager", min(jobs, 4), timeout, deadline + 30))
    line, well = summary(results, baseline, wanted, out)
    print(line)
    return 0 if well else 1
