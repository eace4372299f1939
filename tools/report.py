"""`inductile-report`: one page that shows two traces of a graph beside each other.

    INDUCTILE_TRACE=before python model.py
    INDUCTILE_TRACE=after python model_with_an_option.py
    inductile-report before after -o compare.html

A trace is a folder of `INDUCTILE_TRACE`, the folder of one graph in it, or a page, as `inductile-opt --report` writes
it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import UserError
from .diagnostics import run_tool

_BLOCK = re.compile(r'<script type="application/json" class="block">(.*)</script>')


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="inductile-report", description="Two traces of a graph beside each other.")
    parser.add_argument("before", help="a folder of INDUCTILE_TRACE, of one graph in it, or a page")
    parser.add_argument("after", help="the same, of the other run")
    parser.add_argument("--graph", default="", metavar="NAME", help="which graph of the folders, as in forward_0")
    parser.add_argument("-o", "--output", default="compare.html", metavar="FILE.html", help="the page (%(default)s)")
    return parser


def find_page(text: str, graph: str) -> Path:
    """The page of a trace. UserError where there is none, or several and no name to choose by."""
    path = Path(text)
    if path.is_file():
        return path
    if (path / "index.html").is_file():
        return path / "index.html"
    pages = {each.parent.name: each for each in sorted(path.glob("*/index.html"))}
    if not pages:
        raise UserError(f"{text} is no trace of a graph", "name a folder that INDUCTILE_TRACE wrote, or a page")
    if graph in pages:
        return pages[graph]
    if graph or len(pages) > 1:
        problem = f"{text} has no graph {graph!r}" if graph else f"{text} has several graphs"
        raise UserError(problem, f"choose one with --graph: {', '.join(pages)}")
    return next(iter(pages.values()))


def read_blocks(path: Path) -> list[dict[str, object]]:
    """The data of a page, without a last block that was cut off. UserError for a file that is none of our pages."""
    blocks: list[dict[str, object]] = []
    for text in _BLOCK.findall(path.read_text(errors="replace")):
        try:
            blocks.append(json.loads(text))
        except ValueError:
            continue
    if not blocks:
        raise UserError(
            f"{path} is no page of a graph", "name one that INDUCTILE_TRACE or inductile-opt --report wrote"
        )
    return blocks


def compared(before: Sequence[dict[str, object]], after: Sequence[dict[str, object]], title: str) -> str:
    """The page of two graphs."""
    from ..backends.report.writer import block_text, page

    parts = [page(title)]
    for kind, blocks in (("block", before), ("other", after)):
        parts += [block_text(kind, each) for each in blocks]
    return "".join(parts)


def _run(argv: Sequence[str] | None) -> int:
    args = build_parser().parse_args(argv)
    pages = [find_page(each, args.graph) for each in (args.before, args.after)]
    text = compared(read_blocks(pages[0]), read_blocks(pages[1]), f"{args.before} and {args.after}")
    try:
        Path(args.output).write_text(text)
    except OSError as error:
        raise UserError(f"cannot write {args.output}: {error.strerror}", "name another file with -o") from error
    print(args.output)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return run_tool(lambda: _run(argv))


if __name__ == "__main__":
    sys.exit(main())
