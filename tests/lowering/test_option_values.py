"""Options of passes: numbers out of range and unknown words are refused."""

from __future__ import annotations

from dataclasses import fields

import pytest

from inductile.errors import UserError
from inductile.lowering.registry import LOWERINGS, available_passes, module_of_pass, parse_passes


def _numbers() -> list[tuple[str, str]]:
    own = [name for name in available_passes() if module_of_pass(name) and name not in LOWERINGS]
    return [
        (name, field.name.replace("_", "-"))
        for name in own
        for field in fields(available_passes()[name]())
        if field.type in ("int", "float")
    ]


def test_no_number_of_a_pass_is_negative() -> None:
    cases = _numbers()
    assert ("graph-expand-products", "vectors") in cases
    for name, option in cases:
        with pytest.raises(UserError, match=f"option '{option}' of pass '{name}' is -3.*; it takes [0-9.]+ "):
            parse_passes(f"{name}{{{option}=-3}}")


@pytest.mark.parametrize(
    "text, takes",
    [
        ("graph-choose-products{choices=some}", "one of: measured, none, recorded"),
        ("graph-choose-products{products=mkl}", "one of: blas, onednn"),
        ("graph-multiply-quantised{integer-products=gold}", "one of: floats, library"),
        ("graph-partition{budget=1.5}", "0.0 to 1.0"),
        ("loop-split-reductions{parts=0}", "1 or more"),
    ],
)
def test_wrong_values_are_told_with_what_is_taken(text: str, takes: str) -> None:
    with pytest.raises(UserError, match=f"it takes {takes}$"):
        parse_passes(text)


def test_a_whole_number_stands_for_a_float() -> None:
    assert [str(each) for each in parse_passes("graph-hoist-weights{growth=2}")] == ["graph-hoist-weights{growth=2.0}"]
