"""Bodies of higher-order operators: compiled, equal to eager with gradients and other sizes, and called as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as _map_of_torch
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint
from xdsl.dialects import math

import inductile
from inductile import extensions
from inductile.backends.compiled import REPORTS
from inductile.passes.kernel.kernel_pass import KernelPass

Function = Callable[[torch.Tensor, torch.Tensor], Any]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    REPORTS.clear()
    yield


@torch.compiler.nested_compile_region
def _marked(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w).sin() + x


_layer: Any = _marked
map_rows: Any = _map_of_torch


def _regions(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return _layer(_layer(x * 2, w).cos(), w).sum(0)


def _one_region(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return _layer(x * 2, w).cos()


def _cond(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda a, b: ((a @ b).sin() * 2).relu(), lambda a, b: a.cos() + 1, (x, w))


def _cond_in_cond(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    def inner(a: torch.Tensor) -> torch.Tensor:
        return torch.cond(a[0, 0] > 0.5, lambda b: b.sin() + 1, lambda b: b.cos() * 2, (a,)).exp()

    return torch.cond(x.sum() > 0, inner, lambda a: a * 3, (x,))


def _strides_differ(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda a: (a.t() + 1).t(), lambda a: a.clone(), (x,)) * 2


def _while(x: torch.Tensor, w: torch.Tensor) -> Any:
    return while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, (a @ w).sin() + a), (torch.tensor(0), x))


def _no_step(x: torch.Tensor, w: torch.Tensor) -> Any:
    return while_loop(lambda i, a: i < 0, lambda i, a: (i + 1, (a @ w).sin() + a), (torch.tensor(0), x))


def _swap(x: torch.Tensor, w: torch.Tensor) -> Any:
    first = torch.zeros((), dtype=torch.int64)
    return while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b.sin(), a.clone()), (first, x, x * 2))[1:]


def _scan(x: torch.Tensor, w: torch.Tensor) -> Any:
    return scan(lambda c, a: (c + a.sin(), (c * a).cos() @ w), x[0], x)


def _scan_reversed(x: torch.Tensor, w: torch.Tensor) -> Any:
    return scan(lambda c, a: (c * 0.5 + a, c.exp()), x[0], x, reverse=True)


def _map(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return map_rows(lambda a, b: (a @ b).sin() + 1, x, w)


def _map_of_columns(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return map_rows(lambda a: (a * 2).sin(), x.t())


def _associative(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return associative_scan(lambda a, b: a * b + a + b, x * 1, 0, combine_mode="generic")


@torch.compiler.nested_compile_region
def _marked_scans(x: torch.Tensor) -> torch.Tensor:
    sums = associative_scan(lambda a, b: a + b, x / 4, 0, combine_mode="generic")
    return scan(lambda c, a: (c * 0.5 + a, (c + a).sin()), x[0] * 0, sums)[1]


_scans: Any = _marked_scans


def _loops_in_regions(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The second use gets a tensor whose size is another expression of the first size."""
    return _scans(_scans(x)) * w.sum()


def _checkpoint(x: torch.Tensor, w: torch.Tensor) -> Any:
    return checkpoint(lambda a: (a @ w).sin().relu() * 2, x, use_reentrant=False)


WITH_GRADIENTS = [
    _regions, _one_region, _cond, _cond_in_cond, _strides_differ, _while, _scan, _map, _checkpoint, _loops_in_regions,
]  # fmt: skip
DYNAMIC = [_regions, _cond, _while, _scan, _map, _loops_in_regions]
OTHERS = [_no_step, _swap, _scan_reversed, _map_of_columns, _associative]


def _run(function: Function, x: torch.Tensor, w: torch.Tensor, gradients: bool) -> list[Any]:
    inputs = [each.detach().clone().requires_grad_(gradients) for each in (x, w)]
    outputs = [each for each in pytree.tree_leaves(function(*inputs)) if each is not None]
    if not gradients:
        return outputs
    sum((each.sin().sum() for each in outputs if each.is_floating_point()), torch.zeros(())).backward()
    return [*outputs, *(torch.zeros_like(each) if each.grad is None else each.grad for each in inputs)]


