"""The text that is emitted for patterns and models, for each target, and where two versions of it differ.

    python benchmarks/emitted_text.py before            # traces the graphs, writes before/graphs and before/TARGET
    ... change a pass ...
    python benchmarks/emitted_text.py after --graphs before/graphs --against before

Nothing is run or compiled, and no GPU is needed. Graphs are kept as IR of the aten level: with `--graphs` they are read
instead of traced, in float32 for a CPU and in bfloat16 for GPUs. Two texts are equal where one becomes the other by new
names for values and kernels; comments do not count. The exit status says whether some text differs.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

TARGETS = ("cpp", "cuda:90", "hip:gfx942")
#: of the patterns, on a CPU or in training, and else on a GPU
ROWS, GPU_ROWS = 512, 8192
#: inputs of a pattern that have no gradient, by position: running statistics
WITHOUT_GRADIENT = {"batch_norm": (1, 2)}
#: cases without a backward graph
INFERENCE_ONLY = ("llama_decode",)


def traced(name: str, dtype: Any, training: bool) -> Iterator[tuple[str, str]]:
    """(kind, text) of the graphs of one pattern or model on the CPU, at the aten level."""
    import models
    import patterns
    import torch
    from torch._subclasses import FakeTensorMode
    from torch.utils._pytree import tree_leaves

    from inductile.backends.compile_graph import eager_callable
    from inductile.backends.config import Config
    from inductile.backends.torch_compile import compile_dynamo_graph
    from inductile.lowering.fx_import import import_graph
    from inductile.passes.printing import module_text

    graphs: list[tuple[str, str]] = []

    def keep(kind: str, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        graphs.append((kind, module_text(import_graph(graph, inputs).module)))
        return eager_callable(graph)

    def backend(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return compile_dynamo_graph(graph, inputs, Config.resolve(None, {}), keep)

    if name in patterns.PATTERNS:
        function, inputs = patterns.build(name, ROWS if training or dtype is torch.float32 else GPU_ROWS, dtype)
        fixed = WITHOUT_GRADIENT.get(name, ())
        if training:
            inputs = tuple(x.requires_grad_(x.is_floating_point() and k not in fixed) for k, x in enumerate(inputs))
    else:
        function, inputs = models.build(name, dtype, small=True)
    torch._dynamo.reset()
    fake = nullcontext() if training else FakeTensorMode(allow_non_fake_inputs=True)
    with torch.set_grad_enabled(training), fake:
        if not training:
            inputs = tuple(torch.empty_strided(x.shape, x.stride(), dtype=x.dtype) for x in inputs)
        results = tree_leaves(torch.compile(function, backend=backend)(*inputs))
        if training:
            torch.stack([r.float().sum() for r in results if r.requires_grad]).sum().backward()
    return iter(graphs)


def emitted(graph: str, target: str) -> str:
    """Kernels and host program of a graph for one target, as text."""
    from inductile.backends.generators import generator_named
    from inductile.backends.triton.offline import program_text
    from inductile.dialects.context import new_context
    from inductile.dialects.machine import set_targets
    from inductile.dialects.reading import Reader
    from inductile.lowering.pipeline import remaining_passes
    from inductile.passes.common.moving import devices_in, move_tensors
    from inductile.passes.manager import PassManager

    module = Reader(new_context(), graph).parse_module()
    if target != "cpp":
        move_tensors(module, dict.fromkeys(devices_in(module), "cuda:0"))
    set_targets(module, [target])
    PassManager(remaining_passes(module)).run(new_context(), module)
    kernels = generator_named("cpp" if target == "cpp" else "triton").emit_source(module)
    return f"{kernels}\n{program_text(module)}"


def trace_all(names: Sequence[str], folder: Path) -> None:
    """Write the graphs of each case."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        for dtype in (torch.float32, torch.bfloat16):
            for training in (False,) if name in INFERENCE_ONLY else (False, True):
                for kind, text in traced(name, dtype, training):
                    bits = torch.finfo(dtype).bits
                    (folder / f"{name}.{kind}.f{bits}.mlir").write_text(text)


