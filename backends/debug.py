"""Tools for people who chase a wrong answer: `inductile.debug.capture(fn, *inputs)`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..lowering.pipeline import pipeline_string
from ..lowering.registry import parse_passes
from ..lowering.reproducer import store_reproducer
from .arrays import save_array


def capture(function: Callable[..., Any], *inputs: Any, folder: str = "inductile-capture") -> list[str]:
    """Write each graph that torch.compile finds in `function` as a reproducer file with its inputs beside it.

    Returns the paths of the `.mlir` files; `inductile-opt --run-reproducer FILE --verify-each=numerics` then names the
    first pass that changes an answer. Inputs go to `FILE.inputs/N.npy`.
    """
    from torch._dynamo.backends.common import aot_autograd

    from ..lowering.fx_decompositions import decompositions
    from ..lowering.fx_import import import_graph
    from ..passes.printing import module_text
    from .compile_graph import eager_callable

    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths: list[str] = []

    def compiler(graph: torch.fx.GraphModule, examples: Any) -> Any:
        imported = import_graph(graph, examples)
        path = str(target / f"graph{len(paths)}.mlir")
        text = module_text(imported.module, locations=True)
        store_reproducer(path, text, parse_passes(pipeline_string()), RuntimeError("captured, not yet failed"))
        paths.append(path)
        run = eager_callable(graph)

        def saving(args: list[Any]) -> Any:
            _save_inputs([*args, *imported.constants], Path(f"{path}.inputs"))
            return run(args)

        saving._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
        return saving

    torch.compiler.reset()
    backend = aot_autograd(fw_compiler=compiler, decompositions=decompositions())
    torch.compile(function, backend=backend)(*inputs)
    return paths


def _save_inputs(args: list[Any], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for number, value in enumerate(args):
        save_array(folder / f"{number}.npy", value)
