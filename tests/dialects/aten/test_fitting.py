"""Rules of ATen ops: what torch computes fits, and what it refuses does not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from xdsl.dialects.builtin import NoneType
from xdsl.ir import Attribute, Block

from inductile.dialects.aten import AtenOp
from inductile.dialects.aten.fitting import misfit
from inductile.dialects.aten.fitting.check import _rule
from inductile.dialects.aten.ops import op_class
from inductile.dialects.aten.types import TensorType, element_type
from inductile.dialects.aten.values import Device, Layout, MemoryFormat
from inductile.dialects.context import new_context
from inductile.dialects.sym import as_expr
from inductile.errors import UserError
from inductile.tools.source import Source


def _type(value: Any) -> Attribute:
    if value is None:
        return NoneType()
    element = element_type(str(value.dtype).removeprefix("torch."))
    return TensorType.get(tuple(as_expr(size) for size in value.shape), element, None, "cpu")


class _Builder:
    """Makes ops of calls."""

    def __init__(self) -> None:
        self.block = Block()

    def value(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.block.insert_arg(_type(value), len(self.block.args))
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        if isinstance(value, torch.dtype):
            return element_type(str(value).removeprefix("torch."))
        for kind, made in ((torch.device, Device), (torch.layout, Layout), (torch.memory_format, MemoryFormat)):
            if isinstance(value, kind):
                return made(str(value).removeprefix("torch."))
        return value

    def build(self, cls: type[AtenOp], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> AtenOp:
        named = {a.name: v for a, v in zip(cls.schema.arguments, args, strict=False)} | kwargs
        for argument in cls.schema.arguments:  # torch gives numbers for tensors of one number
            if argument.is_tensor and isinstance(named.get(argument.name), bool | int | float | complex):
                named[argument.name] = torch.tensor(named[argument.name])
        given = {name: self.value(value) for name, value in named.items()}
        leaves = [result] if not isinstance(result, list | tuple) else list(result)
        return cls.build(given, [_type(leaf) for leaf in leaves])


class _Recorder(TorchDispatchMode):
    """Checks each op that runs; `found` are those that are said not to fit."""

    def __init__(self, found: list[str], seen: set[str]) -> None:
        super().__init__()
        self.found = found
        self.seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        cls = op_class(func._schema.name.replace("::", ".") + f".{func._overloadname}".removesuffix(".default"))
        if cls is not None and _rule(cls) is not None and _is_plain((args, kwargs, result)):
            op = _Builder().build(cls, args, kwargs or {}, result)
            self.seen.add(cls.name)
            problem = misfit(op)
            if problem is not None:
                self.found.append(f"{op}: {problem}")
        return result


def _is_plain(values: Any) -> bool:
    return all(
        each.layout is torch.strided and not each.is_quantized
        for each in tree_leaves(values) if isinstance(each, torch.Tensor)
    )  # fmt: skip


def _samples(info: Any, dtype: torch.dtype, most: int) -> Iterator[Callable[[], Any]]:
    inputs = info.sample_inputs("cpu", dtype, requires_grad=dtype.is_floating_point and info.supports_autograd)
    for sample in itertools.islice(inputs, most):
        yield lambda sample=sample: info.op(sample.input, *sample.args, **sample.kwargs)


def _run(run: Callable[[], Any]) -> None:
    out = [leaf for leaf in tree_leaves(run()) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if out:
        torch.stack([leaf.sum().to(torch.complex128) for leaf in out]).sum().real.backward()


def check(infos: Sequence[Any], dtype: torch.dtype, most: int) -> tuple[list[str], set[str]]:
    """What of samples of torch's operator database is said not to fit, and the ops that were compared."""
    found: list[str] = []
    seen: set[str] = set()
    for info in infos:
        if dtype not in info.supported_dtypes("cpu"):
            continue
        for run in _samples(info, dtype, most):
            try:
                with _Recorder(found, seen):
                    _run(run)
            except (RuntimeError, NotImplementedError, AttributeError):
                continue  # not of this test
    return found, seen


#: one for each form of a rule; `check(op_db, dtype, 12)` takes five minutes
FAMILIES = frozenset({
    "add", "argmax", "as_strided", "bucketize", "cat", "chunk", "cumsum", "diag_embed", "diagonal", "diagonal_scatter",
    "expand", "flatten", "flip", "full", "gather", "index_add", "index_fill", "index_put", "index_select",
    "index_reduce", "isin", "masked_fill", "masked_scatter", "mean", "nn.functional.adaptive_avg_pool2d",
    "nn.functional.avg_pool2d", "nn.functional.batch_norm", "nn.functional.embedding", "nn.functional.glu",
    "nn.functional.group_norm", "nn.functional.interpolate", "nn.functional.layer_norm", "nn.functional.max_pool2d",
    "nn.functional.mse_loss", "nn.functional.nll_loss", "nn.functional.pad", "permute", "repeat", "roll", "scatter",
    "select", "select_scatter", "slice_scatter", "softmax", "split", "squeeze", "stack", "tensor_split", "tril",
    "unbind", "unfold", "unsqueeze", "var_mean", "view", "where",
})  # fmt: skip


