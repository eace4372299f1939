"""Comparing what two modules do to the same inputs, and making inputs for a module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from ...lowering.fx_private import without_modes
from ...passes.common.results import results_of_any_strides
from ...records import dataclass
from .errors import InputError, InterpretationError
from .inputs import random_inputs
from .run import find_function, run_module
from .tensors import same_memory, same_strides

__all__ = [
    "Outcome", "clone_inputs", "compare_modules", "differences", "observe", "outcome_differences", "random_inputs",
]  # fmt: skip

#: dtype -> relative and absolute tolerance of values computed in their own type in another order
_NARROW: dict[torch.dtype, tuple[float, float]] = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
}
_DOUBLE = (1e-7, 1e-7)
_WIDE_ATOL = 1e-7


@dataclass(frozen=True)
class Outcome:
    """What a run left: results, or the error that the program raised, and the inputs afterwards.

    any_strides: numbers of the results whose strides mean nothing
    """

    results: list[Any]
    inputs: list[Any]
    wide: bool
    error: Exception | None = None
    any_strides: frozenset[int] = frozenset()


def clone_inputs(inputs: Sequence[Any]) -> list[Any]:
    """Copies with the same layouts; inputs that share memory share the copy's."""
    copies: dict[int, torch.Tensor] = {}
    cloned: list[Any] = []
    for value in inputs:
        if not isinstance(value, torch.Tensor):
            cloned.append(value)
            continue
        key = value.untyped_storage()._cdata
        if key not in copies:
            count = value.untyped_storage().nbytes() // value.element_size()
            copies[key] = value.as_strided((count,), (1,), 0).clone()
        base = copies[key] if copies[key].dtype == value.dtype else copies[key].view(value.dtype)
        cloned.append(base.as_strided(value.shape, value.stride(), value.storage_offset()))
    return cloned


def compare_modules(
    before: ModuleOp,
    after: ModuleOp,
    inputs: Sequence[torch.Tensor | int],
    *,
    function: str | None = None,
    wide: bool = False,
    values: bool = True,
    references: Mapping[str, Any] | None = None,
) -> list[str]:
    """How `after` differs from `before` on inputs, one line a difference; the inputs are left alone.

    Compared are results (dtype, shape, strides, values, NaN, infinities, the sign of zero), inputs afterwards,
    aliases among results and inputs, and what the program raises. `wide` computes floats in float64 with the
    program's casts, so that two orders of the same operations agree closely. Without `values` only the rest.
    `references` are those of `run_module`.

    Raises what `run_module` raises for inputs that do not fit, or when `before` has no meaning.
    """
    expected = observe(before, inputs, function=function, wide=wide, references=references)
    got = observe(after, inputs, function=function, wide=wide, references=references)
    return outcome_differences(expected, got, values=values)


def observe(
    module: ModuleOp,
    inputs: Sequence[torch.Tensor | int],
    *,
    function: str | None = None,
    wide: bool = False,
    references: Mapping[str, Any] | None = None,
) -> Outcome:
    """What a function does to copies of inputs, with random numbers from a fixed seed."""
    with without_modes():
        own = clone_inputs(inputs)
        try:
            with torch.random.fork_rng():  # the caller's generators stay as they are
                torch.manual_seed(0)
                results = run_module(module, own, function, wide=wide, references=references)
        except Exception as error:  # an exception is part of what the program does
            return Outcome([], own, wide, error)
    called = find_function(module, function)
    free = results_of_any_strides(called) if isinstance(called, FuncOp) else frozenset[int]()
    return Outcome(results, own, wide, any_strides=free)


def outcome_differences(expected: Outcome, got: Outcome, *, values: bool = True) -> list[str]:
    """How one outcome differs from another, as `compare_modules` says it."""
    if isinstance(expected.error, InputError | InterpretationError):
        raise expected.error
    if expected.error is not None or got.error is not None:
        return _error_differences(expected.error, got.error)
    if len(expected.results) != len(got.results):
        return [f"{len(expected.results)} results -> {len(got.results)}"]
    found: list[str] = []
    with without_modes():
        for number, pair in enumerate(zip(expected.results, got.results, strict=True)):
            strides = number not in expected.any_strides
            found += [
                f"result {number}: {d}" for d in differences(*pair, values=values, wide=got.wide, strides=strides)
            ]
        for number, pair in enumerate(zip(expected.inputs, got.inputs, strict=True)):
            found += [f"input {number} afterwards: {d}" for d in differences(*pair, values=values, wide=got.wide)]
    return found + _alias_differences(_aliases(expected), _aliases(got))


