"""Writing the report: a page that shows blocks of data, to which each pass appends its own.

Only appending keeps the cost of a pass that of its own text, and leaves a page that shows everything up to a crash.
"""

from __future__ import annotations

import html
import json
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...passes.manager import Instrumentation
from ...passes.printing import broken_module_text
from ...passes.remarks import Remark
from ...records import dataclass
from .data import compiled_kernels, graph_block, program_block, remark_block, text_block
from .lines import LineTable
from .locations import Place, Places
from .neighbours import Neighbour

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'sha256-{digest}'">
<meta name="viewport" content="width=device-width">
<style>
{style}
</style></head><body>
<noscript>This page needs JavaScript, but no network.</noscript>
<div id="app"></div>
<script>{script}</script>
"""
#: the parts of the page's script, each using only those in front of it
SCRIPTS = (
    "dom", "rows", "data", "difference", "text", "overview", "stages", "graph", "roofline", "kernels", "source",
    "search", "compare", "main",
)  # fmt: skip
_BLOCK = '<script type="application/json" class="{kind}">{text}</script>\n'


def page(title: str) -> str:
    """A page without data. Its policy lets no other script run, whatever a name or a source may hold."""
    folder = files(__name__.rpartition(".")[0])
    script = "\n".join((folder / "page" / f"{name}.js").read_text() for name in SCRIPTS)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    style = (folder / "page" / "page.css").read_text()
    return PAGE.format(title=html.escape(title), style=style, script=script, digest=digest)


def block_text(kind: str, data: Mapping[str, Any]) -> str:
    """An element that holds data and never runs; without `<` no data can end it or open a comment."""
    return _BLOCK.format(kind=kind, text=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"))


@dataclass
class Report(Instrumentation):
    """Appends to the page of one graph.

    path:    of the page
    title:   of the graph
    remarks: a list that grows while passes run; what is new behind a pass is shown with it
    facts:   what else is said of the graph at the top: options that are not at their default, versions
    reached: lines of the user's source, `(file, line)`, in which a call was made that ends in an op
    """

    path: Path
    title: str
    remarks: Sequence[Remark] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    reached: Collection[tuple[str, int]] = ()
    _seen: int = 0
    _places: Places = field(default_factory=Places)
    _table: LineTable = field(default_factory=LineTable)

    def append(self, kind: str, block: Mapping[str, Any]) -> None:
        """Append a block."""
        self.append_to(self.path, kind, block)

    @staticmethod
    def append_to(path: Path, kind: str, block: Mapping[str, Any]) -> None:
        """Append a block to a page."""
        with path.open("a") as file:
            file.write(block_text("block", {"block": kind, **block}))

    def as_neighbour(self) -> Neighbour:
        """What other pages need to know of this one."""
        return Neighbour(self.path, self._places.files, self.reached)

    def before_run(self, module: ModuleOp) -> None:
        """Start the page with the input and its graph."""
        self.path.write_text(page(self.title))
        self.append("title", {"title": self.title, "facts": dict(self.facts)})
        self._seen = len(self.remarks)
        self._add_text("input", module, {"name": "input", "seconds": 0.0})
        if self.reached:
            places = sorted({self._places.place(file, line) for file, line in self.reached})
            self.append("reached", {"at": places})
            self._add_sources(places)
        self.append("graph", {"level": "input", "functions": graph_block(module, self._places)})

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Add a column."""
        doc = (type(module_pass).__doc__ or "").strip().partition("\n")[0]
        level = getattr(module_pass, "level", "")
        about = {"name": module_pass.name, "spec": str(module_pass), "level": level, "doc": doc, "seconds": seconds}
        self._add_text("pass", module, about)

    def after_verify(self, done: int, module_pass: ModulePass, seconds: float) -> None:
        """Add the verifier's time to the last column."""
        self.append("verify", {"seconds": seconds})

    def pass_failed(self, done: int, module_pass: ModulePass, module: ModuleOp, error: Exception) -> None:
        """Show why it failed and what it left."""
        text = broken_module_text(module)
        self.append("error", {"name": module_pass.name, "message": str(error), "lines": text.split("\n")})

    def add_program(self, module: ModuleOp, sources: Mapping[str, str]) -> None:
        """Show kernels, code and costs of the final module, and what Triton's compiler made of kernels for a GPU."""
        self.append("program", program_block(module, sources, self._places))
        figures = compiled_kernels(module) if sources else {}
        if figures:
            self.append("compiled", {"kernels": figures})
        self.append("graph", {"level": "program", "functions": graph_block(module, self._places)})

    def add_remarks(self, remarks: Sequence[Remark]) -> None:
        """Show what was said behind the passes."""
        if remarks:
            self.append("late", {"remarks": [remark_block(each, {}) for each in remarks]})

    def _add_text(self, kind: str, module: ModuleOp, about: Mapping[str, Any]) -> None:
        new, self._seen = self.remarks[self._seen :], len(self.remarks)
        block = text_block(module, new, self._places, self._table)
        self.append(kind, {**about, **block})
        self._add_sources(block["places"])

    def _add_sources(self, places: Collection[Place]) -> None:
        sources = self._places.sources(places) if places else []
        if sources:
            self.append("source", {"files": sources})
