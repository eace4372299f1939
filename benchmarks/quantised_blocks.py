"""A layer of a language model, quantised by torchao, beside eager and Inductor on a GPU.

`python benchmarks/quantised_blocks.py --out r.jsonl`

For each configuration, number of rows and backend a line of the file: microseconds of kernels on the device, how
many there are, the most memory that a call takes beyond its inputs, the error against the layer of floats, what ran.
Compiles in parallel processes; one measures at a time. Needs `pip install torchao`.
"""

from __future__ import annotations

import argparse
import copy
import fcntl
import itertools
import json
import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

WHO = ("inductile", "inductile, loops", "inductor", "eager")
ROWS = (512, 1)
_OPTIONS: dict[str, dict[str, Any] | None] = {
    "": None,
    "loops": {"loop_products": True},
    "registers": {"dequantised_copies": "never"},
    "memory": {"dequantised_copies": "faster"},
}
_LOCK = Path(tempfile.gettempdir()) / "quantised_blocks.lock"


def configs() -> dict[str, Callable[[], Any] | None]:
    """torchao's configurations for a GPU; None: floats."""
    import torchao.quantization as q
    from torchao.quantization.granularity import PerGroup, PerRow
    from torchao.quantization.quantize_.workflows import Int4PackingFormat

    int4: Any = torch.int4  # pyright: ignore[reportAttributeAccessIssue] - torch's stubs do not have it
    tiles = Int4PackingFormat.TILE_PACKED_TO_4D
    return {
        "bf16": None,
        "int8": q.Int8WeightOnlyConfig,
        "int8 dynamic": q.Int8DynamicActivationInt8WeightConfig,
        "float8": lambda: q.Float8WeightOnlyConfig(),
        "float8 dynamic, rows": lambda: q.Float8DynamicActivationFloat8WeightConfig(granularity=PerRow()),
        "int4, tiles": lambda: q.Int4WeightOnlyConfig(128, int4_packing_format=tiles),
        "int4 in bytes, 128": lambda: q.IntxWeightOnlyConfig(weight_dtype=int4, granularity=PerGroup(128)),
    }


def measure(task: tuple[str, int, str], device: str, small: bool, out: str) -> None:
    """Write the row of one task."""
    config, rows, who = task
    row: dict[str, Any] = {"config": config, "rows": rows, "who": who}
    try:
        row |= _measured(config, rows, who, device, small)
    except Exception as error:
        row["failed"] = f"{type(error).__name__} {error}"[-300:]
    with open(out, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(row) + "\n")


def _measured(config: str, rows: int, who: str, device: str, small: bool) -> dict[str, Any]:
    from quantised_matrix import Block, weights, wide_buffers
    from torchao.quantization import quantize_

    from inductile.backends.compiled import REPORTS

    warnings.filterwarnings("ignore")
    torch._dynamo.reset()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sizes = (128, 4, 384) if small else (2048, 32, 5632)
    model = Block(*sizes).eval().to(device, torch.bfloat16)
    x = torch.randn(1, rows, sizes[0], device=device, dtype=torch.bfloat16)
    integer, how = copy.deepcopy(model), configs()[config]
    if how is not None:
        quantize_(integer, how())
    name, _, way = who.partition(", ")
    options = _OPTIONS[way]
    call = integer if who == "eager" else torch.compile(integer, backend=name, dynamic=False, options=options)
    begun = time.perf_counter()
    with torch.no_grad():
        exact, got = model(x).float(), call(x).float()
        row: dict[str, Any] = {
            "first_s": round(time.perf_counter() - begun, 1),
            "error": float((got - exact).norm() / exact.norm()),
        }
        if name == "inductile":
            report = REPORTS[-1]
            row |= {"calls": dict(report.aten_calls), "own": sum(report.kernels.values())}
            row["wide"] = wide_buffers(str(report.sources.get("program.py", "")), weights(model))
        if device == "cuda":
            row |= _on_gpu(lambda: call(x))
    return row


def _on_gpu(call: Callable[[], Any]) -> dict[str, Any]:
    """Microseconds of the kernels of a call, how many there are, and MiB that it takes, while nobody else measures."""
    from torch.profiler import ProfilerActivity, profile

    for _ in range(3):
        call()
    with open(_LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        torch.cuda.synchronize()
        taken = (torch.cuda.max_memory_allocated() - before) / 2**20
        least, count = float("inf"), 0
        for _ in range(5):
            with profile(activities=[ProfilerActivity.CUDA]) as profiler:
                call()
                torch.cuda.synchronize()
            events = [event for event in profiler.events() or [] if event.device_type.name == "CUDA"]
            least, count = min(least, sum(event.device_time for event in events)), len(events)
    return {"us": round(least, 1), "kernels": count, "MiB": round(taken, 1)}


def main() -> None:
    """Measure all, or what is asked for, until the time is over."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--configs", nargs="+")
    parser.add_argument("--who", nargs="+", choices=WHO, default=WHO)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="a small layer, to try this out")
    parser.add_argument("--seconds", type=float, default=80)
    parser.add_argument("--jobs", type=int, default=15)
    given = parser.parse_args()
    tasks = list(itertools.product(given.configs or configs(), ROWS, given.who))
    tasks = [each for each in tasks if each[2] != "inductile, loops" or each[:2] == ("int8 dynamic", ROWS[0])]
    ends = time.monotonic() + given.seconds
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(given.jobs, len(tasks))) as pool:
        made = [pool.apply_async(measure, (task, given.device, given.small, given.out)) for task in tasks]
        for each in made:
            each.wait(max(0.0, ends - time.monotonic()))
        pool.terminate()


if __name__ == "__main__":
    main()
