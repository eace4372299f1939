"""What inductile needs of torch beyond its public API, in one place; read in torch 2.11 to 2.14.

Each function says which private name it uses. Where versions differ, the difference is handled here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

import torch

from ..records import dataclass

Compiler = Callable[[torch.fx.GraphModule, Sequence[Any]], Callable[[list[Any]], Any]]


def aot_backend(
    forward: Compiler,
    backward: Compiler,
    inference: Compiler,
    decompositions: dict[Any, Any] | Callable[[], dict[Any, Any]],
    partition: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """A Dynamo backend that hands functional graphs of ATen ops to the three compilers.

    Each compiler takes a graph with fake inputs and returns a callable that takes one list and clears it. Writes to
    inputs stay in inference graphs as `copy_`. Uses `torch._dynamo.backends.common.aot_autograd`.
    """
    from torch._dynamo.backends.common import aot_autograd

    return aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        decompositions=decompositions,
        partition_fn=partition or torch_partition(),
        keep_inference_input_mutations=True,
    )


def torch_partition() -> Callable[..., Any]:
    """torch's own partitioner, a `partition_fn`. Uses `torch._functorch.partitioners`."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    return min_cut_rematerialization_partition


def multiplies_in_tf32() -> bool:
    """Whether torch computes float32 products on CUDA in TF32. Uses `fp32_precision`, of `torch.backends`."""
    settings = (torch.backends.cuda.matmul, torch.backends.cuda, torch.backends)
    found = (getattr(each, "fp32_precision", "none") for each in settings)
    return next((value for value in found if value != "none"), "ieee") == "tf32"


def memory_budget() -> float:
    """The budget for saved values that torch is configured with. Uses `torch._functorch.config`."""
    from torch._functorch import config

    return float(config.activation_memory_budget)


def is_tangent(placeholder: torch.fx.Node) -> bool:
    """Whether an argument of a joint graph is the backward graph's alone: a gradient, a token, a random seed.

    AOTAutograd says so by name.
    """
    return any(part in str(placeholder.target) for part in ("tangents", "bwd_seed", "bwd_base_offset"))


def given_arguments(graph: torch.fx.GraphModule) -> list[int]:
    """Numbers of the arguments of a backward graph that nobody else keeps: the forward graph made and saved them.

    Empty for other graphs. Uses `torch._guards.TracingContext.fw_metadata.bw_donated_idxs`.
    """
    from torch._guards import TracingContext

    placeholders = graph.graph.find_nodes(op="placeholder")
    context = TracingContext.try_get() if any(map(is_tangent, placeholders)) else None
    numbers = getattr(getattr(context, "fw_metadata", None), "bw_donated_idxs", None) or ()
    return [number for number in numbers if number < len(placeholders)]


def leave_arguments_unmarked(forward: torch.fx.GraphModule) -> None:
    """Keep torch from marking arguments that a forward graph saves: they are the user's own tensors.

    AOTAutograd marks sizes of what is saved as dynamic, by an attribute of the tensor. On an argument the mark would
    outlive the graph and make dynamic what is compiled later with static sizes. Uses
    `torch._guards.TracingContext.fw_metadata.dynamic_saved_tensors_idxs`.
    """
    from torch._guards import TracingContext

    metadata = getattr(TracingContext.try_get(), "fw_metadata", None)
    marked = getattr(metadata, "dynamic_saved_tensors_idxs", None)
    if metadata is None or not marked:
        return
    (output,) = forward.graph.find_nodes(op="output")
    for number, value in enumerate(output.args[0][metadata.num_forward :]):
        if _argument(value, forward) is not None:
            marked.pop(number, None)


def _argument(value: Any, graph: torch.fx.GraphModule) -> torch.fx.Node | None:
    """The argument of a graph that a value is, also where regions return what they are given."""
    if not isinstance(value, torch.fx.Node):
        return None
    if value.op == "placeholder":
        return value
    call = value.args[0] if value.target is operator.getitem else None
    if not isinstance(call, torch.fx.Node) or call.target is not torch.ops.higher_order.invoke_subgraph:
        return None
    body = operator.attrgetter(str(cast(torch.fx.Node, call.args[0]).target))(graph)
    (output,) = body.graph.find_nodes(op="output")
    found = _argument(output.args[0][value.args[1]], body)
    return _argument(call.args[2 + body.graph.find_nodes(op="placeholder").index(found)], graph) if found else None


