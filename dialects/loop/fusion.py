"""`loop.fusion`: one future kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, LocationAttr, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import base, prop_def, region_def, traits_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ..assembly import AssemblyOp, Part, Read, region, types
from ..aten.types import TensorType
from ..fields import op_definition
from ..raw import ops_of
from ..sym import AxesAttr, Expr, format_axes, parse_axes_body, symbol
from .body import LoadOp, ReduceOp, yielded
from .nests import GenerateOp, Parts, ScanOp, ScatterOp
from .syntax import verify_axes

Member = GenerateOp | ScanOp | ScatterOp


def _read_axes(parser: Parser, read: Read) -> None:
    with parser.in_parens():
        read.properties["axes"], inner = AxesAttr.of(*parse_axes_body(parser)), ()
        if parser.parse_optional_punctuation("|") is not None:
            inner = parse_axes_body(parser)
    read.properties["inner"] = AxesAttr.of(*inner)


def _print_axes(printer: Printer, op: FusionOp) -> None:
    inner = f" | {format_axes(op.inner.data)}" if op.inner.data else ""
    printer.print_string(f" ({format_axes(op.axes.data)}{inner})")


@op_definition
class FusionOp(AssemblyOp):
    """Nests that one kernel computes, with the axes they share.

        %y = loop.fusion (a0 in s0 | a1 in 4096) {
          %m = loop.generate (i0 in s0) on (a0) {
            %r = loop.reduce max (r0 in 4096) on (a1) { ... }
            loop.yield %r
          } : !aten.tensor<(s0)xf32>
          %e = loop.generate (i0 in s0, i1 in 4096) on (a0, a1) { ... loop.load %m[i0] ... } : ...
          loop.yield %e
        } : !aten.tensor<(s0)x4096xf32>

    Axes before `|` are parallel: every member has all of them, and they become the outer loops. Axes behind it are
    run by each member in turn, inside. Members are generate, scan and scatter; what is not yielded never reaches
    memory. A member reads a value of another only at the point where it was produced: on each axis of the producer
    that is placed on a fusion axis, the load's index is the reader's axis on the same fusion axis. A fusion with no
    axes at all is horizontal: independent members in one launch.

    Members that are scatters `from_zero` sum over parallel axes (`parts`), all in the same parts. The points of a part
    are then run one after the other, for all members, and only the parts run in parallel.
    """

    name = "loop.fusion"
    axes = prop_def(AxesAttr)
    inner = prop_def(AxesAttr)
    body = region_def("single_block")
    outs = var_result_def(base(TensorType))
    traits = traits_def(RecursiveMemoryEffect())
    SYNTAX: ClassVar = (Part(_read_axes, _print_axes), region(), types(optional=True))

    @staticmethod
    def of(axes: AxesAttr, inner: AxesAttr, body: Region, location: LocationAttr | None = None) -> FusionOp:
        """Build; the results have the types of what the body yields."""
        return FusionOp.create(
            result_types=tuple(v.type for v in yielded(body)),
            properties={"axes": axes, "inner": inner},
            regions=(body,),
            location=location,
        )

    @property
    def members(self) -> list[Operation]:
        """The member nests in order."""
        return ops_of(self.body.block)[:-1]

    @property
    def parts(self) -> dict[str, Parts]:
        """The parallel axes that scatters sum over, each with the parts in which they do."""
        found: dict[str, Parts] = {}
        for member in self.members:
            if isinstance(member, ScatterOp) and member.from_zero is not None:
                places = dict(zip(member.axes.names, [p.data for p in member.on or ()], strict=False))
                found.update((places.get(name, "_"), parts) for name, parts in member.summed.items())
        return {place: parts for place, parts in found.items() if place != "_"}

    def verify_(self) -> None:
        """Check placement of members on axes and that inner values are read where they are produced."""
        if tuple(v.type for v in yielded(self.body)) != self.result_types:
            raise VerifyException("results must have the types that the body yields")
        verify_axes(self.axes)
        verify_axes(self.inner)
        sizes = dict(self.axes.data + self.inner.data)
        if len(sizes) != len(self.axes.data) + len(self.inner.data):
            raise VerifyException("a fusion axis is named twice")
        for member in self.members:
            if not isinstance(member, Member):
                raise VerifyException(f"{member.name} cannot be a member of a fusion")
            placed = _placement(member.axes, member.on, sizes)
            missing = set(self.axes.names) - set(placed.values())
            if missing:
                raise VerifyException(f"a member has no axis on the parallel axis {sorted(missing)[0]}")
            _verify_reads(member, self.body.block, placed, sizes)
            if isinstance(member, ScatterOp) and member.from_zero is not None:
                self._verify_sums(member, placed)
        devices = {
            kind.device for member in self.members for kind in member.result_types if isinstance(kind, TensorType)
        }
        if len(devices) > 1:
            raise VerifyException(f"members produce results on several devices: {', '.join(sorted(devices))}")

    def _verify_sums(self, member: ScatterOp, placed: dict[str, str]) -> None:
        """Check that what a member sums over is parallel, and that it takes the parts that all take."""
        sizes = dict(member.axes.data)
        own = {placed.get(name, "_"): parts for name, parts in member.summed.items() if sizes[name].as_int() != 1}
        if not own.keys() <= set(self.axes.names):
            raise VerifyException("a scatter from_zero sums over an axis that is not parallel")
        if own != self.parts:
            raise VerifyException("scatters from_zero of one fusion sum over different axes or parts of them")


def _placement(axes: AxesAttr, on: ArrayAttr[StringAttr] | None, sizes: dict[str, Expr]) -> dict[str, str]:
    """Axis of a member -> fusion axis it runs along, checked against the fusion's sizes."""
    placed: dict[str, str] = {}
    for (name, size), place in zip(axes.data, on or (), strict=False):
        if place.data == "_":
            continue
        if sizes.get(place.data) != size:
            raise VerifyException(f"axis {name} in {size} cannot run on {place.data} in {sizes.get(place.data)}")
        placed[name] = place.data
    return placed


