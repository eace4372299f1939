"""Making a package: an exported program is compiled as an inference graph, and written as data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch._subclasses import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind, TensorArgument
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree
from xdsl.dialects.builtin import ModuleOp

from ...errors import UnsupportedError, UserError
from ...lowering.fx_machines import target_of_device
from ...machines import in_host_memory, target_named
from ...records import dataclass
from ..compile_graph import compile_graph
from ..config import Config
from ..graph_cache.freeze import freeze
from ..graph_cache.key import NotCacheableError
from ..graph_cache.thaw import FrozenGraph
from ..host.gpu import gpu, is_gpu
from ..runnable import RunnableGraph
from ..torch_compile import chosen_decompositions
from ..torch_settings import torch_settings
from .archive import WEIGHTS, write_archive
from .attention import attention_of_a_gpu
from .moving import moved
from .needs import needs_of_this
from .plain import encode, encode_program
from .runner.build import folder_of, runner_member
from .runner.emit import Launched, emit_program
from .sizes import Size, renamed, size_of, symbols_in, text_of
from .weights import flatten, on_device

_ATEN: Any = torch.ops.aten
_WRITES = {OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION, getattr(OutputKind, "PARAMETER_MUTATION", None)}
_WEIGHTS = {InputKind.PARAMETER, InputKind.BUFFER}


def package(
    program: ExportedProgram,
    path: str | os.PathLike[str],
    *,
    weights: bool = True,
    targets: Sequence[str] = (),
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Path:
    """Compile an exported program into one file, which `load_package` runs without a compiler; the path.

        exported = torch.export.export(model, (x,), dynamic_shapes={"x": {0: torch.export.Dim("batch")}})
        inductile.package(exported, "model.pt2i")

    weights: whether parameters and buffers lie in the file; else whoever loads it brings them
    targets: machines that the file is for, of which none but the processor need be here: "cpp" is a processor like this
             one, "cuda:90" a GPU. What loads the file takes the first that it has. Without any, the program is for the
             device that it was exported on
    mode, options: those of torch.compile

    The file is for these machines, this torch and this inductile, and says so where it meets others. Raises UserError
    for what cannot be packaged, with the reason.
    """
    if not isinstance(program, ExportedProgram):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserError(
            f"a package is made of an exported program, and not of a {type(program).__name__}",
            "give torch.export.export(model, inputs)",
        )
    config = Config.resolve(mode, options, torch_settings())
    for name in ("freezing", "cudagraphs"):
        if getattr(config, name):
            other = "mode='max-autotune-no-cudagraphs'" if mode == "max-autotune" else "another mode"
            advice = f"leave the option {name} out" if name in (options or {}) or mode is None else f"give {other}"
            raise UserError(f"a package cannot have {name}", advice)
    members: dict[str, bytes] = {}
    named = (targets,) if isinstance(targets, str) else targets or (_own_target(program),)
    parts = [_part(program, name, config, members) for name in dict.fromkeys(named)]
    index = _index(program, parts, members, weights)
    target = Path(path)
    try:
        write_archive(target, index, members)
    except OSError as error:
        raise UserError(f"the package {target} cannot be written: {error.strerror}", "name another place") from error
    return target


@dataclass(frozen=True)
class _Part:
    """The program for one target: what the file says of it, and the tensors that it names beside the weights."""

    data: dict[str, Any]
    lowered: ExportedProgram
    constants: Mapping[str, torch.Tensor]


def _part(program: ExportedProgram, target: str, config: Config, members: dict[str, bytes]) -> _Part:
    """Compile for one target; what it needs beside its description joins the members."""
    device = target_named(target).device
    here = device_of(program)
    with torch.no_grad():
        aimed = program if here.type == device else moved(program, device if in_host_memory(device) else f"{device}:0")
        lowered = _lowered(aimed, config, device)
        graph, written = _with_writes(lowered)
        examples = [node.meta["val"] for node in graph.graph.find_nodes(op="placeholder")]
        modules: list[ModuleOp] = []
        compiled = compile_graph(graph, examples, config, "inference", target=target, take=modules.append)
    part = _described(lowered, _frozen(compiled), graph, written, target, members)
    part.data["runner"] = _add_runner(compiled, modules, target, bool(part.data["written"]), members)
    return part


def _add_runner(
    compiled: Any, modules: Sequence[ModuleOp], target: str, writes: bool, members: dict[str, bytes]
) -> str:
    """Add the program as C++; else say why there is none."""
    kernels: dict[str, Launched] = {}
    for generator, launcher in compiled.program.launchers.items():
        for name, each in launcher.kernels.items():
            on_gpu = each.source if generator == "triton" else None
            kernels[name] = Launched(each.source.errors, on_gpu)
    try:
        text = emit_program(modules[-1], kernels, not writes)
    except UnsupportedError as error:
        return str(error)
    members[runner_member(target)] = text.encode()
    return ""


def _own_target(program: ExportedProgram) -> str:
    """The target of the device that a program was exported on."""
    return target_of_device(str(device_of(program)))


def device_of(program: ExportedProgram) -> torch.device:
    """The GPU that tensors of a program are on; the CPU where there is none."""
    values = [node.meta.get("val") for node in program.graph.nodes]
    devices = {value.device for value in values if isinstance(value, torch.Tensor)}
    return next((each for each in sorted(devices, key=str) if is_gpu(each.type)), torch.device("cpu"))


def _lowered(program: ExportedProgram, config: Config, device: str) -> ExportedProgram:
    """The program in ATen's terms. UserError for tensors in one memory of which one is written, which torch refuses."""
    try:
        return program.run_decompositions(_decompositions(config, device))
    except AssertionError as error:
        shared = [names for names in _in_one_memory(program.state_dict) if len(names) > 1]
        if not shared:
            raise
        names = "; ".join(" and ".join(each) for each in shared)
        raise UserError(
            f"tensors of the model share memory, of which it writes to one, and torch does not follow that: {names}",
            "register a clone of the one that is written",
        ) from error


