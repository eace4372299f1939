"""One measurement in a fresh process, for `cpu.py`; prints one line of JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import memory
import models
import patterns
import torch
import torch.utils._pytree as pytree


def load(args: argparse.Namespace) -> patterns.Built:
    """(function, inputs) of the case."""
    dtype = getattr(torch, args.dtype)
    if args.kind == "pattern":
        return patterns.build(args.name, args.rows, dtype)
    return models.build(args.name, dtype, args.small)


def dynamic_dims(args: argparse.Namespace, inputs: Sequence[Any]) -> list[tuple[int, int]]:
    """(input, dimension) of all sizes that vary: what the model says, and a pattern's sizes that are its rows."""
    if args.kind == "model":
        return list(models.MODELS[args.name].dynamic)
    return [(k, d) for k, x in enumerate(inputs) for d in range(x.dim()) if x.shape[d] == args.rows]


def mark(args: argparse.Namespace, inputs: Sequence[Any]) -> None:
    """Have the varying sizes compiled as symbols; Dynamo raises where something makes a number of them."""
    for position, dim in dynamic_dims(args, inputs) if args.dynamic else ():
        torch._dynamo.mark_dynamic(inputs[position], dim)


def resized(args: argparse.Namespace, inputs: Sequence[Any]) -> list[Any]:
    """The inputs with all varying sizes one larger."""
    found = list(inputs)
    for position, dim in dynamic_dims(args, inputs):
        size = found[position].shape[dim]
        found[position] = found[position].index_select(dim, torch.arange(size + 1) % size)
    return found


def compiled(function: Callable[..., Any], backend: Any, dynamic: bool) -> Callable[..., Any]:
    """torch.compile with a backend; aot_eager uses inductile's decompositions, so that shares can be compared."""
    if backend == "aot_eager":
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.compilers import nop

        from inductile.lowering.fx_decompositions import decompositions

        backend = aot_autograd(fw_compiler=nop, decompositions=decompositions)
    return torch.compile(function, backend=backend, dynamic=dynamic or None)


def first_call(args: argparse.Namespace) -> dict[str, float]:
    """Seconds of the first call; torch and the model are loaded before."""
    function, inputs = load(args)
    if args.backend == "inductor":
        importlib.import_module("torch._inductor.compile_fx")
    elif args.backend == "inductile":
        import inductile.backends.torch_compile  # noqa: F401
    mark(args, inputs)
    with torch.no_grad():
        start = time.perf_counter()
        compiled(function, args.backend, False)(*inputs)
        return {"seconds": time.perf_counter() - start}


def clone(inputs: tuple[Any, ...]) -> list[Any]:
    """Fresh copies, for functions that write to their inputs."""
    return [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]


def relative_error(got: Any, exact: Any) -> float:
    """Largest relative L2 error over the outputs."""
    worst = 0.0
    for g, e in zip(pytree.tree_leaves(got), pytree.tree_leaves(exact), strict=True):
        if isinstance(g, torch.Tensor) and g.is_floating_point():
            worst = max(worst, float((g.double() - e.double()).norm() / e.double().norm().clamp_min(1e-300)))
    return worst


def exact_result(args: argparse.Namespace, inputs: tuple[Any, ...]) -> Any:
    """The case in float64 on the same inputs."""
    torch.manual_seed(0)
    function, _ = load(args)
    module = getattr(function, "module", function)
    if isinstance(module, torch.nn.Module):
        module.double()
    place = getattr(function, "place", None)
    if place is not None:
        place(torch.float64, "cpu")
    wide = [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]
    with torch.no_grad():
        return function(*wide)


def peak_bytes(call: Callable[[], Any]) -> int:
    """Peak of bytes allocated during a call; what programs of inductile keep between calls is freed before it, so that
    its allocation counts."""
    from inductile.backends.host.arena import shared_arena

    shared_arena().clear()
    return memory.peak_bytes(call)


def inductor_launches(args: argparse.Namespace, function: Callable[..., Any], inputs: tuple[Any, ...]) -> int:
    """Kernel launches in Inductor's generated wrapper."""
    from torch._inductor import config as inductor_config
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    given = clone(inputs)
    mark(args, given)
    with inductor_config.patch(force_disable_caches=True):
        _, codes = run_and_get_code(torch.compile(function), *given)
    pattern = re.compile(r"^\s+(?:cpp_fused\w*|kernel_cpp_\w+|\w*_fused_\w+)\(", re.MULTILINE)
    return sum(len(pattern.findall(code)) for code in codes)


