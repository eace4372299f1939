"""Calls of packed convolutions, and what alone reads their results."""

from __future__ import annotations

from typing import cast

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import CallOp
from ...dialects.aten.types import type_of
from ...dialects.loop import LoadOp
from ..analysis.aliasing import stands_before
from ._bodies import outermost
from ._image_layouts import channels_last
from ._post_ops import NONE, PostOp

CONVOLUTION = "inductile::packed_convolution"


def may_be_strided(image: SSAValue) -> bool:
    """Whether nobody minds if the library gives dimensions of one element the strides that it likes."""
    type_ = type_of(image)
    return type_ == channels_last(type_) or all(_minds_no_strides(use.operation) for use in image.uses)


def _minds_no_strides(reader: Operation) -> bool:
    return type(reader) is LoadOp or (type(reader) is CallOp and reader.target == CONVOLUTION)


def only_reader(value: SSAValue, block: Block) -> Operation | None:
    """The nest that alone reads a value; None where there is none."""
    nests = {outermost(use.operation, block): type(use.operation) is LoadOp for use in value.uses}
    return next(iter(nests)) if len(nests) == 1 and all(nests.values()) else None


def is_there(value: SSAValue, op: Operation) -> bool:
    """Whether a value is made before an op runs."""
    return isinstance(value.owner, Block) or stands_before(value.owner, op)


def with_post_op(call: CallOp, nest: Operation, found: PostOp) -> CallOp:
    """The call that also does what a nest does, in place of both."""
    *args, activation, other, finite = call.args()
    args += [activation if found.activation == NONE else found.activation, found.other or other]
    args.append(found.finite or finite)
    made = CallOp.of(call.target, args, {}, [nest.results[0].type], call.location, pure=True)
    made.results[0].name_hint = nest.results[0].name_hint
    block = cast(Block, call.parent)
    block.insert_op_before(made, call)
    nest.results[0].replace_all_uses_with(made.results[0])
    block.erase_op(nest)
    block.erase_op(call)
    return made
