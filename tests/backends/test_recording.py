"""Modes, the options of recorded graphs, and what cannot be recorded. No GPU: torch's machinery is stood in for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from xdsl.parser import Parser

from inductile.backends.config import Config, list_mode_options, list_options
from inductile.backends.graphs import private
from inductile.backends.graphs.recording import Recorded, Recording
from inductile.backends.host import build
from inductile.dialects import host
from inductile.dialects.context import new_context
from inductile.errors import UserError
from inductile.lowering.fx_import import ImportedGraph, ResultSlot
from inductile.passes.host._capturable import obstacles

T = '!aten.tensor<4xf32, device = "cuda:0">'


def test_modes_set_what_torch_documents() -> None:
    assert list_mode_options("reduce-overhead") == {"triton.cudagraphs": True}
    assert Config.resolve("max-autotune").cudagraphs and Config.resolve("max-autotune").max_autotune
    assert not Config.resolve("max-autotune-no-cudagraphs").cudagraphs
    assert Config.resolve("lite").fallback_by_default
    assert not Config.resolve().cudagraphs


def test_options_have_the_incumbents_names() -> None:
    named = Config.resolve(None, {"triton.cudagraphs": True, "triton.cudagraph_dynamic_shape_warn_limit": None})
    assert named.cudagraphs and named.cudagraph_dynamic_shape_warn_limit is None
    assert Config.resolve(None, {"triton.cudagraph_capture_sizes": [1, 2]}).cudagraph_capture_sizes == (1, 2)
    assert "triton.cudagraph_or_error" in list_options()
    with pytest.raises(UserError, match="unknown option"):
        Config.resolve(None, {"triton.deterministic": True})


def test_lite_calls_aten_for_every_op() -> None:
    import inductile

    explained = inductile.explain(lambda x: x.exp() + 1, options={"fallback_by_default": True})(torch.ones(3))
    (report,) = explained.reports
    assert not report.kernels and sum(report.aten_calls.values()) == 2


def test_a_graph_of_the_cpu_is_not_recorded_and_says_so() -> None:
    import inductile

    explained = inductile.explain(lambda x: x + 1, options={"triton.cudagraphs": True})(torch.ones(3))
    assert any(r.pass_name == "cudagraphs" and r.kind == "missed" for r in explained.remarks)
    torch.compiler.reset()
    compiled = torch.compile(
        lambda x: x + 1, backend="inductile", options={"triton.cudagraphs": True, "triton.cudagraph_or_error": True}
    )
    with pytest.raises(Exception, match="cannot be recorded"):
        compiled(torch.ones(3))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"%1 = aten.exp(%x) : {T}", None),
        ('%1 = aten.nonzero(%x) binds [u0] : !aten.tensor<(u0)x1xi64, device = "cuda:0">', "depend on data"),
        (f'%1 = aten.call "mine::f"(%x) : {T}', "unknown effects"),
        (f'%1 = aten.call pure "mine::f"(%x) : {T}', None),
        ('aten.call "mine::f"(%x) writes [0]', None),
        ('aten.call "mine::f"(%x) writes [0] {cudagraph_unsafe}', "must not be recorded"),
        ("%1 = host.empty : !aten.tensor<4xf32>  host.copy %x to %1", "memory of the CPU"),
        ("%1 = host.empty : !aten.tensor<4x0xf32>  %2 = aten.exp(%1) : !aten.tensor<4x0xf32>", None),
    ],
)
def test_what_cannot_be_recorded(line: str, reason: str | None) -> None:
    text = f"host.func @f(%x: {T}) {{ {line}\n host.return }}"
    module = Parser(new_context(), text).parse_module()
    function = next(op for op in module.ops if isinstance(op, host.FuncOp))
    found = [each.reason for each in obstacles(function, {})]
    assert (not found) if reason is None else (reason in found[0])


def _recorded(monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Recorded, list[str]]:
    log: list[str] = []

    def record(model: Any, inputs: Any, static: Any, **facts: Any) -> Any:
        def replay(args: list[Any]) -> Any:
            log.append("replay")
            return model(args)

        return replay

    def model(args: list[Any]) -> Any:
        log.append("run")
        taken = list(args)
        args.clear()
        return taken

    monkeypatch.setattr(private, "record_in_tree", record)
    return Recorded(model, (), {}, Config(cudagraphs=True, **options), [lambda: log.append("check")]), log


def test_errors_of_kernels_are_looked_for_before_each_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, log = _recorded(monkeypatch)
    recorded([torch.ones(1)])
    recorded([torch.ones(1)])
    assert log == ["check", "replay", "run"] * 2


def test_sizes_beyond_the_limit_are_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, log = _recorded(monkeypatch, cudagraph_dynamic_shape_limit=2)
    for size in (3, 4, 5, 3):
        recorded([size, torch.ones(size)])
    assert log.count("run") == 4 and log.count("replay") == 3


def test_each_part_is_recorded_with_what_is_known_of_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = "kernel.func @k(%x: !kernel.buffer<f32, 4>, %y: !kernel.buffer<f32, 4>) {"
    kernel += (
        " kernel.for i0 in 0 to 4 { %v = kernel.load %x[i0]  kernel.store %v, %y[i0]  kernel.yield } kernel.yield }"
    )
    text = f"""{kernel}
    host.func @f(%w: {T}, %x: {T}) -> ({T}) {{
      %a = host.call @f_part_0(%x, %w) : {T}
      host.return %a
    }}
    host.func @f_part_0(%x: {T}, %w: {T}) -> ({T}) recorded {{
      host.launch @k(%x, %w)
      %a = aten.exp(%w) : {T}
      host.return %a
    }}"""
    facts: list[dict[str, Any]] = []

    def record(model: Any, inputs: Any, static: Any, **known: Any) -> Any:
        facts.append({"static": static, **known})
        return model

    monkeypatch.setattr(private, "record_in_tree", record)
    monkeypatch.setattr(private, "static_inputs", lambda graph, kind: [0])
    module = Parser(new_context(), text).parse_module()
    program = build(Parser(new_context(), text.replace(', device = "cuda:0"', "")).parse_module())
    graph = torch.fx.symbolic_trace(lambda w, x: x)
    graph.graph.find_nodes(op="output")[0].args = ((graph.graph.find_nodes(op="placeholder")[1],),)
    monkeypatch.setattr(private, "takes", lambda fact: True)
    recording = Recording(Config(cudagraphs=True, cudagraph_trees_generation_cloning="user_visible"))
    imported = ImportedGraph(module, output_structure=(ResultSlot(0),))
    recording.wrap(program, program, imported, graph, "inference")
    w, x = torch.zeros(4), torch.randn(4)
    torch.testing.assert_close(program([w, x])[0], x.exp())
    torch.testing.assert_close(w, x)
    (fact,) = facts
    assert fact["user_visible_output_idxs"] == (0,)
    assert fact["static"] == (1,) and fact["mutated_input_idxs"] == [1] and fact["is_inference"]
    assert [each.name for each in fact["placeholders"]] == ["x", "w"]


def _wrapped(monkeypatch: pytest.MonkeyPatch, body: str, options: dict[str, Any]) -> tuple[Any, Any]:
    """A program of two tensors as it is compiled, and as it is with recordings; the first input keeps its address."""
    text = f"host.func @f(%x: {T}, %y: {T}) -> ({T}) {{ {body} }}"
    module = Parser(new_context(), text).parse_module()
    program = build(Parser(new_context(), text.replace(', device = "cuda:0"', "")).parse_module())
    monkeypatch.setattr(private, "static_inputs", lambda graph, kind: [0])
    graph = torch.fx.symbolic_trace(lambda x, y: x)
    for node in graph.graph.find_nodes(op="placeholder"):
        node.meta["val"] = torch.empty_strided((4,), (1,))
    config = Config(cudagraphs=True, **options)
    return program, Recording(config).wrap(program, program, ImportedGraph(module), graph, "inference")


WRITES = f"%e = aten.exp(%x) : {T}  host.copy %e to %y  host.return %e"


@pytest.mark.parametrize(
    ("body", "options", "is_recorded"),
    [
        (f"%e = aten.exp(%x) : {T}  host.return %e", {}, True),
        ("host.return %x", {"cudagraph_or_error": True}, False),
        ("host.free %y  host.return %x", {"cudagraph_or_error": True}, False),
        (WRITES, {}, True),
        (WRITES, {"cudagraph_support_input_mutation": False}, False),
        (WRITES.replace("to %y", "to %x"), {"cudagraph_support_input_mutation": False}, True),
        (WRITES.replace("to %y", "to %x"), {"cudagraph_trees": False}, False),
    ],
)
def test_what_is_recorded(
    monkeypatch: pytest.MonkeyPatch, body: str, options: dict[str, Any], is_recorded: bool
) -> None:
    """Not a graph that computes nothing, which is no error either, nor one that writes where options forbid it."""
    program, wrapped = _wrapped(monkeypatch, body, options)
    assert isinstance(wrapped, Recorded) == is_recorded and (is_recorded or wrapped is program)


def test_an_input_that_torch_cannot_copy_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only of inputs that would be copied torch is asked, as far as this torch has the question."""
    from torch._inductor import compile_fx

    asked: list[Any] = []
    monkeypatch.setattr(compile_fx, "complex_memory_overlap", lambda t: not asked.append(t), raising=False)
    program, wrapped = _wrapped(monkeypatch, f"%e = aten.exp(%x) : {T}  host.return %e", {})
    assert wrapped is program and len(asked) == 1


def test_preparing_a_recording_draws_no_random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import compile_fx

    monkeypatch.setattr(compile_fx, "cudagraphify_impl", lambda model, inputs, static: model(inputs) and model)
    torch.manual_seed(3)
    first = torch.rand(4)
    torch.manual_seed(3)
    private.record_alone(lambda inputs: [torch.rand(4)], [], ())
    torch.testing.assert_close(torch.rand(4), first)


@pytest.mark.parametrize(("kind", "expected"), [("inference", (0, 2)), ("forward", (2,)), ("backward", ())])
def test_outputs_that_the_user_sees(monkeypatch: pytest.MonkeyPatch, kind: str, expected: tuple[int, ...]) -> None:
    """A forward graph returns what it changed in front of them, and what it saves behind them."""
    from torch._guards import TracingContext

    graph = torch.fx.symbolic_trace(lambda x, y, z: (x, None, y) if kind == "inference" else (x, None, y, z))
    metadata = SimpleNamespace(num_mutated_inp_runtime_indices=1, num_outputs=2)
    monkeypatch.setattr(TracingContext, "try_get", lambda: SimpleNamespace(fw_metadata=metadata))
    assert private.visible_outputs(graph, kind) == expected