def _in_one_memory(tensors: Mapping[str, torch.Tensor]) -> list[list[str]]:
    """Names of tensors, those together that lie in one memory."""
    found: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided:
            found.setdefault(tensor.untyped_storage()._cdata, []).append(name)
    return list(found.values())


def _decompositions(config: Config, device: str) -> dict[Any, Any]:
    """Our own table, and all that torch always takes apart outside of an export."""
    always = {
        operator: function
        for operator, function in torch.export.default_decompositions().items()
        if torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd")
    }
    if is_gpu(device) and not gpu(device).is_available:
        always[_ATEN.scaled_dot_product_attention.default] = attention_of_a_gpu
    return always | chosen_decompositions(config)


def _with_writes(program: ExportedProgram) -> tuple[GraphModule, set[str]]:
    """The graph that writes to its inputs itself and returns what users see; the names of inputs that it writes."""
    module = program.graph_module
    graph = module.graph
    signature = program.graph_signature
    output = graph.output_node()
    placeholders = {node.name: node for node in graph.find_nodes(op="placeholder")}
    by_target = {spec.target: spec.arg.name for spec in signature.input_specs if spec.target is not None}
    returned: list[Any] = []
    written: list[tuple[str, Any]] = []
    for spec, value in zip(signature.output_specs, output.args[0], strict=True):  # type: ignore[arg-type]
        if spec.kind is OutputKind.USER_OUTPUT:
            returned.append(value)
        elif spec.kind in _WRITES and spec.target is not None:
            written.append((str(by_target.get(spec.target, spec.target)), value))
        else:
            raise UserError(
                f"a program with an output of the kind {spec.kind.name} cannot be packaged", "export for inference"
            )
    with graph.inserting_before(output):
        values = [_apart(graph, value) for _, value in written]
        for (name, _), value in zip(written, values, strict=True):
            copy = graph.call_function(_ATEN.copy_.default, (placeholders[name], value))
            copy.meta["val"] = placeholders[name].meta["val"]
    output.args = (tuple(returned),)
    for check in graph.find_nodes(op="call_function", target=_ATEN._assert_tensor_metadata.default):
        graph.erase_node(check)  # types are in the program
    for spec in signature.input_specs:
        if isinstance(spec.arg, ConstantArgument):  # what it says has been traced
            graph.erase_node(placeholders[spec.arg.name])
    module.recompile()
    return module, {name for name, _ in written}


def _apart(graph: torch.fx.Graph, value: Node) -> Node:
    """A value in memory of its own: what is a view of an input changes when that is written."""
    root = value
    while root.op == "call_function" and getattr(root.target, "is_view", False):
        root = root.all_input_nodes[0]
    if root.op != "placeholder":
        return value
    clone = graph.call_function(_ATEN.clone.default, (value,))
    clone.meta.update(value.meta)
    return clone


def _frozen(compiled: Any) -> FrozenGraph:
    if not isinstance(compiled, RunnableGraph):
        raise UserError("the program runs in eager, as warnings say", "export without what they name")
    try:
        return freeze(compiled, embed=True)
    except NotCacheableError as error:
        raise UserError(f"the program cannot be packaged: {error}", "packages hold compiled programs") from error


