"""What torch registers and no rule classifies: run in a process of its own, where no test has registered operators.

Prints one line for each: its name and why a person has to look at it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed
from torch._ops import _higher_order_ops

from inductile.dialects.aten.outside import COMPUTING, HIGHER_ORDER, computes

with contextlib.suppress(ImportError):
    import torchvision  # noqa: F401 - registers operators

#: namespaces of which a file may call nothing, and why
REFUSED = {
    "_c10d_functional": "other processes", "_c10d_functional_autograd": "other processes",
    "_dtensor": "other processes",
    "c10d": "other processes", "c10d_functional": "other processes", "fsdp": "other processes",
    "symm_mem": "memory of other processes", "coor": "other processes",
    "image": "reads and writes files", "profiler": "records", "streams": "orders work of a GPU", "mempool": "allocates",
    "rngprims": "changes generators", "static_runtime": "TorchScript's own", "onnx": "export",
    "onnx_symbolic": "export",
    "export": "export", "debugprims": "prints, loads files", "debug_mode_ops": "prints", "inductor": "of Inductor",
    "inductor_prims": "of Inductor", "_inductor_test": "of a test", "_test": "of a test", "_native": "no checks",
    "flex_lib": "no checks", "torchvision": "no checks of indices",
    "quantized": "packed objects, no checks", "_quantized": "packed objects, no checks", "quantization": "no checks",
    "onednn": "packed objects", "mkldnn": "packed objects", "mkldnn_prepacked": "packed objects",
    "mkl": "packed objects",
    "sparse": "packed objects", "xnnpack": "packed objects", "prepacked": "packed objects", "cuda": "TorchScript's own",
    "prim": "TorchScript's own", "quantized_decomposed": "no checks", "tensorexpr": "TorchScript's own",
    "metal": "packed objects", "vulkan_prepack": "packed objects", "_caffe2": "no checks", "ddp": "other processes",
    "triton": "runs kernels", "flash_attn": "no checks", "mtia": "of a device", "aoti_torch": "of Inductor",
}  # fmt: skip

#: higher-order operators that a file may not call, and why
REFUSED_HIGHER_ORDER = {
    **dict.fromkeys(("print",), "prints"),
    **dict.fromkeys((
        "aoti_call_delegate", "call_torchbind", "executorch_call_delegate", "inductor_compiled_code",
        "inline_asm_elementwise", "triton_kernel_wrapper_functional", "triton_kernel_wrapper_mutation",
        "invoke_leaf_function", "flex_gemm",
    ), "runs foreign code"),
    **dict.fromkeys((
        "_export_tracepoint", "auto_functionalized", "auto_functionalized_v2", "autograd_function_apply",
        "custom_function_call", "dynamo_bypassing_wrapper", "flat_apply", "foreach_map", "hints_wrapper",
        "invoke_quant", "invoke_quant_packed", "local_map_hop", "run_const_graph", "strict_mode", "switch",
        "tag_activation_checkpoint", "trace_wrapped", "while_loop_stack_output", "with_effects", "wrap",
        "wrap_activation_checkpoint", "wrap_with_autocast", "wrap_with_set_grad_enabled",
    ), "is no part of a graph that files hold"),
    **dict.fromkeys(("graphsafe_run_with_rng_state", "run_dtensor_rng_op"), "changes a generator of a device"),
}  # fmt: skip

_PLAIN = re.compile(
    r"(?:Tensor|SymInt|int|float|bool|number|Scalar|complex|ScalarType|Layout|MemoryFormat|Device|Generator|SymBool)"
)
#: names of strings that choose among ways to compute, or are shown where a check fails
_CHOICES = frozenset({
    "UPLO", "activation", "algorithm", "api_name", "approximate", "assert_msg", "driver", "equation", "indexing",
    "interpolation", "interpolation_mode", "mode", "norm", "ord", "p", "pad_mode", "padding", "padding_mode",
    "padding_side", "reduce", "reduction", "rounding_mode", "side",
})  # fmt: skip
#: operators that return nothing, because they check
_CHECKS = re.compile(r"_assert_\w+|_linalg_check_errors|sym_constrain_range(_for_size)?")
#: in-place views, which change sizes of a tensor that no one else of a functional graph holds
_INPLACE_VIEWS = frozenset({
    "as_strided_", "detach_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_",
})  # fmt: skip


def operators() -> Iterator[tuple[str, Any]]:
    """(name, schema) of each operator that the dispatcher knows."""
    known = set(torch._C._dispatch_get_all_op_names())
    for schema in torch._C._jit_get_all_schemas():
        name = f"{schema.name}.{schema.overload_name}".removesuffix(".")
        if name in known:
            yield name, schema


def problem(name: str, schema: Any) -> str | None:
    """Why an operator that a file may call needs a look."""
    packet = name.partition("::")[2].partition(".")[0]
    for argument in schema.arguments:
        type_ = re.sub(r"Optional\[|List\[|\]|\?|\[\d*", "", str(argument.real_type))
        if type_ == "str" and argument.name not in _CHOICES:
            return f"takes the string {argument.name!r}"
        if type_ != "str" and not _PLAIN.fullmatch(type_):
            return f"takes a {argument.real_type}"
    writes = any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments)
    if not schema.returns and not writes and not _CHECKS.fullmatch(packet):
        return "returns nothing"
    tags = _tags(name, schema)
    if torch.Tag.inplace_view in tags and packet not in _INPLACE_VIEWS:
        return "changes what a tensor is"
    return None


def _tags(name: str, schema: Any) -> list[Any]:
    namespace, _, packet = schema.name.partition("::")
    packets = getattr(getattr(torch.ops, namespace), packet)
    return getattr(packets, schema.overload_name or "default").tags


def unclassified() -> Iterator[str]:
    """A line for each thing that no rule knows."""
    allowed = 0
    for name, schema in operators():
        namespace = name.partition("::")[0]
        if namespace not in COMPUTING and namespace not in REFUSED:
            yield f"{name}: the namespace is not known"
        elif computes(name):
            allowed += 1
            reason = problem(name, schema)
            if reason is not None:
                yield f"{name}: {reason}"
    if allowed < 2000:
        yield f"only {allowed} operators are looked at"
    for name in _higher_order_ops:
        if name not in HIGHER_ORDER and name not in REFUSED_HIGHER_ORDER:
            yield f"higher_order::{name}: it is not known"


if __name__ == "__main__":
    for line in sorted(unclassified()):
        print(line)