def _check(function: Function, gradients: bool, dynamic: bool) -> None:
    compiled: Any = torch.compile(function, backend="inductile", fullgraph=True, dynamic=dynamic)
    for rows in (6, 5) if dynamic else (6,):
        for sign in (1, -1):
            x = torch.rand(rows, 4, dtype=torch.float64) * sign
            w = torch.randn(4, 4, dtype=torch.float64)
            expected, got = (_run(f, x, w, gradients) for f in (function, compiled))
            torch.testing.assert_close(got, expected)
            assert [each.stride() for each in got] == [each.stride() for each in expected]
    assert all(sum(report.kernels.values()) for report in REPORTS)
    called = {name for report in REPORTS for name in report.aten_calls}
    assert not [name for name in called if name.startswith("higher_order")]


@pytest.mark.rotates(4)
@pytest.mark.parametrize("function", WITH_GRADIENTS)
def test_with_gradients(function: Function) -> None:
    _check(function, gradients=True, dynamic=function in DYNAMIC)


def _product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).sin() * x


@torch.compiler.nested_compile_region
def _marked_twice(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return _layer(_layer(x, w) * 2, w).cos()


_outer: Any = _marked_twice


def _branch_and_caller(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return _outer(torch.cond(x.sum() > 0, lambda a: _layer(a, w), lambda a: a / 4, (x,)), w)


@pytest.mark.parametrize("function", [_product, _one_region, _regions, _marked_twice])
def test_saved_arguments_are_not_marked_dynamic(function: Function) -> None:
    """A mark on a user's tensor makes sizes dynamic that are static, in what is compiled later; twice for the cache."""
    x, w = (torch.rand(size, 4, requires_grad=True) for size in (6, 4))
    for _ in range(2):
        torch._dynamo.reset()
        torch.compile(function, backend="inductile", fullgraph=True, dynamic=True)(x, w).sum().backward()
        for each in (x, w):
            assert not [name for name in vars(each) if name.endswith("dynamic_indices")]


def test_a_region_in_a_branch_and_in_its_caller() -> None:
    """Static sizes in training, all that torch can do, behind a graph that was dynamic in the same weights."""
    x, w = (torch.rand(size, 4, requires_grad=True) for size in (6, 4))
    torch.compile(_outer, backend="inductile", dynamic=True)(x, w).sum().backward()
    torch._dynamo.reset()
    got = torch.compile(_branch_and_caller, backend="inductile", fullgraph=True, dynamic=None)(x, w)
    torch.testing.assert_close(torch.autograd.grad(got.sum(), (x, w)),
                               torch.autograd.grad(_branch_and_caller(x, w).sum(), (x, w)))  # fmt: skip
    called = {name for report in REPORTS for name in report.aten_calls}
    assert called == {"aten.mm"}


@pytest.mark.rotates(4)
@pytest.mark.parametrize("function", [*WITH_GRADIENTS, *OTHERS])
def test_inference(function: Function) -> None:
    _check(function, gradients=False, dynamic=False)


def test_equal_layers_are_one_kernel_launched_twice() -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return _layer(_layer(x, w), w)

    x, w = torch.randn(6, 4), torch.randn(4, 4)
    torch.testing.assert_close(torch.compile(function, backend="inductile")(x, w), function(x, w))
    (report,) = REPORTS
    assert list(report.kernels.values()) == [2]
    assert report.aten_calls == {"aten.mm": 2}


def test_pointwise_associative_scan() -> None:
    """The operator that only compilers run; eager has the other mode of it."""

    def function(x: torch.Tensor, mode: str = "pointwise") -> torch.Tensor:
        return associative_scan(lambda a, b: a * b + a + b, x * 1, 0, combine_mode=mode)

    x = torch.randn(7, 3, dtype=torch.float64)
    got = torch.compile(function, backend="inductile", fullgraph=True)(x)
    torch.testing.assert_close(got, function(x, "generic"))
    assert not REPORTS[0].aten_calls


def test_integers_are_carried() -> None:
    def function(x: torch.Tensor) -> Any:
        return while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, (a * 0.5 + 1).sin()), (0, x))

    x = torch.randn(5, 3)
    expected, got = function(x), torch.compile(function, backend="inductile", fullgraph=True)(x)
    assert expected[0] == got[0] == 4
    torch.testing.assert_close(got[1], expected[1])


