"""Writing the report: a page that shows blocks of data, to which each pass appends its own.

Only appending keeps the cost of a pass that of its own text, and leaves a page that shows everything up to a crash.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...passes.manager import Instrumentation
from ...passes.printing import broken_module_text
from ...passes.remarks import Remark
from .data import graph_block, program_block, text_block
from .locations import Place, Places

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
{style}
</style></head><body>
<noscript>This page needs JavaScript, but no network.</noscript>
<div id="app"></div>
<script>
{script}
</script>
"""


@dataclass
class Report(Instrumentation):
    """Appends to the page of one graph.

    path:    of the page
    title:   of the graph
    remarks: a list that grows while passes run; what is new behind a pass is shown with it
    """

    path: Path
    title: str
    remarks: Sequence[Remark] = ()
    _seen: int = 0
    _places: Places = field(default_factory=Places)
    _shown: set[Place] = field(default_factory=set)

    def append(self, kind: str, block: Mapping[str, Any]) -> None:
        """Append a block; `</` would end the script element that holds it."""
        text = json.dumps({"block": kind, **block}, separators=(",", ":")).replace("</", "<\\/")
        with self.path.open("a") as file:
            file.write(f'<script type="application/json" class="block">{text}</script>\n')

    def before_run(self, module: ModuleOp) -> None:
        """Start the page with the input and its graph."""
        folder = files(__name__.rpartition(".")[0])
        parts = {"style": (folder / "page.css").read_text(), "script": (folder / "page.js").read_text()}
        self.path.write_text(PAGE.format(title=html.escape(self.title), **parts))
        self.append("title", {"title": self.title})
        self._seen = len(self.remarks)
        self._add_text("input", module, {"name": "input", "seconds": 0.0})
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
        """Show kernels, code and costs of the final module."""
        self.append("program", program_block(module, sources, self._places))
        self.append("graph", {"level": "program", "functions": graph_block(module, self._places)})

    def _add_text(self, kind: str, module: ModuleOp, about: Mapping[str, Any]) -> None:
        new, self._seen = self.remarks[self._seen :], len(self.remarks)
        block = text_block(module, new, self._places)
        self.append(kind, {**about, **block})
        places = {(file, line) for _, file, line in block["at"]} - self._shown
        if places:
            self._shown |= places
            self.append("source", {"files": self._places.sources(places)})
