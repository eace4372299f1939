"""The decomposition table says only what torch can do, and nothing that a lowering does better."""

from __future__ import annotations

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from inductile.lowering.aten_to_loop import RULES, refusals
from inductile.lowering.fx_decompositions import DECOMPOSED, decompositions


def test_every_entry_has_a_decomposition() -> None:
    found = {op.overloadpacket.__name__ for op in decompositions() if isinstance(op, torch._ops.OpOverload)}
    assert sorted(set(DECOMPOSED) - found) == []


def test_no_entry_hides_a_lowering() -> None:
    lowered = {name.removeprefix("aten.").partition(".")[0] for name in RULES}
    assert sorted(set(DECOMPOSED) & lowered) == []


def test_what_eager_refuses_and_we_would_lower_names_rules() -> None:
    names = {name.removeprefix("aten.").partition(".")[0] for name in RULES} | RULES.keys()
    assert sorted((refusals._RESULTS.keys() | refusals._OPERANDS.keys() | refusals._NUMBERS.keys()) - names) == []


@pytest.mark.parametrize("train", [True, False])
def test_the_gradient_of_a_batch_norm_saves_no_running_statistics_in_training(train: bool) -> None:
    def gradient(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.ops.aten.native_batch_norm_backward(*tensors, train, 1e-5, [True] * 3)

    x, channels = torch.randn(2, 3, 4, 4), [torch.rand(3) + 0.5 for _ in range(5)]
    graph = make_fx(gradient, decomposition_table=decompositions())(x, x, *channels)
    (node,) = graph.graph.find_nodes(op="call_function", target=torch.ops.aten.native_batch_norm_backward.default)
    assert [argument is None for argument in node.args[3:5]] == [train, train]
    torch.testing.assert_close(graph(x, x, *channels), gradient(x, x, *channels))