def test_a_tensor_of_a_body_is_a_number() -> None:
    def function(x: torch.Tensor) -> Any:
        def body(i: torch.Tensor, a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return i + torch.tensor(2), a * torch.tensor(0.5)

        return while_loop(lambda i, a: i < 7, body, (torch.tensor(0), x))

    x = torch.randn(5)
    got = torch.compile(function, backend="inductile", fullgraph=True)(x)
    torch.testing.assert_close(got, function(x))
    assert not REPORTS[0].aten_calls


def test_results_are_no_arguments() -> None:
    """A branch may hand on what it is given; what the caller gets is memory of its own, which kernels write over."""

    def function(x: torch.Tensor, y: torch.Tensor) -> Any:
        first = torch.cond(y.sum() > 0, lambda a: a.clone(), lambda a: a + 1, (x,))
        return first * 2, first + x

    x, y = torch.randn(64, 64), torch.ones(1)
    before = x.clone()
    got = torch.compile(function, backend="inductile", fullgraph=True)(x, y)
    torch.testing.assert_close(got, function(x, y))
    torch.testing.assert_close(x, before, rtol=0, atol=0)


def test_what_a_region_returns_has_the_name_of_what_it_is() -> None:
    @torch.compiler.nested_compile_region
    def layer(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x).exp() + x

    def function(x: Any) -> Any:
        for _ in range(4):
            x = layer(x)
        return x

    text = str(inductile.explain(function)(torch.randn(64)))
    assert "1 kernel" in text and "invoke_subgraph" not in text, text


class _CosineForSine(KernelPass):
    """A pass of a user, whose work shows in the result."""

    name = "cosine-for-sine"

    def on_kernel(self, function: Any, facts: Any) -> None:
        for op in [each for each in function.walk() if isinstance(each, math.SinOp)]:
            cosine = math.CosOp(op.operand)
            assert op.parent is not None
            op.parent.insert_op_before(cosine, op)
            op.result.replace_all_uses_with(cosine.result)
            op.parent.erase_op(op)


@torch.compiler.nested_compile_region
def _marked_sine(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


_sine: Any = _marked_sine


@pytest.mark.parametrize(
    "function",
    [
        lambda x: _sine(_sine(x)),
        lambda x: torch.cond(x.sum() > 0, lambda a: a.sin() + 1, lambda a: a.sin() - 1, (x,)),
        lambda x: while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.sin() * 2), (torch.tensor(0), x))[1],
        lambda x: scan(lambda c, a: (c + a.sin(), (c * a).sin()), x[0] * 1, x)[1],
        lambda x: map_rows(lambda a: a.sin() * 2, x),
        lambda x: checkpoint(lambda a: a.sin() * 2, x, use_reentrant=False),
    ],
    ids=["region", "cond", "while", "scan", "map", "checkpoint"],
)
def test_inserted_passes_work_on_bodies(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(extensions._added, "inductile.passes", {_CosineForSine.name: lambda: _CosineForSine})
    options: Any = {"insert": {"after:kernel-cse": _CosineForSine.name}}
    compiled: Any = torch.compile(function, backend="inductile", fullgraph=True, options=options)
    x = torch.rand(5, 4)
    got = compiled(x)
    monkeypatch.setattr(torch.Tensor, "sin", torch.Tensor.cos)
    torch.testing.assert_close(got, function(x))
