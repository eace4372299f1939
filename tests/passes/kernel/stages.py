"""Running a loop-level program behind each kernel and host pass, in the interpreter."""

from __future__ import annotations

import torch
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.parser import Parser

from inductile.backends.reference import run_module
from inductile.dialects.aten.types import TensorType, torch_name
from inductile.dialects.context import new_context
from inductile.lowering.pipeline import named_passes
from inductile.lowering.registry import parse_passes
from inductile.passes.manager import PassManager

#: what loops are lowered to, and all that follows
STAGES = tuple(str(each) for each in named_passes(start_at="lower-loop-to-kernel"))
SIZES = {"s0": 5, "s1": 37, "i0": 3}
#: what integer inputs stay below, so that they can be indices
BELOW = 5


def parse(text: str) -> ModuleOp:
    """A module from text."""
    return Parser(new_context(), text).parse_module()


def inputs_of(module: ModuleOp, seed: int = 0) -> list[torch.Tensor]:
    """Tensors for the arguments of the module's function."""
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    generator = torch.Generator().manual_seed(seed)
    return [_input(t, generator) for t in function.function_type.inputs if isinstance(t, TensorType)]


def _input(type_: TensorType, generator: torch.Generator) -> torch.Tensor:
    shape = [size.evaluate(SIZES) for size in type_.shape]
    strides = [stride.evaluate(SIZES) for stride in type_.strides]
    dtype = getattr(torch, torch_name(type_.element))
    if type_.element == IntegerType(1):
        values = torch.rand(shape, generator=generator) < 0.5
    elif not dtype.is_floating_point:
        values = torch.randint(0, BELOW, shape, generator=generator, dtype=dtype)
    else:
        values = torch.randn(shape, generator=generator).to(dtype)
    return torch.empty_strided(shape, strides, dtype=dtype).copy_(values)


def run(module: ModuleOp, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Results, then the inputs as the program leaves them."""
    copies = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t) for t in inputs]
    return [*run_module(module, copies), *copies]


def check_stages(text: str, between: tuple[str, ...] = STAGES) -> None:
    """Run a program at the loop level and behind the stages in `between` that change it, and compare."""
    module = parse(text)
    inputs = inputs_of(module)
    expected = run(module, inputs)
    seen = ""
    for name in STAGES:
        PassManager(parse_passes(name), verify_each=True).run(new_context(), module)
        if name not in between or (now := str(module)) == seen:
            continue
        seen = now
        for got, wanted in zip(run(parse(now), inputs), expected, strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4, equal_nan=True, msg=f"{name}: {{}}".format)
            assert got.stride() == wanted.stride(), name
