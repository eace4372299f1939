"""What decides about the code of a graph, as text: the graph, its inputs, and the state of torch.

Two graphs of one text, on one machine with one set of options, have the same programs, as far as the guards hold that
an entry names. What cannot be written down for certain is a `NotCacheableError`; that costs a compile, and a text that
says too little costs a wrong answer.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
import torch._functorch.config
import torch.fx.experimental._config
from torch._subclasses import FakeTensor
from torch.fx import GraphModule, Node

from .overrides import OWN_OPERATORS, changed_operator, is_of_torch
from .subclasses import UnknownCodeError, wrapped_text, wraps

_top_hooks = vars(torch._C)["_autograd"]._top_saved_tensors_default_hooks


class NotCacheableError(Exception):
    """A graph that the cache does not take; the text says why."""


_REFUSED_HOPS = frozenset({"triton_kernel_wrapper_mutation", "triton_kernel_wrapper_functional", "run_const_graph"})
"""Operators of graphs whose arguments are numbers of a table of this process."""
_TAKEN_HOPS = frozenset({"associative_scan", "autograd_function_apply", "cond", "map_impl", "scan", "while_loop"})
"""Operators of graphs that torch's own cache leaves out, which are no more than what their graphs are."""
_PLAIN = (
    bool, int, float, complex, str, bytes, type(None), type(Ellipsis), torch.dtype, torch.device, torch.layout,
    torch.memory_format,
)  # fmt: skip
_QUIET_META = frozenset(
    {
        "example_value", "val", "tensor_meta", "stack_trace", "nn_module_stack", "source_fn_stack", "from_node",
        "grapharg", "steal_arg", "creation_timestamp", "mutation_region_id", "torch_fn", "original_aten", "seq_nr",
        "fwd_nn_module_stack", "fwd_source_fn_stack", "unbacked_bindings", "tensor_dict", "is_gradient_acc",
        "autograd_backward", "desc", "arg_kwarg_vals", "eager_input_vals",
    }
)  # fmt: skip
"""What nodes carry and autograd's tracing does not read, or what follows from the graph and its inputs."""
_QUIET_GRAPH_META = frozenset({"dynamo_compile_id", "backend_id", "dynamo_flat_name_to_original_fqn", "trace"})


