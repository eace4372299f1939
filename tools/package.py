"""`inductile-package`: make, look into and run packages: exported programs as one file that needs no compiler.

    inductile-package make model.pt2 -o model.pt2i
    inductile-package inspect model.pt2i
    inductile-package run model.pt2i --input x.npy --output y.npy
    inductile-package build-runner model.pt2i -o model && ./model model.pt2i --input x.npy --output y.npy

`model.pt2` is what `torch.export.save` wrote. Both files are code: give only such as you would run.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from .diagnostics import run_tool
from .run import count, show_results, timed

if TYPE_CHECKING:
    from ..backends.packages.load import Package


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser("inductile-package", description=(__doc__ or "").partition("\n\n")[0])
    commands = p.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="compile an exported program")
    make.add_argument("file", help="what torch.export.save wrote")
    make.add_argument("-o", "--output", required=True, metavar="MODEL.pt2i", help="where the package goes")
    make.add_argument("--weights-apart", action="store_true", help="leave parameters and buffers out of the file")
    make.add_argument("--mode", help="one of torch.compile")
    text = "a machine that the package is for, cuda:90 or cpp; repeatable (default: what it was exported on)"
    make.add_argument("--target", action="append", default=[], metavar="TARGET", help=text)
    inspect = commands.add_parser("inspect", help="say what a package takes, returns, holds and needs")
    inspect.add_argument("file")
    inspect.add_argument("--sources", action="store_true", help="also print the program and its kernels")
    build = commands.add_parser("build-runner", help="compile a program that runs a package without Python")
    build.add_argument("file")
    build.add_argument("-o", "--output", required=True, metavar="RUNNER", help="where it goes")
    build.add_argument(
        "--target", metavar="TARGET", help="the machine that it is for (default: the first that has one)"
    )
    build.add_argument("--library", action="store_true", help="a library with the class inductile::Model instead")
    build.add_argument("--source", action="store_true", help="write the C++ text instead of compiling it")
    run = commands.add_parser("run", help="run a package")
    run.add_argument("file")
    run.add_argument("--input", action="append", default=[], metavar="X.npy", help="one for each input, in order")
    run.add_argument("--random", type=int, metavar="SEED", help="make up the inputs, in the sizes of the export")
    run.add_argument("--output", action="append", default=[], metavar="Y.npy", help="where results go, in order")
    run.add_argument("--full", action="store_true", help="print all elements of the results")
    run.add_argument("--time", type=count, metavar="N", help="run N times more; print times instead of results")
    for each in (make, run):
        text = (
            "import it first: it defines a class that inputs or outputs are of, as a model of transformers returns one"
        )
        each.add_argument("--import", dest="imports", action="append", default=[], metavar="MODULE", help=text)
    return p


def _import(names: Sequence[str]) -> None:
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise UserError(f"--import {name}: error: {error}", "name a module of this environment") from error


def _make(args: argparse.Namespace) -> int:
    import torch

    from ..backends.packages.make import package

    try:
        Path(args.file).open("rb").close()  # torch logs a stack before it raises
    except OSError as error:
        raise UserError(
            f"{args.file}: error: cannot read it: {error.strerror}", "name a file of torch.export.save"
        ) from error
    try:
        exported = torch.export.load(args.file)
    except Exception as error:
        remedy = (
            "name a file of torch.export.save; where a warning above says that a class is not registered, --import the "
            "module that defines it"
        )
        raise UserError(f"{args.file}: error: torch.export.load: {error}", remedy) from error
    made = package(exported, args.output, weights=not args.weights_apart, targets=args.target, mode=args.mode)
    print(f"{made}: {made.stat().st_size} bytes")
    return 0


def _inspect(args: argparse.Namespace) -> int:
    from ..backends.packages.archive import Archive
    from ..backends.packages.load import describe

    archive = Archive(Path(args.file))
    print(describe(archive.path, archive.index))
    for name in archive.index["files"]:
        content = archive.read(name)
        print(f"  file   {name}: {len(content)} bytes")
        if args.sources and name.startswith("sources/"):
            print(bytes(content).decode())
    return 0


def _build_runner(args: argparse.Namespace) -> int:
    from ..backends.packages.runner.build import build_runner, runner_source

    output = Path(args.output)
    if args.source:
        output.write_text(runner_source(Path(args.file), args.target))
    else:
        build_runner(Path(args.file), output, args.library, args.target)
    print(f"{output}: {output.stat().st_size} bytes")
    return 0


def run_package(args: argparse.Namespace) -> int:
    """Run a package with the flags of `inductile-run` that both have."""
    from torch.utils._pytree import tree_leaves

    from ..backends.packages.load import load_package

    package = load_package(args.file)
    inputs = _inputs(args, package)

    def run() -> list[object]:
        results = tree_leaves(package.call_flat(inputs))
        return [each.cpu() if hasattr(each, "cpu") else each for each in results]  # which waits for a GPU

    results = timed(run, args.time)
    if args.output:
        from ..backends.arrays import save_arrays

        save_arrays(results, args.output)
    if not args.time:
        show_results(results, args.full)
    return 0


def _inputs(args: argparse.Namespace, package: Package) -> list[Any]:
    if args.input and args.random is not None:
        raise UserError("--input and --random exclude each other", "give one of them")
    if not args.input:
        return package.random_inputs(args.random or 0)
    from ..backends.arrays import array_files, load_array

    paths = array_files(Path(args.input[0])) if len(args.input) == 1 and Path(args.input[0]).is_dir() else args.input
    return package.with_constants([load_array(path) for path in paths])


_COMMANDS = {"make": _make, "inspect": _inspect, "build-runner": _build_runner, "run": run_package}


def _run(argv: Sequence[str] | None) -> int:
    args = build_parser().parse_args(argv)
    _import(getattr(args, "imports", ()))
    return _COMMANDS[args.command](args)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return run_tool(lambda: _run(argv))


if __name__ == "__main__":
    sys.exit(main())
