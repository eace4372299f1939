"""Convolutions and their gradients: one number of each list for each dimension of an image, and what results."""

from __future__ import annotations

from ....records import dataclass
from ...sym import Expr, as_expr
from .sizes import Arguments, Results, Rule, Size, Sizes, require, require_same, text


@dataclass(frozen=True)
class _Along:
    """What a convolution does along one dimension."""

    stride: int
    padding: int
    dilation: int
    more: int
    """Places behind the last window that a transposed convolution adds, `output_padding`."""

    def result(self, size: int, window: int, transposed: bool) -> int:
        """How many places the result has."""
        reach = self.dilation * (window - 1) + 1
        if transposed:
            return (size - 1) * self.stride - 2 * self.padding + reach + self.more
        return (size + 2 * self.padding - reach) // self.stride + 1


def _along(a: Arguments, count: int) -> list[_Along]:
    lists: list[tuple[int, ...]] = []
    for name, least in (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0)):
        given = a.integers(name)
        require(len(given) in (1, count), f"{name} has {len(given)} numbers for {count} dimensions")
        require(min(given) >= least, f"{name} is {min(given)}, which is less than {least}")
        lists.append(given * count if len(given) == 1 else given)
    return [_Along(*numbers) for numbers in zip(*lists, strict=True)]


def _result(a: Arguments) -> Sizes:
    image, weight = a.shape("input"), a.shape("weight")
    require(len(image) == len(weight) > 2, f"images of {text(image)} and windows of {text(weight)}")
    along, groups, transposed = _along(a, len(image) - 2), a.integer("groups"), bool(a["transposed"])
    require(groups > 0, f"{groups} groups")
    shared, own = (weight[1], weight[0]) if transposed else (weight[0], weight[1])
    require_same((image[1],), (own if transposed else own * groups,), "the number of channels")
    channels = shared * groups if transposed else shared
    places = [_places(*each, transposed) for each in zip(image[2:], weight[2:], along, strict=True)]
    return (image[0], channels, *places)


def _places(size: Expr, window: Expr, along: _Along, transposed: bool) -> Size:
    known, width = size.as_int(), window.as_int()
    if known is None or width is None:
        return None
    count = along.result(known, width, transposed)
    require(count >= 0, f"a window of {width} does not fit in {known}")
    return as_expr(count)


def _convolution(a: Arguments) -> Results:
    result = _result(a)
    bias = a.shape_or_none("bias")
    if bias is not None:
        require_same(bias, (result[1],), "the bias")
    return [result]


def _convolution_backward(a: Arguments) -> Results:
    result = _result(a)
    require_same(a.shape("grad_output"), result, "the gradient")
    return [a.shape("input"), a.shape("weight"), (result[1],)]


RULES: dict[str, Rule] = {"convolution": _convolution, "convolution_backward": _convolution_backward}
