"""Running a loop-level program behind each kernel and host pass, in the interpreter."""

from __future__ import annotations

import re
from collections.abc import Collection

import torch
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.parser import Parser

from inductile.backends.reference import run_module
from inductile.dialects.aten.types import TensorType, torch_name
from inductile.dialects.context import new_context
from inductile.lowering.pipeline import named_passes
from inductile.passes.manager import PassManager

GPU = ', device = "cuda:0"'
SIZES = {"s0": 5, "s1": 37, "i0": 3}
#: what integer inputs stay below, so that they can be indices
BELOW = 5


def on_gpu(text: str) -> str:
    """A program on a GPU: kernels that are launched on tensors of the CPU are scheduled for the CPU."""
    return re.sub(r"!aten\.tensor<[^<>]*", lambda type_: type_[0] if GPU in type_[0] else type_[0] + GPU, text)


def on_cpu(text: str) -> str:
    """A program with the types of tensors on the CPU, so that it runs here."""
    return text.replace(GPU, "").replace('device = "cuda:0"', 'device = "cpu"')


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


def check_stages(text: str, between: Collection[str] = (), target: str = "cpp") -> set[str]:
    """Run a program at the loop level and behind the passes that change it, and compare; the names of these.

    between: names of passes, if only what they leave is run
    target:  the machine that kernels are scheduled for; no GPU is needed
    """
    module = parse(text)
    inputs = inputs_of(module)
    expected = run(module, inputs)
    module = parse(text if target == "cpp" else on_gpu(text))
    seen, changing = str(module), set[str]()
    for each in named_passes(target=target, start_at="lower-loop-to-kernel"):
        PassManager([each], verify_each=True).run(new_context(), module)
        if (between and each.name not in between) or (now := str(module)) == seen:
            continue
        seen = now
        changing.add(each.name)
        for got, wanted in zip(run(parse(on_cpu(now)), inputs), expected, strict=True):
            torch.testing.assert_close(
                got, wanted, rtol=1e-4, atol=1e-4, equal_nan=True, msg=f"{each.name}: {{}}".format
            )
            assert got.stride() == wanted.stride(), each.name
    return changing
