"""Samples of torch's operator database as (function, arguments) pairs that can be compiled and compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in ("float32", "float64", "int64", "int32", "uint8", "bool", "float16", "bfloat16", "complex64")
}
#: where samples are made; the runner's `--device` changes it
DEVICE = "cpu"
#: how the tensors of samples lie in memory, a key of `LAYOUTS`; the runner's `--layout` changes it
LAYOUT = ""
#: values differ from eager's by nature: compared in metadata only
RANDOM = (
    "bernoulli", "cauchy", "dropout", "empty", "exponential", "geometric", "log_normal", "multinomial", "normal",
    "rand", "randint", "randn", "rrelu", "uniform", "new_empty", "resize_", "empty_like", "empty_strided",
    "empty_permuted", "new_empty_strided", "randint_like", "rand_like", "randn_like",
    "nn.functional.scaled_dot_product_attention", "pca_lowrank", "svd_lowrank", "torch._native_batch_norm_legit",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One operator entry with one dtype."""

    op: Any
    dtype: str
    dynamic: bool = False
    gradient: bool = False

    @property
    def name(self) -> str:
        """`add:float32`, `norm.fro:float32:dynamic`, `exp:float32:gradient`."""
        variant = f".{self.op.variant_test_name}" if self.op.variant_test_name else ""
        kind = ":dynamic" if self.dynamic else ":gradient" if self.gradient else ""
        return f"{self.op.name}{variant}:{self.dtype}{kind}{f'@{LAYOUT}' if LAYOUT else ''}"

    @property
    def is_random(self) -> bool:
        """Whether only metadata can be compared."""
        parts = self.op.name.removeprefix("nn.functional.").removeprefix("_refs.")
        return any(self.op.name == r or parts == r or parts.startswith(f"{r}_") or f"{r}" == parts for r in RANDOM) or (
            "dropout" in self.op.name
        )


@dataclass(frozen=True)
class Sample:
    """A function of tensors, the tensors, and what to do with the function once it is compiled."""

    function: Callable[..., Any]
    tensors: list[torch.Tensor]
    around: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None


def all_cases() -> list[Case]:
    """Every pair that the runner covers, in a fixed order."""
    cases: list[Case] = []
    for op in op_db:
        supported = op.supported_dtypes(DEVICE)
        cases += [Case(op, name) for name, dtype in DTYPES.items() if dtype in supported]
        if torch.float32 in supported:
            cases.append(Case(op, "float32", dynamic=True))
            if op.supports_autograd and torch.float32 in op.supported_backward_dtypes(DEVICE):
                cases.append(Case(op, "float32", gradient=True))
    return cases


def samples(case: Case, limit: int | None) -> Iterator[Sample]:
    """The samples of a case; `limit` at most, which are spread over the list."""
    torch.manual_seed(crc32(case.name.encode()))  # the same values in every run, whatever ran before
    found = list(case.op.sample_inputs(DEVICE, DTYPES[case.dtype], requires_grad=case.gradient))
    if limit is not None and len(found) > limit:
        found = found[:: max(1, len(found) // limit)][:limit]
    for sample in found:
        function, tensors = bind(case, sample)
        if LAYOUT and not lay_out(tensors, LAYOUTS[LAYOUT]):
            continue
        yield Sample(function, tensors, with_gradient(sample.output_process_fn_grad) if case.gradient else None)


def bind(case: Case, sample: Any) -> tuple[Callable[..., Any], list[torch.Tensor]]:
    """The call of an operator as a function of the sample's tensors, as a user would write it.

    Scalars stand in its text as literals; under dynamic shapes they are read from a list, which makes them symbolic.
    What has no literal (dtypes, generators) is read from that list too.
    """
    tensors: list[torch.Tensor] = []
    constants: list[Any] = []

    def text(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return f"t{len(tensors) - 1}"
        if type(value) in (list, tuple):
            inner = "".join(f"{text(item)}, " for item in value)
            return f"[{inner}]" if type(value) is list else f"({inner})"
        if type(value) is dict and all(type(key) is str for key in value):
            return "{" + "".join(f"{key!r}: {text(item)}, " for key, item in value.items()) + "}"
        if not case.dynamic and _has_literal(value):
            return repr(value)
        constants.append(value)
        return f"constants[{len(constants) - 1}]"

    words = [text(sample.input), *map(text, sample.args), *(f"{k}={text(v)}" for k, v in sample.kwargs.items())]
    names = ", ".join(f"t{k}" for k in range(len(tensors)))
    # the text claims to be of this file: for one that is in no module Dynamo searches all modules, many times
    scope = {"op": case.op.op, "constants": constants, "__name__": __name__}
    source = f"def sample({names}):\n    return op({', '.join(words)})\n"
    exec(compile(source, __file__, "exec"), scope)
    return scope["sample"], tensors


def _channels_last(rank: int) -> list[int]:
    """Dimensions from the outermost to the innermost: the second one lies innermost."""
    return [0, *range(2, rank), 1] if rank > 3 else list(range(rank))


def _transposed(rank: int) -> list[int]:
    """The last two dimensions change places."""
    return [*range(rank - 2), rank - 1, rank - 2] if rank > 1 else list(range(rank))


#: name -> the order of the dimensions in memory, given how many there are
LAYOUTS: dict[str, Callable[[int], list[int]]] = {"channels_last": _channels_last, "transposed": _transposed}


def lay_out(tensors: list[torch.Tensor], order: Callable[[int], list[int]]) -> bool:
    """Give contiguous tensors another layout, in place of the list; whether one is another now."""
    made: dict[int, torch.Tensor] = {}
    for tensor in tensors:
        if tensor.layout is torch.strided and tensor.is_contiguous() and tensor.numel():
            dims = order(tensor.dim())
            moved = tensor.detach().permute(dims).clone(memory_format=torch.contiguous_format)
            moved = moved.permute([dims.index(k) for k in range(tensor.dim())])
            if moved.stride() != tensor.stride():
                made[id(tensor)] = moved.requires_grad_(tensor.requires_grad)
    tensors[:] = [made.get(id(tensor), tensor) for tensor in tensors]
    return bool(made)


def _has_literal(value: Any) -> bool:
    """Whether `repr` of a value is Python that gives it back."""
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) in (bool, int, str)


def cotangent(output: torch.Tensor) -> torch.Tensor:
    """A gradient of an output with distinct elements; ones would leave rounding noise where gradients cancel."""
    flat = torch.linspace(0.5, 1.5, output.numel(), dtype=output.dtype, device=output.device)
    return flat.reshape(output.shape)


def with_gradient(process: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What makes of a function, compiled or not, one that returns its outputs and the gradients of its inputs.

    process: a sample's `output_process_fn_grad`, which makes outputs unique (signs of eigenvectors)
    """

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*tensors: torch.Tensor) -> Any:
            outputs = process(function(*tensors))
            chosen = [o for o in pytree.tree_leaves(outputs) if isinstance(o, torch.Tensor) and o.requires_grad]
            wanted = [t for t in tensors if t.requires_grad]
            if not chosen or not wanted:
                return outputs
            grads = torch.autograd.grad(chosen, wanted, [cotangent(o) for o in chosen], allow_unused=True)
            return [o.detach() for o in chosen], [g for g in grads if g is not None]

        return call

    return around


def widened(case: Case) -> torch.dtype | None:
    """Type in which a case is computed for reference: where eager's own rounding errors exceed the tolerance."""
    if case.gradient:
        return torch.float64
    return torch.float32 if case.dtype in ("float16", "bfloat16") else None
