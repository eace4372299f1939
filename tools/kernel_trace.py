"""What `--trace-kernel` prints: kernels from their lowering to their text, with the files that they visit."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..dialects import kernel
from ..errors import UserError
from ..passes.instrumentation import banner
from ..passes.manager import Instrumentation
from ..passes.printing import module_text
from .listing import source_file

_ROOT = Path(__file__).parent.parent


class KernelTrace(Instrumentation):
    """Keeps the text of the kernels whose name a pattern finds, behind each pass that changed one."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._texts: dict[str, str] = {}
        self._stages: list[str] = []

    def before_run(self, module: ModuleOp) -> None:
        """Keep the kernels that a file has."""
        self._keep("as the file has it", module)

    def after_pass(self, done: int, module_pass: ModulePass, module: ModuleOp, seconds: float) -> None:
        """Keep what the pass changed."""
        self._keep(f"After {module_pass.name} ({source_file(type(module_pass))})", module)

    def _keep(self, when: str, module: ModuleOp) -> None:
        texts = {name: module_text(op) for name, op in _kernels(module).items() if self._pattern.search(name)}
        gone = [f"// @{name} is another kernel's part, or gone" for name in self._texts if name not in texts]
        changed = [text for name, text in texts.items() if self._texts.get(name) != text]
        if gone or changed:
            self._stages.append("\n".join([banner(when), *gone, *changed, ""]))
        self._texts = texts

    def text(self, module: ModuleOp, generator: str | None) -> str:
        """All stages, and the code of what is left at the end. UserError where no kernel has such a name."""
        from ..backends.generators import generator_of
        from ..backends.targets import emit_source

        if not self._stages:
            there = ", ".join(_kernels(module))
            what = f"the kernels are {there}" if there else "nothing is lowered to kernels: add --pipeline default"
            raise UserError(f"no kernel has a name with {self._pattern.pattern!r}", what)
        alone = module.clone()
        for name, op in _kernels(alone).items():
            if name not in self._texts:
                alone.body.block.erase_op(op, safe_erase=False)
        by_generator = {generator_of(op): None for op in _kernels(alone).values()}
        stages = [*self._stages]
        for each in [generator] if generator else by_generator:
            emit_source(each, alone)  # imports what the second time shows at work
            source, files = _with_files(lambda name=each: emit_source(name, alone))
            visited = "".join(f"//   {file}\n" for file in files)
            stages.append(f"{banner(f'As {each}')}\n{visited}{source}")
        return "\n".join(stages)


def _kernels(module: ModuleOp) -> dict[str, kernel.FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, kernel.FuncOp)}


def _with_files(run: Callable[[], str]) -> tuple[str, list[str]]:
    """What a function returns, and the files of the backends in which it ran something, the first one first."""
    files: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            files[frame.f_code.co_filename] = None

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        found = run()
    finally:
        sys.setprofile(before)
    backends = _ROOT / "backends"
    inside = [Path(file) for file in files if Path(file).is_relative_to(backends)]
    return found, [str(file.relative_to(_ROOT)) for file in inside]
