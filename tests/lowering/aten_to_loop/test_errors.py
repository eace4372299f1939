"""What eager raises while it runs, the lowered op raises too; what is not lowered says why."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from xdsl.dialects.test import TestOp as AnyOp

from inductile.backends.reference import run_module
from inductile.dialects.aten import AtenOp, TensorType, element_type
from inductile.dialects.context import new_context
from inductile.dialects.sym import Expr, const, symbol
from inductile.lowering.aten_to_loop import LowerAtenToLoop, unlowered_reason
from inductile.lowering.fx_import import import_graph
from inductile.passes.counters import Counter, counting
from inductile.passes.remarks import collecting

from .harness import overload, traced

x = torch.arange(12.0).reshape(3, 4)


def index(*values: int) -> torch.Tensor:
    return torch.tensor(values)


def lowered(name: str, good: list[Any]) -> Any:
    """The module of an op, built from arguments that are fine."""
    graph, _, _ = traced(name, good, {})
    module = import_graph(graph).module
    LowerAtenToLoop().apply(new_context(), module)
    return module


@pytest.mark.parametrize(("name", "arguments", "position", "bad"), [
    ("index.Tensor", [x, [index(0)]], (1, 0), index(3)),
    ("index.Tensor", [x, [index(0)]], (1, 0), index(-4)),
    ("embedding", [x, index(0)], (1,), index(-1)),
    ("embedding", [x, index(0)], (1,), index(3)),
    ("index_select", [x, 1, index(0)], (2,), index(4)),
    ("gather", [x, 1, index(0)[None]], (2,), index(-1)[None]),
    ("take", [x, index(0)], (1,), index(12)),
    ("index_put", [x, [index(0)], torch.tensor(1.0)], (1, 0), index(5)),
    ("scatter.value", [x, 0, index(0)[None], 1.0], (2,), index(3)[None]),
    ("scatter_add", [x, 0, index(0)[None], torch.ones(1, 1)], (2,), index(-1)[None]),
    ("index_add", [x, 0, index(0), torch.ones(1, 4)], (2,), index(3)),
    ("index_copy", [x, 0, index(0), torch.ones(1, 4)], (2,), index(-1)),
    ("index_fill.int_Scalar", [x, 0, index(0), 1.0], (2,), index(-4)),
    ("floor_divide", [index(1, 2), index(3, 4)], (1,), index(3, 0)),
    ("remainder.Tensor", [index(1, 2), index(3, 4)], (1,), index(0, 4)),
    ("fmod.Tensor", [index(1, 2), index(3, 4)], (1,), index(0, 4)),
])  # fmt: skip
def test_raises_as_eager(name: str, arguments: list[Any], position: tuple[int, ...], bad: torch.Tensor) -> None:
    module = lowered(name, arguments)
    broken = list(arguments)
    if len(position) == 2:
        broken[position[0]] = [bad]
    else:
        broken[position[0]] = bad
    with pytest.raises((IndexError, RuntimeError)) as eager:
        overload(name)(*broken)
    inputs = [t for a in broken for t in (a if isinstance(a, list) else [a]) if isinstance(t, torch.Tensor)]
    with pytest.raises(type(eager.value)):
        run_module(module, inputs)


def test_smallest_integer_divided_by_minus_one_wraps() -> None:
    smallest = torch.tensor([-(2**31)], dtype=torch.int32)
    module = lowered("floor_divide", [smallest, torch.tensor([-1], dtype=torch.int32)])
    (got,) = run_module(module, [smallest, torch.tensor([-1], dtype=torch.int32)])
    assert got.tolist() == [-(2**31)]


def tensor(*sizes: int | Expr, dtype: str = "float32", device: str = "cpu") -> Any:
    shape = tuple(const(size) if isinstance(size, int) else size for size in sizes)
    return AnyOp.create(result_types=(TensorType.get(shape, element_type(dtype), None, device),)).results[0]


def reason(name: str, arguments: dict[str, Any], result: Any) -> str | None:
    return unlowered_reason(AtenOp.of(f"aten.{name}", arguments, [result.type]))


def test_reasons() -> None:
    f, c, q = tensor(2, 3), tensor(2, 3, dtype="complex64"), tensor(2, 3, dtype="float8_e5m2")
    gpu = tensor(2, 3, device="cuda:0")
    assert reason("add.Tensor", {"self": f, "other": f}, f) is None
    assert (
        reason("mm", {"self": f, "mat2": f}, f)
        == "aten.mm is a library's: graph-expand-products has not made it a nest"
    )
    assert reason("exp", {"self": c}, c) == "complex64 is computed by ATen only"
    assert reason("exp", {"self": q}, q) == "float8_e5m2 is computed by ATen only"
    assert reason("_to_copy", {"self": q}, f) is None
    assert "may be too large for 8 bits" in (reason("_to_copy", {"self": f}, q) or "")
    assert reason("add.Scalar", {"self": f, "other": 1j}, c) == "complex64 is computed by ATen only"
    assert reason("permute", {"self": c, "dims": [0, 1]}, c) is None
    assert reason("clone", {"self": c}, c) == "complex64 is computed by ATen only"
    assert reason("_to_copy", {"self": f}, gpu) == "tensors on several devices: cpu, cuda:0"
    assert reason("add.Tensor", {"self": gpu, "other": tensor()}, gpu) is None
    assert reason("_to_copy", {"self": tensor()}, tensor(device="cuda:0")) == "a transfer from cpu to cuda:0"
    mask = tensor(2, 3, dtype="bool")
    assert reason("index.Tensor", {"self": f, "indices": [mask]}, tensor(symbol("u0"))) == (
        "a mask as index gives a size that depends on data"
    )


def test_padding_that_may_crop_more_than_there_is_stays_a_call() -> None:
    """Eager crops before it adds, and raises there."""
    n = symbol("s0")

    def padded(size: int | Expr, *pad: int) -> str | None:
        return reason("constant_pad_nd", {"self": tensor(3, size), "pad": pad}, tensor(3, size + sum(pad)))

    for size, pad in ((0, (2, -1)), (4, (-5, 3)), (4, (3, -5)), (n, (2, -1))):
        assert padded(size, *pad) == f"a dimension of size {size} may be smaller than what its padding crops"
    for size, pad in ((4, (-4, 3)), (4, (3, -4)), (4, (-1, -2)), (n, (0, -1)), (n, (1, 2))):
        assert padded(size, *pad) is None


def test_locations_reach_every_op() -> None:
    from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

    graph, _, _ = traced("_softmax", [x, 1, False], {})
    module = import_graph(graph).module
    location = FileLineColLoc(StringAttr("model.py"), IntAttr(7), IntAttr(0))
    for op in module.walk():
        if op.name.startswith("aten."):
            op.location = location
    LowerAtenToLoop().apply(new_context(), module)
    nests = [op for op in module.walk() if op.name.partition(".")[0] in ("loop", "arith", "math")]
    assert nests and all(op.location == location for op in nests)


def test_remarks_and_the_debug_counter() -> None:
    graph, _, _ = traced("_softmax", [x, 1, False], {})
    module = import_graph(graph).module
    with counting({"lower-aten-to-loop": Counter(skip=1)}), collecting() as remarks:
        LowerAtenToLoop().apply(new_context(), module)
    assert [op.name for op in module.walk() if op.name.startswith(("aten.", "loop."))] == ["aten._softmax"]
    assert [(r.kind, r.op, r.reason) for r in remarks] == [
        ("missed", "aten._softmax", "switched off by the debug counter")
    ]
    with collecting() as remarks:
        LowerAtenToLoop().apply(new_context(), module)
    assert remarks == []
