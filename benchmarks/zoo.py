"""A zoo of models that nobody here wrote, under inductile: `python benchmarks/zoo.py --jobs 14 --device cuda`.

Each model, tiny and with random weights, is compiled and compared with eager in several modes: `inference`, `training`
(one step: outputs, gradients, buffers), `dynamic` (dynamic shapes, two sizes), and on demand `lengths` (training at
three sizes, the second of which makes torch compile again with symbols) and `autocast` (training in bfloat16). What
differs runs under `aot_eager` as well: a failure that it shares is not the backend's.

A model has a process of its own; one that crashes or hangs is a row like any other. Results are JSON lines, and what
the file has for this device and version of torch is not run again (`--again error values` runs such rows again).
`--write-docs` makes docs/models.md of the results. Exits with 1 when a failure is not shared by aot_eager.

    python benchmarks/zoo.py --only bert timm_test_vit --modes inference      some models
    python benchmarks/zoo.py --only 'transformers, *'                         families of that beginning
    python benchmarks/zoo.py --shard 0/4 --out part0.jsonl                    every fourth
    python benchmarks/zoo.py --out all.jsonl --results part*.jsonl --write-docs
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from processes import CACHES

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "models.md"
Result: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str, str, str]

#: what a process that measures says of itself, before the JSON of a result, and before the name of a mode
RESULT, BEGINS = "== result ", "== mode "
#: seconds for loading packages and building a model, added to the limit of the first mode
LOADING = 60
FINE = ("pass", "none")
#: A mode without an answer has this many times what aot_eager takes, and at most so many seconds: symbolic shapes of
#: some models (chunked attention) keep Dynamo and AOTAutograd busy for minutes, whatever the backend.
TIMES_AOT_EAGER, LONGEST = 3.0, 600.0


# the process of a model


def work(args: argparse.Namespace) -> None:
    """Measure a model in some modes, a line for each."""
    import warnings

    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    warnings.filterwarnings("ignore")
    import torch
    from zoo_measure import measure
    from zoo_models import MODELS

    torch.set_num_threads(args.threads)
    torch.backends.cudnn.allow_tf32 = False
    for mode in args.modes:
        print(BEGINS + mode, flush=True)
        result = measure(MODELS[args.worker], mode, args.device, args.threads, args.backend)
        print(RESULT + json.dumps(result | {"torch": torch.__version__}), flush=True)


class Process:
    """A process that measures a model, and the lines that it wrote."""

    def __init__(self, model: str, modes: Sequence[str], args: argparse.Namespace, cache: str, backend: str) -> None:
        environment = os.environ | {name: f"{cache}/{folder}" for name, folder in CACHES.items()}
        environment |= {"OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
        environment |= {"OMP_NUM_THREADS": str(args.threads), "TRANSFORMERS_VERBOSITY": "error"}
        command = [sys.executable, str(HERE / "zoo.py"), "--worker", model, "--modes", *modes, "--backend", backend]
        command += ["--device", args.device, "--threads", str(args.threads)]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def results(
        self, limit: float, keep: Callable[[Result], None] = lambda _: None
    ) -> tuple[list[Result], str | None, str]:
        """(results, the mode in which it ended, why); the mode is None where all went well. Each is kept at once."""
        found: list[Result] = []
        mode, said = "", deque[str](maxlen=4)
        ends = time.monotonic() + limit + LOADING
        try:
            while (line := self.lines.get(timeout=max(ends - time.monotonic(), 0.01))) is not None:
                if line.startswith(BEGINS):
                    mode = line.removeprefix(BEGINS).strip()
                    ends = time.monotonic() + limit + (0 if found else LOADING)
                elif line.startswith(RESULT):
                    found.append(json.loads(line.removeprefix(RESULT)))
                    keep(found[-1])
                elif line.strip():
                    said.append(line.strip()[:200])
        except queue.Empty:
            self.process.kill()
            self.process.wait()
            return found, mode, f"no answer after {limit:.0f} s"
        status = self.process.wait()
        return found, mode if status else None, f"exit code {status}: {' | '.join(said)}"


def measure_model(
    model: str, modes: Sequence[str], args: argparse.Namespace, cache: str, keep: Callable[[Result], None]
) -> None:
    """All modes of a model, each kept when it is known; one that ends its process is a result, and aot_eager is asked
    about it.
    """
    left = list(modes)
    while left:
        results, mode, reason = Process(model, left, args, cache, "inductile").results(args.limit, keep)
        done = {result["mode"] for result in results}
        if mode is not None and mode not in done:
            lost = without_answer(model, mode or left[0], reason, args, cache)
            keep(lost)
            done.add(lost["mode"])
        elif mode is None and len(done & set(left)) < len(left):
            raise RuntimeError(f"{model}: no result and no error")
        left = [each for each in left if each not in done]


def without_answer(model: str, mode: str, reason: str, args: argparse.Namespace, cache: str) -> Result:
    """The result of a mode that ended its process. Where aot_eager takes long itself, there is a second try."""
    in_time = reason.startswith("no answer")
    start = time.monotonic()
    limit = max(LONGEST, args.limit) if in_time else args.limit
    other, died, why = Process(model, [mode], args, cache, "aot_eager").results(limit)
    took = time.monotonic() - start
    alone = other[0] if other and died is None else {"status": "crash", "problem": why}
    limit = min(TIMES_AOT_EAGER * took, LONGEST)
    if in_time and alone["status"] in FINE and limit > args.limit:
        results, _, reason = Process(model, [mode], args, cache, "inductile").results(limit)
        if results:
            return results[0]
        reason += f", aot_eager took {took:.0f} s"
    lost: Result = {"model": model, "mode": mode, "device": args.device, "torch": torch_version()}
    lost |= {"status": "time" if reason.startswith("no answer") else "crash", "problem": reason}
    return lost | {"aot_eager": alone["problem"] or alone["status"], "shared": alone["status"] not in FINE}


def torch_version() -> str:
    """As torch says it, without loading torch."""
    from importlib.metadata import version

    return version("torch")


# the process that collects


def read(paths: Sequence[Path]) -> dict[Key, Result]:
    """Results by model, mode, device and version of torch; the last of each counts."""
    found: dict[Key, Result] = {}
    for path in paths:
        for line in path.read_text().splitlines() if path.exists() else ():
            result = json.loads(line)
            found[key_of(result)] = result
    return found


def key_of(result: Result) -> Key:
    """What a result is the result of."""
    return result["model"], result["mode"], result["device"].partition(":")[0], result["torch"].partition("+")[0]


def owed(result: Result) -> bool:
    """Whether it is a failure of ours."""
    return result["status"] not in (*FINE, "missing", "eager") and not result.get("shared")


class Bar:
    """A line on standard error that says how far it is; one line a mode where that is no terminal."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.started = total, 0, time.monotonic()
        self.counts = Counter[str]()

    def add(self, result: Result) -> None:
        """A mode of a model is done."""
        self.done += 1
        self.counts["not owed" if result.get("shared") else result["status"]] += 1
        part = int(30 * self.done / max(self.total, 1))
        counts = ", ".join(f"{count} {status}" for status, count in self.counts.most_common())
        line = f"[{'#' * part}{'.' * (30 - part)}] {self.done}/{self.total} {time.monotonic() - self.started:.0f} s"
        terminal = sys.stderr.isatty()
        print(f"{chr(13) if terminal else ''}{line}: {counts}; {result['model']:24}", end="" if terminal else "\n",
              file=sys.stderr, flush=True)  # fmt: skip


