"""Ops of the aten level from the call nodes of an FX graph."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Node
from xdsl.dialects.builtin import ArrayAttr, LocationAttr, StringAttr, i1
from xdsl.ir import Attribute, Operation, SSAValue

from ..dialects.aten import (
    CHECKED,
    MUTATES,
    STARTS,
    TRITON_KERNEL,
    UNSAFE,
    AtenOp,
    CallOp,
    Device,
    Layout,
    MemoryFormat,
    Operator,
    Reference,
    TensorType,
    Tuple,
    op_class,
)
from ..dialects.aten.masks import left_out
from ..dialects.aten.values import SSA_CLASSES
from ..dialects.kernel import PRECISION
from ..dialects.sym import ZERO, Expr, MapAttr
from ..errors import UnsupportedError
from ..machines import HOST
from ..passes.common.choices import TILE
from ..passes.common.implementations import IMPLEMENTATION
from ..passes.common.rounding import ROUNDED, UNIT
from .fx_private import triton_kernel_name, without_modes
from .fx_scalars import scalar_overload
from .fx_sym import UnsupportedSymbol
from .fx_symbols import SymbolTable
from .fx_targets import callee_name, is_pure
from .fx_types import NONE, device_name, dtype_element, location_of, tensor_type, type_of

log = logging.getLogger(__name__)

Value = Any
"""What a node stands for: an SSA value, an `Expr` or Python number, a `Reference`, None, or a tuple or dict of such."""

_PLAIN = frozenset({int, float, bool, complex, str, type(None)})
_CONVERT: dict[type, Callable[[Any], Value]] = {
    torch.dtype: dtype_element,
    torch.device: lambda device: Device(device_name(device)),
    torch.layout: lambda layout: Layout(str(layout).removeprefix("torch.")),
    torch.memory_format: lambda memory_format: MemoryFormat(str(memory_format).removeprefix("torch.")),
    torch._ops.OpOverload: lambda target: Operator(callee_name(target)),
}

#: overloads of other namespaces that say the same as an ATen overload: its name, and its arguments by position
_SYNONYMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "prims::convert_element_type": ("aten._to_copy", ("self", "dtype")),
}
_UNSAFE_TAG = getattr(torch.Tag, UNSAFE, None)
#: metadata of nodes of which an op was marked `rounded` in the joint graph
_ROUNDED_NODE = "inductile_rounded"
_CHOSEN_NODE = "inductile_chosen"
_CHOSEN = (IMPLEMENTATION, TILE, PRECISION)
_Overload = tuple[type[AtenOp], tuple[str, ...]] | None
_OVERLOADS: dict[Any, _Overload] = {}


def overload(target: Any) -> _Overload:
    """The op class of a node's target and the names of its arguments by position; None when a call must do."""
    try:
        return _OVERLOADS[target]
    except KeyError:
        found = _OVERLOADS[target] = _find_overload(target)
        return found


def _find_overload(target: Any) -> _Overload:
    if not isinstance(target, torch._ops.OpOverload):
        return None
    callee = callee_name(target)
    name, names = _SYNONYMS.get(callee, (callee.replace("aten::", "aten."), ()))
    cls = op_class(name)
    if cls is None or not issubclass(cls, AtenOp):
        return None
    known = tuple(argument.name for argument in cls.schema.arguments)
    if not names and known != tuple(argument.name for argument in target._schema.arguments):
        log.info("%s has other arguments in this torch than in the table of schemas: it stays a call", callee)
        return None
    return cls, names or known


def _integer_factors(node: Node) -> Sequence[Any] | None:
    """The factors of `out_dtype(aten.mm, int32, ...)` where they are of 8 bits, which `aten._int_mm` means too."""
    if node.target is not torch.ops.higher_order.out_dtype or tuple(node.args[:2]) != _OF_INTEGERS:
        return None
    factors = [arg for arg in node.args[2:] if isinstance(arg, Node)]
    metas = [_meta_of(factor) for factor in factors]
    is_bytes = all(isinstance(meta, torch.Tensor) and meta.dtype == torch.int8 for meta in metas)
    return factors if len(metas) == 2 and is_bytes else None


_OF_INTEGERS = (torch.ops.aten.mm.default, torch.int32)


