"""IR text to Triton kernels that run in Triton's interpreter, beside the reference interpreter on the same text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass

from inductile.backends.triton import TritonKernel, emit
from inductile.dialects import kernel
from inductile.dialects.context import new_context
from inductile.lowering.pipeline import named_passes
from inductile.lowering.registry import with_options
from inductile.passes.kernel.gpu_blocks import GpuBlocks

from ...versions import triton_version

Tensor = torch.Tensor


def in_blocks(passes: Sequence[ModulePass], blocks: GpuBlocks) -> list[ModulePass]:
    """Passes with the numbers of a schedule for a GPU."""
    return with_options(passes, {name: (value,) for name, value in vars(blocks).items()})


def gpu_schedule(blocks: GpuBlocks | None = None) -> list[ModulePass]:
    """The passes that schedule kernels for an H100."""
    passes = named_passes("schedule", "cuda:90")
    return passes if blocks is None else in_blocks(passes, blocks)


#: kernels on which the AMD compiler of Triton 3.6 ends the process (SIGSEGV or SIGABRT); 3.8 compiles them
CRASHES = frozenset({"column_sum", "f32", "two_scales"})


def skip_crash_of_triton(name: str, target: str) -> None:
    """Skip a kernel on which Triton itself would end the process of the tests."""
    if target == "hip:gfx942" and name in CRASHES and triton_version() < (3, 7):
        pytest.skip("Triton 3.6 crashes on this kernel for hip:gfx942")


def parse(text: str) -> ModuleOp:
    """A verified module."""
    module = Parser(new_context(), text).parse_module()
    module.verify()
    return module


def kernel_of(text: str) -> TritonKernel:
    """The one kernel of a text."""
    (found,) = emit(parse(text))
    return found


def with_host(text: str) -> str:
    """The kernel and a host function that launches it on flat tensors and returns them all; symbols are arguments."""
    (function,) = (op for op in parse(text).ops if isinstance(op, kernel.FuncOp))
    types = [argument.type for argument in function.body.block.args]
    tensors = [f"!aten.tensor<({t.data.extent})x{t.data.element}>" for t in types]  # pyright: ignore
    names = [s.data for s in function.symbols]
    arguments = [f"%b{k}: {t}" for k, t in enumerate(tensors)] + [f"%{n}: index" for n in names]
    declared = ", ".join(f"#sym.symbol<{n}, arg = {len(tensors) + k}>" for k, n in enumerate(names))
    buffers = ", ".join(f"%b{k}" for k in range(len(tensors)))
    return f"""{text}
host.func @program({", ".join(arguments)}) -> ({", ".join(tensors)}) symbols [{declared}] {{
  host.launch @{function.sym_name.data}({buffers}) [{", ".join(names)}]
  host.return {buffers}
}}"""


def reference(text: str, buffers: Sequence[Tensor], symbols: Mapping[str, int]) -> list[Tensor]:
    """Buffers behind a run of the reference interpreter."""
    from inductile.backends.reference import run_module

    copies = [b.reshape(-1).clone() for b in buffers]
    run_module(parse(with_host(text)), [*copies, *symbols.values()], strict=False)
    return [c.reshape(b.shape) for c, b in zip(copies, buffers, strict=True)]


def interpreted(text: str, buffers: Sequence[Tensor], symbols: Mapping[str, int]) -> list[Tensor]:
    """Buffers behind a run of Triton's interpreter. RuntimeError with what the kernel reported."""
    from inductile.backends.triton.interpreter import run_interpreted

    copies = [b.clone() for b in buffers]
    errors = run_interpreted(kernel_of(text), copies, symbols)
    if errors:
        raise RuntimeError(errors[0])
    return copies


def check(
    text: str,
    buffers: Sequence[Tensor],
    symbols: Mapping[str, int] | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    zeros: bool = True,
) -> list[Tensor]:
    """Both interpreters agree on all buffers, also on signs of zeros unless told otherwise; returns Triton's."""
    symbols = symbols or {}
    expected = reference(text, buffers, symbols)
    got = interpreted(text, buffers, symbols)
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=rtol, atol=atol, equal_nan=True)
        if zeros and one.dtype.is_floating_point:
            both = (one == 0) & (other == 0)
            assert torch.equal(one.signbit() & both, other.signbit() & both), "signs of zero differ"
    return got
