"""`loop-pack-weights`: a library arranges frozen weights once."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp, CallOp
from ...dialects.aten.types import TensorType, torch_name, type_of
from ...dialects.loop import ViewOp
from ...dialects.machine import target_at
from ...records import dataclass
from ..analysis.functions import symbol_ranges
from ..analysis.kept import frozen_arguments, is_kept_value
from ..analysis.memory import Mutations
from ..analysis.packing import (
    ELEMENTS,
    is_small_product,
    move_to_kept,
    objection_to_packing,
    own_call,
    packed_product,
)
from ..analysis.sizes import Sizes
from ..common.copies import copy_op
from ..common.implementations import BLAS, ONEDNN
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._guard_relus import guard_relus
from ._image_layouts import is_channels_last
from ._packed_calls import CONVOLUTION, is_there, may_be_strided, only_reader, with_post_op
from ._post_ops import NONE, RELU, PostOp, post_op
from .select_implementation import objection_to_onednn


@dataclass(frozen=True)
class PackWeights(LoopPass):
    """Let oneDNN arrange the frozen weights of products and convolutions on the CPU once, in its own layout.

    level:         loop
    precondition:  layouts are assigned; behind `loop-hoist-weights`, in front of `loop-inline`
    guarantee:     the same values, but for the order of sums. An `aten.mm`, `aten.addmm` or `aten.convolution` (one to
                   three dimensions, transposed or not, images with channels last) on the CPU whose weight is a frozen
                   argument, a kept value, or a view of one becomes a call that reads what the kept function packs.

    packed_weights: the elements of weights that the library can arrange on this machine, such as "f32,bf16"
    products:       who multiplies float32 matrices; these stay as they are where it is not oneDNN
    patterns:       "all" lets the library apply relu always, though it makes 0 of NaN

    A convolution that one nest alone reads takes along what this does to it, if the library has that as a post-op:
    hardswish, silu, or another image that is added, unless that sum is rectified in the same kernel: torch copies the
    other image for the library to add to, 0.22 ms of each sum in ResNet-50 in bfloat16 on a Xeon.

    Relu it takes along where no NaN can reach it (`guard_relus`): images here and there are measured, and the kept
    function bounds what comes of them by the sums of magnitudes of the weights. A call gets the truth, and rectifies by
    itself where that is false.

        %f = loop.generate () { %m = loop.reduce max (...) { ... |%x| ... }  %t = arith.cmpf ole, %m, %limit ... }
        %y = aten.call pure "inductile::packed_convolution"(%x, %p, ..., "relu", none, %f) : T
    where @f_weights has
        %b = aten.call pure "inductile::bound_convolution"(%a, %w, %bias, false) : !aten.tensor<f64>
        %limit = aten.call pure "inductile::finite_limit"([%b], 65536.0) : !aten.tensor<f32>

    Without it the library arranges a weight in each call. Time of a call with a packed weight over that without, one
    core of an AMD EPYC, rows x inner x columns: float32 128x768x3072 0.94, 4x650x2600 0.49; bfloat16 1x1024x32000 0.6,
    128x768x3072 0.88. Convolutions of one image of 7x7 points, 512 to 512 channels, windows of 3x3: 0.42 and 0.51;
    in groups of one 0.6.

        %y = aten.convolution(%x, %w, ...) : T
    becomes
        %p = func.call @f_weights(%w) {kept} : (U) -> U
        %y = aten.call pure "inductile::packed_convolution"(%x, %p, ...) : T
    where @f_weights has
        %p = aten.call pure "inductile::packed_filter"(%w, ...) : U
    """

    name = "loop-pack-weights"

    packed_weights: str = ""
    products: str = BLAS
    patterns: str = "exact"
    emulate_precision_casts: bool = False

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function with frozen arguments."""
        elements = set(self.packed_weights.split(","))
        frozen = frozen_arguments(function)
        if not frozen or not elements & set(ELEMENTS.values()):
            return
        mutations = Mutations(block)
        fixed: set[SSAValue] = {each for each in frozen if not mutations.writes_to(each)}
        sizes, ranges = Sizes.of_function(function), symbol_ranges(function)
        moved: list[Operation] = []
        packed: list[CallOp] = []
        known: dict[Any, SSAValue] = {}
        for op in list(block.ops):
            if not isinstance(op, AtenOp) or op.packet not in _WEIGHTS:
                continue
            reason = _objection(op, fixed, elements, sizes)
            if reason is None and op.packet != "convolution":
                reason = objection_to_onednn(op, ranges)
                element = cast(TensorType, op.results[0].type).element
                if reason is None and _name(element) == "f32" and self.products != ONEDNN:
                    reason = "the BLAS multiplies float32 here"
            if reason is not None:
                remark("missed", self.name, op, f"its weight is not packed: {reason}")
            elif counter(self.name):
                remark("passed", self.name, op, "the library arranges its weight once")
                moved += _pack(op, block, sizes, packed, known)
        calls = [self._take_along(call, block) for call in packed]
        if self.patterns != "all":
            moved += guard_relus(calls, block, sizes, fixed, self.emulate_precision_casts)
        if moved:
            move_to_kept(function, block, moved)

    def _take_along(self, call: CallOp, block: Block) -> CallOp:
        """Let the library do what the only reader of an image does to it, and the reader of that; the call behind."""
        if call.callee.data != CONVOLUTION:
            return call
        is_wide = _name(type_of(call.results[0]).element) == "f32"
        while is_wide or not self.emulate_precision_casts:
            nest = only_reader(call.results[0], block)
            found = None if nest is None else post_op(nest, call.results[0])
            if nest is None or found is None or not self._pays(call, nest, found, block) or not counter(self.name):
                return call
            remark("passed", self.name, nest, "the library does it to what it has in registers")
            call = with_post_op(call, nest, found)
        return call

    def _pays(self, call: CallOp, nest: Operation, found: PostOp, block: Block) -> bool:
        """Whether a post-op can follow those that the call has, and spares a kernel; relu has to be asked for."""
        *_, transposed, _, _, activation, other, _ = call.args()
        may_rectify = self.patterns == "all"
        if activation != NONE or (found.activation == RELU and not may_rectify):
            return False
        if not may_be_strided(nest.results[0]):
            return False
        if found.other is None:
            return other is None or found.activation == RELU
        if other is not None or transposed or not is_there(found.other, call):
            return False
        behind = only_reader(nest.results[0], block)
        then = None if behind is None else post_op(behind, nest.results[0])
        return then is None or then.activation != RELU or may_rectify