class GraphText:
    """The text of a graph for a list of fake inputs. Symbols are numbered by the inputs that bring them.

    What is known of them is text too, so that an entry adds no guard to those that compiling the graph would.
    """

    def __init__(self, args: Sequence[Any], shape_env: Any = None) -> None:
        self.symbols: dict[Any, str] = {}
        self.lines: list[str] = []
        self._storages: dict[int, int] = {}
        self._users = Counter(each.untyped_storage()._cdata for each in args if isinstance(each, torch.Tensor))
        for number, each in enumerate(args):
            if isinstance(each, torch.SymInt):
                if not each.node.has_hint():
                    raise NotCacheableError("the value of an integer input is not known")
                if each.node.expr.is_Symbol:
                    self.symbols.setdefault(each.node.expr, f"i{number}")
        self.lines += [self._argument(each) for each in args]
        if shape_env is not None:
            self.lines += self._facts(shape_env)

    def add_graph(self, graph: GraphModule) -> None:
        """Write down a graph, and the graphs inside of it. What it holds are the first of its inputs to AOTAutograd."""
        held = [name for name, _ in graph.named_parameters(remove_duplicate=False)]
        held += [name for name, _ in graph.named_buffers(remove_duplicate=False)]
        if any("." in name for name in held):
            raise NotCacheableError("a graph inside holds tensors")
        self._add(graph, {name: number for number, name in enumerate(held)})

    def _add(self, graph: GraphModule, held: Mapping[str, int]) -> None:
        for name in sorted(graph.meta.keys() - _QUIET_GRAPH_META):
            if name == "_checkpoint_context_fn" and graph.meta[name] is not None:
                self.lines.append(f"checkpoint {_checkpoint_rule(graph.meta[name])}")
            elif graph.meta[name] is not None:
                raise NotCacheableError(f"the graph carries {name!r}")
        inner = dict(graph.named_children())
        numbers: dict[Node, str] = {}
        for node in graph.graph.nodes:
            numbers[node] = f"%{len(numbers)}"
            self.lines.append(f"{numbers[node]} = {self._node(node, numbers, inner, held)}")
        for name, child in inner.items():
            if not isinstance(child, GraphModule):
                raise NotCacheableError(f"the graph holds a {type(child).__name__}")
            self.lines.append(f"graph {name}")
            self._add(child, {})

    def _node(self, node: Node, numbers: Mapping[Node, str], inner: Mapping[str, Any], held: Mapping[str, int]) -> str:
        for name in node.meta.keys() - _QUIET_META:
            if node.meta[name]:
                raise NotCacheableError(f"a node carries {name!r}")
        if node.op == "placeholder":
            return "placeholder"
        if node.op == "get_attr":
            if str(node.target) in held:
                return f"held {held[str(node.target)]}"
            if str(node.target) not in inner:
                raise NotCacheableError(f"the graph holds {node.target}")
            return f"get_attr {node.target}"
        if node.op == "call_module":
            raise NotCacheableError("the graph calls a module")
        target = repr(node.target) if isinstance(node.target, str) else callable_text(node.target)
        values = (self._value(each, numbers) for each in (node.args, node.kwargs))
        return f"{node.op} {target} {' '.join(values)}"

    def _value(self, value: Any, numbers: Mapping[Node, str]) -> str:
        if isinstance(value, Node):
            return numbers[value]
        if type(value) in _PLAIN:
            return repr(value)
        if isinstance(value, tuple | list):
            return f"{type(value).__name__}({', '.join([self._value(each, numbers) for each in value])})"
        if isinstance(value, dict):
            items = (f"{self._value(k, numbers)}: {self._value(v, numbers)}" for k, v in value.items())
            return f"{{{', '.join(items)}}}"
        if isinstance(value, slice):
            return f"slice{self._value((value.start, value.stop, value.step), numbers)}"
        if callable(value):
            return callable_text(value)
        raise NotCacheableError(f"a call takes a {type(value).__name__}")

    def _argument(self, value: Any) -> str:
        if type(value) in (bool, int, float, type(None)):
            return f"{type(value).__name__} {value!r}"
        if isinstance(value, torch.SymInt):
            return f"symbol {self._number(value)}"
        if not isinstance(value, torch.Tensor):
            raise NotCacheableError(f"an input is a {type(value).__name__}")
        inside = [] if type(value) in (FakeTensor, torch.nn.Parameter) else self._wrapped(value)
        if value.layout is not torch.strided or value.is_quantized or value.is_mkldnn:
            raise NotCacheableError(f"an input is a tensor of the layout {value.layout}")
        if value._backward_hooks:
            raise NotCacheableError("an input has hooks")
        memory = value.untyped_storage()._cdata
        storage = self._storages.setdefault(memory, len(self._storages))
        numbers = [*value.shape, *value.stride(), value.storage_offset()]
        base = value._base if self._users[memory] > 1 else None  # the graph of several views takes what they are of
        if base is not None:
            numbers += [base.dim(), *base.shape, *base.stride(), base.storage_offset()]
        numbers = [self._number(n) for n in numbers]
        facts = [
            value.requires_grad, value.is_leaf, value.is_conj(), value.is_neg(), value.is_inference(),
            isinstance(value, torch.nn.Parameter), value._is_view(), value._is_zerotensor(),
            base is not None and (base.dtype, base.requires_grad, base.is_leaf),
        ]  # fmt: skip
        own = f"tensor {value.dim()} {value.dtype} {value.device} {storage} {' '.join(numbers)} {facts}"
        return "\n".join([own, *inside])

    def _wrapped(self, value: torch.Tensor) -> list[str]:
        """Lines for a tensor that wraps others, and for those; NotCacheableError for any other class."""
        try:
            if not wraps(value):
                raise UnknownCodeError("")
            text, inner = wrapped_text(value)
        except UnknownCodeError as error:
            raise NotCacheableError(f"an input is a {type(value).__name__} {error}".rstrip()) from None
        return [text, *map(self._argument, inner)]

    def _number(self, number: int | torch.SymInt) -> str:
        if isinstance(number, int):
            return str(number)
        if number.node.expr.free_symbols - self.symbols.keys():
            raise NotCacheableError("a size is a symbol that no input is")
        return self._renamed(number.node.expr)

    def _renamed(self, expression: Any) -> str:
        known = expression.free_symbols & self.symbols.keys()
        return str(expression.xreplace({s: type(s)(self.symbols[s]) for s in known}))

    def _facts(self, shape_env: Any) -> Iterator[str]:
        """Ranges and guards of the symbols so far, and what torch was told to optimize for."""
        numbers = [symbol for symbol in getattr(shape_env, "var_to_sources", {}) if str(symbol).startswith("z")]
        if not all(shape_env.simplify(symbol).is_number for symbol in numbers):
            raise NotCacheableError("a number that is no integer is a symbol")  # torch's passes fix some of them
        for symbol, name in self.symbols.items():
            yield f"range {name} {shape_env.var_to_range.get(symbol)}"
        for symbol, hint in getattr(shape_env, "var_to_hint_override", {}).items():
            yield f"hint {self._renamed(symbol)} {hint}"
        for guard in shape_env.guards:
            if guard.expr.free_symbols & self.symbols.keys():
                yield f"guard {self._renamed(guard.expr)}"


