"""What the options of our passes take: counts from a least one on, fractions, and words of those that are known.

An option means the same in each pass that has it, so one table by names serves all. Passes of plugins say themselves
what theirs take: an axis may well be -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING

from ..errors import UserError

if TYPE_CHECKING:
    from xdsl.passes import ModulePass
    from xdsl.utils.arg_spec import ArgSpec

_LEAST: Mapping[str, float] = {"rows": 1, "parts": 1, "programs": 1}
"""The least number by option; 0 for all others, which often leaves a choice to the pass."""
_MOST: Mapping[str, float] = {"budget": 1.0}


@cache
def _words() -> Mapping[str, frozenset[str]]:
    """The words that an option takes."""
    from ..passes.common.choices import MEASURED, NONE, RECORDED
    from ..passes.common.implementations import COPIES, INTEGER_LIBRARIES, LIBRARIES

    return {
        "choices": frozenset({NONE, RECORDED, MEASURED}),
        "products": frozenset(LIBRARIES),
        "integer_products": frozenset(INTEGER_LIBRARIES),
        "dequantised_copies": frozenset(COPIES),
    }


def with_floats(cls: type[ModulePass], spec: ArgSpec) -> ArgSpec:
    """The options of a pass where whole numbers stand for floats, as in `growth=2`."""
    from xdsl.utils.arg_spec import ArgSpec

    floats = {field.name for field in fields(cls) if field.type in ("float", float)}
    given = {
        name: tuple(float(each) if type(each) is int else each for each in values) if name in floats else values
        for name, values in spec.parameters.items()
    }
    return ArgSpec(spec.name, given)


def check_values(made: ModulePass) -> None:
    """Raise a UserError for an option of one of our passes that is out of range, or is an unknown word."""
    for field in fields(made):
        value = getattr(made, field.name)
        takes = ""
        if type(value) in (int, float):
            takes = _takes_numbers(field.name, value)
        elif isinstance(value, str) and value not in (known := _words().get(field.name, (value,))):
            takes = f"it takes one of: {', '.join(sorted(known))}"
        if takes:
            name = field.name.replace("_", "-")
            raise UserError(f"option {name!r} of pass {made.name!r} is {value!r}", takes)


def _takes_numbers(name: str, value: float) -> str:
    """What an option takes, if not this number."""
    least, most = _LEAST.get(name, 0), _MOST.get(name)
    if value >= least and (most is None or value <= most):
        return ""
    return f"it takes {least} or more" if most is None else f"it takes {float(least)} to {most}"
