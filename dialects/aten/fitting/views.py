"""Views, the copies that are views of one source, and writes into a part of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from ...parametric import parametric
from ...sym import ONE, as_expr
from .sizes import (
    Arguments,
    Results,
    Rule,
    Size,
    Sizes,
    UnknownError,
    broadcast,
    dimension,
    dimensions,
    known,
    number_of,
    replaced,
    require,
    require_broadcast_to,
    require_same,
    same_as,
    text,
)


def _reshaped(source: Sequence[Size], target: Sizes) -> Sizes:
    """The sizes of a view; one of them may be -1, which stands for what is left."""
    left = [place for place, size in enumerate(target) if size is not None and size.as_int() == -1]
    require(len(left) < 2, f"more than one size of {text(target)} is -1")
    elements = number_of(source)
    if not left:
        found = number_of(target)
        fits = elements is None or found is None or elements == found
        require(fits, f"{text(source)} has {elements} elements, {text(target)} has {found}")
        return target
    others = number_of([*target[: left[0]], *target[left[0] + 1 :]])
    if elements is None or others is None:
        return replaced(target, left[0], None)
    require(others != 0 and elements % others == 0, f"{text(source)} cannot be viewed as {text(target)}")
    return replaced(target, left[0], as_expr(elements // others))


def _view(name: str) -> Rule:
    return lambda a: [_reshaped(a.shape("self"), a.sizes(name))]


def _view_as(a: Arguments) -> Results:
    return [_reshaped(a.shape("self"), a.shape("other"))]


def _flatten(a: Arguments) -> Results:
    shape = a.shape("self")
    start, end = a.dim(len(shape), "start_dim"), a.dim(len(shape), "end_dim")
    require(start <= end, f"dimension {start} is behind dimension {end}")
    if not shape:
        return [(ONE,)]
    return [_reshaped(shape, (*shape[:start], as_expr(-1), *shape[end + 1 :]))]


def _unflatten(a: Arguments) -> Results:
    shape = a.shape("self")
    dim = a.dim(len(shape))
    require(bool(shape), "a 0-d tensor has no dimension")
    inner = _reshaped((shape[dim],), a.sizes("sizes"))
    return [(*shape[:dim], *inner, *shape[dim + 1 :])]


def _squeeze(a: Arguments) -> Results:
    """A size that is a symbol counts as one that is not 1."""
    shape = a.shape("self")
    dims = dimensions(a.integers("dim"), len(shape)) if a.has("dim") else range(len(shape))
    return [tuple(size for d, size in enumerate(shape) if d not in dims or size is not ONE)]


def _unsqueeze(a: Arguments) -> Results:
    shape = a.shape("self")
    dim = a.dim(len(shape) + 1)
    return [(*shape[:dim], ONE, *shape[dim:])]


def _permute(a: Arguments) -> Results:
    shape = a.shape("self")
    given = a.integers("dims")
    require(len(given) == len(shape), f"{len(given)} dimensions are given for a tensor with {len(shape)}")
    return [tuple(shape[dim] for dim in dimensions(given, len(shape)))]


def _transpose(a: Arguments) -> Results:
    shape = list(a.shape("self"))
    first, second = a.dim(len(shape), "dim0"), a.dim(len(shape), "dim1")
    if shape:
        shape[first], shape[second] = shape[second], shape[first]
    return [tuple(shape)]


def _t(a: Arguments) -> Results:
    shape = a.shape("self")
    require(len(shape) < 3, f"a tensor with {len(shape)} dimensions has no transpose")
    return [shape[::-1]]


def _expand(a: Arguments) -> Results:
    shape, size = a.shape("self"), a.sizes("size")
    new = len(size) - len(shape)
    require(new >= 0, f"{text(shape)} has more dimensions than {text(size)}")
    kept = [place >= new and each is not None and each.as_int() == -1 for place, each in enumerate(size)]
    result = tuple(shape[place - new] if keep else size[place] for place, keep in enumerate(kept))
    require_broadcast_to(shape, result, "a tensor")
    return [result]


def _bound(value: object, size: int, default: int) -> int:
    number = default if value is None else known(value)
    return min(max(number + size if number < 0 else number, 0), size)


def sliced(a: Arguments, shape: Sizes) -> Sizes:
    """The sizes of a slice."""
    require(bool(shape), "a 0-d tensor has no slices")
    dim = a.dim(len(shape))
    try:
        step = a.integer("step")
    except UnknownError:
        return replaced(shape, dim, None)
    require(step > 0, f"a step of {step}")
    size = shape[dim]
    try:
        length = known(size)
        start, end = _bound(a["start"], length, 0), _bound(a["end"], length, length)
    except UnknownError:
        return replaced(shape, dim, None)
    return replaced(shape, dim, as_expr(max(0, -((start - end) // step))))


def selected(a: Arguments, shape: Sizes) -> Sizes:
    """The sizes of what is at one index of a dimension."""
    require(bool(shape), "a 0-d tensor has no dimension to select from")
    dim = a.dim(len(shape))
    try:
        size, index = known(shape[dim]), a.integer("index")
        require(-size <= index < size, f"index {index} of a dimension of size {size}")
    except UnknownError:
        pass
    return (*shape[:dim], *shape[dim + 1 :])


def on_diagonal(a: Arguments, shape: Sizes) -> Sizes:
    """The sizes of a diagonal."""
    require(len(shape) > 1, f"a tensor with {len(shape)} dimensions has no diagonal")
    first, second = dimensions((a.integer("dim1"), a.integer("dim2")), len(shape))
    rest = tuple(size for d, size in enumerate(shape) if d not in (first, second))
    try:
        offset, rows, columns = a.integer("offset"), known(shape[first]), known(shape[second])
    except UnknownError:
        return (*rest, None)
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    return (*rest, as_expr(max(0, length)))


Part = Callable[[Arguments, Sizes], Sizes]


def _part(part: Part) -> Rule:
    return lambda a: [part(a, a.shape("self"))]


@parametric
def _into(a: Arguments, part: Part) -> Results:
    """`src` is written where a view of `self` would be."""
    wanted = part(a, a.shape("self"))
    if part is sliced:
        require_broadcast_to(a.shape("src"), wanted, "the source")
    else:
        require_same(a.shape("src"), wanted, "the source")
    return [a.shape("self")]


@parametric
def _back(a: Arguments, part: Part) -> Results:
    """The gradient of a view: zeros but for the part."""
    whole = a.sizes("input_sizes")
    require_same(a.shape("grad_output"), part(a, whole), "the gradient")
    return [whole]


def _diag_embed(a: Arguments) -> Results:
    shape = a.shape("self")
    require(bool(shape), "a 0-d tensor is no diagonal")
    rank = len(shape) + 1
    first, second = dimensions((a.integer("dim1"), a.integer("dim2")), rank)
    side = shape[-1] + abs(a.integer("offset"))
    rest = iter(shape[:-1])
    return [tuple(side if d in (first, second) else next(rest) for d in range(rank))]


def _unfold(a: Arguments) -> Results:
    shape = a.shape("self") or (ONE,)
    dim = dimension(a.integer("dimension"), len(a.shape("self")))
    size, step = a.integer("size"), a.integer("step")
    require(size >= 0 and step > 0, f"windows of {size} with a step of {step}")
    length = shape[dim].as_int()
    if length is None:
        return [(*replaced(shape, dim, None), as_expr(size))]
    require(size <= length, f"windows of {size} in a dimension of size {length}")
    count = as_expr((length - size) // step + 1)
    return [(*replaced(shape, dim, count), as_expr(size)) if a.shape("self") else (as_expr(size),)]


def _pieces(a: Arguments, lengths: Sequence[Size]) -> Results:
    shape = a.shape("self")
    dim = a.dim(len(shape))
    return [replaced(shape, dim, length) for length in lengths]


def _length(a: Arguments) -> int:
    """The size of the dimension that is split."""
    shape = a.shape("self")
    require(bool(shape), "a 0-d tensor cannot be split")
    return known(shape[a.dim(len(shape))])


def _even(length: int, size: int) -> list[Size]:
    require(size > 0 or length == size == 0, f"pieces of size {size}")
    count = max(1, -(-length // size)) if size else 1
    return [as_expr(min(size, length - size * k)) for k in range(count)]


def _split(a: Arguments) -> Results:
    return _pieces(a, _even(_length(a), a.integer("split_size")))


def _split_sizes(a: Arguments) -> Results:
    sizes = a.sizes("split_sizes" if a.has("split_sizes") else "split_size")
    shape = a.shape("self")
    require(bool(shape), "a 0-d tensor cannot be split")
    require_same((sum(filter(None, sizes), as_expr(0)),), (shape[a.dim(len(shape))],), "the sum of the sizes")
    return _pieces(a, sizes)


def _chunk(a: Arguments) -> Results:
    count = a.integer("chunks")
    require(count > 0, f"{count} chunks")
    length = _length(a)
    if not length:
        return _pieces(a, [as_expr(0)] * count)
    return _pieces(a, _even(length, -(-length // count)))


def _sections(a: Arguments) -> Results:
    count, length = a.integer("sections"), _length(a)
    require(count > 0, f"{count} sections")
    return _pieces(a, [as_expr(length // count + (k < length % count)) for k in range(count)])


def _cuts(a: Arguments) -> Results:
    length = _length(a)
    cuts = [0, *(_bound(cut, length, 0) for cut in a.integers("indices")), length]
    return _pieces(a, [as_expr(max(0, end - start)) for start, end in pairwise(cuts)])


def _unbind(a: Arguments) -> Results:
    length = _length(a)
    shape = a.shape("self")
    dim = a.dim(len(shape))
    return [(*shape[:dim], *shape[dim + 1 :])] * length


def _flip(a: Arguments) -> Results:
    dimensions(a.integers("dims"), len(a.shape("self")))
    return [a.shape("self")]


def _roll(a: Arguments) -> Results:
    shape = a.shape("self")
    dims = a.integers("dims")
    shifts = len(a.sizes("shifts"))
    require(shifts == len(dims) if dims else shifts == 1, f"{shifts} shifts of {len(dims)} dimensions")
    for dim in dims:
        dimension(dim, len(shape))
    return [shape]


def _repeat(a: Arguments) -> Results:
    shape, repeats = a.shape("self"), a.sizes("repeats")
    new = len(repeats) - len(shape)
    require(new >= 0, f"{len(repeats)} repeats of a tensor with {len(shape)} dimensions")
    padded = (*[ONE] * new, *shape)
    return [tuple(None if count is None else size * count for size, count in zip(padded, repeats, strict=True))]


def _cat(a: Arguments) -> Results:
    """An empty 1-d tensor is left out, whatever the others are."""
    shapes = [shape for shape in a.shapes("tensors") if shape is not None]
    kept = [shape for shape in shapes if len(shape) != 1 or shape[0].as_int() != 0] or shapes[:1]
    require(bool(kept), "no tensor is given")
    first = kept[0]
    require(bool(first), "0-d tensors cannot be joined")
    dim = a.dim(len(first))
    total: Size = as_expr(0)
    for shape in kept:
        require(len(shape) == len(first), f"{text(first)} and {text(shape)} are joined")
        require_same(replaced(shape, dim, None), replaced(first, dim, None), "a tensor beside others")
        total = total + shape[dim]
    return [replaced(first, dim, total)]


def _stack(a: Arguments) -> Results:
    shapes = [shape for shape in a.shapes("tensors") if shape is not None]
    require(bool(shapes), "no tensor is given")
    for shape in shapes[1:]:
        require_same(shape, shapes[0], "a tensor beside others")
    dim = a.dim(len(shapes[0]) + 1)
    return [(*shapes[0][:dim], as_expr(len(shapes)), *shapes[0][dim:])]


def _triangle(a: Arguments) -> Results:
    require(len(a.shape("self")) > 1, "a tensor with less than 2 dimensions has no triangle")
    return [a.shape("self")]


def _copy(a: Arguments) -> Results:
    shape = a.shape("self")
    require_same(broadcast(shape, a.shape("src")), shape, "what is copied")
    return [shape]


SAME = same_as("self")
RULES: dict[str, Rule] = {
    "view": _view("size"), "_unsafe_view": _view("size"), "reshape": _view("shape"), "_reshape_alias": _view("size"),
    "view_as": _view_as, "reshape_as": _view_as, "flatten.using_ints": _flatten, "unflatten.int": _unflatten,
    "squeeze": _squeeze, "unsqueeze": _unsqueeze, "alias": SAME, "detach": SAME, "lift_fresh": SAME, "lift": SAME,
    "permute": _permute, "transpose.int": _transpose, "t": _t, "expand": _expand, "slice.Tensor": _part(sliced),
    "select.int": _part(selected), "diagonal": _part(on_diagonal), "unfold": _unfold,
    "slice_scatter": _into(sliced), "select_scatter": _into(selected), "diagonal_scatter": _into(on_diagonal),
    "slice_backward": _back(sliced), "select_backward": _back(selected), "diagonal_backward": _back(on_diagonal),
    "split.Tensor": _split, "unsafe_split.Tensor": _split, "split.sizes": _split_sizes,
    "split_with_sizes": _split_sizes, "unsafe_split_with_sizes": _split_sizes, "chunk": _chunk,
    "unsafe_chunk": _chunk, "tensor_split.sections": _sections, "tensor_split.indices": _cuts,
    "unbind.int": _unbind, "flip": _flip, "roll": _roll, "repeat": _repeat, "cat": _cat, "concat": _cat,
    "concatenate": _cat, "stack": _stack, "diag_embed": _diag_embed, "tril": _triangle, "triu": _triangle,
    "copy": _copy, "lift_fresh_copy": SAME, "_to_copy": SAME, "clone": SAME,
}  # fmt: skip