#: packet -> position of the weight among the operands, from the end where there may be a bias in front
_WEIGHTS = {"mm": -1, "addmm": -1, "convolution": 1}


def _weight(op: AtenOp) -> SSAValue:
    return op.operands[_WEIGHTS[op.packet]]


def _name(element: Any) -> str:
    return ELEMENTS.get(torch_name(element), "")


def _objection(op: AtenOp, fixed: set[SSAValue], elements: set[str], sizes: Sizes) -> str | None:
    """Why the weight of an op is not packed."""
    result, weight = (cast(TensorType, value.type) for value in (op.results[0], _weight(op)))
    target = target_at(op, result.device)
    if not target.family.library.has_onednn:
        return "it is not on a CPU with oneDNN"
    if _name(result.element) not in elements:
        return f"the library does not pack {result.element}"
    root, _ = _views_of(_weight(op))
    if root not in fixed and not is_kept_value(root):
        return "its weight is not frozen"
    if op.packet == "convolution":
        return objection_to_packing(op, sizes) or _of_images(op)
    if any(size.as_int() is None for size in weight.shape):
        return "sizes of its weight are not known"
    return "it is too small" if is_small_product(op, sizes) else None


def _of_images(op: AtenOp) -> str | None:
    """Why the images of a convolution are not the library's."""
    if not all(is_channels_last(value) for value in (op.operands[0], op.results[0])):
        return "its images do not have channels last"
    if not may_be_strided(op.results[0]):
        return "others than nests read strides of one element that the library may give otherwise"
    return None


def _views_of(value: SSAValue) -> tuple[SSAValue, list[ViewOp]]:
    """What a value is a view of, and the views, from the outermost one."""
    views: list[ViewOp] = []
    while isinstance(view := value.owner, ViewOp):
        views.append(view)
        value = view.operands[0]
    return value, views[::-1]


def _pack(op: AtenOp, block: Block, sizes: Sizes, packed: list[CallOp], known: dict[Any, SSAValue]) -> list[Operation]:
    """Replace an op by a call with a packed weight; what packs it, views of the weight included."""
    weight = _weight(op)
    _, views = _views_of(weight)
    values: dict[SSAValue, SSAValue] = {}
    made: list[Operation] = [copy_op(view, values) for view in views]
    source = values.get(weight, weight)
    pack, call = _convolution(op, source, sizes) if op.packet == "convolution" else packed_product(op, source, sizes)
    pack.results[0].name_hint = weight.name_hint
    call.results[0].name_hint = op.results[0].name_hint
    made.append(pack)
    same = (weight, pack.callee, pack.positional)
    if same in known:  # equal layers, or one that runs twice
        call.operands = [known[same] if value is pack.results[0] else value for value in call.operands]
        made = []
    else:
        known[same] = pack.results[0]
    for each in (*made, call):
        block.insert_op_before(each, op)
    op.results[0].replace_all_uses_with(call.results[0])
    block.erase_op(op)
    packed.append(call)
    for view in reversed(views):
        if view.results[0].first_use is None:
            block.erase_op(view)
    return made


def _convolution(op: AtenOp, weight: SSAValue, sizes: Sizes) -> tuple[CallOp, CallOp]:
    names = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
    window = [op.arg(name) for name in names]
    image = [sizes.of(size) for size in cast(TensorType, op.operands[0].type).shape]
    pack = own_call(op, "packed_filter", [weight, *window, image], weight.type)
    args = [op.operands[0], pack.results[0], op.arg("bias"), *window, NONE, None, None]
    return pack, own_call(op, "packed_convolution", args, op.results[0].type)
