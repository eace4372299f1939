"""Inputs that are the negative or the conjugate of what their memory holds.

`x.conj()` and the `imag` of it move nothing: they set a bit, and each ATen call reads the memory accordingly. Kernels
read it as it lies, so a program computes with copies of such inputs; those that it writes are copied back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import torch
from xdsl.ir import SSAValue

from ...dialects import host, kernel
from ...dialects.aten import TensorType
from ...dialects.aten.types import torch_name
from ...passes.analysis.lifetimes import viewed
from ...passes.analysis.memory_order import written_operands
from .constants import Constants
from .copies import OnCopies

#: the imaginary part of a conjugate is the only public source of the negative bit
_COMPLEX = frozenset({"complex32", "complex64", "complex128"})
_CARRIERS = frozenset({"float16", "float32", "float64"}) | _COMPLEX
_SPELLED = 4
"""Most tests of a condition that are written out."""


def check_of_inputs(function: host.FuncOp, positions: Collection[int] | None, constants: Constants) -> str:
    """A Python condition on the arguments `a0`, `a1`, ...: whether one of them carries a bit; "" where none can.

    positions: of the arguments to look at; those whose dtype can carry a bit where they are not given
    """
    tests: list[str] = []
    dtypes = {
        f"a{position}": torch_name(argument.type.element)
        for position, argument in enumerate(function.body.block.args)
        if isinstance(argument.type, TensorType) and argument.first_use is not None
        if positions is None or position in positions
    }
    negatives = [name for name, dtype in dtypes.items() if positions is not None or dtype in _CARRIERS]
    conjugates = [name for name, dtype in dtypes.items() if dtype in _COMPLEX]
    for method, names in (("is_neg", negatives), ("is_conj", conjugates)):
        if len(names) > _SPELLED:
            tests.append(f"any(map({constants.fixed(method, getattr(torch.Tensor, method))}, ({', '.join(names)})))")
        else:
            tests += [f"{name}.{method}()" for name in names]
    return " or ".join(tests)


def run_on_copies(function: host.FuncOp, kernels: Mapping[str, kernel.FuncOp]) -> OnCopies:
    """How a program runs on inputs of which some carry a bit.

    kernels: those of the program by name
    """
    return OnCopies(function.sym_name.data, frozenset(written_arguments(function, kernels)))


def may_carry(value: SSAValue) -> bool:
    """Whether the dtype of a tensor is one that can have a bit."""
    return isinstance(value.type, TensorType) and torch_name(value.type.element) in _CARRIERS


def written_arguments(function: host.FuncOp, kernels: Mapping[str, kernel.FuncOp]) -> Iterator[int]:
    """Positions of the arguments that the program writes to, through views too."""
    for op in function.body.block.ops:
        for value in written_operands(op, kernels):
            memory = viewed(value)
            if memory in function.body.block.args:
                yield function.body.block.args.index(memory)
