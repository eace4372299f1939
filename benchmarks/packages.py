"""Packages beside AOTInductor's: `python benchmarks/packages.py [--models gpt2 bert] [--device cuda]`.

A model is exported once, with its batch or length as a symbol where `--dynamic` asks for it. Each compiler makes a
package of it in a fresh process with empty caches; each package is loaded and called in fresh processes; latencies
are taken in one process, in turns; with `--runners` a runner in C++ is built too, and timed by itself. Loading is
timed from torch being there, with the imports that it needs: `inductile`, or `torch._inductor`. "Beside the weights"
is the size of the file without the bytes of parameters and buffers.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from processes import MeasurementError, in_fresh_process

HERE = Path(__file__).parent
MODELS = ("gpt2", "bert", "resnet50", "llama")
MAKERS = {"inductile": "pt2i", "inductor": "pt2"}


def exported(name: str, small: bool, dynamic: bool, device: str = "cpu") -> tuple[Any, tuple[Any, ...], int]:
    """The exported program, its example inputs, and the bytes of its weights."""
    import models
    import torch

    function, inputs = models.build(name, small=small, device=device)
    module = Calling(function).eval()
    named: dict[int, dict[int, Any]] = {k: {} for k in range(len(inputs))}
    size = torch.export.Dim("size", min=2, max=512)
    for position, dim in models.MODELS[name].dynamic if dynamic else ():
        named[position][dim] = size
    with torch.no_grad():
        program = torch.export.export(module, inputs, dynamic_shapes=(tuple(named.values()),) if dynamic else None)
    storages = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in module.state_dict().values()}
    return program, inputs, sum(storages.values())


def Calling(function: Callable[..., Any]) -> Any:  # noqa: N802  # a class that is made when torch is there
    """A module that calls a function, whose parameters are those of its module."""
    import torch

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = getattr(function, "module", function)

        def forward(self, *inputs: Any) -> Any:
            return function(*inputs)

    return Module()


def make(args: argparse.Namespace) -> dict[str, float]:
    """Seconds of making a package, its bytes, and those beside the weights."""
    import torch

    program, _, weights = exported(args.case, args.small, args.dynamic, args.device)
    start = time.perf_counter()
    if args.maker == "inductile":
        import inductile

        inductile.package(program, args.file)
    else:
        torch._inductor.aoti_compile_and_package(program, package_path=args.file)
    seconds, size = time.perf_counter() - start, Path(args.file).stat().st_size
    return {"make": seconds, "bytes": size, "beside": size - weights}


def loader(maker: str) -> Callable[[str], Callable[..., Any]]:
    """What loads the packages of a maker."""
    if maker == "inductile":
        import inductile

        return inductile.load_package
    import torch._inductor

    return torch._inductor.aoti_load_package


def waiting(device: str) -> Callable[[], Any]:
    """What waits for a device, which has been used before."""
    import torch

    if device == "cpu":
        return lambda: None
    torch.zeros(1, device=device).add(1)
    torch.cuda.synchronize()
    return torch.cuda.synchronize


def load(args: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of loading and of the first call in this process, its CPU's beside, and MiB of its memory."""
    import models
    import torch

    torch.manual_seed(0)
    inputs = torch.load(args.inputs)
    del models
    wait = waiting(args.device)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, cpu = time.perf_counter(), time.process_time()
    package = loader(args.maker)(args.file)
    wait()
    loaded, cpu_loaded = time.perf_counter(), time.process_time()
    with torch.no_grad():
        package(*inputs)
    wait()
    first = time.perf_counter()
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {
        "load": (loaded - start) * 1e3, "load_cpu": (cpu_loaded - cpu) * 1e3, "first": (first - loaded) * 1e3,
        "memory": more,
    }  # fmt: skip


def latency(args: argparse.Namespace) -> dict[str, Any]:
    """Median milliseconds of both packages and of eager, in turns, and the largest difference from eager's result."""
    import models
    import torch
    from torch.utils._pytree import tree_leaves

    function, inputs = models.build(args.case, small=args.small, device=args.device)
    calls: dict[str, Callable[..., Any]] = {"eager": function}
    calls |= {maker: loader(maker)(f"{args.file}.{ending}") for maker, ending in MAKERS.items() if maker in args.makers}
    times: dict[str, list[float]] = {name: [] for name in calls}
    wait = waiting(args.device)
    with torch.no_grad():
        results = {name: [call(*inputs) for _ in range(2)][-1] for name, call in calls.items()}
        deadline = time.perf_counter() + args.seconds
        while time.perf_counter() < deadline or len(times["eager"]) < 5:
            for name, call in calls.items():
                start = time.perf_counter()
                call(*inputs)
                wait()
                times[name].append((time.perf_counter() - start) * 1e3)
    wanted = tree_leaves(results.pop("eager"))
    error = {
        name: max(float((a - b).abs().max()) for a, b in zip(tree_leaves(found), wanted, strict=True))
        for name, found in results.items()
    }
    return {
        "latency": {name: median(each) for name, each in times.items()},
        "least": {name: min(each) for name, each in times.items()},
        "error": error,
    }


