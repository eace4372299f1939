"""What is forked is to a test what a process that was started is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from .python import python


def test_it_is_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("value = 7")
    script = tmp_path / "script.py"
    script.write_text(
        "import beside, os, sys, torch\n"
        "print(beside.value, sys.argv[1:], os.getcwd(), os.environ['HERE'], sys.stdin.read(), __name__)\n"
        "print(int(torch.ones(2000, 2000).sum()), file=sys.stderr)\n"
        "sys.exit(5)\n"
    )
    done = subprocess.run(
        [python(), script, "a b", "--c"], cwd=tmp_path, env=os.environ | {"HERE": "x"}, input="in",
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (5, "4000000\n")
    assert done.stdout == f"7 ['a b', '--c'] {tmp_path} x in __main__\n"


def test_ends_are_told() -> None:
    def end(code: str) -> int:
        return subprocess.run([python(), "-c", code], capture_output=True).returncode

    assert [end("pass"), end("raise KeyError"), end("import sys; sys.exit('no')")] == [0, 1, 1]
    assert [end(f"import os; os.kill(os.getpid(), {number})") for number in (6, 9)] == [-6, -9]


def test_what_is_stopped_ends() -> None:
    code = "import time; print(1, flush=True); time.sleep(99)"
    with subprocess.Popen([python(), "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        assert process.stdout.read() == b""  # the last that held it is gone
    assert process.returncode == -signal.SIGKILL


def test_a_fresh_process_where_a_fork_would_differ() -> None:
    def flags(*options: str, **environment: str) -> list[str]:
        code = "import sys, os; print('torch' in sys.modules, sys.executable)"
        command = [python(), *options, "-c", code]
        done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    warm = ["True", sys.executable]
    assert flags() == flags(TORCHINDUCTOR_CACHE_DIR="/tmp/x") == flags(ATEN_CPU_CAPABILITY="default") == warm
    assert (
        flags("-W", "error") == flags(TORCH_LOGS="inductor") == flags(PYTHONHASHSEED="3") == ["False", sys.executable]
    )


def test_a_fork_computes_with_the_instruction_set_that_it_is_given() -> None:
    code = "import torch; print(torch.backends.cpu.get_cpu_capability())"
    environment = os.environ | {"ATEN_CPU_CAPABILITY": "default"}
    done = subprocess.run([python(), "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "DEFAULT\n"
