"""`inductile-gui`: try passes on an IR file in the terminal, step by step (xDSL's interactive app with our dialects).

    inductile-gui softmax.mlir -p "lower-aten-to-loop,loop-inline"

Needs `pip install 'inductile[gui]'`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..dialects.context import DIALECTS, STOCK_DIALECTS
from ..dialects.reading import Reader
from ..errors import UserError
from ..extensions import loaders
from ..lowering.registry import available_passes
from .diagnostics import read_input, run_tool
from .opt import add_pipeline_flags, choose_passes
from .plugins import load_plugin

if TYPE_CHECKING:
    from xdsl.interactive.app import InputApp


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    p = argparse.ArgumentParser("inductile-gui", description=(__doc__ or "").partition("\n\n")[0])
    p.add_argument("file", nargs="?", help="IR of any level to start with")
    add_pipeline_flags(p)
    return p


def build_app(args: argparse.Namespace) -> InputApp:
    """The app with our dialects and passes, a file and the passes that the flags ask for.

    Raises UserError when the terminal library is not installed.
    """
    try:
        from xdsl.interactive import app, get_all_available_passes
        from xdsl.interactive.app import InputApp
    except ImportError as error:
        raise UserError(f"inductile-gui lacks a package ({error.name})", "pip install 'inductile[gui]'") from error

    for module in (app, get_all_available_passes):  # text in the editor is read as files are
        module.Parser = Reader  # pyright: ignore[reportAttributeAccessIssue]
    for plugin in args.load_pass_plugin:
        load_plugin(plugin)
    added = {name: load() for name, load in loaders("inductile.dialects").items()}
    dialects = tuple((STOCK_DIALECTS | DIALECTS | added).items())
    passes = tuple((name, load()) for name, load in sorted(available_passes().items()))
    text = read_input(args.file)[0] if args.file else None
    return InputApp(dialects, passes, args.file, text, tuple(choose_passes(args)))


def _run(argv: Sequence[str] | None) -> int:
    app = build_app(build_parser().parse_args(argv))
    app.run()
    return app.return_code or 0


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return run_tool(lambda: _run(argv))


if __name__ == "__main__":
    sys.exit(main())
