"""Reductions and scans with each monoid against torch, and against plain folding."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.reference import InterpretationError, differences
from inductile.backends.reference.monoids import COMBINERS
from inductile.dialects.loop import MONOIDS

from .helpers import run, tensor_type

inf, nan = float("inf"), float("nan")


def reduced(combiner: str, x: torch.Tensor, body: str, results: list[str], **options: bool) -> list[torch.Tensor]:
    """Reduce the last dimension of a matrix; `body` turns %v at %r into the yielded values."""
    rows, columns = x.shape
    types = ", ".join(f"!aten.tensor<{rows}x{r}>" for r in results)
    outs = ", ".join(f"%o{k}" for k in range(len(results)))
    return run(
        f"""func.func @f(%x: {tensor_type(x)}) -> ({types}) {{
          %y:{len(results)} = loop.generate (i0 in {rows}) {{
            {outs} = loop.reduce {combiner} (r0 in {columns}) {{
              %v = loop.load %x[i0, r0]
              %r = loop.index r0
              {body}
            }}
            loop.yield {outs}
          }} : {types}
          func.return {", ".join(f"%y#{k}" for k in range(len(results)))} : {types}
        }}""",
        x,
        **options,
    )


def test_every_named_monoid_has_a_combiner() -> None:
    assert {name: m.arity for name, m in MONOIDS.items()} == {name: c.arity for name, c in COMBINERS.items()}


ROWS = torch.tensor([[1.0, -2.0, 3.0], [nan, 1.0, inf], [inf, -inf, 0.0], [-0.0, -0.0, -0.0], [-inf, -inf, -inf]])


@pytest.mark.parametrize("x", [ROWS, torch.randn(7, 1001), torch.empty(3, 0)])
def test_sum_and_prod(x: torch.Tensor) -> None:
    (total,) = reduced("sum", x, "loop.yield %v", ["f32"])
    assert not differences(x.double().sum(1).float(), total)
    (product,) = reduced("prod", x, "loop.yield %v", ["f32"])
    assert not differences(x.double().prod(1).float(), product)


def test_sum_of_negative_zeros_is_zero() -> None:
    (total,) = reduced("sum", -torch.zeros(1, 3), "loop.yield %v", ["f32"])
    assert not bool(total.signbit().any())


def test_integer_sum_wraps() -> None:
    (total,) = reduced("sum", torch.tensor([[100, 100]], dtype=torch.int8), "loop.yield %v", ["i8"])
    assert total.item() == -56


@pytest.mark.parametrize("x", [ROWS, torch.randn(7, 33), torch.randint(-9, 9, (5, 8))])
def test_max_and_min(x: torch.Tensor) -> None:
    element = "f32" if x.is_floating_point() else "i64"
    (most,) = reduced("max", x, "loop.yield %v", [element])
    (least,) = reduced("min", x, "loop.yield %v", [element])
    assert not differences(x.amax(1), most) and not differences(x.amin(1), least)


def test_empty_reductions_give_the_identity() -> None:
    x = torch.empty(2, 0)
    expected = {"sum": 0.0, "prod": 1.0, "max": -inf, "min": inf}
    for name, identity in expected.items():
        (got,) = reduced(name, x, "loop.yield %v", ["f32"])
        assert got.tolist() == [identity, identity]
    value, index = reduced("argmax", x, "loop.yield %v, %r", ["f32", "i64"])
    assert value.tolist() == [-inf, -inf] and index.tolist() == [2**63 - 1] * 2


def test_any_all_xor() -> None:
    x = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    for name, expected in {"any": x.any(1), "all": x.all(1), "xor": x.sum(1) % 2 == 1}.items():
        (got,) = reduced(name, x, "loop.yield %v", ["i1"])
        assert torch.equal(got, expected)
    n = torch.tensor([[5, 3, 8]])
    (got,) = reduced("xor", n, "loop.yield %v", ["i64"])
    assert got.item() == 5 ^ 3 ^ 8


TIES = torch.tensor([[1.0, 2.0, 2.0, 0.0], [1.0, nan, 5.0, nan], [inf, inf, -inf, -inf], [-inf, -inf, -inf, -inf]])


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_argmax_and_argmin(name: str) -> None:
    value, index = reduced(name, TIES, "loop.yield %v, %r", ["f32", "i64"])
    pick = torch.argmax if name == "argmax" else torch.argmin
    assert torch.equal(index, pick(TIES, 1))
    assert not differences(TIES.gather(1, index[:, None])[:, 0], value)


def test_argmax_takes_the_lower_index_whatever_the_order() -> None:
    x = torch.tensor([[2.0, 2.0, 1.0]])
    body = "%n = arith.constant 2 : i64\n%b = arith.subi %n, %r : i64\nloop.yield %v, %b"
    _, index = reduced("argmax", x, body, ["f32", "i64"])
    assert index.item() == 1


def test_welford() -> None:
    x = torch.randn(4, 1000) + 1000
    body = "%z = arith.constant 0.0 : f32\n%o = arith.constant 1.0 : f32\nloop.yield %v, %z, %o"
    mean, m2, count = reduced("welford", x, body, ["f32", "f32", "f32"])
    assert not differences(x.double().mean(1).float(), mean)
    assert not differences((x.double().var(1) * 999).float(), m2)
    assert count.tolist() == [1000.0] * 4
    mean, m2, count = reduced("welford", x[:, :0].contiguous(), body, ["f32", "f32", "f32"])
    assert [mean[0].item(), m2[0].item(), count[0].item()] == [0.0, 0.0, 0.0]
    mean, m2, count = reduced("welford", torch.tensor([[inf, 1.0], [3.0, nan]]), body, ["f32", "f32", "f32"])
    assert mean.isnan().all() and m2.isnan().all()


def test_logsumexp() -> None:
    x = torch.cat([torch.randn(3, 5) * 30, torch.tensor([[-inf] * 5, [inf, inf, 0, 0, 0], [nan, 0, 0, 0, 0]])])
    most, total = reduced("logsumexp", x, "%o = arith.constant 1.0 : f32\nloop.yield %v, %o", ["f32", "f32"])
    assert not differences(x.logsumexp(1), most + total.log())


def test_several_monoids_at_once() -> None:
    x = torch.randn(3, 9)
    total, value, index = reduced("[sum, argmin]", x, "loop.yield %v, %v, %r", ["f32", "f32", "i64"])
    assert not differences(x.sum(1), total)
    assert torch.equal(index, x.argmin(1)) and torch.equal(value, x.amin(1))


CUSTOM = """func.func @f(%x: !aten.tensor<COUNTxf32>) -> !aten.tensor<f32> {
  %one = arith.constant INIT : f32
  %y = loop.generate () {
    %o = loop.reduce custom init(%one) (r0 in COUNT) {
      %v = loop.load %x[r0]
      loop.yield %v
    } combine {
    ^bb0(%a: f32, %b: f32):
      %c = arith.mulf %a, %b : f32
      loop.yield %c
    }
    loop.yield %o
  } : !aten.tensor<f32>
  func.return %y : !aten.tensor<f32>
}"""


@pytest.mark.parametrize("count", [0, 1, 2, 5, 8])
def test_custom_reduce_folds_in_order(count: int) -> None:
    x = torch.arange(1.0, count + 1)
    (got,) = run(CUSTOM.replace("COUNT", str(count)).replace("INIT", "1.0"), x)
    assert got.item() == x.prod().item()


def test_init_must_be_an_identity() -> None:
    text = CUSTOM.replace("COUNT", "3").replace("INIT", "2.0")
    with pytest.raises(InterpretationError, match="not an identity"):
        run(text, torch.arange(1.0, 4))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("along", [0, 1])
def test_scans(name: str, along: int) -> None:
    x = torch.randn(6, 17)
    x[2, 3] = nan
    kind = tensor_type(x)
    (got,) = run(
        f"""func.func @f(%x: {kind}) -> {kind} {{
          %c = loop.scan {name} (i0 in 6, i1 in 17) along i{along} {{
            %v = loop.load %x[i0, i1]
            loop.yield %v
          }} : {kind}
          func.return %c : {kind}
        }}""",
        x,
    )
    expected = {
        "sum": lambda: x.cumsum(along),
        "prod": lambda: x.cumprod(along),
        "max": lambda: x.cummax(along).values,
        "min": lambda: x.cummin(along).values,
    }[name]()
    assert not differences(expected, got)
