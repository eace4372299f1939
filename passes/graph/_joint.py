"""How a joint graph of forward and backward is written, and what `graph-partition` leaves on it.

    func.func @joint(%w: T {static}, %x: T, %t: T {tangent}) -> (T, T) attributes {forward_results = 1 : i64} {

| on            | attribute          | meaning                                                                 |
|---------------|--------------------|-------------------------------------------------------------------------|
| the function  | `forward_results`  | how many of the results, from the first, the forward graph returns      |
| an argument   | `tangent`          | only the backward graph gets it                                         |
|               | `static`           | a parameter or buffer: it stays in memory anyway                        |
|               | `mutated`          | new elements are written into it behind the forward graph               |
|               | `constant`         | of the graph itself: both graphs have it                                |
| an op         | `placement`        | "forward" or "backward", where an op with effects has to run            |
|               | `checkpoint`       | "recompute" or "save": what `torch.utils.checkpoint` asks for           |
|               | `region`           | number of the checkpointed region                                       |
|               | `has_hook`         | its gradient goes through a hook of the user                            |
| left behind   | `saved`            | on an argument: saved; on an op: which of its results are               |
|               | `partition`        | on an op: "forward", "backward", or "recompute" for both                |
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

FORWARD_RESULTS = "forward_results"
TANGENT, STATIC, MUTATED, CONSTANT = "tangent", "static", "mutated", "constant"
PLACEMENT, CHECKPOINT, REGION, HAS_HOOK = "placement", "checkpoint", "region", "has_hook"
SAVED, PARTITION = "saved", "partition"

UNIT = UnitAttr()
WORDS = {word: StringAttr(word) for word in ("forward", "backward", "recompute", "save")}


def count_attr(value: int) -> IntegerAttr:
    """The attribute of a count or number."""
    return IntegerAttr(value, i64)


def forward_results(function: FuncOp) -> int | None:
    """How many results the forward graph returns; None for a function that is no joint graph."""
    count = function.attributes.get(FORWARD_RESULTS)
    return count.value.data if isinstance(count, IntegerAttr) else None


def word(op: Operation, name: str) -> str:
    """The text of a string attribute, empty when there is none."""
    value = op.attributes.get(name)
    return value.data if isinstance(value, StringAttr) else ""


def region(op: Operation) -> int | None:
    """Number of the checkpointed region that an op is in."""
    value = op.attributes.get(REGION)
    return value.value.data if isinstance(value, IntegerAttr) else None


def argument_marks(function: FuncOp) -> list[dict[str, Attribute]]:
    """The attributes of each argument, to read and to change; `set_argument_marks` writes them back."""
    count = len(function.body.block.args)
    if function.arg_attrs is None:
        return [{} for _ in range(count)]
    return [dict(marks.data) for marks in function.arg_attrs.data]


def set_argument_marks(function: FuncOp, marks: list[dict[str, Attribute]]) -> None:
    """Replace the attributes of all arguments."""
    function.arg_attrs = ArrayAttr([DictionaryAttr(each) for each in marks])


def late_values(function: FuncOp, block: Block) -> set[SSAValue]:
    """Values that exist in the backward graph only: what depends on a tangent, or on an op that has to run there."""
    marks = zip(block.args, argument_marks(function), strict=True)
    late: set[SSAValue] = {value for value, marked in marks if TANGENT in marked}
    for op in block.ops:
        if word(op, PLACEMENT) == "backward" or any(value in late for value in op.operands):
            late.update(op.results)
    return late
