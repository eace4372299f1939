"""Per-channel affine maps: ops that scale and shift each channel of a product or convolution by known numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.ir import Attribute, SSAValue

from ...dialects.aten import AtenOp, TensorType
from ...dialects.sym import ONE, ZERO, Expr
from ...records import dataclass
from ._replacement import ReplacementBuilder, type_of

_BATCH_NORMS = ("aten._native_batch_norm_legit_no_training", "aten._batch_norm_no_update")
_ARITHMETIC = ("aten.mul.Tensor", "aten.div.Tensor", "aten.add.Tensor", "aten.sub.Tensor")


class Vectors:
    """Vectors of a number for each channel, in the type that they are computed in, and the ops that make them."""

    def __init__(self, aten: ReplacementBuilder, channels: Expr, element: Attribute, device: str) -> None:
        self.aten = aten
        self.channels = channels
        self.type = TensorType.get((channels,), element, None, device)

    def of(self, value: SSAValue) -> SSAValue:
        """A tensor with a number for each channel, or one for all, whatever dimensions of size 1 it has."""
        old = type_of(value)
        steps = [stride for size, stride in zip(old.shape, old.strides, strict=True) if size is not ONE]
        strides = (steps[0] if steps else ZERO,)
        if len(old.shape) != 1 or old.shape[0] is not self.channels:
            flat = TensorType.get((self.channels,), old.element, strides, old.device)
            if not steps and self.channels is not ONE:
                value = self.aten.expand(self._single(value), size=(self.channels,), types=[flat])
            else:
                value = self.aten.view(value, size=(self.channels,), types=[flat])
        if old.element == self.type.element:
            return value
        return self.aten._to_copy(value, dtype=self.type.element, types=[self.type])

    def _single(self, value: SSAValue) -> SSAValue:
        old = type_of(value)
        one = TensorType.get((ONE,), old.element, None, old.device)
        return value if len(old.shape) == 1 else self.aten.view(value, size=(ONE,), types=[one])

    def binary(self, name: str, left: SSAValue, right: SSAValue) -> SSAValue:
        """An elementwise op of two vectors."""
        return getattr(self.aten, name).Tensor(left, right, types=[self.type])


@dataclass
class Affine:
    """`scale * x + shift` for each channel; None where there is nothing to do."""

    vectors: Vectors
    scale: SSAValue | None = None
    shift: SSAValue | None = None

    def times(self, factor: SSAValue, name: str = "mul") -> None:
        """Put a factor, or a divisor, behind it."""
        vectors = self.vectors
        if self.scale is None:
            self.scale = factor if name == "mul" else self._reciprocal(factor)
        else:
            self.scale = vectors.binary(name, self.scale, factor)
        if self.shift is not None:
            self.shift = vectors.binary(name, self.shift, factor)

    def _reciprocal(self, divisor: SSAValue) -> SSAValue:
        return self.vectors.aten.reciprocal(divisor, types=[self.vectors.type])

    def plus(self, addend: SSAValue, name: str = "add") -> None:
        """Put an addend, or what is subtracted, behind it."""
        if self.shift is not None:
            self.shift = self.vectors.binary(name, self.shift, addend)
        elif name == "add":
            self.shift = addend
        else:
            self.shift = self.vectors.aten.neg(addend, types=[self.vectors.type])


@dataclass(frozen=True)
class Step:
    """An op that maps each channel of one operand, `value`, affinely.

    known: its other operands, which hold numbers for the channels
    add:   put it behind an affine map
    """

    op: AtenOp
    value: SSAValue
    known: tuple[SSAValue, ...]
    add: Callable[[Affine], None]

    @property
    def is_norm(self) -> bool:
        """Whether it is a batch norm."""
        return self.op.target in _BATCH_NORMS

    @property
    def scales(self) -> bool:
        """Whether it multiplies or divides."""
        return self.is_norm or self.op.packet in ("mul", "div")


def step_of(op: object, value: SSAValue, channel: int) -> Step | None:
    """The affine map of the channels of `value`, its dimension `channel`, that an op is; None for any other op."""
    if not isinstance(op, AtenOp) or not op.results or op.results[0].type != value.type:
        return None
    if op.target in _BATCH_NORMS:
        return _batch_norm(op, value) if channel == 1 else None
    if op.target not in _ARITHMETIC:
        return None
    first, second = op.operands if len(op.operands) == 2 else (None, None)
    if first is value and second is not value and second is not None:
        other = second
    elif second is value and first is not value and op.packet in ("mul", "add") and first is not None:
        other = first
    else:
        return None
    if op.packet in ("add", "sub") and op.arg("alpha") != 1:
        return None
    if not _is_per_channel(type_of(other), type_of(value), channel):
        return None

    def add(affine: Affine) -> None:
        vector = affine.vectors.of(other)
        if op.packet in ("mul", "div"):
            affine.times(vector, op.packet)
        else:
            affine.plus(vector, op.packet)

    return Step(op, value, (other,), add)


def _is_per_channel(other: TensorType, value: TensorType, channel: int) -> bool:
    """Whether a tensor that is broadcast has a number for each channel, or one for all."""
    skipped = len(value.shape) - len(other.shape)
    sizes = {skipped + d: size for d, size in enumerate(other.shape) if size is not ONE}
    return not sizes or (sizes.keys() == {channel} and sizes[channel] is value.shape[channel])


def _batch_norm(op: AtenOp, value: SSAValue) -> Step | None:
    """batch_norm(x) == s * x + (beta - mean * s), with s = gamma / sqrt(var + eps)"""
    if op.operands[0] is not value or any(result.first_use is not None for result in op.results[1:]):
        return None
    mean, variance, gamma, beta = (op.arg(name) for name in ("running_mean", "running_var", "weight", "bias"))
    known = tuple(v for v in (mean, variance, gamma, beta) if isinstance(v, SSAValue))

    def add(affine: Affine) -> None:
        vectors = affine.vectors
        aten, types = vectors.aten, [vectors.type]
        shifted = aten.add.Scalar(vectors.of(cast(SSAValue, variance)), other=op.arg("eps"), types=types)
        scale = aten.rsqrt(shifted, types=types)
        if isinstance(gamma, SSAValue):
            scale = vectors.binary("mul", scale, vectors.of(gamma))
        # of numbers that nearly cancel, the difference is taken before it is scaled
        affine.plus(vectors.of(cast(SSAValue, mean)), "sub")
        affine.times(scale)
        if isinstance(beta, SSAValue):
            affine.plus(vectors.of(beta))

    return Step(op, value, known, add)
