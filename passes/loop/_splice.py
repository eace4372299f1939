"""Putting the body of a producer where a reader loads one of its elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.access import compact_dynamic, dynamic_name, substitute_map
from ...dialects.loop import IndexOp, LoadOp, ReduceOp, yielded
from ...dialects.scalar import NarrowOp, WidenOp
from ...dialects.sym import AxesAttr, Expr, SymAttr, symbol
from ...records import dataclass
from ._accesses import Access, access_of, map_of, set_access

_FLOATS = (BFloat16Type, Float16Type, Float32Type, Float64Type)


@dataclass
class Site:
    """Loads in one block that read results of one producer at the same index under the same mask."""

    block: Block
    access: Access
    index: tuple[Expr, ...]
    loads: list[LoadOp] = field(default_factory=list)

    def first(self) -> LoadOp:
        """The load in front of the others."""
        first = self.loads[0]
        for load in self.loads[1:]:
            if load.is_before_in_block(first):
                first = load
        return first


def zero(scalar: Attribute) -> Attribute | None:
    """The attribute of a constant zero of a scalar type; None where arith has no constant of it."""
    if isinstance(scalar, IntegerType):
        return IntegerAttr(0, scalar)
    return FloatAttr(0.0, scalar) if isinstance(scalar, _FLOATS) else None


class Splicer:
    """Moves or clones one body to one site."""

    def __init__(
        self, producer: Operation, site: Site, scope: frozenset[str], move: bool, keep_casts: bool = False
    ) -> None:
        """`scope` holds the names of the axes around the site, which inner reductions must not bind again.

        With `keep_casts`, values that were stored in a narrower type are rounded to it here as well.
        """
        self.keep_casts = keep_casts
        axes = cast(AxesAttr, producer.properties["axes"])
        self.producer, self.site, self.scope, self.move = producer, site, scope, move
        self.substitution: dict[str, Expr] = {
            name: expr for name, expr in zip(axes.names, site.index, strict=True) if expr is not symbol(name)
        }
        self.values: dict[SSAValue, SSAValue] = {}
        self.zeros: dict[Attribute, SSAValue] = {}

    def run(self) -> None:
        """Splice; the loads of the site are gone afterwards."""
        anchor = self.site.first()
        body = self.producer.regions[0].block
        results = yielded(self.producer.regions[0])
        op = body.first_op
        last = body.last_op
        while op is not None and op is not last:
            following = op.next_op
            new = self._take(op, body)
            self._rewrite(new, self.substitution, anchor)
            self.site.block.insert_op_before(new, anchor)
            op = following
        self._replace_loads(anchor, results)

    def _take(self, op: Operation, body: Block) -> Operation:
        """The op itself, detached, or a copy of it."""
        if self.move:
            body.detach_op(op)
            return op
        return self._clone(op)

    def _clone(self, op: Operation) -> Operation:
        values = self.values
        new = type(op).create(
            operands=[values.get(v, v) for v in op.operands],
            result_types=[r.type for r in op.results],
            properties=op.properties,
            attributes=op.attributes,
            location=op.location,
            regions=[self._clone_region(region) for region in op.regions],
        )
        for old, result in zip(op.results, new.results, strict=True):
            values[old] = result
            result.name_hint = old.name_hint
        return new

    def _clone_region(self, region: Region) -> Region:
        old = region.block
        block = Block(arg_types=[a.type for a in old.args])
        self.values.update(zip(old.args, block.args, strict=True))
        block.add_ops([self._clone(op) for op in old.ops])
        return Region(block)

    def _rewrite(self, op: Operation, substitution: Mapping[str, Expr], anchor: Operation) -> None:
        """Express the indices of an op in the axes of the site, and guard its loads with the site's mask."""
        if type(op) is LoadOp:
            self._rewrite_load(op, substitution, anchor)
        elif type(op) is IndexOp and substitution:
            self._rewrite_index(op, substitution)
        elif type(op) is ReduceOp:
            inside = self._rename_axes(op, substitution)
            for region in op.regions:
                for inner in region.block.ops:
                    self._rewrite(inner, inside, anchor)

    def _rewrite_load(self, load: LoadOp, substitution: Mapping[str, Expr], anchor: Operation) -> None:
        mask = self.site.access.mask
        if not substitution and mask is None:
            return
        access = access_of(load)
        index_map, dynamic = substitute_map(map_of(load), access.dynamic, substitution, self.site.access.dynamic)
        other = access.other
        if mask is not None and access.mask is None:
            access = access._replace(mask=mask)
            other = self._zero(load.results[0].type, anchor)
        elif mask is not None and access.mask is not None:
            both = arith.AndIOp(mask, access.mask)
            self.site.block.insert_op_before(both, anchor)
            access = access._replace(mask=both.results[0])
        set_access(load, access._replace(dynamic=dynamic, other=other), index_map)

    def _rewrite_index(self, op: IndexOp, substitution: Mapping[str, Expr]) -> None:
        own, outer = tuple(op.operands), self.site.access.dynamic
        if own and outer:
            renumber = {dynamic_name(k): symbol(dynamic_name(len(own) + k)) for k in range(len(outer))}
            substitution = {name: e.subs(renumber) for name, e in substitution.items()}
        expr = cast(SymAttr, op.properties["expr"]).data.subs(substitution)
        index_map, op.operands = compact_dynamic((expr,), (*own, *outer))
        op.properties["expr"] = SymAttr.of(index_map.data[0])

    def _rename_axes(self, reduce: ReduceOp, substitution: Mapping[str, Expr]) -> Mapping[str, Expr]:
        """Give the axes of a reduction other names where the site's surroundings use them."""
        axes = cast(AxesAttr, reduce.properties["axes"])
        taken = self.scope
        if taken.isdisjoint(axes.names):
            return substitution
        names = fresh_names("r", len(axes.data), taken)
        reduce.properties["axes"] = AxesAttr.of(*zip(names, axes.sizes, strict=True))
        return {**substitution, **{old: symbol(new) for old, new in zip(axes.names, names, strict=True)}}

    def _zero(self, scalar: Attribute, anchor: Operation) -> SSAValue:
        found = self.zeros.get(scalar)
        if found is None:
            value = zero(scalar)
            assert value is not None
            constant = arith.ConstantOp.create(properties={"value": value}, result_types=(scalar,))
            self.site.block.insert_op_before(constant, anchor)
            found = self.zeros[scalar] = constant.results[0]
        return found

    def _replace_loads(self, anchor: LoadOp, results: Sequence[SSAValue]) -> None:
        access = self.site.access
        for load in self.site.loads:
            result = results[self.producer.results.index(load.operands[0])]
            value = self.values.get(result, result)
            if access.mask is not None and access.other is not None:
                # each load has its own value for outside
                select = arith.SelectOp(access.mask, value, cast(SSAValue, access_of(load).other))
                self.site.block.insert_op_before(select, load)
                value = select.results[0]
            elif not self.keep_casts:
                self._skip_casts(load, value)
            load.results[0].replace_all_uses_with(value)
            self.site.block.erase_op(load)

    def _skip_casts(self, load: LoadOp, value: SSAValue) -> None:
        """`widen(narrow(x)) == x` for the casts that meet here, computed in the wider type as inside one body."""
        narrow = value.owner
        if type(narrow) is not NarrowOp:
            return
        for use in tuple(load.results[0].uses):
            widen = use.operation
            if type(widen) is WidenOp and widen.target_element == narrow.source_element:
                widen.results[0].replace_all_uses_with(narrow.operands[0])


def fresh_names(prefix: str, count: int, taken: frozenset[str]) -> list[str]:
    """`count` axis names with a prefix that are not taken."""
    names: list[str] = []
    number = 0
    while len(names) < count:
        if (name := f"{prefix}{number}") not in taken:
            names.append(name)
        number += 1
    return names
