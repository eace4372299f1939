"""`make demo`: compile a GPT-2 with random weights, compare with eager, show the kernels, replay the IR from files."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def milliseconds(call: Callable[[], object], runs: int = 9) -> float:
    """Median time of a call."""
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def compile_and_compare(trace: str) -> None:
    """Compile GPT-2 through torch.compile and compare values and times with eager."""
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(use_cache=False)).eval()
    tokens = torch.randint(0, model.config.vocab_size, (1, 128))
    run = torch.compile(model, backend="inductile", options={"trace": trace})
    with torch.no_grad():
        start = time.perf_counter()
        got = run(tokens).logits
        print(f"first call with inductile: {time.perf_counter() - start:.1f} s (Dynamo and AOTAutograd included)")
        expected = model(tokens).logits
        exact = model.double()(tokens).logits
        model.float()
        ours = float((got.double() - exact).norm() / exact.norm())
        eager = float((expected.double() - exact).norm() / exact.norm())
        print(f"relative error against float64: inductile {ours:.1e}, eager {eager:.1e}")
        if ours > 2 * eager:
            raise SystemExit("inductile is less accurate than it should be")
        print(f"one call: eager {milliseconds(lambda: model(tokens)):.1f} ms, ", end="")
        print(f"inductile {milliseconds(lambda: run(tokens)):.1f} ms")


def show_what_was_built() -> None:
    """Print kernels, ATen calls and stage times of the compiled graphs."""
    from inductile.backends.compiled import REPORTS

    for report in REPORTS:
        print(f"\n{report}")
        for kernel, launches in report.kernels.items():
            print(f"  kernel {kernel}: launched {launches} times")
        for op, calls in report.aten_calls.items():
            print(f"  ATen call {op}: {calls} times")


def replay(trace: str) -> None:
    """Take the dumped IR of the graph through the command lines."""
    # beside the graphs' folders lie those of Dynamo's graphs, which hold no IR
    folder = min(Path(trace).glob("*/000-input.mlir")).parent
    print(f"\nthe same graph from its files, {len(list(folder.glob('*.mlir')))} stages of IR in the trace folder:")
    tools = Path(sys.executable).parent
    source = str(folder / "000-input.mlir")
    command = [str(tools / "inductile-opt"), source, "--pipeline", "default", "-o", f"{trace}/replayed.mlir"]
    print("  $ inductile-opt 000-input.mlir --pipeline default -o replayed.mlir --remarks=loop-fuse")
    done = subprocess.run([*command, "--remarks=loop-fuse"], capture_output=True, text=True, check=True)
    fused = [line for line in done.stderr.splitlines() if "passed" in line]
    print(f"  {len(fused)} remarks on what was fused, among them:")
    for line in fused[:5]:
        print(f"    {line[:150]}")
    print("  $ inductile-run replayed.mlir --random 0 --backend cpp")
    command = [str(tools / "inductile-run"), f"{trace}/replayed.mlir", "--random", "0", "--backend", "cpp"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    print("  " + result.stdout.splitlines()[0])


def main() -> None:
    """Run the demo."""
    with tempfile.TemporaryDirectory() as trace:
        compile_and_compare(trace)
        show_what_was_built()
        replay(trace)


if __name__ == "__main__":
    main()
