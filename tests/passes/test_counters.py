"""Every pass asks a debug counter for each of its decisions, and may be refused any of them."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from inductile.backends.generators import GENERATORS
from inductile.backends.numerics import NumericCheck
from inductile.dialects.aten import TensorType
from inductile.dialects.context import new_context
from inductile.errors import UserError
from inductile.lowering.fx_pre_grad import pass_function
from inductile.lowering.pre_grad import PRE_GRAD
from inductile.lowering.registry import LOWERINGS, available_passes
from inductile.passes.counters import WITHOUT_COUNTER, Counter, counting
from inductile.passes.manager import PassManager
from inductile.passes.watching import spell_out
from inductile.tools.opt import build_parser, choose_passes
from inductile.tools.source import Source, split_source

ROOT = Path(__file__).parents[1] / "filecheck"
#: elements of the arguments of a function that is only transformed, not run
LARGE = 1 << 21
LEVELS = ("graph", "loop", "kernel", "host")
NAMES = sorted(name for name in available_passes() if name in LOWERINGS or name.partition("-")[0] in LEVELS)


def example(name: str) -> Path:
    """The FileCheck test of a pass."""
    if name in LOWERINGS:
        return ROOT / "lowering" / f"{name.removeprefix('lower-').replace('-', '_')}.mlir"
    level, _, rest = name.partition("-")
    return ROOT / "passes" / level / f"{rest.replace('-', '_')}.mlir"


def is_large(function: Operation) -> bool:
    """Whether a function takes tensors for which the reference backend needs seconds."""
    types = [value.type for value in function.body.block.args] if isinstance(function, FuncOp) else []
    sizes = [[size.as_int() or 1 for size in type_.shape] for type_ in types if isinstance(type_, TensorType)]
    return sum(map(prod, sizes)) > LARGE


def parts_of(source: Source) -> Iterator[tuple[ModuleOp, bool]]:
    """The functions of a module that are run, and those that are too large to be; whether they are run."""
    whole = source.parse(new_context())
    if not any(map(is_large, whole.body.block.ops)) or any(isinstance(op, CallOp) for op in whole.walk()):
        yield whole, True
        return
    for large in (False, True):
        module = whole.clone()
        for op in list(module.body.block.ops):
            if is_large(op) is not large:
                module.body.block.erase_op(op)
        yield module, not large


#: passes whose answers differ by right: the library's kernels for packed weights round sums to 16 bits in other places
OTHERWISE = ("graph-pack-products", "loop-pack-weights")


def run(
    passes: Sequence[ModulePass], module: ModuleOp, counters: dict[str, Counter], compares: bool
) -> dict[str, Counter]:
    """Run passes on a copy, verify, and compare answers unless the module has none; the counters that were asked."""
    with counting(counters):
        try:
            PassManager(passes, [NumericCheck()] if compares else []).run(new_context(), module.clone())
        except UserError:
            counters = {name: Counter(count=state.count) for name, state in counters.items()}
            with counting(counters):
                PassManager(passes).run(new_context(), module.clone())
    return counters


@pytest.mark.rotates(3)
@pytest.mark.parametrize("name", NAMES)
def test_a_pass_asks_and_takes_no_for_an_answer(name: str) -> None:
    _check(name, example(name))


def test_schedules_for_gpus_ask_too() -> None:
    asked = _check("kernel-tile", ROOT / "passes" / "kernel" / "tile_gpu.mlir")
    assert "kernel-tile" in asked


@pytest.mark.parametrize("name", sorted(PRE_GRAD))
def test_pre_grad_passes_ask(name: str) -> None:
    source = inspect.getsource(pass_function(name))
    assert f'counter("{name}")' in source


def test_what_asks_no_counter_exists_and_says_why() -> None:
    assert WITHOUT_COUNTER.keys() <= available_passes().keys() | GENERATORS.keys()
    assert GENERATORS.keys() <= WITHOUT_COUNTER.keys()
    assert all(WITHOUT_COUNTER.values())


def _check(name: str, path: Path) -> set[str]:
    """Run a pass on its example with every counter cut off at its start and in its middle; which ones it asks."""
    text = path.read_text()
    command = next(line for line in text.splitlines() if "RUN: inductile-opt" in line).partition(" | ")[0]
    words = spell_out(shlex.split(command.replace("2>&1", "")))
    passes = choose_passes(build_parser().parse_args(words[words.index("inductile-opt") + 1 :]))
    position = [p.name for p in passes].index(name)
    asked_for: set[str] = set()
    parts = [part for source in split_source(text, path.name, "// -----") for part in parts_of(source)]
    for module, compares in [(module, compares and name not in OTHERWISE) for module, compares in parts]:
        PassManager(passes[:position]).run(new_context(), module)
        for counter, state in run(passes[position : position + 1], module, {}, compares).items():
            asked_for.add(counter)
            for count in {0, state.asked // 2}:
                run(passes[position:], module, {counter: Counter(count=count)}, compares)
    assert bool(asked_for) != (name in WITHOUT_COUNTER)
    return asked_for
