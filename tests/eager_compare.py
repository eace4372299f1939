"""Compare a compiled function with eager, strictly.

Values, dtypes, shapes, significant strides, the sign of zero, aliasing among outputs and with inputs, the inputs
afterwards, and whether an error is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo import trace_rules
from torch._prims_common import check_significant_strides
from torch.utils import _pytree as pytree

Function = Callable[..., Any]


def clone_input(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same storage size, strides, offset and requires_grad."""
    if tensor.layout != torch.strided or tensor.is_quantized:
        return tensor.clone()
    count = tensor.untyped_storage().nbytes() // tensor.element_size()
    base = torch.as_strided(tensor.detach(), (count,), (1,), 0).clone()
    copy = torch.as_strided(base, tensor.size(), tensor.stride(), tensor.storage_offset())
    if tensor.is_conj():
        copy = copy.conj()
    if tensor.is_neg():
        copy = torch._neg_view(copy)  # pyright: ignore[reportPrivateImportUsage]
    return copy.requires_grad_(tensor.requires_grad)


def clone_inputs(args: Any) -> Any:
    """Copies of all tensors in a structure; one storage shared by several stays shared only within each tensor."""
    return pytree.tree_map_only(torch.Tensor, clone_input, args)


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    """assert_close's own tolerances."""
    from torch.testing._comparison import get_tolerances

    rtol, atol = get_tolerances(dtype, rtol=None, atol=None)
    return {"rtol": rtol, "atol": atol}


def difference(expected: Any, got: Any, values: bool = True, reference: Any = None) -> str | None:
    """How one output differs, or None. With a `reference` computed in a wider type, `got` may be as far from
    it as twice what `expected` is, or as the dtype's tolerance."""
    if not isinstance(expected, torch.Tensor) or not isinstance(got, torch.Tensor):
        same = expected == got or (expected != expected and got != got)
        return None if type(expected) is type(got) and same else f"{expected!r} -> {got!r}"
    for name in ("dtype", "shape", "layout", "device"):
        if getattr(expected, name) != getattr(got, name):
            return f"{name} {getattr(expected, name)} -> {getattr(got, name)}"
    if expected.layout == torch.strided and not check_significant_strides(expected, got, only_cuda=False)[0]:
        return f"stride {expected.stride()} -> {got.stride()}"
    if not values:
        return None
    return _value_difference(expected, got, reference)


def _value_difference(expected: torch.Tensor, got: torch.Tensor, reference: Any) -> str | None:
    try:
        torch.testing.assert_close(got, expected, equal_nan=True, check_stride=False)
    except AssertionError as error:
        if reference is None or not _as_good(expected, got, reference):
            reason = " ".join(str(error).split())[:160]
            return f"values {expected.flatten()[:4].tolist()} -> {got.flatten()[:4].tolist()} ({reason})"
    floating = expected.dtype.is_floating_point and expected.numel() and expected.dtype.itemsize > 1
    if floating and expected.layout == torch.strided and not expected.isnan().any():
        zeros = (expected == 0) & (got == 0)
        if not torch.equal(expected.signbit()[zeros], got.signbit()[zeros]):
            return "sign of zero"
    return None


def _as_good(expected: torch.Tensor, got: torch.Tensor, reference: torch.Tensor) -> bool:
    limits = tolerance(expected.dtype)
    wide = reference.to(torch.float64)
    ours, eagers = (got.double() - wide).abs(), (expected.double() - wide).abs()
    allowed = 2 * eagers + limits["atol"] + limits["rtol"] * wide.abs()
    agree = (ours <= allowed) | (got.double() == wide) | (got.isnan() & wide.isnan())
    return bool(agree.all())


def _storage(tensor: torch.Tensor) -> int | None:
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return None


def aliases(outputs: Sequence[Any], inputs: Sequence[Any]) -> set[tuple[str, str]]:
    """Pairs of outputs, and of an input and an output, that share a storage."""
    named = [(f"out{k}", t) for k, t in enumerate(outputs) if isinstance(t, torch.Tensor)]
    named += [(f"in{k}", t) for k, t in enumerate(inputs) if isinstance(t, torch.Tensor)]
    places = [(name, _storage(t)) for name, t in named if t.numel()]
    return {
        (a, b)
        for i, (a, pa) in enumerate(places)
        for b, pb in places[i + 1 :]
        if pa is not None and pa == pb and not (a.startswith("in") and b.startswith("in"))
    }


def run(function: Function, args: Any, seed: int = 0) -> tuple[list[Any] | None, Exception | None]:
    """(flat outputs, None) or (None, the error)."""
    torch.manual_seed(seed)
    try:
        return pytree.tree_leaves(function(*args)), None
    except Exception as error:  # eager raising is part of its meaning
        return None, error


def compare(
    function: Function,
    args: Sequence[Any],
    backend: Any = "inductile",
    *,
    values: bool = True,
    dynamic: bool | None = None,
    options: dict[str, Any] | None = None,
    reference: Function | None = None,
    around: Callable[[Function], Function] | None = None,
) -> list[str]:
    """Faults of `torch.compile(function, backend)` on `args` against eager; [] when there are none.

    reference: the same computation in a wider type, for outputs whose rounding errors exceed the tolerance; it has to
               write to its arguments as the function does
    around:    what is done with the function in eager, once it is compiled, e.g. to take its gradients too
    """
    around = around or (lambda f: f)
    skipped = trace_rules.check_verbose(function)
    assert not skipped.skipped, f"Dynamo would run the function in eager: {skipped.reason}"
    eager_args, compiled_args = clone_inputs(args), clone_inputs(args)
    expected, eager_error = run(around(function), eager_args)
    torch._dynamo.reset()
    extra: dict[str, Any] = {"options": options} if options else {}
    compiled = around(torch.compile(function, backend=backend, dynamic=dynamic, **extra))
    got, error = run(compiled, compiled_args)
    if expected is None or got is None:
        agreed = eager_error is not None and error is not None
        return [] if agreed else [f"eager: {_short(eager_error)}; compiled: {_short(error)}"]
    exact_args = clone_inputs(args)
    exact = run(around(reference), exact_args)[0] if reference is not None else None
    faults = [f"number of outputs {len(expected)} -> {len(got)}"] if len(expected) != len(got) else []
    for k, (e, g) in enumerate(zip(expected, got, strict=False)):
        fault = difference(e, g, values, exact[k] if exact is not None and k < len(exact) else None)
        faults += [f"out{k}: {fault}"] if fault else []
    flat_eager, flat_compiled = pytree.tree_leaves(eager_args), pytree.tree_leaves(compiled_args)
    changed = aliases(expected, flat_eager) ^ aliases(got, flat_compiled)
    if changed:
        faults.append(f"aliasing {sorted(changed)}")
    flat_exact = pytree.tree_leaves(exact_args) if exact is not None else [None] * len(flat_eager)
    for k, (e, g, wide) in enumerate(zip(flat_eager, flat_compiled, flat_exact, strict=True)):
        fault = difference(e, g, values, wide)
        faults += [f"input {k} afterwards: {fault}"] if fault else []
    return faults


def _short(error: Exception | None) -> str:
    if error is None:
        return "no error"
    lines = str(error).strip().splitlines()
    if len(lines) > 1 and lines[0].startswith("backend="):  # Dynamo's heading; the cause stands below
        lines = lines[1:]
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"