def _error_differences(before: Exception | None, after: Exception | None) -> list[str]:
    texts = [f"{type(e).__name__}: {e}" if e else "no error" for e in (before, after)]
    same = type(before) is type(after) and not isinstance(after, InterpretationError)
    return [] if same else [f"{texts[0]} -> {texts[1]}"]


def differences(expected: Any, got: Any, *, values: bool = True, wide: bool = False, strides: bool = True) -> list[str]:
    """How one value differs from another, in words; empty when it does not. Without `strides` these are not compared.

    Floats are compared with torch's usual tolerances for their dtype, the absolute one times the largest magnitude;
    for results of a `wide` run the absolute one is smaller.
    """
    if not isinstance(expected, torch.Tensor) or not isinstance(got, torch.Tensor):
        same = type(expected) is type(got) and (expected == got or (expected != expected and got != got))
        return [] if same else [f"{expected!r} -> {got!r}"]
    if expected.dtype != got.dtype:
        return [f"dtype {expected.dtype} -> {got.dtype}"]
    if expected.shape != got.shape:
        return [f"shape {tuple(expected.shape)} -> {tuple(got.shape)}"]
    found: list[str] = []
    if strides and not same_strides(got, expected.stride()):
        found.append(f"strides {expected.stride()} -> {got.stride()}")
    if values and expected.numel() and not _same_bits(expected, got):
        found += _value_differences(expected, got.to(expected.device), wide)
    return found


def _same_bits(expected: torch.Tensor, got: torch.Tensor) -> bool:
    x, y = (
        t.flatten().clone(memory_format=torch.contiguous_format).view(torch.uint8)
        for t in (expected, got.to(expected.device))
    )
    return torch.equal(x, y)


def _value_differences(expected: torch.Tensor, got: torch.Tensor, wide: bool) -> list[str]:
    if not (expected.is_floating_point() or expected.is_complex()):
        return _report("values", expected, got, expected != got)
    dtype = torch.complex128 if expected.is_complex() else torch.float64
    rtol, atol = _NARROW.get(expected.dtype, _DOUBLE)
    atol = min(atol, _WIDE_ATOL) if wide else atol
    x, y = expected.to(dtype), got.to(dtype)
    magnitude = x[x.isfinite()].abs()
    scale = max(1.0, float(magnitude.max())) if magnitude.numel() else 1.0
    close = torch.isclose(y, x, rtol=rtol, atol=atol * scale, equal_nan=True)
    found = _report("values", expected, got, ~close)
    if not expected.is_complex():
        zeros = (x == 0) & (y == 0)
        found += _report("signs of zero", expected, got, zeros & (x.signbit() != y.signbit()))
    return found


def _report(what: str, expected: torch.Tensor, got: torch.Tensor, wrong: torch.Tensor) -> list[str]:
    count = int(wrong.sum())
    if not count:
        return []
    at = tuple(wrong.nonzero()[0].tolist())
    pair = f"{expected[at].item()} -> {got[at].item()}"
    return [f"{what} at {list(at)}: {pair} ({count} of {expected.numel()} elements)"]


def _aliases(outcome: Outcome) -> set[tuple[str, str]]:
    named = [(f"input {k}", v) for k, v in enumerate(outcome.inputs)]
    named += [(f"result {k}", v) for k, v in enumerate(outcome.results)]
    tensors = [(name, v) for name, v in named if isinstance(v, torch.Tensor) and v.numel()]
    return {
        (a, b)
        for k, (a, x) in enumerate(tensors)
        for b, y in tensors[k + 1 :]
        if same_memory(x, y) and b.startswith("result")
    }


def _alias_differences(before: set[tuple[str, str]], after: set[tuple[str, str]]) -> list[str]:
    lost = [f"{a} and {b} no longer share memory" for a, b in sorted(before - after)]
    return lost + [f"{a} and {b} share memory now" for a, b in sorted(after - before)]