def _lacks_tensor(cls: type[AtenOp], node: Node) -> bool:
    """Whether None stands for a tensor that the schema wants, which some kernels let pass; it stays a call then."""
    if None not in node.args:
        return False
    pairs = zip(cls.schema.arguments, node.args, strict=False)
    return any(arg is None and declared.is_tensor and not declared.optional for declared, arg in pairs)


def mark_rounded(node: Node) -> None:
    """Let the op that is imported for a node, or for the call that it is a result of, be marked `rounded`."""
    call = node.args[0] if node.target is operator.getitem else node
    assert isinstance(call, Node)
    call.meta[_ROUNDED_NODE] = True


def is_chosen(op: Operation) -> bool:
    """Whether a pass said who computes a product."""
    return IMPLEMENTATION in op.attributes


def mark_chosen(node: Node, op: Operation) -> None:
    """Let the op that is imported for a node say who computes it, as another op does."""
    node.meta[_CHOSEN_NODE] = {name: op.attributes[name] for name in _CHOSEN if name in op.attributes}


class NodeImporter:
    """Turns call nodes into ops, appended to `ops`, and remembers what each node stands for in `values`."""

    def __init__(self, symbols: SymbolTable) -> None:
        self.symbols = symbols
        self.values: dict[Node, Value] = {}
        self.numbers: set[SSAValue] = set()
        """SSA values that are no tensors."""
        self.ops: list[Operation] = []
        self.references: dict[str, Any] = {}

    def import_call(self, node: Node) -> None:
        """Import a call: as a number that is known, or as an op."""
        meta = node.meta.get("val")
        if not isinstance(meta, torch.Tensor) and "unbacked_bindings" not in node.meta:
            number = self._known_number(meta)
            if number is not None:
                self.values[node] = number
                return
        binds = self._bind(node, meta)
        types: list[Attribute] = []
        if meta is not None:
            self._collect_types(meta, types)
        location = location_of(node)
        found = overload(node.target)
        if (factors := _integer_factors(node)) is not None:
            args: dict[str, Any] = dict(zip(("self", "mat2"), map(self.value_of, factors), strict=True))
            op: Operation = AtenOp.of("aten._int_mm", args, types, location, binds)
        elif found is not None and not _lacks_tensor(found[0], node):
            op = self._aten_op(*found, node, types, location, binds)
        else:
            op = self._call_op(node, types, location, binds)
        if _ROUNDED_NODE in node.meta:
            op.attributes[ROUNDED] = UNIT
        op.attributes.update(node.meta.get(_CHOSEN_NODE, {}))
        self.ops.append(op)
        if len(node.meta.get("unbacked_bindings") or ()) > len(binds):
            self._expect(op, meta)
        for result in op.results:
            result.name_hint = node.name
        self.values[node] = self._value(meta, iter(op.results)) if meta is not None else None

    def _known_number(self, meta: Any) -> Value:
        """The integer, or tuple of integers, that a node computes from sizes; None for anything else."""
        if isinstance(meta, (int, torch.SymInt)) and not isinstance(meta, bool):
            try:
                return self.symbols.expr(meta)
            except UnsupportedSymbol:
                return None  # an op computes it
        if isinstance(meta, (tuple, list)) and meta:
            numbers = [self._known_number(item) for item in meta]
            return None if None in numbers else tuple(numbers)
        return None

    def _bind(self, node: Node, meta: Any) -> list[str]:
        """Symbols that the node's results define."""
        if "unbacked_bindings" in node.meta:
            return self.symbols.declare_results(_leaves(meta))
        if isinstance(meta, torch.Tensor):
            return []
        return [
            self.symbols.declare_number(leaf)
            for leaf in _leaves(meta)
            if type(leaf) is torch.SymInt and self._known_number(leaf) is None
        ]

    def _expect(self, op: Operation, meta: Any) -> None:
        """Check what data decides and torch has taken to be known: it replaces `u0` by 3 where `u0 == 3` must hold."""
        for result, leaf in zip(op.results, _leaves(meta), strict=True):
            if isinstance(leaf, torch.Tensor):
                op.attributes[CHECKED] = UNIT
            elif isinstance(leaf, (int, torch.SymInt)) and not isinstance(leaf, bool):
                expected = self.symbols.expr(leaf)
                equal = CallOp.of("operator::eq", [result, expected], {}, (i1,), op.location, pure=True)
                message = f"a number that data decides has to be {expected} here"
                args = {"self": equal.results[0], "assert_msg": message}
                self.ops += (equal, AtenOp.of("aten._assert_scalar", args, (), op.location))

    def _collect_types(self, meta: Any, types: list[Attribute]) -> None:
        if isinstance(meta, torch.Tensor):
            types.append(type_of(meta, self.symbols))
        elif isinstance(meta, (tuple, list)):
            for item in meta:
                self._collect_types(item, types)
        elif isinstance(meta, dict):
            for item in meta.values():
                self._collect_types(item, types)
        else:
            types.append(type_of(meta, self.symbols))

    def _value(self, meta: Any, results: Iterator[SSAValue]) -> Value:
        """What a node stands for: its results in the structure of its meta, integers as expressions."""
        if isinstance(meta, torch.Tensor):
            return next(results)
        if isinstance(meta, (tuple, list)):
            return tuple([self._value(item, results) for item in meta])
        if isinstance(meta, dict):
            return {key: self._value(item, results) for key, item in meta.items()}
        result = next(results)
        if isinstance(meta, (int, torch.SymInt)) and not isinstance(meta, bool):
            return self.symbols.expr(meta)
        if meta is None:
            return None
        self.numbers.add(result)
        return result

    def _aten_op(
        self,
        cls: type[AtenOp],
        names: tuple[str, ...],
        node: Node,
        types: Sequence[Attribute],
        location: LocationAttr,
        binds: Sequence[str],
    ) -> Operation:
        args = dict(zip(names, map(self.value_of, node.args), strict=False))
        for name, arg in node.kwargs.items():
            args[name] = self.value_of(arg)
        numbers = [a.name for a in cls.schema.tensors if self._is_number(args.get(a.name))]
        if numbers:
            other = scalar_overload(cls.schema.name, frozenset(numbers))
            cls = other or cls
            if other is None:
                args |= {name: self._wrap_number(args[name], node, location) for name in numbers}
        if isinstance(mask := args.get("output_mask"), tuple | list):  # some meta functions give a tensor all the same
            left = left_out(cls.packet, mask)
            types = [NONE if number in left else type_ for number, type_ in enumerate(types)]
        sizes = _result_sizes(node.meta.get("val")) if cls.schema.has_result_groups else ()
        return cls.build(args, types, location, binds, sizes)

    def _is_number(self, value: Value) -> bool:
        """Whether a tensor argument was given a number."""
        if type(value) in SSA_CLASSES:
            return bool(self.numbers) and value in self.numbers
        return isinstance(value, (Expr, int, float, complex))

    def _wrap_number(self, number: Value, node: Node, location: LocationAttr) -> SSAValue:
        """A 0-d tensor that promotes like the number does in this call."""
        tensors = [t for t in _leaves([_meta_of(arg) for arg in node.all_input_nodes]) if isinstance(t, torch.Tensor)]
        sample = number if isinstance(number, (bool, int, float, complex)) else _SAMPLES.get(type(number), 1.0)
        dtype = tensors[0].dtype if tensors else torch.result_type(sample, sample)
        for tensor in tensors:
            dtype = torch.promote_types(dtype, torch.result_type(torch.empty(1, dtype=tensor.dtype), sample))
        device = device_name(tensors[0].device) if tensors else HOST
        type_ = TensorType.get((), dtype_element(dtype), (), device)
        args = {"size": (), "fill_value": number, "dtype": dtype_element(dtype), "device": Device(device)}
        op = AtenOp.of("aten.full", args, (type_,), location)
        self.ops.append(op)
        return op.results[0]

    def _call_op(
        self, node: Node, types: Sequence[Attribute], location: LocationAttr, binds: Sequence[str]
    ) -> Operation:
        args = [self._call_value(arg) for arg in node.args]
        kwargs = {name: self._call_value(arg) for name, arg in node.kwargs.items()}
        callee = callee_name(node.target)
        op = CallOp.of(callee, args, kwargs, types, location, binds, pure=is_pure(node.target) and not node.is_impure())
        inside = _wrapped(node) or node.target
        if _UNSAFE_TAG in getattr(inside, "tags", ()):
            op.attributes[UNSAFE] = UNIT
        if (kernel := triton_kernel_name(node)) is not None:
            op.attributes[TRITON_KERNEL] = StringAttr(kernel)
        starts = self._starts(node)
        if starts is not None and (written := _written_by(node)):
            op.attributes[MUTATES] = ArrayAttr([StringAttr(name) for name in written])
            if any(start is not ZERO for start in starts):
                op.attributes[STARTS] = MapAttr.of(*starts)
        return op

    def _starts(self, node: Node) -> list[Expr] | None:
        """Where the tensors that a wrapped operator writes lay in their storage when it was traced; None if unknown.

        torch describes views of them by places in the storage, and does not see when another call's lies elsewhere.
        """
        bases = node.kwargs.get("_all_bases", ())
        assert isinstance(bases, list | tuple)
        metas = [_meta_of(base) for base in bases if isinstance(base, Node)]
        try:
            return [self.symbols.expr(meta.storage_offset()) for meta in metas if isinstance(meta, torch.Tensor)]
        except UnsupportedSymbol:
            return None

    def _call_value(self, arg: Any) -> Value:
        """Like `value_of`, but tuples stay tuples: some higher-order operators insist."""
        if isinstance(arg, (list, tuple)):
            items = [self._call_value(item) for item in arg]
            return tuple(items) if isinstance(arg, list) else Tuple(items)
        if isinstance(arg, dict):
            return {key: self._call_value(item) for key, item in arg.items()}
        return self.value_of(arg)

    def value_of(self, arg: Any) -> Value:
        """The value of an argument of a node; what IR cannot hold becomes a reference."""
        kind = type(arg)
        if kind is Node:
            return self.values[arg]
        if kind in _PLAIN:
            return arg
        if isinstance(arg, (list, tuple)):
            return tuple([self.value_of(item) for item in arg])
        convert = _CONVERT.get(kind)
        if convert is not None:
            return convert(arg)
        if isinstance(arg, dict):
            return {key: self.value_of(item) for key, item in arg.items()}
        if kind is torch.SymInt:
            return self.symbols.expr(arg)
        plain = next((base for base in (int, float, str) if isinstance(arg, base)), None)
        if plain is not None:  # enumerations and the like
            return plain(arg)
        return self.refer_to(f"object_{len(self.references)}", arg)

    def full_of(self, held: torch.Tensor) -> SSAValue:
        """A tensor of one number that a body has, as an op. Raises UnsupportedError for other tensors."""
        if held.numel() != 1 or held.is_complex() or isinstance(held, FakeTensor):
            raise UnsupportedError(f"its body has a tensor of its own, of sizes {list(held.shape)}")
        type_ = tensor_type(held, self.symbols)
        with without_modes():
            number = held.item()
        args = {"size": type_.shape, "fill_value": number, "dtype": type_.element, "device": Device(type_.device)}
        op = AtenOp.of("aten.full", args, (type_,))
        self.ops.append(op)
        return op.results[0]

    def refer_to(self, name: str, held: Any) -> Reference:
        """A reference to an object that travels beside the module; another one of this name gets a number."""
        found, number = name, 0
        while self.references.get(found, held) is not held:
            number += 1
            found = f"{name}_{number}"
        self.references[found] = held
        return Reference(found)


