"""`inductile-run`: run a function of an IR file of any level.

    inductile-run softmax.mlir --random 0
    inductile-run softmax.mlir --input x.npy --backend cpp --output y.npy
    inductile-run softmax.mlir --random 0 --backend cpp --unchecked --time 20
    inductile-run model.pt2i --input x.npy

The reference backend interprets every level; `cpp` lowers the rest of the way with the default pipeline and compiles,
and so does `c`, plain C for one thread. A package (see `inductile-package`) runs as it is: it is code, and trusted.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from ..backends.generators import check_generator
from ..dialects import kernel
from ..dialects.context import new_context
from ..errors import InductileError, UserError, is_of_program
from ..lowering.pipeline import attached
from ..passes.manager import PassManager
from .diagnostics import add_effects_flag, parse_file, read_input, run_tool
from .opt import add_target_flag
from .plugins import load_plugin

if TYPE_CHECKING:
    import torch


def _gibibytes(text: str) -> float:
    number = float(text)
    if not 0 < number < 1 << 30:
        raise argparse.ArgumentTypeError(f"{text} is no amount of memory in GiB")
    return number


def count(text: str) -> int:
    """How many times a program runs, of a flag."""
    if not text.isdigit() or not 0 < int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text} is no number of runs")
    return int(text)


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser("inductile-run", description=(__doc__ or "").partition("\n\n")[0])
    p.add_argument("file", help="IR of any level, - for standard input, or a package")
    p.add_argument("--function", help="function to run; the first one otherwise")
    p.add_argument("--backend", default="reference", choices=("reference", "cpp", "c"))
    p.add_argument("--input", action="append", default=[], metavar="X.npy", help="one for each argument, in order")
    p.add_argument("--random", type=int, metavar="SEED", help="make up the inputs")
    p.add_argument("--special", action="store_true", help="some made-up floats are NaN, infinite, -0.0, or very large")
    p.add_argument("--output", action="append", default=[], metavar="Y.npy", help="where results go, in order")
    add_effects_flag(p)
    add_target_flag(p)
    p.add_argument("--unchecked", action="store_true", help="leave out checks of accesses, launches, steps and memory")
    p.add_argument("--max-steps", type=int, default=1 << 36, metavar="N", help="most iterations of loops; else 2^36")
    p.add_argument("--memory-limit", type=_gibibytes, metavar="GIB", help="most memory; else 3/4 of what is left")
    p.add_argument("--time", type=count, metavar="N", help="run N times more; print times instead of results")
    p.add_argument("--full", action="store_true", help="print all elements of the results")
    return p


def _target(args: argparse.Namespace, module: ModuleOp) -> str | None:
    """The machine: the one that is named, or else that of the backend. UserError where the backend writes no kernels
    for it, or for those that the file has."""
    if args.backend != "c":
        return args.target
    for op in module.ops:
        if isinstance(op, kernel.FuncOp) and op.target is not None:
            check_generator("c", op.target.data)
    target = args.target or "c"
    check_generator("c", target)
    return target


def _inputs(args: argparse.Namespace, module: ModuleOp) -> list[torch.Tensor | int]:
    if args.input and args.random is not None:
        raise UserError("--input and --random exclude each other", "give one of them")
    if args.input and args.special:
        raise UserError("--input and --special exclude each other", "put special numbers into the files")
    if args.input:
        from ..backends.arrays import load_arrays

        return load_arrays(args.input, module, args.function)
    from ..backends.reference import random_inputs

    return list(random_inputs(module, args.random or 0, args.special, args.function))


def _execute(args: argparse.Namespace, module: ModuleOp) -> list[object]:
    """Run; what the program itself raises, as eager would, is no crash of the tool."""
    try:
        return _results(args, module, _inputs(args, module))
    except Exception as error:
        if isinstance(error, InductileError) or not is_of_program(error):
            raise
        raise UserError(f"the program raises {type(error).__name__}: {error}") from error


def _results(args: argparse.Namespace, module: ModuleOp, inputs: list[torch.Tensor | int]) -> list[object]:
    if args.backend == "reference":
        from ..backends.reference import run_module

        return timed(lambda: list(run_module(module, inputs, function=args.function)), args.time)
    from ..backends.targets import compiled_run

    return timed(compiled_run(module, inputs, function=args.function, checked=not args.unchecked), args.time)


def timed(run: Callable[[], list[object]], times: int | None) -> list[object]:
    """What a program returns. With `--time` it runs some more times, all timed but the first, which warms up."""
    results = run()
    if times:
        seconds = []
        for _ in range(times):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        median = 1000 * statistics.median(seconds)
        print(f"{median:.3f} ms, the median of {times} runs; the fastest took {1000 * min(seconds):.3f} ms")
    return results


def show_results(results: list[object], full: bool) -> None:
    """Print results, one after the other."""
    import torch

    if full:
        torch.set_printoptions(threshold=sys.maxsize)
    for number, value in enumerate(results):
        if isinstance(value, torch.Tensor):
            kind = str(value.dtype).removeprefix("torch.")
            print(f"result {number}: {kind}{list(value.shape)} strides {list(value.stride())}\n{value}")
        else:
            print(f"result {number}: {value}")


def is_package(file: str) -> bool:
    """Whether a file is a package, which `inductile.package` writes."""
    return file != "-" and zipfile.is_zipfile(file)


def _run(argv: Sequence[str] | None) -> int:
    args = build_parser().parse_args(argv)
    for plugin in args.load_pass_plugin:
        load_plugin(plugin)
    if is_package(args.file):
        from .package import run_package

        return run_package(args)
    text, name = read_input(args.file)
    module = parse_file(new_context(), text, name, args.allow_effects)
    PassManager(attached(_target(args, module))).run(new_context(), module)
    from ..backends.limits import default_memory, limited

    memory = default_memory() if args.memory_limit is None else int(args.memory_limit * (1 << 30))
    with contextlib.nullcontext() if args.unchecked else limited(memory, args.max_steps):
        results = _execute(args, module)
    if args.output:
        from ..backends.arrays import save_arrays

        save_arrays(results, args.output)
    if not args.time:
        show_results(results, args.full)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return run_tool(lambda: _run(argv))


if __name__ == "__main__":
    sys.exit(main())
