"""Which casts are exact, against every value that torch casts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch

from inductile.dialects.aten import element_type
from inductile.passes.graph._constants import converted
from inductile.passes.graph._dtypes import holds, is_exact

NARROW = ["bool", "int8", "uint8", "int16", "uint16", "float16", "bfloat16"]
WIDE = [*NARROW, "int32", "int64", "float32", "float64"]


def all_values(name: str) -> torch.Tensor:
    """Every finite value of a type of at most 16 bits."""
    dtype = getattr(torch, name)
    if name == "bool":
        return torch.tensor([False, True])
    bits = torch.arange(2 ** (8 * dtype.itemsize), dtype=torch.int32)
    found = bits.to(torch.uint8 if dtype.itemsize == 1 else torch.uint16).view(dtype)
    return found[found.isfinite()] if dtype.is_floating_point else found


@pytest.mark.parametrize(("narrow", "wide"), [*itertools.product(NARROW, WIDE)])
def test_exact_casts(narrow: str, wide: str) -> None:
    values = all_values(narrow).to(torch.float64)
    kept = all_values(narrow).to(getattr(torch, wide)).to(torch.float64)
    same = bool((values == kept).all()) and not (wide == "bool" and narrow != "bool")
    if wide.startswith(("int", "uint")) and narrow.startswith(("float", "bfloat")):
        same = False  # not even a question: the conversion is undefined out of range
    assert is_exact(element_type(narrow), element_type(wide)) == same


@pytest.mark.parametrize("name", NARROW)
def test_holds_every_value_and_nothing_between(name: str) -> None:
    element = element_type(name)
    values = sorted(set(all_values(name).to(torch.float64).tolist()))
    assert all(holds(element, value) for value in values[:: max(1, len(values) // 500)])
    between = [(a + b) / 2 for a, b in itertools.pairwise(values)][:: max(1, len(values) // 500)]
    assert not any(holds(element, value) for value in between)


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (1, "float32", "int64", 1),
        (1.5, "float32", "float16", 1.5),
        (0.1, "float64", "float32", None),
        (0.1, "float32", "float64", None),
        (300, "int64", "uint8", None),
        (-1, "int64", "uint8", None),
        (2.5, "float32", "bool", True),
        (math.nan, "float32", "bool", True),
        (math.inf, "float32", "float64", math.inf),
        (math.inf, "float32", "int32", None),
        (True, "bool", "float32", 1.0),
        (1j, "complex64", "float32", None),
    ],
)
def test_constants_through_casts(value: Any, source: str, target: str, expected: Any) -> None:
    found = converted(value, element_type(source), element_type(target))
    assert found == expected and type(found) is type(expected)
    if found is not None:
        actual = torch.tensor(value, dtype=getattr(torch, source)).to(getattr(torch, target)).item()
        assert actual == found or math.isnan(actual)
