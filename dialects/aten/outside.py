"""Ops with effects outside their tensors: what a file may not call unless its reader allows it.

A file is data. It may call operators that compute tensors from tensors; what writes files, prints, talks to other
processes, or changes what a tensor or the process is, it may not. The rule allows: operators of `aten` and `prims`
but for those named here, functions of numbers, and higher-order operators that run graphs of the program.
"""

from __future__ import annotations

import re

from xdsl.ir import Operation

from .call import CallOp, operators_in
from .ops import AtenOp

#: namespaces whose operators compute numbers and tensors, but for those below
COMPUTING = frozenset({"aten", "prims", "operator", "math", "torch", "builtins", "inductile"})
#: higher-order operators that run graphs of the program, and nothing else
HIGHER_ORDER = frozenset({
    "associative_scan", "cond", "flex_attention", "flex_attention_backward", "invoke_subgraph", "map_impl", "out_dtype",
    "run_and_save_rng_state", "run_with_rng_state", "scan", "while_loop",
})  # fmt: skip
#: ops of `aten` that reach outside their tensors, change what a tensor is, or build one without checks
_OUTSIDE = re.compile(
    r"from_file|_print|save|load|set_data|set|set_|resize|resize_|resize_as_?|_resize_output_?|resize_as_sparse_?"
    r"|record_stream|retain_grad|requires_grad_|rename_?|_backward|_pin_memory|pin_memory|is_pinned|data"
    r"|_propagate_xla_data|_test_\w+|_cuda_\w+|_cufft_\w+|_cudnn_init_dropout_state|fbgemm_\w+|_fbgemm_\w+|_cslt_\w+"
    r"|\w+_unsafe|_nested_view_from_\w+|_validate_\w+|_unsafe_set_\w+|_share_memory_?|_amp_update_scale_?"
    r"|_reshape_alias(_copy)?|_index_put_impl_?|_cum(max|min)_helper|_convert_indices_\w+|_?segment_reduce(_backward)?"
    r"|quantized_(gru|lstm)|_sink_tokens|backward|dist_backward|align_(as|tensors|to)|refine_names"
)
#: overloads for named dimensions, which no tensor of a file has; torch 2.11 has them
_NAMED = re.compile(r"\w*names\w*|\w*dimname\w*|named_out_dim", re.IGNORECASE)


def outside_effect(op: Operation) -> str | None:
    """What an op calls that has effects outside its tensors; None for one that has none."""
    if isinstance(op, AtenOp):
        return op.name if _is_outside(op.packet, op.schema.overload) else None
    if not isinstance(op, CallOp):
        return None
    for name in (op.callee.data, *operators_in(op.positional), *operators_in(op.named)):
        if not computes(name):
            return name
    return None


def computes(name: str) -> bool:
    """Whether an operator, given by its name, has no effects outside its tensors."""
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    if namespace == "higher_order":
        return packet in HIGHER_ORDER
    return namespace in COMPUTING and not (namespace in ("aten", "prims") and _is_outside(packet, overload))


def _is_outside(packet: str, overload: str) -> bool:
    return bool(_OUTSIDE.fullmatch(packet) or _NAMED.fullmatch(overload))