def mutated_arguments(joint: torch.fx.GraphModule) -> set[torch.fx.Node]:
    """Arguments of a joint graph into which a result of the forward graph is copied behind it.

    Uses the descriptions of arguments and results in `meta["desc"]`.
    """
    output = next(iter(joint.graph.find_nodes(op="output")))
    described = _flat(output.meta.get("desc", ()))
    targets = [d.mutated_input for d in described if type(d).__name__ == "InputMutationAOTOutput"]
    arguments = joint.graph.find_nodes(op="placeholder")
    return {node for node in arguments if "desc" in node.meta and node.meta["desc"] in targets}


def _flat(values: Any) -> list[Any]:
    from torch.utils._pytree import tree_leaves

    return tree_leaves(values)


#: CheckpointPolicy -> what it asks of the partitioner
_POLICIES = {
    "MUST_RECOMPUTE": "recompute",
    "PREFER_RECOMPUTE": "recompute",
    "MUST_SAVE": "save",
}


def checkpoint_wish(node: torch.fx.Node) -> str:
    """ "recompute", "save" or nothing: what `torch.utils.checkpoint` has written into `meta["recompute"]`."""
    policy = node.meta.get("recompute")
    return _POLICIES.get(getattr(policy, "name", ""), "")


def checkpoint_region(node: torch.fx.Node) -> int | None:
    """Number of the checkpointed region of a node: `meta["ac_graph_id"]`."""
    return node.meta.get("ac_graph_id")


def has_gradient_hook(node: torch.fx.Node) -> bool:
    """Whether a hook of the user sees the gradient of a node: `meta["has_backward_hook"]`."""
    return bool(node.meta.get("has_backward_hook", False))


def runs_in_backward(node: torch.fx.Node) -> bool:
    """Whether autograd made a node, or has to run it, for the backward graph: `meta["partitioner_tag"]`."""
    return node.meta.get("partitioner_tag") in ("is_backward", "must_be_in_backward")


def split_joint(
    joint: torch.fx.GraphModule,
    saved: Sequence[torch.fx.Node],
    saved_numbers: Sequence[torch.fx.Node],
    forward_outputs: int,
) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule]:
    """Forward and backward graph of a joint graph for the given saved tensors and integers.

    Uses `torch._functorch.partitioners._extract_fwd_bwd_modules`.
    """
    from torch._functorch.partitioners import _extract_fwd_bwd_modules

    forward, backward = _extract_fwd_bwd_modules(
        joint, list(saved), saved_sym_nodes=list(saved_numbers), num_fwd_outputs=forward_outputs
    )
    for node in reversed(backward.graph.nodes):
        # a copy of the forward graph's, made because its arguments are there, would draw, print or count once more
        if node.op == "call_function" and not node.users and (_draws(node) or _is_of_forward(node)):
            backward.graph.erase_node(node)
    return forward, backward


def _draws(node: torch.fx.Node) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _is_of_forward(node: torch.fx.Node) -> bool:
    """Whether a call with an effect has had it in the forward graph."""
    return node.is_impure() and not runs_in_backward(node)


def fake_mode_of(inputs: Iterable[Any]) -> Any:
    """The FakeTensorMode of a graph's inputs, None when none is fake. Uses `torch._guards.detect_fake_mode`."""
    from torch._guards import detect_fake_mode

    return detect_fake_mode(list(inputs))


