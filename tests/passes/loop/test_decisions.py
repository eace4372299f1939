"""What the passes decide, say about it, and let a person switch off."""

from __future__ import annotations

import time

import pytest
from xdsl.dialects.builtin import ModuleOp

from inductile.dialects.loop import FusionOp, GenerateOp
from inductile.passes.counters import Counter, counting
from inductile.passes.remarks import collecting

from .conftest import functions, parse, transform

T = "!aten.tensor<64x128xf32>"


def pointwise(name: str, *sources: str) -> str:
    """A nest too expensive to compute twice, of all sources at its own point."""
    lines = [f"%l{k} = loop.load {s}[i0, i1]" for k, s in enumerate(sources)]
    last = "%l0"
    for k in range(1, len(sources)):
        lines.append(f"%s{k} = arith.addf {last}, %l{k} : f32")
        last = f"%s{k}"
    lines += [f"%e = math.tanh {last} : f32", "loop.yield %e"]
    return "\n".join((f"{name} = loop.generate (i0 in 64, i1 in 128) {{", *lines, f"}} : {T}\n"))


def function(body: str, *outputs: str, inputs: str = f"%x: {T}") -> str:
    types = ", ".join([T] * len(outputs))
    return f"func.func @f({inputs}) -> ({types}) {{\n{body}\nfunc.return {', '.join(outputs)} : {types}\n}}"


def fusions(module: ModuleOp) -> list[FusionOp]:
    (only,) = functions(module)
    return [op for op in only.body.block.ops if isinstance(op, FusionOp)]


def test_a_cycle_through_an_aten_call_is_refused() -> None:
    body = (
        pointwise("%a", "%x") + f"%m = aten.mm(%a, %w) : {T}\n" + pointwise("%b", "%a", "%m")
    )  # fmt: skip
    module = parse(function(body, "%b", inputs=f"%x: {T}, %w: !aten.tensor<128x128xf32>"))
    with collecting() as remarks:
        transform(module, "loop-fuse")
    assert [len(f.members) for f in fusions(module)] == [1, 1]
    assert any("aten.mm between them depends on one" in r.reason for r in remarks if r.kind == "missed")


def test_a_limit_of_members_splits_a_chain() -> None:
    body = "".join(pointwise(f"%v{k + 1}", f"%v{k}" if k else "%x", "%x") for k in range(6))
    module = parse(function(body, "%v6"))
    transform(module, "loop-fuse{max-members=3}")
    assert [len(f.members) for f in fusions(module)] == [3, 3]


def test_a_limit_of_arguments_is_kept() -> None:
    inputs = ", ".join(f"%x{k}: {T}" for k in range(12))
    body = "".join(pointwise(f"%v{k + 1}", f"%v{k}" if k else "%x", f"%x{k}") for k in range(12))
    module = parse(function(body, "%v12", inputs=f"%x: {T}, {inputs}"))
    transform(module, "loop-fuse{max-arguments=10}")
    assert len(fusions(module)) > 2


def test_counters_switch_single_fusions_off() -> None:
    body = pointwise("%a", "%x") + pointwise("%b", "%a") + pointwise("%c", "%b")
    module = parse(function(body, "%c"))
    with counting({"loop-fuse": Counter(skip=1)}) as counters:
        transform(module, "loop-fuse")
    assert counters["loop-fuse"].asked >= 2
    assert [len(f.members) for f in fusions(module)] == [1, 2]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (pointwise("%a", "%x") + pointwise("%b", "%a") + pointwise("%c", "%a", "%b"), "too expensive"),
        (pointwise("%a", "%x") + f"%m = aten.relu(%a) : {T}\n" + pointwise("%c", "%a", "%m"), "needed in memory"),
    ],
)
def test_inlining_says_why_not(body: str, reason: str) -> None:
    with collecting() as remarks:
        transform(parse(function(body, "%c")), "loop-inline")
    assert any(reason in r.reason for r in remarks if r.kind == "missed")


def test_inlining_stops_where_bodies_grow_too_large() -> None:
    body = "".join(pointwise(f"%v{k + 1}", f"%v{k}" if k else "%x") for k in range(40))
    module = parse(function(body, "%v40"))
    transform(module, "loop-inline{max-ops=20}")
    (only,) = functions(module)
    nests = [op for op in only.body.block.ops if isinstance(op, GenerateOp)]
    assert 2 < len(nests) < 40
    assert all(len(list(n.body.block.ops)) <= 21 for n in nests)


def test_fusion_is_near_linear() -> None:
    def seconds(length: int) -> float:
        body = "".join(
            pointwise(f"%v{k + 1}", *(f"%v{j}" if j > 0 else "%x" for j in (k, k - 3, k - 7))) for k in range(length)
        )
        module = parse(function(body, f"%v{length}"))
        start = time.process_time()
        transform(module, "loop-fuse")
        return time.process_time() - start

    seconds(100)  # imports and caches
    # verification is included; quadratic growth would give a factor of 16
    assert seconds(1600) < 9 * seconds(400)


def test_siblings_over_one_domain_share_what_they_read_again() -> None:
    """Both scale by one row: in one fusion, unless a call of ATen stands between them."""
    row = "%r: !aten.tensor<128xf32>"

    def scaled(name: str, source: str) -> str:
        lines = f"%v = loop.load {source}[i0, i1]\n%w = loop.load %r[i1]\n%e = arith.mulf %v, %w : f32\nloop.yield %e"
        return f"{name} = loop.generate (i0 in 64, i1 in 128) {{\n{lines}\n}} : {T}\n"

    inputs = f"%x: {T}, %y: {T}, %m: !aten.tensor<128x128xf32>, {row}"
    together = parse(function(scaled("%a", "%x") + scaled("%b", "%y"), "%a", "%b", inputs=inputs))
    transform(together, "loop-fuse")
    assert [len(f.members) for f in fusions(together)] == [2]
    call = f"%p = aten.mm(%y, %m) : {T}\n"
    apart = parse(function(scaled("%a", "%x") + call + scaled("%b", "%p"), "%a", "%b", inputs=inputs))
    transform(apart, "loop-fuse")
    assert [len(f.members) for f in fusions(apart)] == [1, 1]
