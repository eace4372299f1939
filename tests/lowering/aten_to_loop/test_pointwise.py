"""Every overload of the pointwise tables against eager, on every dtype that eager takes, with special values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from inductile.backends.reference import run_module
from inductile.dialects.aten import AtenOp, op_class
from inductile.dialects.aten.schema import Argument, Schema
from inductile.lowering.aten_to_loop import RULES

from .harness import faults, lower, overload

inf, nan = float("inf"), float("nan")
DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8, torch.int8,
    torch.bool,
]  # fmt: skip
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -3.0, 6.0, inf, -inf, nan, 0.25, -0.75, 20.5, 1e-3]
INTEGERS = [0, 1, -1, 2, -2, 3, -3, 7, -7, 100, -100, 127, -128, 5, 6, 31]

#: values of arguments that are no tensors; the others keep their defaults
OPTIONS: dict[str, list[Any]] = {
    "approximate": ["none", "tanh"], "rounding_mode": [None, "floor", "trunc"], "decimals": [0, 2, -1],
    "is_result": [False, True], "eps": [None, 1e-2], "threshold": [1.0], "value": [2.0], "scale": [2.0],
    "min": [-1, None], "max": [2.5], "min_val": [-1], "max_val": [1], "alpha": [1, 2], "weight": [0.25, 0.75],
    "lambd": [0.5], "negative_slope": [0.01], "beta": [2.0], "input_scale": [1.0], "n": [0, 1, 2],
    "equal_nan": [False, True], "self_is_result": [False], "self": [2, -1.5], "other": [2, -1.5, 0.5, 3],
    "exponent": [2, 0.5, -1, 3, 0, -0.5, 2.5],
}  # fmt: skip

_LOW = {torch.float16, torch.bfloat16}
_FLOAT = _LOW | {torch.float32, torch.float64}


def _nan_for_inf() -> set[torch.dtype]:
    """Of which dtypes a kernel of gelu gives that; by the version of torch."""
    return {d for d in _FLOAT if torch.nn.functional.gelu(torch.full((64,), inf, dtype=d)).isnan().any()}


#: where eager's own kernels disagree with each other, so that no lowering can agree with all of them
QUIRKS: dict[str, tuple[set[torch.dtype], str]] = {
    "gelu": ({torch.float32, torch.bfloat16} | _nan_for_inf(), "NaN for inf in a vectorised kernel, inf in the scalar"),
    "softshrink": (_LOW, "keeps -0.0 in low precision only"),
    "hardtanh_backward": (_LOW, "NaN passes the gradient in low precision only"),
    "hardshrink_backward": (_LOW, "NaN passes the gradient in low precision only"),
    "softshrink_backward": (_LOW, "NaN passes the gradient in low precision only"),
    "logit_backward": (_FLOAT, "-0.0 counts as 0.0 except in float64, whose vectorised kernel gives 0 for NaN"),
    "logit": (_LOW, "clamps in low precision"),
    "log_sigmoid_backward": (_FLOAT, "reads a buffer that must belong to self; see structured cases"),
    "pow.Tensor_Scalar": ({torch.float16}, "sqrt of -inf is inf in float16 only"),
    "maximum": (_LOW, "which zero of two wins"),
    "max.other": (_LOW, "which zero of two wins"),
    "minimum": (_LOW, "which zero of two wins"),
    "min.other": (_LOW, "which zero of two wins"),
    "fmax": (_LOW, "which zero of two wins"),
    "fmin": (_LOW, "which zero of two wins"),
    "clamp_min.Tensor": (_LOW, "which zero of two wins"),
    "clamp_max.Tensor": (_LOW, "which zero of two wins"),
    "logaddexp2": (_LOW, "the sign of a difference that rounds to zero"),
    "special_i0e": ({torch.float16}, "intermediates in float16"),
    "nextafter": (_LOW, "stays an ATen call in low precision"),
}

#: where the gradient at NaN depends on the instruction set and on the place: scalar kernels, which the last elements
#: of every tensor meet, pass it on, vectorised ones may give NaN. Compared without NaN there; the test
#: of scalar kernels has it
NAN_BY_INSTRUCTION_SET = ("elu_backward", "hardswish_backward")


def pointwise_overloads() -> list[str]:
    return [
        name.removeprefix("aten.")
        for name, rule in RULES.items()
        if rule.lower.__module__.endswith("aten_to_loop.pointwise")
    ]


def values(dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.tensor(FLOATS, dtype=dtype)
    if dtype == torch.bool:
        return torch.tensor([True, False, True, True])
    if dtype == torch.uint8:
        return torch.tensor([*map(abs, INTEGERS), 200, 255], dtype=dtype)
    return torch.tensor(INTEGERS, dtype=dtype)


def tensors(schema: Schema, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Every pair of values by broadcasting; masks are bools."""
    several = sum(argument.is_tensor for argument in schema.arguments) > 1
    views = [values(dtype)[:, None], values(dtype)[None, :]] if several else [values(dtype)]
    chosen: dict[str, torch.Tensor] = {}
    for argument in schema.tensors:
        if argument.name in ("mask", "condition"):
            chosen[argument.name] = (torch.arange(views[0].numel()) % 2 == 0).reshape(views[0].shape)
        elif schema.packet == "masked_fill" and argument.name == "value":
            chosen[argument.name] = values(dtype)[2]
        else:
            chosen[argument.name] = views[len(chosen) % len(views)]
    return chosen


