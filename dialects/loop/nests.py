"""Tensor-valued nests of the loop level: generate, scan, scatter, view, empty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, IntegerType, LocationAttr, StringAttr, UnitAttr, i1
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    base,
    operand_def,
    opt_prop_def,
    opt_region_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ...records import dataclass
from ..assembly import INDICES, NAME, AssemblyOp, flag, operand, prop, region, types, word
from ..aten.types import TensorType, scalar_type
from ..fields import op_definition
from ..sym import ONE, ZERO, AxesAttr, Expr, MapAttr
from .body import COMBINERS, combiner_attr, verify_combiners, yielded
from .syntax import AXES, ON, verify_axes

_NestProperties = dict[str, Attribute]


def _verify_elements(types: Sequence[Attribute], values: Sequence[SSAValue]) -> None:
    if len(types) != len(values):
        raise VerifyException(f"{len(types)} results, the body yields {len(values)} values")
    for result, value in zip(types, values, strict=True):
        assert isinstance(result, TensorType)
        if value.type != scalar_type(result.element):
            raise VerifyException(f"yields {value.type} into a tensor of {result.element}")


@op_definition
class GenerateOp(AssemblyOp):
    """A tensor given by a scalar body for each index; several results share one domain.

        %e = loop.generate (i0 in s0, i1 in 4096) {
          %v = loop.load %x[i0, i1]
          %w = math.exp %v : f32
          loop.yield %w
        } : !aten.tensor<(s0)x4096xf32>

    The axes are the dimensions of each result. `on (a0, a1)` places the axes inside a `loop.fusion`.
    """

    name = "loop.generate"
    axes = prop_def(AxesAttr)
    on = opt_prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    outs = var_result_def(base(TensorType))
    traits = traits_def(RecursiveMemoryEffect())
    SYNTAX: ClassVar = (AXES, ON, region(), types())

    @staticmethod
    def of(
        axes: AxesAttr,
        body: Region,
        types: Sequence[Attribute],
        on: ArrayAttr[StringAttr] | None = None,
        location: LocationAttr | None = None,
    ) -> GenerateOp:
        """Build from axes, a finished body, and the result types."""
        properties: _NestProperties = {"axes": axes}
        if on is not None:
            properties["on"] = on
        return GenerateOp.create(result_types=types, properties=properties, regions=(body,), location=location)

    def verify_(self) -> None:
        """Check that each result has the nest's shape and the yielded element type."""
        _verify_elements(self.result_types, yielded(self.body))
        verify_axes(self.axes, self.on)
        for result in self.result_types:
            if isinstance(result, TensorType) and result.shape != self.axes.sizes:
                raise VerifyException(f"axes {self.axes.data} do not span a result of type {result}")


@op_definition
class ScanOp(AssemblyOp):
    """An inclusive scan along one axis of a domain: cumsum, cummax, ...

        %c = loop.scan sum (i0 in 4, i1 in 10) along i1 { ... loop.yield %v } : !aten.tensor<4x10xf32>

    Combiners, `custom`, `init` and the combine region are those of `loop.reduce`.
    """

    name = "loop.scan"
    init = var_operand_def()
    axes = prop_def(AxesAttr)
    along = prop_def(StringAttr)
    combiners = prop_def(ArrayAttr[StringAttr])
    on = opt_prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    combine = opt_region_def("single_block")
    outs = var_result_def(base(TensorType))
    traits = traits_def(RecursiveMemoryEffect())
    SYNTAX: ClassVar = (
        COMBINERS, AXES, prop("along", NAME, "along"), ON, region(), region(1, "combine", optional=True), types(),
    )  # fmt: skip

    @staticmethod
    def of(
        axes: AxesAttr,
        along: str,
        combiners: Sequence[str],
        body: Region,
        types: Sequence[Attribute],
        init: Sequence[SSAValue] = (),
        combine: Region | None = None,
        on: ArrayAttr[StringAttr] | None = None,
        location: LocationAttr | None = None,
    ) -> ScanOp:
        """Build from the domain, the name of the scanned axis, combiners, body and result types."""
        properties: _NestProperties = {
            "axes": axes, "along": StringAttr(along), "combiners": combiner_attr(*combiners),
        }  # fmt: skip
        if on is not None:
            properties["on"] = on
        regions = (body,) if combine is None else (body, combine)
        return ScanOp.create(
            operands=init, result_types=types, properties=properties, regions=regions, location=location
        )

    def verify_(self) -> None:
        """Check combiners, the scanned axis and the result types."""
        verify_combiners(self, self.combiners, yielded(self.body), self.combine, self.init)
        _verify_elements(self.result_types, yielded(self.body))
        verify_axes(self.axes, self.on)
        if self.along.data not in self.axes.names:
            raise VerifyException(f"scans along {self.along.data}, the axes are {self.axes.names}")
        for result in self.result_types:
            if isinstance(result, TensorType) and result.shape != self.axes.sizes:
                raise VerifyException(f"axes {self.axes.data} do not span a result of type {result}")