@contextmanager
def fake_results(mode: Any, change: Callable[[Any, Sequence[Any], Any, Any], Any]) -> Iterator[None]:
    """Pass each result that a FakeTensorMode computes through `change(op, args, kwargs, result)`.

    Uses `FakeTensorMode.dispatch`, which an attribute of this one mode hides: other compiles see nothing of it. Results
    that the mode caches are the unchanged ones.
    """
    before = mode.__dict__.get("dispatch")
    dispatch = mode.dispatch

    def changed(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        return change(func, args, kwargs, dispatch(func, types, args, kwargs))

    mode.dispatch = changed
    try:
        yield
    finally:
        if before is None:
            del mode.dispatch
        else:
            mode.dispatch = before


@contextmanager
def without_modes() -> Iterator[None]:
    """Run on real tensors inside a compile, where fake tensors are made by default. Uses
    `torch.utils._python_dispatch._disable_current_modes`."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():
        yield


def report_output_strides(strides: Sequence[tuple[Any, ...] | None]) -> None:
    """Tell AOTAutograd the strides that a compiled forward really returns, one entry an output, None for no tensor.

    Uses `torch._guards.TracingContext.output_strides`.
    """
    from torch._guards import TracingContext

    context = TracingContext.try_get()
    if context is not None and context.output_strides is not None:
        context.output_strides.extend(strides)


#: attributes of tensors that are computed, as Dynamo of torch 2.14 calls them
_ATTRIBUTES: dict[Any, str] = {torch.ops.aten.mT: "mT", torch.ops.aten.numpy_T: "T"}


def computed_attribute(node: torch.fx.Node) -> str | None:
    """The name of the computed attribute of a tensor that a call of a Dynamo graph reads: "mT" of `x.mT`, or "T".

    Dynamo of torch 2.14 calls an operator, that of 2.11 `getattr(x, "mT")`.
    """
    if node.op != "call_function":
        return None
    if node.target is getattr:
        return next((name for name in _ATTRIBUTES.values() if node.args[1:] == (name,)), None)
    return _ATTRIBUTES.get(node.target)


def shape_env_of(symbol: torch.SymInt | torch.SymFloat | torch.SymBool) -> Any:
    """The ShapeEnv that a symbolic number belongs to."""
    return symbol.node.shape_env


def has_symbols(tensor: torch.Tensor) -> bool:
    """Whether a size or stride of a tensor is symbolic. Uses `Tensor._has_symbolic_sizes_strides`."""
    return tensor._has_symbolic_sizes_strides  # pyright: ignore[reportAttributeAccessIssue]


def sympy_of(value: Any) -> Any:
    """The SymPy expression of a torch.SymInt, SymFloat or SymBool, after replacements."""
    return value.node.expr


def settled_number(value: torch.SymFloat) -> float | None:
    """The value in this trace of a number that a module or a namespace owns and that was no other in traces before.

    None for any other number that is not fixed yet. Adds no guard. Uses `ShapeEnv.var_to_sources`,
    `Source.guard_source`, `SymNode.maybe_as_float`, and what `torch._dynamo.pgo` remembers of traces.
    """
    if (fixed := value.node.maybe_as_float()) is not None:
        return fixed
    sources = getattr(value.node.shape_env, "var_to_sources", {}).get(value.node.expr) or []
    if len(sources) != 1 or not value.node.has_hint():
        return None
    # methods in some versions
    kind: Any
    kind, name = (each() if callable(each) else each for each in (sources[0].guard_source, sources[0].name))
    is_owned = kind.is_unspecialized_nn_module() or kind.name == "GLOBAL"
    return float(value.node.hint) if is_owned and not _has_changed(str(name)) else None  # pyright: ignore


def symbol_name(value: torch.SymFloat) -> str:
    """The name of the symbol that a number is, whatever is known of it. Uses `SymNode._expr`."""
    return str(value.node._expr)


def trace_again_with_constants(symbols: Iterable[str]) -> None:
    """Let Dynamo trace the frame again, with these numbers as constants instead of inputs, if it was not told so yet.

    torch asks for that itself of numbers that no op takes, once AOTAutograd has traced them. Uses `TensorifyState` and
    `TensorifyScalarRestartAnalysis`, which this raises; Dynamo expects it from backends.
    """
    try:
        from torch._dynamo.exc import TensorifyScalarRestartAnalysis
        from torch._dynamo.symbolic_convert import TensorifyState
    except ImportError:
        return
    fresh = [symbol for symbol in symbols if not TensorifyState.should_specialize(symbol)]
    for symbol in fresh:
        TensorifyState.specialize(symbol)
    if fresh:
        raise TensorifyScalarRestartAnalysis


def _has_changed(name: str) -> bool:
    """Whether a number was another one in a trace before, by which Dynamo makes it dynamic; True where nobody knows."""
    try:
        from torch._dynamo.pgo import auto_dynamic, get_code_state

        tables = [state.automatic_dynamic for state in get_code_state().values()]
    except (ImportError, AttributeError):
        return True
    return any(name in each and each[name].scalar is auto_dynamic for each in tables)


def known_true(condition: bool | torch.SymBool) -> bool:
    """Whether a condition holds for all values of its symbols; adds no guard."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return statically_known_true(condition)


def is_true(condition: bool | torch.SymBool) -> bool:
    """Whether a condition holds for the sizes that a graph is traced with; adds a guard. False where nobody knows.

    Uses `guard_or_false`.
    """
    if isinstance(condition, bool):
        return condition
    from torch.fx.experimental.symbolic_shapes import guard_or_false

    return guard_or_false(condition)


def is_decidable(number: int | torch.SymInt) -> bool:
    """Whether a size or stride has a value while it is traced."""
    return isinstance(number, int) or number.node.has_hint()


@dataclass(frozen=True)
class SymbolFacts:
    """What a ShapeEnv knows of a symbol: inclusive bounds (None: unbounded), a divisor, and the value it was
    traced with."""

    min: int | None = None
    max: int | None = None
    divisor: int = 1
    hint: int | None = None


def symbol_facts(shape_env: Any, symbol: Any) -> SymbolFacts:
    """The facts of a SymPy symbol. Uses `ShapeEnv.var_to_range`, `divisible`, and the table of traced values."""
    bounds = shape_env.var_to_range.get(symbol)
    lower, upper = (None, None) if bounds is None else (_bound(bounds.lower), _bound(bounds.upper))
    # the table was renamed in 2.13
    values = getattr(shape_env, "backed_var_to_val", None)
    if values is None:  # torch 2.11 has the older name alone; later ones warn of it
        values = getattr(shape_env, "var_to_val", {})
    hint = values.get(symbol)
    if hint is None:
        hint = getattr(shape_env, "var_to_hint_override", {}).get(symbol)
    divisor = math.lcm(*_divisors(shape_env, symbol))
    return SymbolFacts(lower, upper, divisor, _hint(hint))


def expression_facts(number: Any) -> SymbolFacts:
    """The facts of a SymInt as a whole. Uses `ShapeEnv.bound_sympy` and `SymNode.has_hint`."""
    bounds = number.node.shape_env.bound_sympy(number.node.expr)
    hint = number.node.hint if number.node.has_hint() else None
    return SymbolFacts(_bound(bounds.lower), _bound(bounds.upper), hint=_hint(hint))


def _hint(value: Any) -> int | None:
    """A traced value as an int; the size of a ragged dimension has a symbol of its own instead of one."""
    return int(value) if isinstance(value, int) or getattr(value, "is_Integer", False) else None


def _bound(value: Any) -> int | None:
    """A bound as an int; torch writes infinity as `int_oo`, and a size's upper bound as the largest int64."""
    if not getattr(value, "is_Integer", False) or abs(int(value)) >= 2**62:
        return None
    return int(value)


def _divisors(shape_env: Any, symbol: Any) -> Iterator[int]:
    """Divisors of a symbol that guards have established: `Mod(s0, 8)` is known to be 0."""
    for expr in shape_env.divisible:
        if type(expr).__name__ in ("Mod", "PythonMod") and expr.args[0] == symbol and expr.args[1].is_Integer:
            yield int(expr.args[1])


def is_dispatched(overload: torch._ops.OpOverload) -> bool:
    """Whether an overload is an operator of the dispatcher. The others are TorchScript's own: of strings, dictionaries,
    references to other processes; no graph holds them. Uses `torch._C._dispatch_find_schema_or_throw`.
    """
    schema = overload._schema
    try:
        torch._C._dispatch_find_schema_or_throw(schema.name, schema.overload_name)
    except RuntimeError:
        return False
    return True


def inference_aware(custom: Any) -> bool:
    """Whether a custom pass wants to know if a graph is for inference. Uses `torch._inductor.custom_graph_pass`."""
    from torch._inductor import custom_graph_pass

    kind = getattr(custom_graph_pass, "CustomInferenceAwareGraphPass", None)
    return kind is not None and isinstance(custom, kind)


def indexing_by_tensors() -> AbstractContextManager[Any]:
    """Lets `x[i]` with a tensor `i` without dimensions stay an op, where torch would ask for the number.

    Uses `torch._dynamo._trace_wrapped_higher_order_op.TransformGetItemToIndex`, as flex_attention does.
    """
    from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    return TransformGetItemToIndex()


def triton_kernel_name(node: torch.fx.Node) -> str | None:
    """The name of the user's Triton kernel that a node calls, below autotuners and heuristics; None for other nodes.

    Uses `torch._higher_order_ops.triton_kernel_wrap.kernel_side_table`, where the node has a number of.
    """
    number = node.kwargs.get("kernel_idx") if "triton_kernel_wrapper" in str(node.target) else None
    if not isinstance(number, int):
        return None
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    kernel: Any = kernel_side_table.get_kernel(number)
    while not hasattr(kernel, "__name__") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return getattr(kernel, "__name__", None)


def sort_nodes(graph: torch.fx.Graph) -> None:
    """Put nodes behind those that they read, where custom passes have not.

    Uses `torch._inductor.pattern_matcher.stable_topological_sort`, which takes its time to be imported.
    """
    seen: set[torch.fx.Node] = set()
    for node in graph.nodes:
        if not seen.issuperset(node.all_input_nodes):
            break
        seen.add(node)
    else:
        return
    from torch._inductor.pattern_matcher import stable_topological_sort

    stable_topological_sort(graph)