def runner(args: argparse.Namespace) -> dict[str, float]:
    """Seconds of building a runner; milliseconds of its loading, its first call, and the least of 200."""
    import numpy
    import torch

    from inductile.backends.packages.runner.build import build_runner

    start = time.perf_counter()
    command = [str(build_runner(Path(args.file), Path(f"{args.file}.runner"))), args.file, "--repeat", "200"]
    built = time.perf_counter() - start
    for number, value in enumerate(torch.load(args.inputs)):
        numpy.save(f"{args.inputs}.{number}.npy", value.cpu().numpy())
        command += ["--input", f"{args.inputs}.{number}.npy"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    load_first, least = re.search(r"load (\S+) ms, first call (\S+) ms", said), re.search(r"calls (\S+) ms", said)
    assert load_first is not None and least is not None
    names = ("runner_load", "runner_first", "runner_least")
    return {"runner_build": built} | dict(zip(names, map(float, (*load_first.groups(), least[1])), strict=True))


def measured(model: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each maker."""
    rows: list[dict[str, Any]] = []
    flags = ["--case", model, "--seconds", str(args.seconds), "--device", args.device]
    flags += ["--small"] * args.small + ["--dynamic"] * args.dynamic
    with tempfile.TemporaryDirectory() as folder:
        inputs = _inputs(model, args, folder)
        for maker, ending in [each for each in MAKERS.items() if each[0] in args.makers]:
            file = f"{folder}/model.{ending}"
            own = [*flags, "--maker", maker, "--file", file, "--inputs", inputs]
            row: dict[str, Any] = {"model": model, "maker": maker}
            try:
                row |= in_fresh_process(__file__, ["make", *own], f"{folder}/cache_{maker}", args.timeout)
                # no cache: what a machine has that never compiled
                runs = [in_fresh_process(__file__, ["load", *own], f"{folder}/none{n}") for n in range(args.repeat)]
                row |= {name: median(run[name] for run in runs) for name in runs[0]}
                if args.runners and maker == "inductile":
                    row |= in_fresh_process(__file__, ["runner", *own], f"{folder}/none")
            except MeasurementError as error:
                row["problem"] = str(error)
            rows.append(row)
        made = [row for row in rows if "problem" not in row]
        if made:
            own = [*flags, "--file", f"{folder}/model", "--makers", *[row["maker"] for row in made]]
            found = in_fresh_process(__file__, ["latency", *own], f"{folder}/none")
            for row in made:
                row |= {"latency": found["latency"][row["maker"]], "least": found["least"][row["maker"]]}
                row |= {"eager": found["latency"]["eager"], "error": found["error"][row["maker"]]}
    return rows


def _inputs(model: str, args: argparse.Namespace, folder: str) -> str:
    """A file with the example inputs: the processes that load make no model."""
    import models
    import torch

    path = f"{folder}/inputs.pt"
    torch.save(models.build(model, small=args.small, device=args.device)[1], path)
    return path


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = [
        "| model | by | make s | MiB | MiB beside the weights | load ms | load CPU ms | first call ms | memory MiB "
        "| latency ms: median / least | eager ms | error |",
        "|---|---|" + "---:|" * 10,
    ]
    for row in rows:
        if "problem" in row:
            lines.append(f"| {row['model']} | {row['maker']} | {row['problem']} |" + " |" * 9)
            continue
        lines.append(
            f"| {row['model']} | {row['maker']} | {row['make']:.1f} | {row['bytes'] / 2**20:.1f} "
            f"| {row['beside'] / 2**20:.2f} | {row['load']:.0f} | {row['load_cpu']:.0f} | {row['first']:.0f} "
            f"| {row['memory']:.0f} | {row['latency']:.2f} / {row['least']:.2f} | {row['eager']:.2f} "
            f"| {row['error']:.1e} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    sys.path.insert(0, str(HERE))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", nargs="?", choices=("make", "load", "latency", "runner"), help=argparse.SUPPRESS)
    p.add_argument("--models", nargs="*", default=list(MODELS))
    p.add_argument("--small", action="store_true", help="cut depth and width")
    p.add_argument("--dynamic", action="store_true", help="export with sizes that vary")
    p.add_argument("--repeat", type=int, default=3, help="processes that load, of which medians are shown")
    p.add_argument("--seconds", type=float, default=5.0, help="of the measurement of latencies")
    p.add_argument("--timeout", type=float, default=900, help="seconds of making a package")
    p.add_argument("--json", type=Path, help="also add each row as a line of JSON to this file")
    p.add_argument("--device", default="cpu")
    p.add_argument("--runners", action="store_true", help="build and time runners in C++; JSON has what they take")
    p.add_argument("--makers", nargs="*", default=list(MAKERS), help="whose packages are measured")
    for hidden in ("--case", "--maker", "--file", "--inputs"):
        p.add_argument(hidden, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.what:
        print(json.dumps({"make": make, "load": load, "latency": latency, "runner": runner}[args.what](args)))
        return
    rows: list[dict[str, Any]] = []
    for model in args.models:
        found = measured(model, args)
        rows += found
        if args.json is not None:
            with args.json.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in found)
    print(table(rows))


if __name__ == "__main__":
    main()