@dataclass(frozen=True)
class Parts:
    """Parts of an axis: `count` of them, of `length` neighbours each, but for the last ones, which may have fewer."""

    length: Expr
    count: Expr


def _axis_and_divisor(expr: Expr) -> tuple[str, Expr | None]:
    """(axis, None) of an index that is an axis, (axis, k) of `axis floordiv k`; "" stands for any other axis."""
    atom = expr.as_atom
    if atom is None or atom.kind != "floordiv":
        return ("" if atom is None else atom.name), None
    inner = atom.args[0].as_atom
    return ("" if inner is None else inner.name), atom.args[1]


#: How a scatter combines a value with what stands at its index.
COMBINES = ("set", "add", "mul", "amin", "amax")


@op_definition
class ScatterOp(AssemblyOp):
    """Destination-passing write: a copy of `dest` with elements of a domain written at computed indices.

        %r = loop.scatter set (i0 in 3, i1 in 8) into %dest[i0 + 4, i1] {unique} { ... loop.yield %v }
        %r = loop.scatter add (i0 in n) into %dest[d0] { ... loop.yield %v, %index }
        %r = loop.scatter set (i0 in n) into %dest[i0] {masked} { ... loop.yield %v, %keep }

    Slice updates, pieces of a `cat`, index_put and scatter_reduce. The body yields the value, then one value for each
    `d0, d1, ...` of the map, then, when `masked`, an i1: where false nothing is written. `unique` promises that no two
    elements of the domain write the same place. Without it `set` lets the last element in row-major order win and
    `add` may combine in any order unless `deterministic`. `in_place`, set by `loop-bufferize`, says that the result
    takes over the memory of `dest`.

        %p = loop.scatter add (i0 in 1050, i1 in 64) into %dest[i0 floordiv 16, i1] from_zero { ... loop.yield %v }

    `from_zero` says that `dest`, whatever it holds, counts as zeros: sums over axes of the domain, an axis as a whole
    (one that no index mentions) or in parts of neighbours (one of which an index is the quotient). Another member of
    a fusion can then compute at each point of the domain what is summed there.
    """

    name = "loop.scatter"
    dest = operand_def(base(TensorType))
    axes = prop_def(AxesAttr)
    map = prop_def(MapAttr)
    kind = prop_def(StringAttr)
    unique = opt_prop_def(UnitAttr)
    masked = opt_prop_def(UnitAttr)
    deterministic = opt_prop_def(UnitAttr)
    in_place = opt_prop_def(UnitAttr)
    from_zero = opt_prop_def(UnitAttr)
    on = opt_prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    out = result_def(base(TensorType))
    traits = traits_def(RecursiveMemoryEffect())
    SYNTAX: ClassVar = (
        prop("kind", NAME), AXES, word("into"), operand("dest"), INDICES, flag("unique"), flag("masked"),
        flag("deterministic"), flag("in_place"), flag("from_zero"), ON, region(), types(),
    )  # fmt: skip

    @staticmethod
    def of(
        dest: SSAValue,
        axes: AxesAttr,
        index_map: MapAttr,
        body: Region,
        kind: str = "set",
        flags: Sequence[str] = (),
        result_type: Attribute | None = None,
        on: ArrayAttr[StringAttr] | None = None,
        location: LocationAttr | None = None,
    ) -> ScatterOp:
        """Build; the result has the type of `dest` unless a layout is given by `result_type`."""
        properties: _NestProperties = {"axes": axes, "map": index_map, "kind": StringAttr(kind)}
        properties.update((flag, UnitAttr()) for flag in flags)
        if on is not None:
            properties["on"] = on
        return ScatterOp.create(
            operands=(dest,),
            result_types=(result_type or dest.type,),
            properties=properties,
            regions=(body,),
            location=location,
        )

    @property
    def value(self) -> SSAValue:
        """The yielded value."""
        return yielded(self.body)[0]

    @property
    def dynamic(self) -> tuple[SSAValue, ...]:
        """The yielded dynamic indices, `d0` first."""
        values = yielded(self.body)[1:]
        return values[:-1] if self.masked is not None else values

    @property
    def summed(self) -> dict[str, Parts]:
        """The axes that a scatter `from_zero` sums over, each with its parts."""
        assert isinstance(self.dest.type, TensorType)
        found: dict[str, Parts] = {}
        for expr, count in zip(self.map.data, self.dest.type.shape, strict=True):
            axis, length = _axis_and_divisor(expr)
            if length is not None:
                found[axis] = Parts(length, count)
        kept = {_axis_and_divisor(expr)[0] for expr in self.map.data}
        found.update((name, Parts(size, ONE)) for name, size in self.axes.data if name not in kept)
        return found

    def verify_(self) -> None:
        """Check rank, kind, element type and what the body yields."""
        dest = self.dest.type
        assert isinstance(dest, TensorType) and isinstance(self.out.type, TensorType)
        if (dest.shape, dest.element) != (self.out.type.shape, self.out.type.element):
            raise VerifyException("result and destination differ in shape or element type")
        if self.kind.data not in COMBINES:
            raise VerifyException(f"combines by {self.kind.data}; known: {', '.join(COMBINES)}")
        if len(self.map.data) != len(dest.shape):
            raise VerifyException(f"{len(self.map.data)} indices for {len(dest.shape)} dimensions")
        if self.value.type != scalar_type(dest.element):
            raise VerifyException(f"yields {self.value.type} into a tensor of {dest.element}")
        if any(not isinstance(v.type, IntegerType) for v in yielded(self.body)[1:]):
            raise VerifyException("indices and mask that a scatter yields are integers")
        if self.masked is not None and yielded(self.body)[-1].type != i1:
            raise VerifyException(f"the mask that a scatter yields is an i1, not {yielded(self.body)[-1].type}")
        verify_axes(self.axes, self.on)
        if self.from_zero is not None:
            self._verify_sums()

    def _verify_sums(self) -> None:
        if self.kind.data != "add" or len(yielded(self.body)) > 1 or self.unique is not None:
            raise VerifyException("a scatter from_zero adds what it yields, without a mask and dynamic indices")
        if not isinstance(self.value.type, AnyFloat):
            raise VerifyException(f"a scatter from_zero adds floats, not {self.value.type}")
        names = [_axis_and_divisor(expr)[0] for expr in self.map.data if expr is not ZERO]
        if len(set(names)) < len(names) or not set(names) <= set(self.axes.names):
            raise VerifyException("each index of a scatter from_zero is an axis of its own, or the quotient of one")


