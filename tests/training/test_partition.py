"""What goes from the forward to the backward graph, and the cases in which sizes, effects or writes get in the way."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from inductile.errors import UserError
from inductile.passes.remarks import Remark, collecting

from .harness import SplitBackend, check_step
from .models import Block, Checkpointed, Function


@pytest.fixture(autouse=True)
def _no_fallback() -> Iterator[None]:
    """torch's partitioner must not have taken over."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="(torch splits|inductile runs) a graph")
        yield


def _split(
    function: Callable[..., torch.Tensor], *shapes: tuple[int, ...], inputs: tuple[Any, ...], **options: Any
) -> SplitBackend:
    """Train one step of a function of parameters and inputs, compared with eager; returns the graphs."""
    torch.manual_seed(0)
    backend = SplitBackend(options)
    check_step(Function(function, *shapes), inputs, backend)
    return backend


def test_elementwise_runs_again_from_the_matrix_product() -> None:
    graphs = _split(lambda w, v, x: F.gelu(x @ w) * v, (8, 8), (8,), inputs=(torch.randn(4, 8),))
    assert "mm" in graphs.saved()
    assert "aten.gelu.default" in graphs.targets("backward")
    assert graphs.targets("backward").count("aten.mm.default") == 1


def test_views_are_not_saved() -> None:
    graphs = _split(lambda w, x: (x.t() @ w).sin(), (4, 3), inputs=(torch.randn(4, 5, requires_grad=True),))
    placeholders = graphs.backward[-1].graph.find_nodes(op="placeholder")
    assert all(node.meta["val"]._base is None for node in placeholders)
    assert graphs.saved() == ["primals_1", "primals_2", "mm"]


def test_reductions_are_saved() -> None:
    graphs = _split(lambda w, x: (x * w).sum(1, keepdim=True).sin() * x, (64,), inputs=(torch.randn(8, 64),))
    assert any(name.startswith("sum") for name in graphs.saved())


