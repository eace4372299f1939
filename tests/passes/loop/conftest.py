"""Compares what a function computes before and after passes, with the reference backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from inductile.backends.reference import run_module
from inductile.dialects.aten import TensorType, torch_name
from inductile.dialects.context import new_context
from inductile.lowering.registry import parse_passes

Check = Callable[..., ModuleOp]


def parse(text: str) -> ModuleOp:
    return Parser(new_context(), text).parse_module()


def transform(module: ModuleOp, pipeline: str) -> None:
    for each in parse_passes(pipeline):
        each.apply(new_context(), module)
        module.verify()


def only_function(module: ModuleOp) -> func.FuncOp:
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    return function


def random_inputs(module: ModuleOp, sizes: dict[str, int], below: int) -> list[torch.Tensor]:
    """Inputs of the argument types for given symbols; integers are in [0, below)."""
    inputs: list[torch.Tensor] = []
    for argument in only_function(module).body.block.args:
        type_ = argument.type
        assert isinstance(type_, TensorType)
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


def aliases(tensors: Sequence[torch.Tensor]) -> list[int]:
    """For each tensor the first one that shares its storage."""
    pointers = [t.untyped_storage().data_ptr() if t.numel() else -1 - k for k, t in enumerate(tensors)]
    return [pointers.index(p) for p in pointers]


@pytest.fixture
def check_same() -> Check:
    """Run passes and compare results, written inputs, strides and aliases with those before; gives the module."""

    def check(
        text: str, pipeline: str, sizes: dict[str, int] | None = None, below: int = 4, tolerance: float = 1e-5
    ) -> ModuleOp:
        torch.manual_seed(0)
        before, after = parse(text), parse(text)
        transform(after, pipeline)
        inputs = random_inputs(before, sizes or {}, below)
        # clones keep the strides, so that an input that is read in a wrong order shows
        copies = [t.clone() for t in inputs]
        expected, actual = run_module(before, inputs), run_module(after, copies)
        for wanted, found in zip([*expected, *inputs], [*actual, *copies], strict=True):
            torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
            significant = [k for k, size in enumerate(wanted.shape) if size > 1]
            assert [found.stride(k) for k in significant] == [wanted.stride(k) for k in significant]
        assert aliases([*actual, *copies]) == aliases([*expected, *inputs])
        return after

    return check
