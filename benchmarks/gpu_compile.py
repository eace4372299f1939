"""Compile every kernel of the patterns and models for GPUs, without one: `python benchmarks/gpu_compile.py`.

Forward, backward and inference graphs go through the pipelines of each target; every kernel is compiled to machine code
by the assembler that Triton brings. Prints a line a case with the number of kernels; the exit status counts failures.
Models are the small ones unless `--full`.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from gpu import make_importable
from torch.utils._pytree import tree_leaves

TARGETS = ("cuda:90", "hip:gfx942")
#: inputs of a pattern that have no gradient, by position: running statistics
WITHOUT_GRADIENT = {"batch_norm": (1, 2)}


def run_pattern(name: str, backend: Any, mode: Any, training: bool, args: argparse.Namespace) -> None:
    """Put the graphs of one pattern through the backend."""
    import patterns

    function, inputs = patterns.build(name, args.rows if not training else min(args.rows, 512), torch.bfloat16)
    fixed = WITHOUT_GRADIENT.get(name, ())
    if training:
        inputs = tuple(x.requires_grad_(x.is_floating_point() and k not in fixed) for k, x in enumerate(inputs))
    run(torch.compile(function, backend=backend), on_gpu(inputs, mode, training), training, mode)


def run_model(name: str, backend: Any, mode: Any, training: bool, args: argparse.Namespace) -> None:
    """Put the graphs of one model through the backend."""
    import models

    from inductile.backends.triton.offline import on_fake_gpu

    torch.manual_seed(0)
    function, inputs = models.MODELS[name].make(not args.full)
    module: Any = getattr(function, "module", function)
    module.to(torch.bfloat16)
    inputs = tuple(x.to(torch.bfloat16) if x.is_floating_point() else x for x in inputs)
    if not training:
        on_fake_gpu(module, mode)
        place: Callable[..., Any] | None = getattr(function, "place", None)
        with mode:
            if place is not None:
                place(torch.bfloat16, "cuda:0")
    run(torch.compile(function, backend=backend), on_gpu(inputs, mode, training), training, mode)


def on_gpu(inputs: tuple[torch.Tensor, ...], mode: Any, training: bool) -> list[torch.Tensor]:
    """Fake inputs on the GPU; for training those of the CPU, since autograd needs a GPU even for fake tensors."""
    from inductile.backends.triton.offline import fake_like

    if training:
        return list(inputs)
    with mode:
        return [fake_like(x) for x in inputs]


def run(compiled: Callable[..., Any], inputs: list[Any], training: bool, mode: Any) -> None:
    """One call, and a step back."""
    with torch.set_grad_enabled(training), nullcontext() if training else mode:
        results = tree_leaves(compiled(*inputs))
        if training:
            torch.stack([r.float().sum() for r in results if r.requires_grad]).sum().backward()


def compile_all(kernels: list[tuple[str, Any]], seen: set[Any]) -> list[str]:
    """Compile kernels that were not seen before; what failed."""
    from inductile.backends.triton.compile_only import compile_kernel

    problems: list[str] = []
    for target, kernel in kernels:
        key = (target, kernel.source, kernel.num_warps, *kernel.constexprs.items())
        if key in seen:
            continue
        seen.add(key)
        try:
            compile_kernel(kernel, target)
        except Exception as error:
            problems.append(f"{target} {kernel.name}: {type(error).__name__}: {str(error)[:400]}")
    return problems


def main() -> int:
    """Command line; the number of failures."""
    make_importable()
    import models
    import patterns
    from torch._subclasses import FakeTensorMode

    from inductile.backends.triton.offline import OfflineBackend

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--patterns", nargs="*", default=list(patterns.PATTERNS), help="default: all")
    p.add_argument("--models", nargs="*", default=list(models.MODELS), help="default: all")
    p.add_argument("--targets", nargs="*", default=list(TARGETS))
    p.add_argument("--rows", type=int, default=8192, help="of the patterns")
    p.add_argument("--full", action="store_true", help="models at their full size")
    p.add_argument("--inference", action="store_true", help="no training")
    p.add_argument("--show", action="store_true", help="print the programs and kernels too")
    args = p.parse_args()
    cases = [(run_pattern, name) for name in args.patterns] + [(run_model, name) for name in args.models]
    failures, seen = 0, set[Any]()
    for put, name in cases:
        for training in (False,) if args.inference or name == "llama_decode" else (False, True):
            started, backend = time.perf_counter(), OfflineBackend(args.targets, "cuda:0" if training else "")
            torch._dynamo.reset()
            try:
                put(name, backend, FakeTensorMode(allow_non_fake_inputs=True), training, args)
                problems = compile_all(backend.kernels, seen)
            except Exception:
                problems = [traceback.format_exc()[-2000:]]
            failures += len(problems)
            if args.show:
                print("\n".join([*(text for *_, text in backend.programs), *(k.source for _, k in backend.kernels)]))
            seconds = time.perf_counter() - started
            what = "training" if training else "inference"
            print(f"{name} {what}: {len(backend.kernels)} kernels, {seconds:.1f} s", *problems, sep="\n  ", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(min(main(), 1))