#: numbers of the promotion category of a value that is known only at run time
_SAMPLES: dict[type, float] = {Expr: 1}


def _wrapped(node: Node) -> torch._ops.OpOverload | None:
    """The operator that functionalization has wrapped in a call because it writes arguments; None in any other call."""
    inside = node.args[0] if node.args else None
    is_wrapper = "auto_functionalized" in str(node.target)
    return inside if is_wrapper and isinstance(inside, torch._ops.OpOverload) else None


def _written_by(node: Node) -> list[str]:
    """The arguments that the operator in a wrapper writes; none where it returns one of them, as two results then."""
    inside = _wrapped(node)
    if inside is None or any(each.alias_info is not None for each in inside._schema.returns):
        return []
    schema = inside._schema
    return [each.name for each in schema.arguments if each.alias_info is not None and each.alias_info.is_write]


def _meta_of(node: Node) -> Any:
    return node.meta.get("val")


def _leaves(meta: Any) -> Iterator[Any]:
    """Tensors and numbers in a node's meta value."""
    if isinstance(meta, (tuple, list)):
        for item in meta:
            yield from _leaves(item)
    elif isinstance(meta, dict):
        yield from _leaves(list(meta.values()))
    else:
        yield meta


def _result_sizes(meta: Any) -> list[int]:
    return [len(item) if isinstance(item, (tuple, list)) else 1 for item in meta]
