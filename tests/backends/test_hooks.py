"""What others hook into torch.compile: decompositions, lowerings registered with TorchInductor, tags of custom ops."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed, Unsupported
from xdsl.dialects.builtin import Float32Type
from xdsl.parser import Parser

import inductile
from inductile import extensions
from inductile.backends import foreign_lowerings
from inductile.backends.compiled import REPORTS
from inductile.dialects.aten import TensorType
from inductile.dialects.context import new_context
from inductile.dialects.sym import as_expr
from inductile.errors import UserError
from inductile.lowering.fx_decompositions import of_overloads
from inductile.lowering.registry import parse_passes
from inductile.passes.manager import PassManager

_ROW = TensorType.get((as_expr(6),), Float32Type(), None, "cpu")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture(scope="module")
def cube() -> Iterator[Any]:
    """An operator of a user."""
    with torch.library._scoped_library("inductile_hooks", "FRAGMENT") as library:
        library.define("cube(Tensor x) -> Tensor")
        library.impl("cube", lambda x: x * x * x, "CompositeExplicitAutograd")
        library._register_fake("cube", torch.empty_like)
        yield torch.ops.inductile_hooks.cube


def test_decompositions_of_users(cube: Any) -> None:
    x = torch.randn(7)

    def function(x: torch.Tensor) -> torch.Tensor:
        return cube(x) + 1

    torch.testing.assert_close(torch.compile(function, backend="inductile")(x), x**3 + 1)
    assert REPORTS[-1].aten_calls == {"inductile_hooks::cube": 1}
    for op in (cube, cube.default):
        torch.compiler.reset()
        chosen = inductile.backend(decompositions={op: lambda x: x * x * x})
        torch.testing.assert_close(torch.compile(function, backend=chosen)(x), x**3 + 1)
        assert REPORTS[-1].aten_calls == {}
    with pytest.raises(UserError, match=r"'decompositions' has the key 'cube'; write torch.ops"):
        of_overloads({"cube": torch.sin})
    with pytest.raises(UserError, match=r"'decompositions' has None for inductile_hooks.cube"):
        of_overloads({cube: None})  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match=r"'decompositions' is \[1\]; it takes a dictionary"):
        inductile.backend(decompositions=[1])


def test_lowerings_of_inductor_are_told_of(cube: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.lowering import lowerings, register_lowering

    monkeypatch.setattr(foreign_lowerings, "_told", set())
    monkeypatch.setitem(lowerings, cube.default, None)
    register_lowering(cube.default)(lambda x: x)
    x = torch.randn(7)
    with pytest.warns(
        UserWarning, match=r"registered with TorchInductor, here of inductile_hooks.cube.default: each op"
    ):
        explained = inductile.explain(lambda x: cube(x) + x.sin())(x)
    torch.testing.assert_close(explained.result, x**3 + x.sin())
    assert any("inductile_hooks.cube.default" in each.reason for each in explained.remarks)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.compile(lambda x: cube(x) - 1, backend="inductile")(x)


def test_torchs_own_lowerings_are_none_of_somebody() -> None:
    """That of while_loop in training is a `functools.partial`, whose module is not torch."""
    from torch._inductor import lowering

    names = {str(target) for target in lowering.lowerings if isinstance(target, torch._ops.HigherOrderOperator)}
    assert "while_loop" in names and not names & foreign_lowerings._lowered(lowering)


def test_a_graph_from_the_cache_tells_of_lowerings_too(
    cube: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from torch._inductor.lowering import lowerings, register_lowering

    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("INDUCTILE_GRAPH_CACHE", "1")
    monkeypatch.setattr(foreign_lowerings, "_told", set())
    op = torch.ops.aten.erfinv.default
    monkeypatch.setitem(lowerings, op, None)
    monkeypatch.setattr(extensions, "_added", {})
    register_lowering(op)(lambda x: x)
    for is_loaded in (False, True):
        torch.compiler.reset()
        foreign_lowerings._told.clear()
        with pytest.warns(UserWarning, match=r"registered with TorchInductor, here of aten.erfinv.default"):
            torch.compile(lambda x: torch.erfinv(x) * 3, backend="inductile")(torch.rand(7))
        assert REPORTS[-1].is_loaded == is_loaded


def _add_to(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(y)


def test_a_lowering_of_what_writes_is_told_of_where_its_operator_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "_added", {})
    monkeypatch.setattr(foreign_lowerings, "_told", set())
    extensions.table.cache_clear()
    inductile.register_lowering("inductile_later::add_to")(lambda builder, call, values: [])
    with torch.library._scoped_library("inductile_later", "FRAGMENT") as library:
        library.define("add_to(Tensor(a!) x, Tensor y) -> ()")
        library.impl("add_to", _add_to, "CPU")
        library.impl("add_to", lambda x, y: None, "Meta")

        def function(x: torch.Tensor) -> torch.Tensor:
            made = x * 2
            torch.ops.inductile_later.add_to(made, x)
            return made

        x = torch.randn(3)
        with pytest.warns(UserWarning, match=r"for what writes to its arguments, here of inductile_later.add_to"):
            torch.testing.assert_close(torch.compile(function, backend="inductile")(x), x * 3)
    extensions.table.cache_clear()


def test_in_place_forms_of_inductor_are_told_of(cube: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.fx_passes.reinplace import InplaceableOp, inplaceable_ops

    monkeypatch.setattr(foreign_lowerings, "_told", set())
    monkeypatch.setitem(inplaceable_ops, cube.default, InplaceableOp(torch.ops.aten.exp_.default, 0))
    x = torch.randn(7)
    with pytest.warns(UserWarning, match=r"in-place form .* here of inductile_hooks.cube.default: .*`mutates_args`"):
        explained = inductile.explain(lambda x: cube(x.sin()) + x)(x)
    torch.testing.assert_close(explained.result, x.sin() ** 3 + x)
    assert any("in-place form of inductile_hooks.cube.default" in each.reason for each in explained.remarks)


def test_lowerings_of_a_program(cube: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also behind the first compile, again, and for what is none."""
    monkeypatch.setattr(extensions, "_added", {})
    x, half = torch.randn(7), (torch.arange(15) % 4).view(3, 5).to(torch.bfloat16).t()

    def function(x: torch.Tensor) -> torch.Tensor:
        return cube(x) + 1

    def calls(x: torch.Tensor) -> dict[str, int]:
        torch.compiler.reset()
        torch.testing.assert_close(torch.compile(function, backend="inductile")(x), function(x))
        return REPORTS[-1].aten_calls

    assert calls(x) == {"inductile_hooks::cube": 1}
    seen: list[int] = []

    for number, operator in enumerate((cube, cube.default, "inductile_hooks::cube")):

        @inductile.register_lowering(operator)
        def lower(builder: Any, call: Any, values: Any, number: int = number) -> Any:
            seen.append(number)
            assert builder.s.device == call.results[0].type.device
            source = values.get(call.operands[0], call.operands[0])
            return builder.pointwise(lambda x: x * x * x, call.results[0].type, source)

        assert calls(x) == {} and calls(half) == {}
    assert seen == [0, 0, 1, 1, 2, 2]
    on_gpu = '!aten.tensor<4xf32, device = "cuda:0">'
    call = f'%0 = aten.call pure "inductile_hooks::cube"(%x) : {on_gpu}'
    text = f"func.func @f(%x: {on_gpu}) -> {on_gpu} {{ {call}  func.return %0 : {on_gpu} }}"
    module = Parser(new_context(), text).parse_module()
    PassManager(parse_passes("lower-aten-to-loop")).run(new_context(), module)
    assert "aten.call" not in str(module) and seen.pop() == 2
    with pytest.raises(UserError, match=r"inductile lowers aten::sin itself"):
        inductile.register_lowering(torch.ops.aten.sin)
    with pytest.raises(UserError, match=r"name torch.ops.mylib.f"):
        inductile.register_lowering("sin")
    extensions.table.cache_clear()
    monkeypatch.setattr(extensions, "_added", {})


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda *_: [][0], r"failed: IndexError: list index out of range; mend it"),
        (lambda *_: None, r"failed: TypeError"),
        (lambda *_: [], r"returns nothing, not !aten.tensor<6x2xf32>"),
        (lambda builder, *_: builder.empty(_ROW), r"returns !aten.tensor<6xf32>, not !aten.tensor<6x2xf32>"),
    ],
)  # fmt: skip
def test_a_wrong_lowering_is_named(cube: Any, monkeypatch: pytest.MonkeyPatch, wrong: Any, expected: str) -> None:
    """By its operator and its line, not as a bug of a pass of ours."""
    monkeypatch.setattr(extensions, "_added", {})
    inductile.register_lowering(cube)(wrong)
    at = rf"the lowering of inductile_hooks::cube \(.*test_hooks.py:{wrong.__code__.co_firstlineno}\) .*"
    with pytest.raises(BackendCompilerFailed, match=at + expected):
        torch.compile(lambda x: cube(x) + 1, backend="inductile")(torch.randn(6, 2))
    extensions.table.cache_clear()
    monkeypatch.setattr(extensions, "_added", {})


