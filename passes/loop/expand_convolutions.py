"""`loop-expand-convolutions`: a convolution whose windows are small is a nest, which fuses with what is around it."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, NoneType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue

from ...dialects.aten import AtenOp
from ...dialects.aten.types import TensorType
from ...dialects.machine import target_at
from ...dialects.sym import ONE
from ...records import dataclass
from ..analysis.convolution_times import WindowSizes, is_faster_as_nest
from ..analysis.functions import symbol_ranges
from ..analysis.sizes import Sizes
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._windows import Windows, nest_of_windows
from .simplify_indices import simplify_nest

_FLOATS = (BFloat16Type, Float16Type, Float32Type, Float64Type)


@dataclass(frozen=True)
class ExpandConvolutions(LoopPass):
    """Compute grouped convolutions by nests on the CPU where these are faster than ATen's call.

    level:         loop
    precondition:  the strides of operands are final, as after `loop-assign-layouts`; `loop-inline` comes behind
    guarantee:     the same values but for the order of sums; numbers of 16 bits are summed in float32 and rounded once.
                   An `aten.convolution` of several groups whose points sum few products, and the gradient of the input
                   of such a one, are nests, where measured rates (`common/convolution_times.py`) say that this is
                   faster: a `sum` over the window of products of two loads, the first of which is masked where the
                   window leaves the source. Of images only where no other convolution of the function stays a call,
                   for `loop-channels-last` may change their layout then. Rows have to lie along memory, strides of
                   gradients and of transposed convolutions have to be 1. The gradients of weight and bias stay a call.

        %y = aten.convolution(%x, %w, none, stride = [1], padding = [3], dilation = [1], transposed = false,
                              output_padding = [0], groups = 64) : !aten.tensor<4x64x2048xf32>
    becomes
        %y = loop.generate (i0 in 4, i1 in 64, i2 in 2048) {
          %s = loop.reduce sum (r0 in 7) {
            ... %inside: 0 <= i2 + r0 - 3 < 2048
            %a = loop.load %x[i0, i1, i2 + r0 - 3] if %inside else %zero
            %b = loop.load %w[i1, 0, r0]  %p = arith.mulf %a, %b : f32  loop.yield %p
          }
          loop.yield %s
        } : !aten.tensor<4x64x2048xf32>
    """

    name = "loop-expand-convolutions"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        candidates = [each for each in block.ops if isinstance(each, AtenOp) and each.packet in _WINDOWS]
        if not candidates:
            return
        estimates, ranges = Sizes.of_function(function), symbol_ranges(function)
        found = {each: _considered(each, estimates) for each in candidates}
        calls = any(each.packet == "convolution" and not isinstance(found[each], Windows) for each in candidates)
        for each, windows in found.items():
            if isinstance(windows, Windows) and len(windows.kernel) > 1 and calls:
                windows = "its images may lie as calls around it want them"
            if isinstance(windows, str):
                remark("missed", self.name, each, f"not a nest: {windows}")
            elif counter(self.name):
                remark("passed", self.name, each, "computed by a nest")
                nest = nest_of_windows(windows)
                block.insert_op_before(nest, each)
                simplify_nest(nest, ranges)
                _take_over(block, each, nest.results[0])


def _considered(op: AtenOp, estimates: Sizes) -> Windows | str:
    """The convolution that becomes a nest, or why it is left to ATen."""
    windows = _WINDOWS[op.packet](op)
    if windows is None:
        return "it is no grouped convolution of the CPU"
    return _objection(windows, estimates) or windows


def _forward(op: AtenOp) -> Windows | None:
    """A convolution; None for one that this pass has no form for."""
    return _windows(op, cast(SSAValue, op.arg("input")), cast("SSAValue | None", op.arg("bias")), op.arg("transposed"))


def _input_gradient(op: AtenOp) -> Windows | None:
    """The gradient of a convolution's input: a convolution of the gradient of its result."""
    if not isinstance(op.results[0].type, TensorType):
        return None
    return _windows(op, cast(SSAValue, op.arg("grad_output")), None, not op.arg("transposed"))


_WINDOWS = {"convolution": _forward, "convolution_backward": _input_gradient}


def _windows(op: AtenOp, source: SSAValue, bias: SSAValue | None, transposed: object) -> Windows | None:
    weight, groups = cast(SSAValue, op.arg("weight")), cast(int, op.arg("groups"))
    result, types = op.results[0].type, [cast(TensorType, value.type) for value in (source, weight)]
    if not isinstance(result, TensorType) or groups < 2:
        return None
    kinds = {(type_.element, type_.device) for type_ in (result, *types, *([bias.type] if bias else []))}  # pyright: ignore
    if len(kinds) > 1 or not isinstance(result.element, _FLOATS):
        return None
    if not target_at(op, result.device).family.library.is_slow_in_groups:
        return None
    dims = len(types[1].shape) - 2
    if len(types[0].shape) != dims + 2 or len(result.shape) != dims + 2:
        return None
    settings = [_for_each(op.arg(name), dims) for name in ("stride", "padding", "dilation")]
    stride, padding, dilation = settings
    if stride is None or padding is None or dilation is None or (transposed and any(s != 1 for s in stride)):
        return None
    return Windows(
        source, weight, bias, result, stride, padding, dilation, bool(transposed), groups, location=op.location
    )


def _for_each(setting: object, dims: int) -> tuple[int, ...] | None:
    """A setting for each dimension; one number stands for all. None where a number is not known."""
    listed = setting if isinstance(setting, tuple | list) else (setting,)
    known = tuple(each for each in listed if isinstance(each, int))
    if len(known) < len(listed):
        return None
    return known * dims if len(known) == 1 else known


def _objection(windows: Windows, estimates: Sizes) -> str | None:
    """Why a convolution is left to ATen; None when it is not."""
    types = [windows.result, cast(TensorType, windows.source.type)]
    sizes = [size.as_int() for size in cast(TensorType, windows.weight.type).shape]
    if any(size is None for size in sizes):
        return "the size of its window is not known"
    if any(type_.strides is not None and type_.strides[-1] is not ONE for type_ in types):
        return "its rows do not lie along memory"
    row, elements = estimates.of(windows.result.shape[-1]), estimates.product(windows.kernel)
    bits = cast(Float32Type, windows.result.element).bitwidth
    measures = WindowSizes(bits, len(windows.kernel), windows.channels, elements, row, windows.stride[-1])
    return None if is_faster_as_nest(measures) else "the call is faster"


def _take_over(block: Block, op: AtenOp, value: SSAValue) -> None:
    """Use a value in place of the first result of an op, and leave the op what else it gives, if it does."""
    value.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(value)
    wanted = [False, *cast("tuple[bool, ...]", op.arg("output_mask"))[1:]] if len(op.results) > 1 else []
    if any(wanted):
        types = [NoneType(), *(result.type for result in op.results[1:])]
        rest = AtenOp.of(op.name, {**op.args(), "output_mask": wanted}, types, op.location)
        block.insert_op_before(rest, op)
        for old, new in zip(op.results[1:], rest.results[1:], strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
    block.erase_op(op)