def test_what_torch_computes_fits() -> None:
    found, seen = check([info for info in op_db if info.name in FAMILIES], torch.float32, 1)
    assert not found
    assert len(seen) > 100


TENSORS = """%x: !aten.tensor<(s0)x4xf32>, %y: !aten.tensor<3x5xf32>, %i: !aten.tensor<3xi64>,
  %z: !aten.tensor<2x6x8xf32>) attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
"""


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("aten.permute(%y, dims = [1, 0, 1]) : !aten.tensor<5x3xf32>", "3 dimensions are given for a tensor with 2"),
        ("aten.permute(%y, dims = [1, 1]) : !aten.tensor<5x5xf32>", "a dimension is named twice"),
        ("aten.permute(%y, dims = [1, 2]) : !aten.tensor<5x3xf32>", "dimension 2 of a tensor with 2"),
        ("aten.add.Tensor(%x, %y) : !aten.tensor<3x4xf32>", "do not broadcast"),
        ("aten.exp(%x) : !aten.tensor<(s0)x5xf32>", "result 0 is s0x4, and not s0x5"),
        ("aten.exp(%x) : !aten.tensor<(s0 + 1)x4xf32>", "result 0 is s0x4, and not s0 + 1x4"),
        ("aten.exp(%x) : !aten.tensor<(s0)x4xf16>", "result 0 holds float32, and not float16"),
        ("aten.eq.Scalar(%x, other = 0) : !aten.tensor<(s0)x4xf32>", "result 0 holds bool"),
        ("aten.sum.dim_IntList(%y, dim = [2]) : !aten.tensor<3xf32>", "dimension 2 of a tensor with 2"),
        ("aten.sum.dim_IntList(%y, dim = [1]) : !aten.tensor<5xf32>", "result 0 is 3, and not 5"),
        ("aten.view(%y, size = [4, 4]) : !aten.tensor<4x4xf32>", "3x5 has 15 elements, 4x4 has 16"),
        ("aten.slice.Tensor(%y, dim = 1, start = 1, step = 2) : !aten.tensor<3x3xf32, strides = [5, 2]>", "3x2"),
        ("aten.select.int(%y, dim = 0, index = 3) : !aten.tensor<5xf32>", "index 3 of a dimension of size 3"),
        ("aten.cat([%y, %x], dim = 0) : !aten.tensor<(s0 + 3)x5xf32>", "a tensor beside others"),
        ("aten.gather(%y, %i, dim = 0) : !aten.tensor<3xf32>", "an index of 3 into 3x5"),
        ("aten.index_select(%y, %y, dim = 0) : !aten.tensor<3x5xf32>", "an index of 3x5"),
        ("aten.embedding(%y, %y) : !aten.tensor<3x5x5xf32>", "'indices' holds float32, which is no index"),
        ("aten.mm(%y, %x) : !aten.tensor<3x4xf32>", ""),
        ("aten.mm(%x, %y) : !aten.tensor<(s0)x5xf32>", "the second factor, but for its columns, is 3, and not 4"),
        ("aten.avg_pool2d(%z, kernel_size = [9, 9]) : !aten.tensor<2x1x1xf32>", "a window of 9 does not fit in 6"),
        ("aten.reflection_pad2d(%z, padding = [8, 0, 0, 0]) : !aten.tensor<2x6x16xf32>", "8 elements are reflected"),
        ("aten.native_layer_norm(%y, normalized_shape = [4], eps = 1.0) : !aten.tensor<3x5xf32>, none, none", "4"),
    ],
)
def test_what_does_not_fit_is_told(call: str, told: str) -> None:
    results = "%a, %b, %c" if call.count("none") else "%a"
    text = f"func.func @f({TENSORS}  {results} = {call}\n"
    source = Source(text + "  func.return\n}", "f.mlir")
    module = source.parse(new_context())
    if not told:
        return source.verify(module)
    with pytest.raises(UserError) as raised:
        source.verify(module)
    assert str(raised.value).startswith("f.mlir:3:")
    assert told in str(raised.value)
    return None