def emit_all(names: Sequence[str], graphs: Path, out: Path, targets: Sequence[str]) -> int:
    """Write the text of each graph for each target; how many failed."""
    failures = 0
    for target in targets:
        folder = out / target.replace(":", "_")
        folder.mkdir(parents=True, exist_ok=True)
        for path in sorted(graphs.glob("*.f32.mlir" if target == "cpp" else "*.f16.mlir")):
            if path.name.partition(".")[0] not in names:
                continue
            try:
                text = emitted(path.read_text(), target)
            except Exception:
                failures += 1
                text = traceback.format_exc()
                print(f"{path.stem} for {target} failed: {text.splitlines()[-1]}", flush=True)
            (folder / f"{path.stem}.txt").write_text(text)
    return failures


_TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|\s+|.", re.DOTALL)
#: in C++ a number sign begins a directive; in Triton the line `# grid ...` says how a kernel is launched
_COMMENT = re.compile(r"(?://|#(?!include|define|pragma| grid)).*")
_NAME = re.compile(r"[^\W\d]\w*")
_KERNEL = re.compile(r"[^\W\d]\w*\d")


def is_renamed(old: str, new: str) -> bool:
    """Whether one text becomes the other by new names, each for one old name."""
    first, second = (_TOKEN.findall(_COMMENT.sub("", text)) for text in (old, new))
    there: dict[str, str] = {}
    back: dict[str, str] = {}
    if len(first) != len(second):
        return False
    for i, (a, b) in enumerate(zip(first, second, strict=True)):
        is_name = _may_be_renamed(first, i) and _may_be_renamed(second, i)
        if a != b if not is_name else there.setdefault(a, b) != b or back.setdefault(b, a) != a:
            return False
    return True


def _may_be_renamed(tokens: list[str], i: int) -> bool:
    """Whether a token names a value, a buffer or a kernel, and no function or attribute of a library."""
    if tokens[i - 1] == "." or not _NAME.fullmatch(tokens[i]):
        return False
    return tokens[i + 1 : i + 2] != ["("] or _KERNEL.fullmatch(tokens[i]) is not None


def differences(old: Path, new: Path) -> list[str]:
    """Names of the texts in two folders that differ, or that only one has."""
    files = {p.relative_to(root) for root in (old, new) for p in root.glob("*/*.txt")}
    found: list[str] = []
    for name in sorted(files):
        before, after = old / name, new / name
        if before.exists() != after.exists() or not is_renamed(before.read_text(), after.read_text()):
            found.append(str(name))
    return found


def show(old: Path, new: Path, name: str) -> str:
    """The lines that differ in one text."""
    before, after = [(root / name).read_text().splitlines() if (root / name).exists() else [] for root in (old, new)]
    return "\n".join(difflib.unified_diff(before, after, f"{old}/{name}", f"{new}/{name}", n=1, lineterm=""))


def main() -> int:
    """Command line; 1 where something differs or failed."""
    sys.path.insert(0, str(Path(__file__).parent))
    from gpu import make_importable

    make_importable()
    import models
    import patterns

    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", type=Path, help="the folder to write")
    p.add_argument("--graphs", type=Path, help="graphs of an earlier run; without it they are traced")
    p.add_argument("--against", type=Path, help="the folder of an earlier run to compare with")
    p.add_argument("--cases", nargs="*", default=[*patterns.PATTERNS, *models.MODELS], help="default: all")
    p.add_argument("--targets", nargs="*", default=list(TARGETS))
    p.add_argument("--show", action="store_true", help="print the lines that differ")
    args = p.parse_args()
    started = time.perf_counter()
    graphs = args.graphs
    if graphs is None:
        graphs = args.out / "graphs"
        trace_all(args.cases, graphs)
    failures = emit_all(args.cases, graphs, args.out, args.targets)
    print(f"{args.out}: {failures} failures, {time.perf_counter() - started:.0f} s")
    if args.against is None:
        return min(failures, 1)
    changed = [name for name in differences(args.against, args.out) if (args.out / name).exists()]
    for name in changed:
        print(f"differs: {name}")
        if args.show:
            print(show(args.against, args.out, name))
    print(f"{len(changed)} texts differ")
    return min(failures + len(changed), 1)


if __name__ == "__main__":
    sys.exit(main())
