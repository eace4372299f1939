"""Products as nests on matrix units: programs for an H100, which run on the CPU in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp

from inductile.backends.triton.offline import OfflineBackend
from inductile.dialects.context import new_context
from inductile.lowering.pipeline import named_passes
from inductile.passes.manager import PassManager

from ...passes.kernel.stages import GPU, on_cpu
from .support import parse

Tensor = torch.Tensor
NAMES = {
    torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2: "f8E5M2",
}  # fmt: skip
#: relative errors of a result: of the order of sums, and of one rounding
TOLERANCE = {torch.float32: 2e-6, torch.float16: 5e-4, torch.bfloat16: 4e-3}
#: small tiles, which leave something over
TILES = "tile-rows=16 tile-columns=32 tile-depth=16"


def type_of(tensor: Tensor, symbols: Sequence[str] = ()) -> str:
    """The type of a tensor on a GPU; `symbols` stand for its first sizes."""
    sizes = [f"({symbol})" for symbol in symbols] + [str(size) for size in tensor.shape[len(symbols) :]]
    strides = "" if tensor.is_contiguous() else f", strides = {list(tensor.stride())}"
    return f"!aten.tensor<{'x'.join([*sizes, NAMES[tensor.dtype]])}{strides}{GPU}>"


def program(op: str, arguments: Sequence[Tensor], shape: Sequence[int], dtype: torch.dtype | None = None) -> str:
    """A function of one ATen op, with a result of the first argument's type unless another one is given."""
    result = type_of(torch.empty(shape, dtype=dtype or arguments[0].dtype))
    head = ", ".join(f"%a{k}: {type_of(a)}" for k, a in enumerate(arguments))
    operands = ", ".join(f"%a{k}" for k in range(len(arguments)))
    return f"""func.func @f({head}) -> {result} {{
  %0 = {op.replace("(", f"({operands}")} : {result}
  func.return %0 : {result}
}}"""


def lowered(text: str, options: str = TILES) -> ModuleOp:
    """A program for an H100 with products on matrix units."""
    module = parse(text)
    passes = named_passes(f"default{{loop-products=true {options}}}", "cuda:90")
    PassManager(passes).run(new_context(), module)
    module.verify()
    return module


def for_cpu(module: ModuleOp) -> ModuleOp:
    """The same with the types of tensors on the CPU, so that it runs here."""
    return parse(on_cpu(str(module)))


def kernels_for_gpu(
    function: Callable[..., Any], inputs: Sequence[Tensor], options: dict[str, Any]
) -> tuple[Any, list[Tensor], list[str]]:
    """The program for an H100, its inputs in its order, and its kernels."""
    backend, given = OfflineBackend(["cuda:90"], "cuda:0", options), []

    def compile_graph(graph: torch.fx.GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        given.extend(examples)
        return backend(graph, examples)

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(function, backend=compile_graph, dynamic=False)(*inputs)
    ((_, _, module),) = backend.modules
    return for_cpu(module), given, [kernel.source for _, kernel in backend.kernels]