def callable_text(target: Any) -> str:
    """What names a function that torch brings; NotCacheableError for others, whose code nobody knows."""
    text = _callable_text(target)
    if text is None:
        name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None) or type(target).__name__
        raise NotCacheableError(f"the graph calls {getattr(target, '__module__', '?')}.{name}")
    return text


@functools.lru_cache(4096)
def _callable_text(target: Any) -> str | None:
    if isinstance(target, torch._ops.OpOverload):
        return f"op {target}" if target.namespace in OWN_OPERATORS else None
    if isinstance(target, torch._ops.OpOverloadPacket):
        name = target._qualified_op_name
        return f"packet {name}" if name.partition("::")[0] in OWN_OPERATORS else None
    if isinstance(target, torch._ops.HigherOrderOperator):
        name = target.name()
        known = (target.cacheable() and name not in _REFUSED_HOPS) or name in _TAKEN_HOPS
        return f"graphs {name}" if known and is_of_torch(type(target).__module__) else None
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if isinstance(target, BuiltinFunctionType):
        return (
            f"builtin {module} {name}" if module in ("math", "_operator", "builtins") or is_of_torch(module) else None
        )
    if isinstance(target, FunctionType | type) and name is not None:
        if module is None or not (is_of_torch(module) or module == "builtins"):
            return None
        # those that torch makes in a function, as max_pool2d, have the name alone under which they are found
        return next((f"function {module} {n}" for n in (name, target.__name__) if _at(module, n) is target), None)
    return f"builtin operator {name}" if name and getattr(operator, name, None) is target else None


def _at(module: str, path: str) -> Any:
    """What a module has under a path, None for nothing."""
    try:
        return functools.reduce(getattr, path.split("."), sys.modules[module])
    except (AttributeError, KeyError):
        return None


def state_text() -> Iterator[str]:
    """Switches of torch, of this thread and of the process, that tracing, passes or ATen's calls look at.

    Raises NotCacheableError where something watches or changes operators as they are called.
    """
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    if any(type(mode).__name__ != "FakeTensorMode" for mode in _get_current_dispatch_mode_stack()):
        raise NotCacheableError("a dispatch mode is active")
    if torch.is_anomaly_enabled():
        raise NotCacheableError("anomalies are detected")
    if _top_hooks(True) is not None:
        raise NotCacheableError("hooks on saved tensors are active")
    if reason := changed_operator():
        raise NotCacheableError(reason)
    yield (
        f"grad {torch.is_grad_enabled()} inference {torch.is_inference_mode_enabled()} "
        f"forward {torch._C._is_fwd_grad_enabled()} replay {torch._C._is_view_replay_enabled()}"
    )
    for device in torch._C._autocast_supported_devices():
        if torch.is_autocast_enabled(device):
            yield f"autocast {device} {torch.get_autocast_dtype(device)} {torch.is_autocast_cache_enabled()}"
    yield from process_text()
    for module in (torch._functorch.config, torch.fx.experimental._config):
        yield from _settings(module)


def process_text() -> Iterator[str]:
    """Those of the process, which hold for a backward graph too, whenever that is compiled."""
    yield (
        f"deterministic {torch.are_deterministic_algorithms_enabled()} "
        f"{torch.is_deterministic_algorithms_warn_only_enabled()} "
        f"{getattr(torch.utils.deterministic, 'fill_uninitialized_memory', None)}"
    )
    yield f"defaults {torch.get_default_dtype()} {torch.get_default_device()} {torch.get_num_threads()}"
    yield f"matmul {torch.get_float32_matmul_precision()} {torch.backends.cpu.get_cpu_capability()}"
    for name in _BACKEND_SWITCHES:
        yield f"{name} {_switch(name)!r}"
    for name in _SDP_SWITCHES:
        if (switch := getattr(torch.backends.cuda, name, None)) is not None:
            yield f"{name} {switch()}"
    order = getattr(torch._C, "_get_sdp_priority_order", None)
    yield f"order {None if order is None else order()} denormals {sys.float_info.min * 0.5 != 0}"
    if torch.cuda.is_initialized():
        yield f"current {torch.cuda.current_device()}"
    inductor: Any = sys.modules.get("torch._inductor.config")
    for name in _OF_INDUCTOR if inductor is not None else ():
        yield f"{name} {getattr(inductor, name, None)!r}"