def run_all(jobs: Sequence[tuple[str, Sequence[str]]], args: argparse.Namespace, out: Path) -> None:
    """Measure models side by side; what is found is added to the file at once."""
    left, bar, lock = deque(jobs), Bar(sum(len(modes) for _, modes in jobs)), threading.Lock()
    ends = time.monotonic() + args.deadline if args.deadline else float("inf")

    def keep(result: Result) -> None:
        with lock, out.open("a") as file:
            file.write(json.dumps(result) + "\n")
            bar.add(result)

    def take(cache: str) -> None:
        while time.monotonic() < ends:
            with lock:
                if not left:
                    return
                model, modes = left.popleft()
            measure_model(model, modes, args, cache, keep)

    with tempfile.TemporaryDirectory() as cache:
        threads = [threading.Thread(target=take, args=(cache,)) for _ in range(args.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(file=sys.stderr)


def chosen(args: argparse.Namespace, known: dict[Key, Result]) -> list[tuple[str, list[str]]]:
    """The models that are wanted, each with the modes whose results are not known."""
    from zoo_models import MODELS

    number, total = (int(x) for x in args.shard.split("/"))
    words = {name: (name, row.family) for name, row in MODELS.items()}
    names = [n for n in MODELS if not args.only or any(fnmatch.filter(words[n], o) for o in args.only)]
    unknown = [o for o in args.only or () if not any(fnmatch.filter(both, o) for both in words.values())]
    if unknown:
        families = "; ".join(sorted({row.family for row in MODELS.values()}))
        sys.exit(f"no model or family {', '.join(unknown)}; families: {families}; models: {', '.join(MODELS)}")
    found: list[tuple[str, list[str]]] = []
    for name in names[number::total]:
        keys = {m: (name, m, args.device.partition(":")[0], torch_version().partition("+")[0]) for m in args.modes}
        modes = [m for m, key in keys.items() if key not in known or known[key]["status"] in args.again]
        if modes:
            found.append((name, modes))
    return found


def arguments() -> argparse.Namespace:
    """Command line."""
    from_measure = ("inference", "training", "dynamic", "lengths", "autocast")
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", default="zoo.jsonl", help="file of results, read and added to")
    p.add_argument("--results", nargs="*", default=[], metavar="FILE", help="more files of results, read only")
    p.add_argument("--only", nargs="*", metavar="NAME", help="models or families, patterns such as 'bert*' among them")
    p.add_argument("--modes", nargs="+", default=list(from_measure[:3]), choices=from_measure)
    p.add_argument("--device", default="cpu")
    p.add_argument("--jobs", type=int, default=1, help="models measured side by side")
    p.add_argument("--threads", type=int, default=1, help="threads of torch, and compilers at once, of each")
    p.add_argument("--limit", type=float, default=180, help="seconds for a mode of a model, or thrice aot_eager's")
    p.add_argument("--deadline", type=float, default=0, help="start nothing after so many seconds; 0: no limit")
    p.add_argument("--shard", default="0/1", metavar="K/N")
    p.add_argument("--again", nargs="*", default=[], metavar="STATUS", help="run rows of such a status again")
    p.add_argument("--list", action="store_true", help="print the names and families, run nothing")
    p.add_argument("--write-docs", action="store_true", help="make docs/models.md of the results")
    p.add_argument("--worker", help=argparse.SUPPRESS)
    p.add_argument("--backend", default="inductile", help=argparse.SUPPRESS)
    return p.parse_args()


def main() -> int:
    """Run what is missing; say what failed."""
    args = arguments()
    if args.worker:
        work(args)
        return 0
    if args.list:
        from zoo_models import MODELS

        print("\n".join(f"{name:32} {row.family}" for name, row in MODELS.items()))
        return 0
    out = Path(args.out)
    files = [*map(Path, args.results), out]
    jobs = chosen(args, read(files))
    if jobs:
        run_all(jobs, args, out)
    results = list(read(files).values())
    wrong = [result for result in results if owed(result)]
    for result in wrong:
        print(f"{result['model']} {result['mode']} {result['device']}: {result['status']}: {result['problem'][:300]}")
    counts = Counter("not owed" if result.get("shared") else result["status"] for result in results)
    print(f"{len(results)} results: {', '.join(f'{n} {status}' for status, n in counts.most_common())}; "
          f"{len(wrong)} failures of ours")  # fmt: skip
    if args.write_docs:
        import zoo_page

        PAGE.write_text(zoo_page.page(results))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