def test_a_batch_norm_of_fixed_statistics_runs_again() -> None:
    """It is elementwise then: the sign that relu's gradient needs is computed from an input that it reads anyway."""
    stats = torch.randn(4), torch.rand(4) + 0.5

    def f(w: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return F.relu(F.batch_norm(x, *stats, w, b, False))

    graphs = _split(f, (4,), (4,), inputs=(torch.randn(2, 4, 3, 3, requires_grad=True),))
    assert "relu" not in graphs.saved()
    assert "aten.relu.default" in graphs.targets("backward")


def test_a_loss_saves_logits_as_they_are_and_two_numbers_of_each_row() -> None:
    """What is left of the normalisation is elementwise and runs again; the logits are in memory anyway."""
    target = torch.randint(0, 512, (32,))
    graphs = _split(lambda w, t: F.cross_entropy(w.bfloat16().float(), t), (32, 512), inputs=(target,))
    assert {"amax_default", "log_default"} <= set(graphs.saved())
    again = graphs.targets("backward")
    assert "aten.sub.Tensor" in again and "aten.exp.default" not in again and "aten.sum.dim_IntList" not in again


def test_a_divergence_saves_two_numbers_of_each_row_of_both_distributions() -> None:
    def divergence(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        p, q = F.softmax(x / 2, -1), F.log_softmax(w / 2, -1)
        return F.kl_div(q, p, reduction="batchmean")

    graphs = _split(divergence, (8, 256), inputs=(torch.randn(8, 256, requires_grad=True),))
    assert {"amax_default", "amax_default_1", "reciprocal_default", "log_default"} <= set(graphs.saved())
    assert not {"_softmax", "_to_copy", "_log_softmax"} & set(graphs.saved())


@pytest.mark.parametrize(
    ("function", "shape", "bits"),
    [
        (lambda w: F.max_pool2d(F.relu(w), 3, 2, 1), (2, 4, 16, 16), torch.int16),
        (lambda w: F.max_pool2d(w, 2), (1, 1, 200, 200), torch.int32),
        (lambda w: F.adaptive_max_pool2d(w, (3, 2)), (2, 4, 16, 16), torch.int16),
        (lambda w: F.max_pool3d(w, 2), (1, 2, 8, 8, 8), torch.int16),
        (lambda w: w.amax(1) + w.max(1).values + w.sin().max(0, keepdim=True).values.sum(), (9, 40), torch.int16),
        (lambda w: w.sort(0).values[:2] * w.topk(2, 0).values, (6, 3), torch.int16),
        (lambda w: w.cummax(1).values, (3, 8), torch.int16),
        (lambda w: w.median(-1).values * w.kthvalue(2, -1).values, (4, 9), torch.int16),
    ],
)
def test_places_are_saved_in_few_bits(
    function: Callable[[torch.Tensor], torch.Tensor], shape: tuple[int, ...], bits: torch.dtype
) -> None:
    graphs = _split(function, shape, inputs=())
    dtypes = {node.meta["val"].dtype for node in graphs.backward[-1].graph.find_nodes(op="placeholder")}
    assert bits in dtypes and torch.int64 not in dtypes


def test_returned_places_stay_as_they_are() -> None:
    graphs = _split(lambda w: w.topk(2)[0] * 2 + w.topk(2)[1], (3, 8), inputs=())
    assert not any(name.startswith("narrow") for name in graphs.saved())


def test_random_ops_run_in_forward_only() -> None:
    graphs = _split(lambda w, x: F.dropout(x * w, 0.5).exp(), (4,), inputs=(torch.randn(3, 4),))
    assert "aten.native_dropout.default" in graphs.targets("forward")
    assert "aten.native_dropout.default" not in graphs.targets("backward")


def test_checkpoint_runs_products_again() -> None:
    torch.manual_seed(0)
    backend = SplitBackend()
    inputs = (torch.randn(2, 6, 16, requires_grad=True),)
    check_step(Checkpointed(), inputs, backend)
    again = backend.targets("backward").count("aten.addmm.default")
    assert again >= 6  # three or four of the four of each block; the last may not be needed
    check_step(torch.nn.Sequential(Block(), Block()), inputs, plain := SplitBackend())
    assert "aten.addmm.default" not in plain.targets("backward")
    assert len(backend.saved()) < len(plain.saved())


def _save_products(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    is_product = op == torch.ops.aten.mm.default
    return CheckpointPolicy.MUST_SAVE if is_product else CheckpointPolicy.PREFER_RECOMPUTE


def test_selective_checkpoint_saves_what_it_is_asked_to() -> None:
    def function(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        contexts = partial(create_selective_checkpoint_contexts, _save_products)
        return checkpoint(lambda a: (a.sin() @ w).sin().exp(), x, use_reentrant=False, context_fn=contexts).sum(0)  # pyright: ignore

    graphs = _split(function, (4, 4), inputs=(torch.randn(4, 4, requires_grad=True),))
    assert "mm" in graphs.saved()
    assert "exp" not in graphs.saved()
    # the product of the gradient alone: two operands need one
    assert graphs.targets("backward").count("aten.mm.default") == 2


def test_budget_trades_memory_for_work() -> None:
    sizes: list[int] = []
    for budget in (0.0, 0.5, 1.0):
        torch.manual_seed(0)
        backend = SplitBackend({"activation_memory_budget": budget})
        check_step(torch.nn.Sequential(Block(), Block()), (torch.randn(2, 32, 16, requires_grad=True),), backend)
        values = [node.meta["val"] for node in backend.backward[-1].graph.find_nodes(op="placeholder")]
        sizes.append(sum(value.numel() * value.element_size() for value in values if isinstance(value, torch.Tensor)))
    assert sizes[0] < sizes[1] < sizes[2]


def test_budget_is_checked() -> None:
    with pytest.raises(UserError, match=r"activation_memory_budget.*0.0 to 1.0"):
        SplitBackend({"activation_memory_budget": 1.5})(torch.fx.symbolic_trace(lambda x: x.sin()), [torch.ones(2)])


def test_integers_go_to_backward_where_it_needs_them() -> None:
    torch.manual_seed(0)
    backend = SplitBackend()
    module = Function(lambda w, x: (x @ w).relu().reshape(-1, 2).sum(1) * x.shape[0], (4, 4))
    check_step(module, (torch.randn(6, 4),), backend, dynamic=True)
    numbers = [
        node for node in backend.backward[-1].graph.find_nodes(op="placeholder")
        if isinstance(node.meta["val"], torch.SymInt)
    ]  # fmt: skip
    assert numbers


def test_sizes_that_depend_on_data() -> None:
    def function(w: torch.Tensor, x: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
        chosen = (x > 0).nonzero().squeeze(1)
        return (x * w)[chosen].sin() * number.item()

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        graphs = _split(function, (5,), inputs=(torch.tensor([1.0, -1, 2, 3, -4]), torch.tensor(2.5)))
    assert "aten.nonzero.default" not in graphs.targets("backward")


def test_effects_keep_their_order_and_run_once() -> None:
    calls: list[str] = []

    @torch.library.custom_op("inductile_test::note", mutates_args=())
    def note(x: torch.Tensor, what: str) -> torch.Tensor:
        calls.append(what)
        return x.clone()

    @note.register_fake
    def _(x: torch.Tensor, what: str) -> torch.Tensor:
        return torch.empty_like(x)

    note.register_autograd(lambda ctx, g: (note(g, "backward"), None))
    from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

    _register_effectful_op(torch.ops.inductile_test.note.default, _EffectType.ORDERED)
    _split(lambda w, x: note(note(x * w, "first").sin(), "second").exp(), (4,), inputs=(torch.randn(3, 4),))
    eager, compiled = calls[:4], calls[4:]
    assert eager == ["first", "second", "backward", "backward"]
    assert compiled == eager


def test_what_the_caller_overwrites_is_not_needed() -> None:
    """Eager saves the result of `exp`, not its operand, so the operand may be overwritten."""
    torch._dynamo.reset()
    weight = torch.randn(4, requires_grad=True)
    x = torch.randn(3, 4)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * weight
        return y + 1, (y + 1).exp()

    results = []
    for run in (function, torch.compile(function, backend=SplitBackend())):
        weight.grad = None
        shown, y = run(x)
        shown.detach().zero_()
        y.sum().backward()
        results.append(weight.grad)
    torch.testing.assert_close(results[0], results[1])


def test_remarks_tell_the_decisions() -> None:
    with collecting() as remarks:
        _split(lambda w, x: F.gelu(x @ w).exp(), (8, 8), inputs=(torch.randn(4, 8),))
    mine = [remark for remark in remarks if remark.pass_name == "graph-partition"]
    saved = [remark for remark in mine if "saved" in remark.reason]
    assert {remark.op for remark in saved} >= {"aten.mm"}
    assert all(remark.location.partition(":")[0].endswith("test_partition.py") for remark in saved if remark.op)
    assert any("again" in remark.reason and remark.op == "aten.gelu" for remark in mine)
    summary = [remark for remark in mine if remark.kind == "analysis"]
    assert len(summary) == 1
    assert isinstance(summary[0].figures["bytes"], int)


def test_torch_takes_over_visibly() -> None:
    """A float that the backward graph would have to be given has no place there."""
    from inductile.backends.config import Config
    from inductile.backends.partition import partition_joint
    from inductile.passes.graph import partition

    def refuse(self: Any, budget: float) -> None:
        raise partition.UnsupportedError("no partition for the test")

    remarks: list[Remark] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition._Partitioner, "run", refuse)
        with (
            pytest.warns(UserWarning, match="torch splits a graph .*: no partition for the test"),
            collecting() as remarks,
        ):
            _split(lambda w, x: (x * w).sin(), (4,), inputs=(torch.randn(3, 4),))
    assert [r.kind for r in remarks if "torch splits" in r.reason] == ["missed"]
    assert Config.resolve(None, {"partition": "torch"}).partition == "torch"
    assert partition_joint.__kwdefaults__ is not None


def test_a_result_that_an_equal_op_alone_reads() -> None:
    _split(lambda w: w.argsort(0) * w.sin() + w.sort(0).values, (5, 3), inputs=())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_a_number_that_was_made_on_the_way_to_another_value(dtype: torch.dtype) -> None:
    """Under vmap a number is a tensor that is converted; the conversion folds, and what it read is read by others."""
    given = (torch.randn(5, 2).to(dtype),)
    _split(lambda w, x: torch.func.vmap(lambda p: (w.to(dtype) @ p).tanh().sum() * 0.003)(x).float(), (3, 2),
           inputs=given)  # fmt: skip


def test_derivatives_inside_a_step_of_training() -> None:
    """A second derivative by torch.func, times a number."""

    def residual(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        first = torch.func.grad(lambda p: torch.tanh(w @ p).sum())
        return torch.func.vmap(lambda p: first(p)[0] - 0.003 * torch.func.jacrev(first)(p)[1, 1])(x)

    _split(residual, (3, 2), inputs=(torch.randn(5, 2),))
