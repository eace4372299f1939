"""Which integer inputs are indices, and into how much: followed from the arguments to the gathers that use them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects.arith import AndIOp, CmpiOp, ConstantOp
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...dialects import host, kernel, loop
from ...dialects.access import dynamic_name
from ...dialects.aten import AtenOp, TensorType
from ...dialects.sym import ONE, Expr, as_expr
from ...passes.analysis.functions import kernels_of

#: ATen packet -> arguments with indices, and what each indexes: a tensor, along `dim` or else dimension 0, or so many
_INDEXED: dict[str, tuple[tuple[str, str], ...]] = {
    "embedding": (("indices", "weight"),),
    "embedding_dense_backward": (("indices", "num_weights"),),
    "_embedding_bag": (("indices", "weight"),),
    "_embedding_bag_forward_only": (("indices", "weight"),),
    "_embedding_bag_backward": (
        ("indices", "num_weights"), ("offset2bag", "grad"), ("maximum_indices", "num_weights"),
    ),
    "_embedding_bag_dense_backward": (
        ("indices", "num_weights"), ("offset2bag", "grad"), ("maximum_indices", "num_weights"),
    ),
    "_embedding_bag_per_sample_weights_backward": (("indices", "weight"), ("offset2bag", "grad")),
    "index_select": (("index", "self"),),
    "gather": (("index", "self"),),
    "scatter": (("index", "self"),),
    "scatter_add": (("index", "self"),),
    "scatter_reduce": (("index", "self"),),
    "index_add": (("index", "self"),),
    "index_copy": (("index", "self"),),
    "index_fill": (("index", "self"),),
    "index_reduce": (("index", "self"),),
    "nll_loss_forward": (("target", "self"),),
}  # fmt: skip

#: packets whose indices count all elements of `self`
_FLAT = {"take": "index", "put": "index"}

#: predicates of arith.cmpi that bound what is on the left, signed and unsigned -> distance to the first value above
_BELOW = {2: 0, 3: 1, 6: 0, 7: 1}


class IndexBounds:
    """Upper bounds of integer arguments of a function: expressions over its symbols, by argument number."""

    def __init__(self, module: ModuleOp, function: Operation) -> None:
        self.found: dict[int, list[Expr]] = {}
        self._kernels = kernels_of(module)
        self._arguments: dict[SSAValue, int] = {}
        block = function.regions[0].block
        self._arguments.update({a: k for k, a in enumerate(block.args)})
        for op in function.walk():
            self._visit(op)

    def _visit(self, op: Operation) -> None:
        if isinstance(op, AtenOp):
            self._aten(op)
        elif isinstance(op, loop.LoadOp):
            kind = op.source.type
            assert isinstance(kind, TensorType)
            self._access(op.dynamic, op.map.data, kind.shape)
        elif isinstance(op, loop.ScatterOp):
            kind = op.dest.type
            assert isinstance(kind, TensorType)
            self._access(op.dynamic, op.map.data, kind.shape)
        elif isinstance(op, host.LaunchOp):
            self._launch(op)
        elif isinstance(op, kernel.LoadOp | kernel.StoreOp):
            kind = op.buffer.type
            assert isinstance(kind, kernel.BufferType)
            self._access(op.dynamic, op.map.data, (kind.extent,))
        elif isinstance(op, loop.AssertOp | kernel.AssertOp):
            self._asserted(op.condition)

    def _aten(self, op: AtenOp) -> None:
        if op.packet in ("index", "index_put", "_unsafe_index", "_unsafe_index_put"):
            kind = op.arg("self").type
            for dim, index in enumerate(op.arg("indices")):
                if index is not None and dim < len(kind.shape):
                    self._note(index, kind.shape[dim])
            return
        if op.packet in _FLAT:
            self._note(op.arg(_FLAT[op.packet]), prod(op.arg("self").type.shape, start=ONE))
        for indices, indexed in _INDEXED.get(op.packet, ()):
            what = op.arg(indexed)
            if not isinstance(what, SSAValue):
                self._note(op.arg(indices), what)
                continue
            shape = what.type.shape or (ONE,)
            dim = op.arg("dim") if "dim" in op.schema.by_name else (1 if op.packet == "nll_loss_forward" else 0)
            self._note(op.arg(indices), shape[dim if len(shape) > 1 else 0])

    def _access(self, dynamic: Sequence[SSAValue], exprs: Sequence[Expr], sizes: Sequence[Expr]) -> None:
        for number, value in enumerate(dynamic):
            for expr, size in zip(exprs, sizes, strict=True):
                step = expr.coefficient(dynamic_name(number))
                if step is not None and step.terms:
                    self._note(value, size if step.as_int() == 1 else size // step)

    def _asserted(self, condition: SSAValue) -> None:
        """Bounds that the program itself checks: of an address, an axis of many has the one that counts."""
        made = condition.owner
        if isinstance(made, AndIOp):
            for part in made.operands:
                self._asserted(part)
        elif isinstance(made, CmpiOp) and made.predicate.value.data in _BELOW:
            bound = _number(made.rhs)
            if bound is not None:
                self._note(made.lhs, bound + _BELOW[made.predicate.value.data])

    def _launch(self, op: host.LaunchOp) -> None:
        function = self._kernels.get(op.kernel.root_reference.data)
        if function is None:
            return
        for parameter, value in zip(function.body.block.args, op.buffers, strict=False):
            for number in self._sources(value):
                self._arguments[parameter] = number
        renamed = {s.data: e for s, e in zip(function.symbols, op.symbols.data, strict=False)}
        before = {number: len(bounds) for number, bounds in self.found.items()}
        for inner in function.walk():
            self._visit(inner)
        for number, bounds in self.found.items():
            start = before.get(number, 0)
            bounds[start:] = [b.subs(renamed) for b in bounds[start:]]

    def _note(self, value: SSAValue, bound: Expr | int) -> None:
        for number in self._sources(value):
            self.found.setdefault(number, []).append(as_expr(bound))

    def _sources(self, value: SSAValue) -> Iterator[int]:
        """Arguments that an integer comes from, through whatever computes it element by element."""
        seen: set[SSAValue] = set()
        pending = [value]
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self._arguments:
                yield self._arguments[value]
            elif not isinstance(value, BlockArgument) and isinstance(value.owner, Operation):
                pending += _inputs_of(value.owner)


def _number(value: SSAValue) -> Expr | None:
    """What a scalar is that depends on sizes alone."""
    made = value.owner
    if isinstance(made, loop.IndexOp | kernel.IndexOp):
        return made.expr.data
    if isinstance(made, ConstantOp) and isinstance(made.value, IntegerAttr):
        return as_expr(made.value.value.data)
    return None


def _inputs_of(op: Operation) -> list[SSAValue]:
    """What the integers that an op makes are computed from."""
    if isinstance(op, loop.LoadOp):
        return [op.source]
    if isinstance(op, kernel.LoadOp):
        return [op.buffer]
    if isinstance(op, loop.GenerateOp):
        return list(loop.yielded(op.body))
    return list(op.operands)
