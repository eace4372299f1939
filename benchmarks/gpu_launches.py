"""What a launch costs the host on a GPU: `python benchmarks/gpu_launches.py --out launches.jsonl [--models ...]`.

For a chain of small kernels, in microseconds a launch: `driver` where C calls the driver with the same kernels and
arguments, `run` our runs of launches, `program` the whole compiled graph, with its allocations and addresses, and
`static` torch's static launcher called from Python, as TorchInductor calls it. For the chain and for models also how
often a call asks torch's allocator, and for how many bytes at most.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from gpu import make_importable
from gpu_host import graphs_that_run

_RAW = """
typedef unsigned Size;
typedef int (*Driver)(void*, Size, Size, Size, Size, Size, Size, Size, void*, void**, void**);
typedef struct { Driver driver; void* function; long programs, threads, shared; void** arguments; } Launch;
int launch(const Launch* launches, long count, void* stream) {
  int status = 0;
  for (long k = 0; k < count; ++k) {
    const Launch* l = launches + k;
    status |= l->driver(l->function, l->programs, 1, 1, l->threads, 1, 1, l->shared, stream, l->arguments, 0);
  }
  return status;
}
"""


def chain(x: Any) -> Any:
    """Reductions of rows and of columns in turns, which no kernel takes together."""
    for _ in range(40):
        x = (x - x.amax(0, keepdim=True)) * 0.5
        x = (x - x.amax(1, keepdim=True)) * 0.5
    return x


def median(call: Callable[[], Any], rounds: int = 60) -> float:
    """Microseconds of a call that finds the device idle."""
    import torch

    times: list[float] = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1e6)
    torch.cuda.synchronize()
    return sorted(times)[len(times) // 2]


def runs_of(graph: Any, given: list[Any]) -> list[tuple[Any, Any, bytes]]:
    """The runs of launches of a call: the table, the C function, and what it is given."""
    objects = graph.program._namespace
    names = sorted(name for name in objects if name.startswith("pack") and name[4:].isdigit())
    packs = {name: objects[name] for name in names}
    found: list[tuple[Any, Any, bytes]] = []

    def keep(name: str, *values: int) -> bytes:
        packed = packs[name](*values)
        found.append((objects[f"resume{name[4:]}"].table, objects[f"launch_run{name[4:]}"], packed))
        return packed

    objects.update({name: partial(keep, name) for name in names})
    graph(list(given))
    objects.update(packs)
    return found


class Raw:
    """The launches of runs as the driver takes them."""

    def __init__(self, runs: list[tuple[Any, Any, bytes]]) -> None:
        from inductile.backends.triton.run_table import driver

        folder = tempfile.mkdtemp()
        Path(folder, "raw.c").write_text(_RAW)
        subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-xc", "raw.c", "-o", "raw.so"], cwd=folder, check=True)
        self._launch = ctypes.CDLL(f"{folder}/raw.so").launch
        self._launch.argtypes = [ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p]
        self.rows: list[tuple[Any, list[int], Any]] = []
        records: list[int] = []
        self._kept: list[Any] = []
        self.stream = 0
        for table, _, packed in runs:
            _, _, self.stream, *values = [int(v) for v in memoryview(packed).cast("q")]
            held = (ctypes.c_int64 * len(values))(*values)
            for row in table.rows:
                (direct, *_) = row.kernel.directs.values()
                places = [ctypes.addressof(held) + 8 * place for place in row.places]
                array = (ctypes.c_int64 * max(len(places), 1))(*places)
                self._kept += [held, array]
                sizes = [values[row.programs], direct.threads, direct.shared]
                records += [driver() or 0, direct.function, *sizes, ctypes.addressof(array)]
                self.rows.append((direct, [values[row.programs], *(values[p] for p in row.places)], row))
        self._records = (ctypes.c_int64 * len(records))(*records)

    def __call__(self) -> None:
        """Launch all."""
        status = self._launch(ctypes.addressof(self._records), len(self.rows), self.stream)
        assert status == 0, status

    def static(self) -> Callable[[], None] | None:
        """The same through torch's static launcher; None where this torch has none."""
        import torch

        launcher = getattr(torch._C, "_StaticCudaLauncher", None)
        if launcher is None:
            return None
        calls: list[tuple[Any, ...]] = []
        for direct, (programs, *values), row in self.rows:
            own = row.buffers + row.integers
            kinds = "O" * row.buffers + "l" * row.integers + "O" * (len(values) - own)
            taken = (*values[:own], *(value or None for value in values[own:]))
            threads = direct.threads // 32
            calls.append((direct.function, programs, 1, 1, threads, direct.shared, kinds, taken, self.stream))

        def launch() -> None:
            for call in calls:
                launcher._launch_kernel(*call)

        return launch


def allocations(call: Callable[[], Any]) -> tuple[int, int]:
    """How often a call asks the allocator, and the most bytes beyond what was there."""
    import torch

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()
    call()
    torch.cuda.synchronize()
    after = torch.cuda.memory_stats()
    asked = after["allocation.all.allocated"] - before["allocation.all.allocated"]
    return asked, after["allocated_bytes.all.peak"] - before["allocated_bytes.all.current"]


def measure(name: str, function: Callable[..., Any], inputs: list[Any]) -> dict[str, Any]:
    """The row of a function."""
    import torch

    torch.compiler.reset()
    compiled = torch.compile(function, backend="inductile", fullgraph=True)
    for _ in range(3):
        compiled(*inputs)
    with graphs_that_run() as seen:
        compiled(*inputs)
    ((graph, given),) = seen
    runs = runs_of(graph, given)
    asked, peak = allocations(lambda: compiled(*inputs))
    row: dict[str, Any] = {"launches of": name, "runs": len(runs), "allocations": asked}
    row["peak MiB"] = round(peak / 2**20, 1)
    row["empty"] = graph.program.source.count("empty_gpu(")
    raw = Raw(runs)
    count = row["launches"] = len(raw.rows)
    raw()
    torch.cuda.synchronize()
    program = lambda: graph(list(given))  # noqa: E731
    ours = lambda: [run(packed) for _, run, packed in runs]  # noqa: E731
    times = {"driver": median(raw), "run": median(ours), "program": median(program)}
    static = raw.static()
    if static is not None:
        static()
        times["static"] = median(static)
    return row | {key: round(value / count, 2) for key, value in times.items()}


def main() -> None:
    """Command line."""
    make_importable()
    import models
    import torch

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", default="gpu-launches.jsonl", help="file of rows, added to")
    p.add_argument("--models", nargs="*", default=["resnet50_64", "bert_16x512"])
    args = p.parse_args()
    torch.set_grad_enabled(False)
    for name in ("chain", *args.models):
        function, inputs = chain, [torch.randn(256, 256, device="cuda")]
        if name != "chain":
            function, inputs = models.build(name, torch.bfloat16, False, "cuda")
        try:
            row = measure(name, function, list(inputs))
        except Exception as error:  # the next row may do
            row = {"launches of": name, "error": repr(error)[:300]}
        with open(args.out, "a") as out:
            out.write(json.dumps(row) + "\n")
        print(row, flush=True)


if __name__ == "__main__":
    main()
