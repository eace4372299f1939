"""Samples of torch's operator database as (function, arguments) pairs that can be compiled and compared."""

from __future__ import annotations

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
        return f"{self.op.name}{variant}:{self.dtype}{kind}"

    @property
    def is_random(self) -> bool:
        """Whether only metadata can be compared."""
        parts = self.op.name.removeprefix("nn.functional.").removeprefix("_refs.")
        return any(self.op.name == r or parts == r or parts.startswith(f"{r}_") or f"{r}" == parts for r in RANDOM) or (
            "dropout" in self.op.name
        )


def all_cases() -> list[Case]:
    """Every pair that the runner covers, in a fixed order."""
    cases: list[Case] = []
    for op in op_db:
        supported = op.supported_dtypes("cpu")
        cases += [Case(op, name) for name, dtype in DTYPES.items() if dtype in supported]
        if torch.float32 in supported:
            cases.append(Case(op, "float32", dynamic=True))
            if op.supports_autograd and torch.float32 in op.supported_backward_dtypes("cpu"):
                cases.append(Case(op, "float32", gradient=True))
    return cases


def samples(case: Case, limit: int | None) -> Iterator[tuple[Callable[..., Any], list[torch.Tensor]]]:
    """(function of tensors, tensors) for each sample; `limit` samples at most, small ones spread over the list."""
    torch.manual_seed(crc32(case.name.encode()))  # the same values in every run, whatever ran before
    found = list(case.op.sample_inputs("cpu", DTYPES[case.dtype], requires_grad=case.gradient))
    if limit is not None and len(found) > limit:
        found = found[:: max(1, len(found) // limit)][:limit]
    for sample in found:
        yield bind(case, sample)


def cotangent(output: torch.Tensor) -> torch.Tensor:
    """A gradient of an output with distinct elements; ones would leave rounding noise where gradients cancel."""
    flat = torch.linspace(0.5, 1.5, output.numel(), dtype=output.dtype, device=output.device)
    return flat.reshape(output.shape)


def bind(case: Case, sample: Any) -> tuple[Callable[..., Any], list[torch.Tensor]]:
    """Close over everything of a sample that is no tensor."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    op, process = case.op.op, sample.output_process_fn_grad

    def call(*tensors: torch.Tensor) -> Any:
        filled = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            filled[place] = tensor
        value, args, kwargs = pytree.tree_unflatten(filled, spec)
        return op(value, *args, **kwargs)

    def call_with_gradient(*tensors: torch.Tensor) -> Any:
        outputs = process(call(*tensors))
        chosen = [o for o in pytree.tree_leaves(outputs) if isinstance(o, torch.Tensor) and o.requires_grad]
        wanted = [t for t in tensors if t.requires_grad]
        if not chosen or not wanted:
            return outputs
        grads = torch.autograd.grad(chosen, wanted, [cotangent(o) for o in chosen], allow_unused=True)
        return [o.detach() for o in chosen], [g for g in grads if g is not None]

    return (call_with_gradient if case.gradient else call), [leaves[k] for k in places]


def widened(case: Case) -> torch.dtype | None:
    """Type in which a case is computed for reference: where eager's own rounding errors exceed the tolerance."""
    if case.gradient:
        return torch.float64
    return torch.float32 if case.dtype in ("float16", "bfloat16") else None
