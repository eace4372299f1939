"""One measurement in a fresh process, for `cpu.py`; prints one line of JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

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
    with torch.no_grad():
        start = time.perf_counter()
        compiled(function, args.backend, args.dynamic)(*inputs)
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
    wide = [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]
    with torch.no_grad():
        return function(*wide)


def peak_bytes(call: Callable[[], Any]) -> int:
    """Peak of bytes allocated during a call, from the profiler's allocation events.

    What programs of inductile keep between calls is freed before, so that its allocation counts.
    """
    from torch.profiler import ProfilerActivity, profile

    from inductile.backends.host.arena import shared_arena

    shared_arena().clear()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    live = peak = 0
    for event in profiler.profiler.kineto_results.events():  # pyright: ignore
        if event.name() == "[memory]":
            live += event.nbytes()  # pyright: ignore[reportAttributeAccessIssue]
            peak = max(peak, live)
    return peak


def inductor_launches(function: Callable[..., Any], inputs: tuple[Any, ...], dynamic: bool) -> int:
    """Kernel launches in Inductor's generated wrapper."""
    from torch._inductor import config as inductor_config
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    with inductor_config.patch(force_disable_caches=True):
        _, codes = run_and_get_code(torch.compile(function, dynamic=dynamic or None), *clone(inputs))
    pattern = re.compile(r"^\s+(?:cpp_fused\w*|kernel_cpp_\w+|\w*_fused_\w+)\(", re.MULTILINE)
    return sum(len(pattern.findall(code)) for code in codes)


def latency(args: argparse.Namespace) -> dict[str, Any]:
    """Median milliseconds of eager, Inductor and inductile, interleaved; errors, peaks, kernel counts."""
    function, inputs = load(args)
    result: dict[str, Any] = {"latency": {}, "peak": {}, "error": {}, "kernels": {}}
    with torch.no_grad():
        calls: dict[str, Callable[..., Any]] = {"eager": function}
        for backend in ("inductor", "inductile"):
            torch._dynamo.reset()
            calls[backend] = compiled(function, backend, args.dynamic)
            calls[backend](*clone(inputs))
        outputs = {name: call(*clone(inputs)) for name, call in calls.items()}
        try:
            exact = exact_result(args, inputs)
            result["error"] = {n: relative_error(o, exact) for n, o in outputs.items()}
        except Exception as error:
            result["problem"] = f"no float64 reference: {error}"[:200]
        times: dict[str, list[float]] = {name: [] for name in calls}
        deadline = time.perf_counter() + args.seconds
        while time.perf_counter() < deadline or len(times["eager"]) < 5:
            for name, call in calls.items():
                start = time.perf_counter()
                call(*inputs)
                times[name].append((time.perf_counter() - start) * 1e3)
        result["latency"] = {name: statistics.median(t) for name, t in times.items()}
        result["peak"] = {name: peak_bytes(lambda call=call: call(*inputs)) / 2**20 for name, call in calls.items()}
        from inductile.backends.compiled import REPORTS

        result["kernels"]["inductile"] = sum(sum(r.kernels.values()) for r in REPORTS)
        result["aten_calls"] = sum(sum(r.aten_calls.values()) for r in REPORTS)
        result["kernels"]["inductor"] = inductor_launches(function, inputs, args.dynamic)
    return result


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