@op_definition
class ViewOp(AssemblyOp):
    """Elements of another tensor under an index map; no arithmetic, no memory of its own.

        %t = loop.view %x[i1, i0] (i0 in 4, i1 in 3) : !aten.tensor<4x3xf32, strides = [1, 4]>

    permute, expand, slice, select, reshape, flip, ... `loop-eliminate-views` composes it into loads; one that feeds an
    ATen call or an output stays, and becomes a strided view or a copy. The result's strides are those that the
    program's own view has.
    """

    name = "loop.view"
    source = operand_def(base(TensorType))
    axes = prop_def(AxesAttr)
    map = prop_def(MapAttr)
    out = result_def(base(TensorType))
    traits = traits_def(Pure())
    SYNTAX: ClassVar = (operand("source"), INDICES, AXES, types())

    @staticmethod
    def of(
        source: SSAValue,
        axes: AxesAttr,
        index_map: MapAttr,
        result_type: Attribute,
        location: LocationAttr | None = None,
    ) -> ViewOp:
        """Build from the source, the axes of the result, and the source index of each result index."""
        return ViewOp.create(
            operands=(source,),
            result_types=(result_type,),
            properties={"axes": axes, "map": index_map},
            location=location,
        )

    def verify_(self) -> None:
        """Check ranks, shape and element type."""
        source, out = self.source.type, self.out.type
        assert isinstance(source, TensorType) and isinstance(out, TensorType)
        if len(self.map.data) != len(source.shape):
            raise VerifyException(f"{len(self.map.data)} indices for {len(source.shape)} dimensions")
        if out.shape != self.axes.sizes or out.element != source.element:
            raise VerifyException(f"axes and source do not give a result of type {out}")


@op_definition
class EmptyOp(AssemblyOp):
    """A tensor of undefined content, to be written by scatters: `%d = loop.empty : !aten.tensor<8xf32>`.

    Not pure for CSE: two of them are two places.
    """

    name = "loop.empty"
    out = result_def(base(TensorType))
    SYNTAX: ClassVar = (types(),)

    @staticmethod
    def of(result_type: Attribute, location: LocationAttr | None = None) -> EmptyOp:
        """Build from the result type."""
        return EmptyOp.create(result_types=(result_type,), location=location)
