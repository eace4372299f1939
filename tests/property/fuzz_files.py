"""Mutated dumps through the tools: `python tests/property/fuzz_files.py --count 20000`, and with `--cpp` through C++.

A file is data: whatever is in it, a tool ends in time, with status 0 or 1, and never with a traceback, a signal, or an
error of a sanitizer (`--sanitize`). Prints each fault with what finds it again, and the totals. A mutation depends on
its seed alone.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from ir_mutations import mutate_module
from mutations import mutate

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
TESTS = Path(__file__).resolve().parent.parent
MARK = re.compile(r"^// -----\s*$", re.MULTILINE)
COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)
WARM = """func.func @f(%x: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
  %0 = aten.exp(%x) : !aten.tensor<4xf32>
  func.return %0 : !aten.tensor<4xf32>
}"""
SECONDS, SECONDS_CPP = 20, 120
OPTIONS = ("--random", "0", "--memory-limit", "0.02", "--max-steps", str(1 << 26))


class Hang(BaseException):
    """A tool took too long. No handler of errors stops it."""


@cache
def corpus(cpp: bool) -> tuple[str, ...]:
    """Texts to mutate: parts of the test files of all levels; for C++ those with a program that can run."""
    texts: list[str] = []
    for path in sorted(TESTS.rglob("*.mlir")):
        for part in MARK.split(path.read_text()):
            text = COMMENT.sub("", part).strip()
            if 0 < len(text) < 6000 and ("cuda" not in text or not cpp):
                texts.append(text)
    return tuple(text for text in texts if not cpp or "host.func" in text or "func.func" in text)


@contextlib.contextmanager
def alarm(seconds: int) -> Iterator[None]:
    """Raise Hang inside when it takes more seconds of the processor."""

    def stop(*_: object) -> None:
        raise Hang

    old = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def lower(file: str) -> int:
    """What `inductile-opt` does with a file, down to kernels; the exit status."""
    from inductile.dialects.context import new_context
    from inductile.lowering.pipeline import remaining_passes
    from inductile.passes.manager import PassManager
    from inductile.passes.printing import module_text
    from inductile.tools.diagnostics import parse_file, run_tool

    def body() -> int:
        module = parse_file(new_context(), Path(file).read_text(), file)
        parse_file(new_context(), module_text(module), "printed")
        PassManager(remaining_passes(module, "cpp")).run(new_context(), module)
        parse_file(new_context(), module_text(module), "lowered")
        return 0

    return run_tool(body)


def verify(file: str) -> int:
    """The exit status of reading a file."""
    from inductile.dialects.context import new_context
    from inductile.tools.diagnostics import parse_file, run_tool

    return run_tool(lambda: 0 if parse_file(new_context(), Path(file).read_text(), file) else 1)


def check(text: str, cpp: bool) -> tuple[str, str | None]:
    """What became of a mutation ("refused", "ran", "raised"), and what is wrong with that."""
    from inductile.tools.run import main

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file.mlir"
        file.write_text(text)
        if cpp and run(lambda: verify(str(file)), SECONDS)[0] == 1:
            return "refused", None
        steps = {"lower": lambda: lower(str(file)), "reference": lambda: main([str(file), *OPTIONS])}
        if cpp:
            steps = {"cpp": lambda: main([str(file), *OPTIONS, "--backend", "cpp"])}
        status = 1
        for name, step in steps.items():
            status, output = run(step, SECONDS_CPP if cpp else SECONDS)
            if status not in (0, 1):
                return name, f"{name}: {output.strip()[-400:]}"
            if name == "lower" and status == 1:
                if re.match(r"(printed|lowered)\b", output):
                    return name, f"what is printed does not read back: {output[:400]}"
                if ".mlir:" in output.partition("error:")[0]:
                    return "refused", None
        return ("ran" if status == 0 else "raised"), None


def run(step: Callable[[], int], seconds: int) -> tuple[int, str]:
    """Exit status and output of a tool in this process."""
    captured = io.StringIO()
    try:
        with contextlib.redirect_stdout(captured), contextlib.redirect_stderr(captured), alarm(seconds):
            return step(), captured.getvalue()
    except Hang:
        return -1, f"takes more than {seconds} s"
    except SystemExit as error:
        return -2, f"exits with {error.code}"
    except BaseException as error:
        return -3, f"{type(error).__name__}: {error}"


def mutation(seed: int, cpp: bool) -> str:
    """The mutated text of a seed."""
    generator = random.Random(seed)
    texts = corpus(cpp)
    text = generator.choice(texts)
    changed = mutate_module(text, generator) if generator.random() < 0.6 else None
    if changed is None:
        return mutate(text, texts, generator)
    return mutate(changed, texts, generator) if generator.random() < 0.1 else changed


def worker(first: int, last: int, cpp: bool) -> None:
    """Check the mutations of some seeds; a line for each."""
    import warnings

    warnings.filterwarnings("ignore")
    import torch  # which takes long

    torch.set_num_threads(1)
    out = os.fdopen(os.dup(1), "w")
    check(WARM, cpp)  # what is loaded at first use takes long
    for seed in range(first, last):
        out.write(f"start {seed}\n")
        out.flush()
        outcome, fault = check(mutation(seed, cpp), cpp)
        out.write(f"{outcome} {seed} {'' if fault is None else f'FAULT {fault!r}'}\n")
        out.flush()


def environment(sanitize: bool) -> dict[str, str]:
    """The environment of a worker; with sanitizers in its kernels, and their library loaded first."""
    variables = dict(os.environ)
    if sanitize:
        compiler = variables.get("CXX", "g++")
        libraries: list[str] = []
        for name in ("libasan.so", "libstdc++.so.6"):  # the first looks for the exceptions of the second when it starts
            found = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
            libraries.append(found.stdout.strip())
        variables["LD_PRELOAD"] = " ".join(libraries)
        variables["ASAN_OPTIONS"] = "detect_leaks=0:allocator_may_return_null=1"
        variables["CXX"] = f"{compiler} -fsanitize=address,undefined -fno-sanitize-recover=all"
    return variables


def drive(first: int, last: int, cpp: bool, sanitize: bool) -> tuple[Counter[str], list[str]]:
    """Run workers until all seeds are checked; a worker that a seed ends is followed by another."""
    counts: Counter[str] = Counter()
    faults: list[str] = []
    limit = 10 * (SECONDS_CPP if cpp else SECONDS)
    while first < last:
        command = [sys.executable, __file__, "--worker", "--seed", str(first), "--count", str(last - first)]
        process = subprocess.Popen(
            [*command, *(["--cpp"] if cpp else [])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(sanitize), errors="replace",
        )  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        with alarm_kills(process, limit) as restart:
            for line in process.stdout:
                restart()
                outcome, number, *rest = line.split(" ", 2)
                if outcome == "start":
                    first = int(number)
                    continue
                counts[outcome] += 1
                first = int(number) + 1
                if rest and rest[0].startswith("FAULT"):
                    faults.append(f"seed {number}: {rest[0].strip()}")
                    print(faults[-1], flush=True)
        errors = process.stderr.read()
        if process.wait() != 0 and first < last:
            counts["crashed"] += 1
            faults.append(f"seed {first}: the process ends with {process.returncode}: {errors.strip()[-600:]}")
            print(faults[-1], flush=True)
            first += 1
    return counts, faults


@contextlib.contextmanager
def alarm_kills(process: subprocess.Popen[str], seconds: int) -> Iterator[Callable[[], object]]:
    """Kill a process that says nothing for so long."""
    old = signal.signal(signal.SIGALRM, lambda *_: process.kill())
    try:
        yield lambda: signal.alarm(seconds)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


def main() -> None:
    """Command line."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--count", type=int, default=300)
    p.add_argument("--seed", type=int, default=0, help="first seed")
    p.add_argument("--cpp", action="store_true", help="through C++, else through the passes and the interpreter")
    p.add_argument("--sanitize", action="store_true", help="with -fsanitize=address,undefined in the kernels")
    p.add_argument("--show", action="store_true", help="print the mutation of --seed and what the tools say of it")
    p.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.worker:
        return worker(args.seed, args.seed + args.count, args.cpp)
    if args.show:
        text = mutation(args.seed, args.cpp)
        check(WARM, args.cpp)
        print(text, check(text, args.cpp), sep="\n")
        return None
    start = time.perf_counter()
    counts, faults = drive(args.seed, args.seed + args.count, args.cpp, args.sanitize)
    spent = time.perf_counter() - start
    told = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    print(f"{args.count} mutations in {spent:.0f} s: {told}; {len(faults)} faults")
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