def choices(argument: Argument) -> list[tuple[str, Any]]:
    if argument.name in OPTIONS:
        return [(argument.name, value) for value in OPTIONS[argument.name]]
    return [(argument.name, argument.default)]


def calls(name: str, dtype: torch.dtype) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Positional and keyword arguments that eager takes."""
    cls = op_class(f"aten.{name}")
    assert cls is not None and issubclass(cls, AtenOp)
    schema = cls.schema
    fixed = tensors(schema, dtype)
    options = [choices(argument) for argument in schema.arguments if not argument.is_tensor]
    for combination in itertools.product(*options):
        given = {**fixed, **dict(combination)}
        positional = [given.pop(a.name) for a in schema.arguments if not a.kwarg_only]
        try:
            overload(name)(*positional, **given)
        except (RuntimeError, NotImplementedError, TypeError):
            continue  # a dtype or an option that eager does not take
        yield positional, given


#: overloads that no dtype here can check, and why
CHECKED_ELSEWHERE = {
    "log_sigmoid_backward": "structured cases, with a buffer that belongs to self",
    "logit_backward": "bounds that cross, in tests/semantics",
    "_masked_scale": "exists on CUDA only",
}


@pytest.mark.rotates(2)
@pytest.mark.parametrize("name", pointwise_overloads())
def test_as_eager(name: str) -> None:
    quirky, _ = QUIRKS.get(name, (set(), ""))
    checked = 0
    for dtype in DTYPES:
        if dtype in quirky:
            continue
        for positional, keywords in calls(name, dtype):
            checked += 1
            if name in NAN_BY_INSTRUCTION_SET:
                *before, point = positional
                positional = [*before, torch.where(point.isnan(), 0.5, point)]
            options = [a for a in (*positional, *keywords.values()) if not isinstance(a, torch.Tensor)]
            assert faults(name, *positional, **keywords) == [], f"{dtype}, {options}"
    assert checked or name in CHECKED_ELSEWHERE


@pytest.mark.parametrize("dtype", [each for each in DTYPES if each.is_floating_point], ids=str)
def test_gradients_at_nan_as_in_scalar_kernels(dtype: torch.dtype) -> None:
    gradient, point = torch.tensor([2.0, -3.0], dtype=dtype), torch.tensor([float("nan"), 1.0], dtype=dtype)
    assert faults("hardswish_backward", gradient, point) == []
    assert faults("elu_backward", gradient, 1, 2.0, 1.0, False, point) == []


def exact_faults(name: str, *arguments: Any) -> list[Any]:
    """Where results differ in any bit: what is rounded when decides those of low precision."""
    module, inputs, expected = lower(name, arguments, {}, emulate_precision_casts=True)
    (got,) = run_module(module, inputs)
    return [] if torch.equal(got, expected[0]) else [(got != expected[0]).nonzero().tolist()]


def test_zero_dimensional_operands_do_not_widen() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        low = torch.linspace(0.1, 3.0, 64, dtype=dtype)
        for other in (torch.tensor(0.3), torch.tensor(3), torch.tensor(1.1, dtype=torch.float64)):
            for name in ("add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor", "gt.Tensor", "maximum", "atan2"):
                assert exact_faults(name, low, other) == []
        for name in ("add.Scalar", "mul.Scalar", "div.Scalar", "eq.Scalar", "rsub.Scalar", "remainder.Scalar"):
            assert exact_faults(name, low, 0.3) == []
    assert faults("add.Tensor", torch.tensor([1, 2], dtype=torch.int32), torch.tensor(1.5)) == []
    assert faults("eq.Tensor", torch.tensor([1, 2], dtype=torch.uint8), torch.tensor(-1)) == []


def test_layouts_and_empty_tensors() -> None:
    transposed = torch.arange(6.0).reshape(2, 3).t()
    channels_last = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for x in (transposed, channels_last, torch.empty(0, 3), torch.tensor(2.0), torch.ones(1).expand(3)):
        assert faults("add.Tensor", x, x) == []
        assert faults("exp", x) == []