def mib_moved(args: argparse.Namespace, function: Callable[..., Any], inputs: tuple[Any, ...]) -> float:
    """MiB that inductile's kernels and ATen calls move, from the IR."""
    from xdsl.parser import Parser

    from inductile.dialects.context import new_context
    from inductile.passes.analysis.program_costs import program_costs

    torch._dynamo.reset()
    given = clone(inputs)
    mark(args, given)
    moved = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INDUCTILE_TRACE"] = folder
        compiled(function, "inductile", False)(*given)
        del os.environ["INDUCTILE_TRACE"]
        for graph in {path.parent for path in Path(folder).rglob("*.mlir")}:
            last = max(path for path in graph.glob("[0-9]*.mlir"))
            for program in program_costs(Parser(new_context(), last.read_text()).parse_module()):
                moved += program.total.bytes
    return moved / 2**20


def compile_all(args: argparse.Namespace, function: Callable[..., Any], inputs: tuple[Any, ...]) -> dict[str, Any]:
    """Eager and what the compilers make of it, called once."""
    calls: dict[str, Callable[..., Any]] = {"eager": function}
    torch._dynamo.reset()  # once: it drops what another backend made of the function as well
    for backend in ("inductor", "inductile"):
        given = clone(inputs)
        mark(args, given)
        calls[backend] = compiled(function, backend, False)
        calls[backend](*given)
    return calls


def errors(args: argparse.Namespace, calls: dict[str, Callable[..., Any]], inputs: Sequence[Any]) -> dict[str, float]:
    """Error of each against float64; with `dynamic` on sizes one larger too, for which nothing may compile again."""
    worst = dict.fromkeys(calls, 0.0)
    for given in (inputs, resized(args, inputs)) if args.dynamic else (inputs,):
        exact = exact_result(args, tuple(given))
        for name, call in calls.items():
            with torch._dynamo.config.patch(error_on_recompile=args.dynamic):
                worst[name] = max(worst[name], relative_error(call(*clone(tuple(given))), exact))
    return worst


def interleaved(calls: dict[str, Callable[..., Any]], inputs: Sequence[Any], seconds: float) -> dict[str, float]:
    """Median milliseconds of each."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline or len(times["eager"]) < 5:
        for name, call in calls.items():
            start = time.perf_counter()
            call(*inputs)
            times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(t) for name, t in times.items()}


def latency(args: argparse.Namespace) -> dict[str, Any]:
    """Median milliseconds of eager, Inductor and inductile, interleaved; errors, peaks, bytes moved, kernel counts."""
    from inductile.backends.compiled import REPORTS
    from inductile.backends.host.arena import shared_arena

    function, inputs = load(args)
    result: dict[str, Any] = {}
    with torch.no_grad():
        calls = compile_all(args, function, inputs)
        kernels = {"inductile": sum(sum(r.kernels.values()) for r in REPORTS)}
        result["aten_calls"] = sum(sum(r.aten_calls.values()) for r in REPORTS)
        try:
            result["error"] = errors(args, calls, inputs)
        except Exception as error:
            result["problem"] = f"{type(error).__name__}: {error}"[:300]
        result["latency"] = interleaved(calls, inputs, args.seconds)
        peak: dict[str, float] = {}
        for name, call in calls.items():
            shared_arena().clear()  # what inductile keeps between calls is allocated, and counted, in this one
            peak[name] = peak_bytes(lambda call=call: call(*inputs)) / 2**20
        moved = mib_moved(args, function, inputs)
        kernels["inductor"] = inductor_launches(args, function, inputs)
    return result | {"peak": peak, "kernels": kernels, "moved": moved}


def main() -> None:
    """Command line: `first BACKEND KIND NAME ...` or `latency KIND NAME ...`."""
    p = argparse.ArgumentParser()
    sub = p.add_subparsers(dest="what", required=True)
    for what in ("first", "latency"):
        q = sub.add_parser(what)
        if what == "first":
            q.add_argument("backend")
        q.add_argument("kind", choices=("model", "pattern"))
        q.add_argument("name")
        q.add_argument("--rows", type=int, default=512)
        q.add_argument("--dtype", default="float32")
        q.add_argument("--dynamic", action="store_true")
        q.add_argument("--small", action="store_true")
        q.add_argument("--seconds", type=float, default=6.0)
    args = p.parse_args()
    print(json.dumps(first_call(args) if args.what == "first" else latency(args)))


if __name__ == "__main__":
    main()