@pytest.mark.parametrize("of", [lambda packet: packet, lambda packet: packet.default, lambda _: "inductile_writes::f"])
def test_a_lowering_of_what_writes_is_refused(of: Any) -> None:
    with torch.library._scoped_library("inductile_writes", "FRAGMENT") as library:
        library.define("f(Tensor(a!) x) -> ()")
        with pytest.raises(UserError, match="inductile_writes::f writes to its arguments"):
            inductile.register_lowering(of(torch.ops.inductile_writes.f))


def test_an_overload_that_writes_stays_a_call() -> None:
    from inductile.lowering.fx_lowerings import _names

    with torch.library._scoped_library("inductile_out", "FRAGMENT") as library:
        library.define("f(Tensor x) -> Tensor")
        library.define("f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
        assert list(_names(torch.ops.inductile_out.f)) == ["inductile_out::f"]


TAGS = ("pt2_compliant_tag", "needs_fixed_stride_order", "needs_exact_strides", "flexible_layout", "cudagraph_unsafe")


def test_tagged_operators_get_the_strides_of_eager() -> None:
    """Whatever a tag allows: strides that eager gives are right for all."""
    with torch.library._scoped_library("inductile_tags", "FRAGMENT") as library:
        seen: dict[str, list[Any]] = {}
        known = [each for each in TAGS if hasattr(torch.Tag, each)]
        for name in known:

            def product(x: torch.Tensor, y: torch.Tensor, name: str = name) -> torch.Tensor:
                seen.setdefault(name, []).append((x.stride(), y.stride()))
                return (x * y).contiguous()

            library.define(f"{name}(Tensor x, Tensor y) -> Tensor", tags=(getattr(torch.Tag, name),))
            library.impl(name, product, "CompositeExplicitAutograd")
            library._register_fake(name, lambda x, y: torch.empty(x.shape))

        def function(x: torch.Tensor) -> torch.Tensor:
            one = (x.transpose(1, 2) + 1).relu()
            other = (x.permute(2, 0, 1) * 2).permute(1, 0, 2)
            results = [getattr(torch.ops.inductile_tags, name)(one + k, other) for k, name in enumerate(known)]
            return torch.stack(results).sum(0)

        x = torch.randn(3, 4, 5)
        expected = function(x)
        torch.testing.assert_close(torch.compile(function, backend="inductile")(x), expected)
        assert len(seen) > 3 and all(eager == compiled for eager, compiled in seen.values())


@pytest.fixture(scope="module")
def tagged() -> Iterator[Any]:
    """Operators with and without tags; those with `write` in their name write their second argument."""
    given = {"plain": (), "compliant": (torch.Tag.pt2_compliant_tag,)}
    unsafe = getattr(torch.Tag, "cudagraph_unsafe", None)

    def write(x: torch.Tensor, y: torch.Tensor) -> None:
        y.copy_(x)

    if unsafe is not None:
        given |= {"unsafe": (unsafe,)}
    with torch.library._scoped_library("inductile_tagged", "FRAGMENT") as library:
        for name, tags in given.items():
            library.define(f"{name}(Tensor x) -> Tensor", tags=tags)
            library.impl(name, lambda x: x + 1, "CompositeExplicitAutograd")
            library._register_fake(name, torch.empty_like)
            library.define(f"write_{name}(Tensor x, Tensor(a!) y) -> ()", tags=tags)
            library.impl(f"write_{name}", write, "CompositeExplicitAutograd")
            library._register_fake(f"write_{name}", lambda x, y: None)
        yield torch.ops.inductile_tagged


def test_a_compliant_operator_is_allowed_where_others_are_not(tagged: Any) -> None:
    x = torch.randn(5)
    with torch._dynamo.config.patch(only_allow_pt2_compliant_ops=True):
        compiled = torch.compile(lambda x: tagged.compliant(x) * 2, backend="inductile", fullgraph=True)
        torch.testing.assert_close(compiled(x), (x + 1) * 2)
        assert REPORTS[-1].aten_calls == {"inductile_tagged::compliant": 1}
        with pytest.raises(Unsupported):
            torch.compile(lambda x: tagged.plain(x) * 2, backend="inductile", fullgraph=True)(x)
        # without fullgraph the graph breaks there, and the results are right
        torch.testing.assert_close(torch.compile(lambda x: tagged.plain(x) * 2, backend="inductile")(x), (x + 1) * 2)


@pytest.mark.skipif(not hasattr(torch.Tag, "cudagraph_unsafe"), reason="this torch has no such tag")
def test_what_must_not_be_recorded_is_marked(tagged: Any, tmp_path: Path) -> None:
    """Also inside of the wrapper that functionalization puts around an operator that writes."""

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        tagged.write_unsafe(tagged.unsafe(x), y)
        tagged.write_plain(tagged.plain(x), y)
        return y.sin()

    x = torch.randn(5)
    (path,) = inductile.debug.capture(function, x, torch.zeros(5), folder=str(tmp_path))
    calls = [
        line for line in Path(path).read_text().splitlines() if "inductile_tagged::" in line and "aten.call" in line
    ]
    assert len(calls) == 4, "\n".join(calls)
    for line in calls:
        assert ("cudagraph_unsafe" in line) == ("unsafe" in line.replace("cudagraph_unsafe", "")), line


def test_operators_that_write_get_the_strides_of_eager(tagged: Any) -> None:
    with torch.library._scoped_library("inductile_written", "FRAGMENT") as library:
        seen: list[Any] = []

        def write(x: torch.Tensor, y: torch.Tensor) -> None:
            seen.append((x.stride(), y.stride()))
            y.copy_(x)

        known = [name for name in TAGS if hasattr(torch.Tag, name)]
        for name in known:
            library.define(f"{name}(Tensor x, Tensor(a!) y) -> ()", tags=(getattr(torch.Tag, name),))
            library.impl(name, write, "CompositeExplicitAutograd")
            library._register_fake(name, lambda x, y: None)

        def function(x: torch.Tensor) -> list[torch.Tensor]:
            results = []
            for number, name in enumerate(known):
                own = (x.transpose(1, 2) * number).transpose(1, 2)
                getattr(torch.ops.inductile_written, name)((x.permute(1, 2, 0) + number).transpose(0, 1).cos(), own)
                results.append(own)
            return results

        x = torch.randn(3, 4, 3)
        expected = function(x)
        eager = list(seen)
        seen.clear()
        torch.testing.assert_close(torch.compile(function, backend="inductile", fullgraph=True)(x), expected)
        assert len(eager) > 3 and seen == eager