_OF_INDUCTOR = (
    "emulate_precision_casts", "enable_auto_functionalized_v2", "fallback_random", "post_grad_fusion_options",
    "unbacked_symint_fallback",
)  # fmt: skip
"""Settings that torch looks at while it traces or splits a graph, whoever compiles that."""
_BACKEND_SWITCHES = (
    "mkldnn.enabled", "mkldnn.deterministic", "mkldnn.allow_tf32", "mkldnn.matmul.fp32_precision",
    "mkldnn.conv.fp32_precision", "mkldnn.rnn.fp32_precision", "mkldnn.fp32_precision", "nnpack.enabled",
    "opt_einsum.enabled", "opt_einsum.strategy", "cudnn.enabled", "cudnn.benchmark", "cudnn.deterministic",
    "cudnn.fp32_precision", "cudnn.conv.fp32_precision", "cudnn.rnn.fp32_precision", "cudnn.allow_tf32",
    "cuda.matmul.fp32_precision", "cuda.matmul.allow_tf32", "cuda.matmul.allow_fp16_reduced_precision_reduction",
    "cuda.matmul.allow_bf16_reduced_precision_reduction", "cuda.matmul.allow_fp16_accumulation", "fp32_precision",
)  # fmt: skip
_SDP_SWITCHES = (
    "flash_sdp_enabled", "mem_efficient_sdp_enabled", "math_sdp_enabled", "cudnn_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed",
)  # fmt: skip


def _switch(name: str) -> Any:
    """The value of a switch of `torch.backends`; what this torch does not have, or refuses to tell, is told as such."""
    try:
        return functools.reduce(getattr, name.split("."), torch.backends)
    except (AttributeError, RuntimeError) as error:
        return type(error).__name__


def _settings(module: Any) -> Iterator[str]:
    """The settings of a module of torch, apart from those of its caches."""
    for name, value in sorted(module.save_config_portable().items()):
        if name in _OF_CACHES:
            continue
        if callable(value):
            raise NotCacheableError(f"the setting {name} is a function")
        yield f"{name} {value!r}"


_OF_CACHES = frozenset(
    {
        "bundled_autograd_cache", "bypass_autograd_cache_key", "enable_autograd_cache", "enable_remote_autograd_cache",
        "force_autograd_cache", "strict_autograd_cache", "autograd_cache_normalize_inputs",
        "force_non_lazy_backward_lowering", "TYPE_CHECKING",
    }
)  # fmt: skip


def aot_text(aot_config: Any) -> str:
    """How AOTAutograd is asked to compile."""
    names = (
        "num_params_buffers", "keep_inference_input_mutations", "is_export", "no_tangents", "dynamic_shapes",
        "static_input_indices", "pre_dispatch", "ignore_shape_env", "disable_functionalization", "selective_decompose",
    )  # fmt: skip
    return ", ".join(f"{name}={getattr(aot_config, name, None)!r}" for name in names)


def key_lines(graph: GraphModule, args: Sequence[Any], aot_config: Any, shape_env: Any) -> list[str]:
    """All lines for a graph, whose symbols belong to a ShapeEnv. Raises NotCacheableError."""
    text = GraphText(args, shape_env)
    text.add_graph(graph)
    return [*text.lines, aot_text(aot_config), *state_text()]


def _checkpoint_rule(make_contexts: Any) -> str:
    """What a selective checkpoint saves: a list of torch's operators, or what a user says stands for a function."""
    from torch.utils.checkpoint import create_selective_checkpoint_contexts

    stated = getattr(make_contexts, "cache_hash", None)
    if type(stated) in (str, int, bytes):
        return f"stated {stated!r}"
    if isinstance(make_contexts, functools.partial) and make_contexts.func is create_selective_checkpoint_contexts:
        (saved, *more), named = make_contexts.args or (None,), make_contexts.keywords
        plain = all(type(each) is bool for each in (*more, *named.values()))
        if plain and isinstance(saved, list) and all(type(op) is torch._ops.OpOverload for op in saved):
            return f"saves {sorted(map(str, saved))} {more} {sorted(named.items())}"
    raise NotCacheableError("a selective checkpoint is a function, without an attribute cache_hash")
