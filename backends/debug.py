"""Tools for people who chase a wrong answer: `inductile.debug.capture(fn, *inputs)`, `inductile.debug.bisect(run)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from ..lowering.fx_import import import_graph
from ..lowering.reproducer import store_reproducer
from ..passes.printing import module_text
from .arrays import save_array
from .compile_graph import choose_passes, eager_callable, with_torch_flags
from .config import Config
from .torch_bisector import bisect as bisect
from .torch_compile import compile_dynamo_graph


def capture(
    function: Callable[..., Any],
    *inputs: Any,
    folder: str = "inductile-capture",
    options: Mapping[str, Any] | None = None,
) -> list[str]:
    """Write each graph that torch.compile finds in `function` as a reproducer file with its inputs beside it.

    options: those of `torch.compile(..., options=...)` with which the answer is wrong

    `function` is called once, and its graphs run in eager; a backward pass inside it is captured too. Returns the paths
    of the `.mlir` files. `inductile-opt --run-reproducer FILE` then runs the passes, compares answers behind each, and
    names the first that changes one. Inputs go to `FILE.inputs/N.npy`.
    """
    config = with_torch_flags(Config.resolve(None, options))
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    paths: list[str] = []

    def compile_aten(kind: str, graph: torch.fx.GraphModule, examples: Any) -> Callable[[list[Any]], Any]:
        imported = import_graph(graph, examples)
        path = str(target / f"{kind}{len(paths)}.mlir")
        paths.append(path)
        _store(path, imported.module, config)
        run = eager_callable(graph)

        def saving(args: list[Any]) -> Any:
            _save_inputs([*args, *imported.constants], Path(f"{path}.inputs"))
            return run(args)

        saving._boxed_call = True  # pyright: ignore[reportFunctionMemberAccess]
        return saving

    def backend(graph: torch.fx.GraphModule, examples: Any) -> Callable[..., Any]:
        return compile_dynamo_graph(graph, examples, config, compile_aten)

    torch.compiler.reset()
    torch.compile(function, backend=backend)(*inputs)
    return paths


def _store(path: str, module: Any, config: Config) -> None:
    passes = choose_passes(config)
    text = module_text(module, locations=True)
    reason = RuntimeError("captured, not yet failed")
    store_reproducer(path, text, passes, reason, config.debug_counter or None, config.verify_each or "numerics")


def _save_inputs(args: list[Any], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for number, value in enumerate(args):
        save_array(folder / f"{number}.npy", value)