def _described(
    program: ExportedProgram,
    frozen: FrozenGraph,
    graph: GraphModule,
    written: set[str],
    target: str,
    members: dict[str, bytes],
) -> _Part:
    nodes = {node.name: node for node in graph.graph.find_nodes(op="placeholder")}
    specs = program.graph_signature.input_specs
    own = [spec for spec in specs if spec.kind is not InputKind.USER_INPUT]
    constants = {f"constant {number} of {target}": tensor for number, tensor in enumerate(frozen.constants)}
    inputs = [_input(spec, nodes, written) for spec in specs if spec.kind is InputKind.USER_INPUT]
    bounds, relations = _conditions(program, inputs, list(nodes.values()))
    devices = {_name(spec): nodes[spec.arg.name].meta["val"].device for spec in own if spec.arg.name in nodes}
    devices |= {name: tensor.device for name, tensor in constants.items()}
    folder = folder_of(target)
    data = {
        "target": target,
        "inputs": inputs,
        "results": [_shown(each) for each in graph.graph.output_node().args[0]],  # type: ignore[union-attr]
        "bounds": bounds,
        "sizes": _examples(nodes.values()),
        "relations": relations,
        "weights": [_name(spec) for spec in own],
        "written": [_name(spec) for spec in own if spec.arg.name in written],
        "constants": list(constants),
        "devices": {name: str(device) for name, device in devices.items() if is_gpu(device.type)},
        "arrangements": [encode((each.position, each.strides, each.order)) for each in frozen.arrangements],
        "outputs": None if frozen.outputs is None else encode(frozen.outputs),
        "program": encode_program(frozen.program),
        "kernels": {name: [f"kernels/{each.library}", each.symbol] for name, each in frozen.kernels.items()},
        "on_gpu": _on_gpu(frozen, members),
    }
    members |= {f"kernels/{name}": code for name, code in sorted(frozen.libraries.items())}
    members[f"sources/{folder}program.py"] = frozen.program.source.encode()
    members |= {f"sources/{folder}{name}": text.encode() for name, text in frozen.texts().items()}
    return _Part(data, program, constants)


def _on_gpu(frozen: FrozenGraph, members: dict[str, bytes]) -> dict[str, Any]:
    if not frozen.on_gpu:
        return {}
    from ..triton.frozen import to_json

    return {name: to_json(each, members) for name, each in frozen.on_gpu.items()}


def _index(program: ExportedProgram, parts: Sequence[_Part], members: dict[str, bytes], inside: bool) -> dict[str, Any]:
    """What the file says of itself; the tensors join the members. `program` has the weights, which parts may fake."""
    state, held = dict(program.state_dict), dict(program.constants)
    weights: dict[str, torch.Tensor] = {}
    constants: dict[str, torch.Tensor] = {}
    for part in parts:
        state = {**part.lowered.state_dict, **state}
        held = {**part.lowered.constants, **held}
        found = _tensors(state, held, part.lowered.graph_signature.input_specs)
        weights |= found[0]
        constants |= found[1] | dict(part.constants)
    described, content = flatten(on_device(constants | (weights if inside else {}), torch.device("cpu")))
    members[WEIGHTS] = content
    return {
        "needs": needs_of_this(),
        "taken": _structure(program.call_spec.in_spec),
        "returned": _structure(program.call_spec.out_spec),
        "programs": [part.data for part in parts],
        "tensors": described,
        "apart": {} if inside else {name: _kind(tensor) for name, tensor in weights.items()},
    }


def _structure(spec: pytree.TreeSpec | None) -> str:
    """How inputs or outputs nest, as text. UserError for classes that say of themselves how only in Python."""
    assert spec is not None
    try:
        return pytree.treespec_dumps(spec)
    except Exception as error:
        remedy = "export with tuples, lists and dictionaries, or register the class with a serialized name"
        raise UserError(f"inputs or outputs nest in a way that has no text: {error}", remedy) from error


def _name(spec: InputSpec) -> str:
    if spec.kind not in _WEIGHTS | {InputKind.CONSTANT_TENSOR} or spec.target is None:
        raise UserError(f"a program with an input of the kind {spec.kind.name} cannot be packaged", "export without it")
    return spec.target


