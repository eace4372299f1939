"""What replacement functions of patterns call `aten`: makes ops, and finds the types of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.aten import AtenOp, CallOp, Device, TensorType
from ...dialects.aten.types import type_of
from ...dialects.sym import ONE, Expr, as_expr, const
from ...machines import HOST
from ...records import dataclass

Args = Mapping[str, Any]


@dataclass(frozen=True)
class Origin:
    """What new ops take from those that they replace."""

    location: LocationAttr
    attributes: Mapping[str, Attribute]


class ReplacementBuilder:
    """Makes ops in front of another one: `aten.mm(x, y)`, or `aten.add.Tensor(x, y)` where the overload matters.

    Arguments are by position or name. `types=` gives the types of the results where no rule of `_TYPES` does.
    """

    def __init__(self, anchor: Operation, origin: Origin, late: Origin | None = None) -> None:
        self._anchor = anchor
        self._origin = origin
        self._late = late
        self.ops: list[Operation] = []

    def behind(self, *values: SSAValue) -> ReplacementBuilder:
        """A builder of ops right behind those that compute the values, for the results of a pattern but the first."""
        makers = {value.owner for value in values}
        block = self._anchor.parent
        assert block is not None and self._late is not None
        anchor = block.first_op
        for op in block.ops:
            if op in makers:
                anchor = op.next_op
        assert anchor is not None
        return ReplacementBuilder(anchor, self._late)

    def __getattr__(self, packet: str) -> _Overloads:
        if packet.startswith("__"):
            raise AttributeError(packet)
        return _Overloads(self, f"aten.{packet}")

    def make(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A new op; its result, or a tuple of several."""
        from ...dialects.aten import op_class

        types = kwargs.pop("types", None)
        cls = op_class(name)
        assert cls is not None and issubclass(cls, AtenOp), name
        named = dict(zip((a.name for a in cls.schema.arguments), args, strict=False)) | kwargs
        op = cls.build(named, types or _TYPES[cls.packet](named), self._origin.location)
        op.attributes.update(self._origin.attributes)
        block = self._anchor.parent
        assert block is not None
        block.insert_op_before(op, self._anchor)
        self.ops.append(op)
        return op.results[0] if len(op.results) == 1 else tuple(op.results)

    def call(self, callee: str, args: Sequence[Any], types: Sequence[Attribute]) -> SSAValue:
        """The result of a new pure call of an operator outside of `aten`."""
        op = CallOp.of(callee, args, {}, types, self._origin.location, pure=True)
        op.attributes.update(self._origin.attributes)
        block = self._anchor.parent
        assert block is not None
        block.insert_op_before(op, self._anchor)
        return op.results[0]


class _Overloads:
    """The overloads of a packet."""

    def __init__(self, builder: ReplacementBuilder, name: str) -> None:
        self._builder = builder
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._builder.make(self._name, args, kwargs)

    def __getattr__(self, overload: str) -> Callable[..., Any]:
        return _Overloads(self._builder, f"{self._name}.{overload}")


def _row_major(value: SSAValue, shape: Sequence[Expr]) -> list[TensorType]:
    source = type_of(value)
    return [TensorType.get(tuple(shape), source.element, None, source.device)]


def _permuted(value: SSAValue, dims: Sequence[int]) -> list[TensorType]:
    source = type_of(value)
    rank = len(source.shape)
    order = [d % rank for d in dims]
    shape, strides = (tuple(part[d] for d in order) for part in (source.shape, source.strides))
    return [TensorType.get(shape, source.element, strides, source.device)]


def _transposed(args: Args) -> list[TensorType]:
    rank = len(type_of(args["self"]).shape)
    order = list(range(rank))
    first, second = args["dim0"] % rank, args["dim1"] % rank
    order[first], order[second] = order[second], order[first]
    return _permuted(args["self"], order)


def _expanded(args: Args) -> list[TensorType]:
    source = type_of(args["self"])
    shape = tuple(map(as_expr, args["size"]))
    missing = len(shape) - len(source.shape)
    old = [ONE] * missing + list(source.shape)
    old_strides = [const(0)] * missing + list(source.strides)
    strides = tuple(s if a == b else const(0) for a, b, s in zip(old, shape, old_strides, strict=True))
    return [TensorType.get(shape, source.element, strides, source.device)]


def _unsqueezed(args: Args) -> list[TensorType]:
    source = type_of(args["self"])
    dim = args["dim"] % (len(source.shape) + 1)
    stride = source.shape[dim] * source.strides[dim] if dim < len(source.shape) else ONE
    shape = (*source.shape[:dim], ONE, *source.shape[dim:])
    strides = (*source.strides[:dim], stride, *source.strides[dim:])
    return [TensorType.get(shape, source.element, strides, source.device)]


def _product(left: SSAValue, right: SSAValue) -> list[TensorType]:
    return _row_major(left, (*type_of(left).shape[:-1], type_of(right).shape[-1]))


def _where(args: Args) -> list[TensorType]:
    """Of a condition and two 0-d tensors: the sizes of the condition."""
    condition, value = type_of(args["condition"]), type_of(args["self"])
    return [TensorType.get(condition.shape, value.element, None, condition.device)]


#: packet -> types of the results from the arguments by name
_TYPES: dict[str, Callable[[Args], Sequence[Attribute]]] = {
    "view": lambda a: _row_major(a["self"], [as_expr(n) for n in a["size"]]),
    "permute": lambda a: _permuted(a["self"], a["dims"]),
    "transpose": _transposed,
    "expand": _expanded,
    "unsqueeze": _unsqueezed,
    "clone": lambda a: _row_major(a["self"], type_of(a["self"]).shape),
    "mm": lambda a: _product(a["self"], a["mat2"]),
    "bmm": lambda a: _product(a["self"], a["mat2"]),
    "addmm": lambda a: _product(a["mat1"], a["mat2"]),
    "_addmm_activation": lambda a: _product(a["mat1"], a["mat2"]),
    "full": lambda a: [
        TensorType.get(tuple(map(as_expr, a["size"])), a["dtype"], None, str(a.get("device", Device(HOST))))
    ],
    "where": _where,
}
