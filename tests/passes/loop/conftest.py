"""Compares what a function computes before and after passes, with the reference backend."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pytest
import torch
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, bf16, f16
from xdsl.parser import Parser

from inductile.backends.reference import run_module
from inductile.dialects.aten import AtenOp, TensorType, torch_name
from inductile.dialects.context import new_context
from inductile.dialects.sym import SymbolAttr
from inductile.lowering.pipeline import phases
from inductile.lowering.registry import parse_passes
from inductile.passes.common.results import results_of_any_strides

Check = Callable[..., ModuleOp]


def loop_phase(*options: str) -> str:
    """The passes of the level as the pipeline has them, some with the given options: `loop-fuse{min-parallel=1}`."""
    passes = next(phase.passes for phase in phases() if phase.name == "loop")
    for each in options:
        passes = passes.replace(each.partition("{")[0], each)
    return passes


def parse(text: str) -> ModuleOp:
    return Parser(new_context(), text).parse_module()


def transform(module: ModuleOp, pipeline: str) -> None:
    for each in parse_passes(pipeline):
        each.apply(new_context(), module)
        module.verify()


def functions(module: ModuleOp) -> list[func.FuncOp]:
    return [op for op in module.ops if isinstance(op, func.FuncOp)]


def random_inputs(function: func.FuncOp, sizes: dict[str, int], below: int) -> list[torch.Tensor | int]:
    """Inputs of the argument types for given symbols; elements of integer tensors are in [0, below)."""
    inputs: list[torch.Tensor | int] = []
    symbols = function.attributes.get("symbols", ArrayAttr([]))
    assert isinstance(symbols, ArrayAttr)
    names = {s.data.arg: s.data.name for s in symbols if isinstance(s, SymbolAttr) and s.data.dim is None}
    for argument in function.body.block.args:
        type_ = argument.type
        if not isinstance(type_, TensorType):
            inputs.append(sizes[names[argument.index]])
            continue
        shape = [size.evaluate(sizes) for size in type_.shape]
        strides = [stride.evaluate(sizes) for stride in type_.strides]
        dtype = getattr(torch, torch_name(type_.element))
        tensor = torch.empty_strided(shape, strides, dtype=dtype)
        if dtype.is_floating_point:
            tensor.copy_(torch.randn(shape, dtype=torch.float64))
        else:
            tensor.copy_(torch.randint(0, 2 if dtype == torch.bool else below, shape))
        inputs.append(tensor)
    return inputs


def clone(tensor: torch.Tensor | int) -> torch.Tensor | int:
    """A copy with the same strides, so that reads and writes in a wrong order show."""
    if isinstance(tensor, int):
        return tensor
    copy = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return copy.copy_(tensor)


def aliases(tensors: Sequence[torch.Tensor]) -> list[int]:
    """For each tensor the first one that shares its storage."""
    pointers = [t.untyped_storage().data_ptr() if t.numel() else -1 - k for k, t in enumerate(tensors)]
    return [pointers.index(p) for p in pointers]


def assert_same(
    before: Sequence[torch.Tensor], after: Sequence[torch.Tensor], tolerance: float, any_strides: Collection[int] = ()
) -> None:
    """Values, dtypes, strides that count, but those of the numbers in `any_strides`, and which tensors share memory."""
    for number, (wanted, found) in enumerate(zip(before, after, strict=True)):
        torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
        if number in any_strides:
            continue
        significant = [k for k, size in enumerate(wanted.shape) if size > 1]
        assert [found.stride(k) for k in significant] == [wanted.stride(k) for k in significant]
    assert aliases(after) == aliases(before)


def _tensors(results: Sequence[object], inputs: Sequence[object]) -> list[torch.Tensor]:
    return [value for value in (*results, *inputs) if isinstance(value, torch.Tensor)]


_PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm"})


def rounds_by_library(function: func.FuncOp) -> bool:
    """Whether a library multiplies matrices or convolves in 16 bits: how it rounds depends on the layout, on the
    implementation that a pass chooses and on the processor, so that such programs are compared in float64."""
    return any(
        op.packet in _PRODUCTS or (isinstance(value.type, TensorType) and value.type.element in (f16, bf16))
        for op in function.walk()
        if isinstance(op, AtenOp) and (op.packet in _PRODUCTS or op.packet.startswith("convolution"))
        for value in op.results
    )


@pytest.fixture
def check_same() -> Check:
    """Run passes on a module and compare every public function with what it computed before; gives the module."""

    def check(
        text: str, pipeline: str, sizes: dict[str, int] | None = None, below: int = 4, tolerance: float = 1e-5
    ) -> ModuleOp:
        torch.manual_seed(0)
        before, after = parse(text), parse(text)
        transform(after, pipeline)
        for function in functions(before):
            if function.sym_visibility is not None and function.sym_visibility.data == "private":
                continue  # what it returns to its callers is theirs to change
            inputs = random_inputs(function, sizes or {}, below)
            copies = [clone(t) for t in inputs]
            name = function.sym_name.data
            wide = rounds_by_library(function)
            expected = run_module(before, inputs, name, wide=wide)
            actual = run_module(after, copies, name, wide=wide)
            assert_same(
                _tensors(expected, inputs), _tensors(actual, copies), tolerance, results_of_any_strides(function)
            )
        return after

    return check