def _tensors(
    state: Mapping[str, Any], held: Mapping[str, Any], specs: list[InputSpec]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters and buffers, and what else the program holds, by name."""
    weights: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    for spec in specs:
        if spec.kind is InputKind.USER_INPUT:
            continue
        name = _name(spec)
        in_state = spec.kind in _WEIGHTS and name in state
        tensor: Any = state[name] if in_state else held[name]
        if isinstance(tensor, FakeTensor):
            raise UserError(f"the tensor {name} is made while the program is traced", "export on the device")
        (weights if in_state else constants)[name] = tensor.detach()
    return weights, constants


def _kind(tensor: torch.Tensor) -> dict[str, Any]:
    return {"dtype": encode(tensor.dtype), "shape": list(tensor.shape), "stride": list(tensor.stride())}


def _input(spec: InputSpec, nodes: Mapping[str, Node], written: set[str]) -> dict[str, Any]:
    """JSON for an input of users."""
    if isinstance(spec.arg, ConstantArgument):
        return {"kind": "constant", "name": spec.arg.name, "value": encode(spec.arg.value)}
    node = nodes[spec.arg.name]
    value = node.meta["val"]
    if isinstance(spec.arg, TensorArgument):
        shape, stride = ([_size(each) for each in sizes] for sizes in (value.shape, value.stride()))
        kind = {"dtype": encode(value.dtype), "device": str(value.device), "shape": shape, "stride": stride}
        return {"kind": "tensor", "name": node.name, **kind, "written": node.name in written}
    if isinstance(value, torch.SymInt):
        return {"kind": "int", "name": node.name, "size": _size(value)}
    raise UserError(f"the input {node.name} is a {type(value).__name__}", "export with tensors and integers")


def _size(size: Any) -> Size:
    return size if isinstance(size, int) else size_of(size.node.expr)


def _examples(nodes: Iterable[Node]) -> dict[str, int]:
    """The sizes of the export's examples, by their symbols."""
    values = (node.meta["val"] for node in nodes)
    sizes = [size for value in values for size in (value.shape if isinstance(value, torch.Tensor) else [value])]
    symbolic: list[Any] = [size.node for size in sizes if isinstance(size, torch.SymInt)]
    return {str(node.expr): int(node.hint) for node in symbolic if node.expr.is_Symbol and node.has_hint()}


def _shown(value: Any) -> str:
    """An output for people."""
    if not isinstance(value, Node):
        return repr(value)
    made = value.meta["val"]
    return f"{str(made.dtype).removeprefix('torch.')}{list(made.shape)}" if isinstance(made, torch.Tensor) else "int"


def _conditions(
    program: ExportedProgram, inputs: list[dict[str, Any]], nodes: list[Node]
) -> tuple[dict[str, Any], list[Size]]:
    """Bounds of the symbols of inputs, and relations between them. UserError for a symbol that no size is."""
    sizes = [size for each in inputs for size in (*each.get("shape", ()), *([each["size"]] if "size" in each else []))]
    bound = {size for size in sizes if isinstance(size, str)}
    if derived := set().union(*map(symbols_in, sizes)) - bound:
        names = _names_of_users(nodes)
        place, size = next(each for each in _places(inputs) if symbols_in(each[1]) & derived)
        of = ", ".join(sorted(names.get(symbol, symbol) for symbol in symbols_in(size) & derived))
        raise UserError(
            f"{place} is {text_of(renamed(size, names))}, and no size of an input is {of}, which no call says then",
            "give that dimension a torch.export.Dim of its own, not one that is made from another",
        )
    limits: dict[str, Any] = {}
    for symbol, limit in program.range_constraints.items():
        if str(symbol) in bound:
            limits[str(symbol)] = [
                int(limit.lower),
                int(limit.upper) if getattr(limit.upper, "is_Integer", False) else None,
            ]
    return limits, list(_relations(nodes, bound))


def _places(inputs: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Size]]:
    """What users call the sizes of inputs, and the sizes."""
    for each in inputs:
        for number, size in enumerate(each.get("shape", ())):
            yield f"dimension {number} of the input {each['name']}", size
        if "size" in each:
            yield f"the input {each['name']}", each["size"]


def _names_of_users(nodes: Iterable[Node]) -> dict[str, str]:
    """The names that users gave to dimensions, by the symbols; where torch has kept them."""
    names: dict[str, str] = {}
    for environment in _environments(nodes):
        for symbol, sources in getattr(environment, "var_to_sources", {}).items():
            given = [source.source_name for source in sources if hasattr(source, "source_name")]
            names |= {str(symbol): each for each in given[:1]}
    return names


def _environments(nodes: Iterable[Node]) -> list[Any]:
    """What knows the symbols of the sizes of nodes."""
    modes = [getattr(node.meta["val"], "fake_mode", None) for node in nodes]
    found = [mode.shape_env for mode in modes if mode is not None and mode.shape_env is not None]
    return list({id(environment): environment for environment in found}.values())


def _relations(nodes: list[Node], bound: set[str]) -> Iterator[Size]:
    """What tracing and compiling have relied on; relations of other symbols are asserts of the program."""
    for environment in _environments(nodes):
        for guard in environment.guards:
            relation = environment.simplify(guard.expr)
            if relation.free_symbols and {str(symbol) for symbol in relation.free_symbols} <= bound:
                yield size_of(relation)