def _verify_reads(member: Member, block: Block, placed: dict[str, str], sizes: dict[str, Expr]) -> None:
    """Check each load of an inner value inside `member` (and its reduces) against the producer's placement."""
    for op in member.body.block.ops:
        if isinstance(op, ReduceOp):
            _verify_reduce(op, block, placed, sizes)
        elif isinstance(op, LoadOp):
            _verify_load(op, block, placed)


def _verify_reduce(reduce: ReduceOp, block: Block, placed: dict[str, str], sizes: dict[str, Expr]) -> None:
    inside = placed | _placement(reduce.axes, reduce.on, sizes)
    for op in reduce.body.block.ops:
        if isinstance(op, ReduceOp):
            _verify_reduce(op, block, inside, sizes)
        elif isinstance(op, LoadOp):
            _verify_load(op, block, inside)


def _verify_load(load: LoadOp, block: Block, placed: dict[str, str]) -> None:
    producer = load.source.owner
    if not isinstance(producer, Member) or producer.parent is not block:
        return
    axis_at = {fusion_axis: name for name, fusion_axis in placed.items()}
    for place, index in zip(producer.on or (), load.map.data, strict=False):
        if place.data == "_":
            continue
        reader = axis_at.get(place.data)
        if reader is None or index is not symbol(reader):
            raise VerifyException(
                f"reads an inner value at [{', '.join(map(str, load.map.data))}], not at the point of its producer"
            )


def fusion_of(value: SSAValue) -> FusionOp | None:
    """The fusion that a value is a result of, if any."""
    return value.owner if isinstance(value.owner, FusionOp) else None


def inner_values(fusion: FusionOp) -> Sequence[SSAValue]:
    """Values that members produce and that the fusion does not yield."""
    escaping = set(yielded(fusion.body))
    return [r for member in fusion.members for r in member.results if r not in escaping]
