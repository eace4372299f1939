"""What a function says of its results: which of them may have any strides.

    func.func @forward(%x: T) -> (T, T {any_strides})

What the forward graph of a training step returns only for backward is nobody's to look at: it may be laid out as suits
the ops that read it. The mark says so of a result; a pass that gives such a result other strides changes the type of
the function, and what runs the program tells backward.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ...dialects.aten import TensorType

ANY_STRIDES = "any_strides"

_MARKED = DictionaryAttr({ANY_STRIDES: UnitAttr()})
_PLAIN = DictionaryAttr({})


def results_of_any_strides(function: FuncOp) -> frozenset[int]:
    """Numbers of the results whose strides are free."""
    return frozenset(k for k, marks in enumerate(_marks(function)) if ANY_STRIDES in marks.data)


def set_any_strides(function: FuncOp, numbers: Collection[int]) -> None:
    """Mark results by their numbers; a function without such results has no attributes of results."""
    count = len(function.function_type.outputs.data)
    marks = ArrayAttr([_MARKED if k in numbers else _PLAIN for k in range(count)])
    function.res_attrs = marks if numbers else None


def result_problem(function: FuncOp) -> str | None:
    """What is wrong with the marks on a function's results; None when nothing is."""
    marks, types = _marks(function), function.function_type.outputs.data
    if marks and len(marks) != len(types):
        return f"{len(marks)} results have attributes, and {len(types)} are returned"
    for number, (each, kind) in enumerate(zip(marks, types, strict=False)):
        mark: Attribute | None = each.data.get(ANY_STRIDES)
        if mark is None:
            continue
        if not isinstance(mark, UnitAttr):
            return f"{ANY_STRIDES} of result {number} has no value, and is {mark}"
        if not isinstance(kind, TensorType):
            return f"result {number} is marked {ANY_STRIDES} and has no strides: it is {kind}"
        if function.sym_visibility is not None:
            return f"result {number} is marked {ANY_STRIDES}, and calls of the function rely on its type"
    return None


def _marks(function: FuncOp) -> tuple[DictionaryAttr, ...]:
    return () if function.res_attrs is None else function.res_attrs.data
