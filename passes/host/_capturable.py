"""Which ops of a host program can be recorded into a graph of the device and replayed, and why others cannot.

A recording keeps addresses, sizes and what is launched. An op that reads the CPU's memory, waits for the device, or
whose effects are not known would be wrong, or impossible, in a replay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from xdsl.ir import Operation, SSAValue

from ...dialects import host, kernel
from ...dialects.aten import UNSAFE, AtenOp, CallOp, TensorType
from ...dialects.aten.types import torch_name
from ...machines import in_host_memory
from ...records import dataclass
from ..analysis.kept import is_kept_call
from ..common.functional_calls import is_wrapper

_UNSAFE_TAGS = {
    UNSAFE: "the op must not be recorded",
    "dynamic_output_shape": "its sizes depend on data",
    "data_dependent_output": "its result is read by the host",
}
#: higher-order ops whose host part decides by values of tensors, or keeps a state on the host
_DECIDES = ("higher_order::cond", "higher_order::while_loop", "higher_order::run_with_rng_state",
            "higher_order::run_and_save_rng_state", "higher_order::with_effects")  # fmt: skip
#: ops whose implementation on a GPU waits for it
_WAITS = frozenset({
    "multinomial", "_fused_moving_avg_obs_fq_helper", "_assert_scalar", "_assert_async", "_ctc_loss", "bincount",
    "histc", "_unique2", "unique_consecutive", "unique_dim", "linalg_eig", "_linalg_eigh", "_linalg_svd", "linalg_qr",
    "geqrf", "linalg_lstsq", "repeat_interleave", "masked_select", "nonzero", "_embedding_bag_dense_backward",
})  # fmt: skip
_INDEXED = frozenset({"index", "index_put", "index_put_", "_unsafe_index", "_unsafe_index_put", "_index_put_impl_"})


KEPT_RESULTS = "its results are those of an earlier call, unless weights have changed"


@dataclass(frozen=True)
class Obstacle:
    """An op that cannot be recorded."""

    op: Operation
    reason: str


def obstacles(
    function: host.FuncOp, kernels: Mapping[str, kernel.FuncOp], constants: Collection[int] = ()
) -> Iterator[Obstacle]:
    """The ops of a program that cannot be recorded.

    constants: numbers of the arguments that are the same tensors, with the same values, in each call
    """
    fixed = {function.body.block.args[k] for k in constants}
    for op in function.body.block.ops:
        reason = obstacle_of(op, fixed)
        if reason is not None:
            yield Obstacle(op, reason)


def obstacle_of(op: Operation, fixed: Collection[SSAValue] = ()) -> str | None:
    """Why an op cannot be recorded; None where it can. `fixed` values lie in the CPU's memory and never change."""
    if isinstance(op, host.FreeOp | host.EmptyOp | host.ViewOp):
        return None
    if is_kept_call(op):
        return KEPT_RESULTS
    if isinstance(op, AtenOp):
        reason = _of_schema(op)
        if reason is not None:
            return reason
    elif isinstance(op, CallOp):
        if op.target.startswith(_DECIDES):
            return "the host decides by values, or keeps a state of its own"
        if UNSAFE in op.attributes:
            return _UNSAFE_TAGS[UNSAFE]
        if op.pure is None and op.writes is None and not is_wrapper(op) and "triton_kernel_wrapper" not in op.target:
            return "a call with unknown effects"
    if getattr(op, "binds", ()):
        return "its sizes depend on data"
    values = [v for v in (*op.operands, *op.results) if v not in fixed]
    if any(_is_in_host_memory(v) for v in values):
        return "returns a tensor of the CPU" if isinstance(op, host.ReturnOp) else "it works on memory of the CPU"
    return None


def _of_schema(op: AtenOp) -> str | None:
    name = op.schema.name.partition(".")[0]
    for tag, reason in _UNSAFE_TAGS.items():
        if tag in op.schema.tags:
            return reason
    if name in _WAITS:
        return "the host waits for the device"
    if name in _INDEXED and any(_is_mask(v) for v in op.operands[1:]):
        return "its mask is read by the host"
    return None


def _is_in_host_memory(value: SSAValue) -> bool:
    """Whether a value has elements in the CPU's memory. Where it has none, a replay can miss nothing."""
    kind = value.type
    if not isinstance(kind, TensorType) or not in_host_memory(kind.device):
        return False
    return all(size.as_int() != 0 for size in kind.shape)


def _is_mask(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and torch_name(value.type.element) in ("bool", "uint8")
