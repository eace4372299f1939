"""The `transform` dialect: a schedule for kernels, written by hand, as IR.

    transform.sequence {
      %i, %j, %k = transform.match kernel "mm*" contains "arith.mulf" loops 3
      %block, %column = transform.tile %j sizes [64]
      %0, %row = transform.interchange %i, %block order [1, 0]
      transform.vectorize %column lanes 16
      transform.parallelize %0
    }

A value is a handle of a loop. `kernel-apply-schedule` runs a sequence, op by op, and removes it. A script is data: it
names loops and what to do with them, and each op checks that the kernel computes the same afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    OptPropertyDef,
    irdl_attr_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from .access import parse_ssa_list, print_ssa_list
from .assembly import NAME, NUMBER, NUMBERS, TEXT, Kind
from .fields import op_definition
from .kernel.loops import MAPPINGS
from .traits import Isolated


@irdl_attr_definition
class LoopType(ParametrizedAttribute, TypeAttribute):
    """A handle of a loop of a kernel: `!transform.loop`."""

    name = "transform.loop"


LOOP = LoopType()
#: of a body that is written out
MOST_COPIES = 1024


#: clause of an op -> the kind of its value. An op prints the clauses that it has, in the order of `CLAUSES`
_KINDS: dict[str, Kind] = {
    "kernel": TEXT, "contains": TEXT, "writes": TEXT, "nest": NUMBER, "loops": NUMBER, "sizes": NUMBERS,
    "order": NUMBERS, "factor": NUMBER, "lanes": NUMBER, "grain": NUMBER, "by": NAME, "tile": NUMBER,
}  # fmt: skip


def integers(value: ArrayAttr) -> list[int]:
    """The numbers of a list."""
    return [each.value.data for each in value if isinstance(each, IntegerAttr)]


class Step(IRDLOperation):
    """An op of a script: handles, then clauses, each a word and a value: `transform.tile %i, %j sizes [32, 64]`.

    CLAUSES:  the words, in the order in which they are written; those of optional properties may be left out
    CONSUMES: whether the handles that it takes are of loops that are no more afterwards
    """

    CLAUSES: ClassVar[tuple[str, ...]] = ()
    CONSUMES: ClassVar[bool] = False

    @property
    def handles(self) -> tuple[SSAValue, ...]:
        """The handles that it takes."""
        return tuple(self.operands)

    @classmethod
    def count_of_results(cls, operands: Sequence[SSAValue], properties: dict[str, Attribute]) -> int:
        """How many handles the op gives."""
        return 0

    @classmethod
    def parse(cls, parser: Parser) -> Step:
        """Parse `%i, %j sizes [32, 64]`."""
        operands = parse_ssa_list(parser)
        properties: dict[str, Attribute] = {}
        for clause in cls.CLAUSES:
            if parser.parse_optional_keyword(clause) is not None:
                properties[clause] = _KINDS[clause].read(parser)
        needed = cls.get_irdl_definition().properties
        for clause in cls.CLAUSES:
            if clause not in properties and not isinstance(needed[clause], OptPropertyDef):
                parser.raise_error(f"{cls.name} needs `{clause}` and a value behind it")
        results = (LOOP,) * cls.count_of_results(operands, properties)
        return cls.create(operands=operands, result_types=results, properties=properties)

    def print(self, printer: Printer) -> None:
        """Print what `parse` reads."""
        if self.operands:
            printer.print_string(" ")
            print_ssa_list(printer, self.operands)
        for clause in self.CLAUSES:
            value = self.properties.get(clause)
            if value is not None:
                printer.print_string(f" {clause} ")
                _KINDS[clause].print(printer, value)


def _at_least(op: Step, clause: str, least: int) -> None:
    value = op.properties.get(clause)
    values = value if isinstance(value, ArrayAttr) else ArrayAttr([] if value is None else [value])
    for each in integers(values):
        if each < least:
            raise VerifyException(f"`{clause}` is {each}, and has to be at least {least}")


class _Finds(Step):
    """An op that gives loops of a nest, the outermost first."""

    nest = opt_prop_def(IntegerAttr)
    loops = opt_prop_def(IntegerAttr)
    found = var_result_def(LoopType)

    @classmethod
    def count_of_results(cls, operands: Sequence[SSAValue], properties: dict[str, Attribute]) -> int:
        """As many as `loops` says."""
        loops = properties.get("loops")
        return loops.value.data if isinstance(loops, IntegerAttr) else 1

    def verify_(self) -> None:
        """Check that it gives a loop."""
        _at_least(self, "loops", 1)


@op_definition
class MatchOp(_Finds):
    """Find a nest, and give its outermost loops: `%i, %j = transform.match kernel "mm*" nest 0 loops 2`.

    kernel:   name of the kernel, where `*` stands for any text
    contains: name of an op that the nest has
    writes:   name of a buffer that the nest stores to
    nest:     its number among those of the kernel that fit, from 0; without it only one may fit
    loops:    how many loops to give, each the only one in the one before; 1 if nothing is said
    """

    name = "transform.match"
    CLAUSES: ClassVar[tuple[str, ...]] = ("kernel", "contains", "writes", "nest", "loops")
    kernel = prop_def(StringAttr)
    contains = opt_prop_def(StringAttr)
    writes = opt_prop_def(StringAttr)


@op_definition
class InsideOp(_Finds):
    """Give the loops inside of one, each the only one in the one before: `%j, %k = transform.inside %i loops 2`.

    Where several stand side by side, `nest` says which one comes first, from 0.
    """

    name = "transform.inside"
    CLAUSES: ClassVar[tuple[str, ...]] = ("nest", "loops")
    loop = operand_def(LoopType)


@op_definition
class TileOp(Step):
    """Run loops that are right inside each other block by block:
    `%rows, %columns, %row, %column = transform.tile %i, %j sizes [4, 64]`.

    The loops over blocks come first, then those within a block. One loop may also be a reduction (strip-mining).
    """

    name = "transform.tile"
    CLAUSES: ClassVar[tuple[str, ...]] = ("sizes",)
    CONSUMES: ClassVar[bool] = True
    loops = var_operand_def(LoopType)
    sizes = prop_def(ArrayAttr[IntegerAttr])
    made = var_result_def(LoopType)

    @classmethod
    def count_of_results(cls, operands: Sequence[SSAValue], properties: dict[str, Attribute]) -> int:
        """Two for each loop."""
        return 2 * len(operands)

    def verify_(self) -> None:
        """Check that each loop has a size."""
        if not self.operands or len(integers(self.sizes)) != len(self.operands):
            raise VerifyException(f"has {len(integers(self.sizes))} sizes for {len(self.operands)} loops")
        _at_least(self, "sizes", 1)


@op_definition
class InterchangeOp(Step):
    """Change the order of loops that are right inside each other: `%a, %b = transform.interchange %i, %j order [1, 0]`.

    `order` numbers the loops as they are to stand, the outermost first; so the results are.
    """

    name = "transform.interchange"
    CLAUSES: ClassVar[tuple[str, ...]] = ("order",)
    CONSUMES: ClassVar[bool] = True
    loops = var_operand_def(LoopType)
    order = prop_def(ArrayAttr[IntegerAttr])
    made = var_result_def(LoopType)

    @classmethod
    def count_of_results(cls, operands: Sequence[SSAValue], properties: dict[str, Attribute]) -> int:
        """One for each loop."""
        return len(operands)

    def verify_(self) -> None:
        """Check that the order is one."""
        order = integers(self.order)
        if sorted(order) != list(range(len(self.operands))) or not order:
            raise VerifyException(f"order {order} is none of {len(self.operands)} loops")


class _LeavesOne(Step):
    """An op in place of whose loops there is one."""

    CONSUMES: ClassVar[bool] = True
    made = result_def(LoopType)

    @classmethod
    def count_of_results(cls, operands: Sequence[SSAValue], properties: dict[str, Attribute]) -> int:
        """The loop that remains."""
        return 1


class _WritesOut(_LeavesOne):
    """An op that copies a body."""

    CLAUSES: ClassVar[tuple[str, ...]] = ("factor",)
    loop = operand_def(LoopType)
    factor = prop_def(IntegerAttr)

    def verify_(self) -> None:
        """Check the factor."""
        _at_least(self, "factor", 2)
        if self.factor.value.data > MOST_COPIES:
            raise VerifyException(f"{self.factor.value.data} copies of a body: at most {MOST_COPIES}")


@op_definition
class UnrollOp(_WritesOut):
    """Write out iterations: `%b = transform.unroll %i factor 4`. What is left of an axis has a loop behind it."""

    name = "transform.unroll"


@op_definition
class UnrollAndJamOp(_WritesOut):
    """Write out iterations, and let loops in them that were one be one again:
    `%b = transform.unroll_and_jam %i factor 4`.
    """

    name = "transform.unroll_and_jam"


@op_definition
class FuseOp(_LeavesOne):
    """Let loops that stand side by side be one, with the bodies of all: `%f = transform.fuse %a, %b`."""

    name = "transform.fuse"
    loops = var_operand_def(LoopType)

    def verify_(self) -> None:
        """Check that there are several."""
        if len(self.operands) < 2:
            raise VerifyException("fuses two loops or more")


@op_definition
class VectorizeOp(Step):
    """Run an axis in lanes: `transform.vectorize %j lanes 16`."""

    name = "transform.vectorize"
    CLAUSES: ClassVar[tuple[str, ...]] = ("lanes",)
    loop = operand_def(LoopType)
    lanes = prop_def(IntegerAttr)

    def verify_(self) -> None:
        """Check that the lanes are a power of two."""
        lanes = self.lanes.value.data
        if lanes < 2 or lanes & (lanes - 1):
            raise VerifyException(f"has {lanes} lanes, which is no power of two")


@op_definition
class ParallelizeOp(Step):
    """Let threads of a CPU share out the outermost loop of a nest: `transform.parallelize %i grain 4`.

    `grain` is the fewest iterations that a thread is given.
    """

    name = "transform.parallelize"
    CLAUSES: ClassVar[tuple[str, ...]] = ("grain",)
    loop = operand_def(LoopType)
    grain = opt_prop_def(IntegerAttr)

    def verify_(self) -> None:
        """Check the grain."""
        _at_least(self, "grain", 1)


@op_definition
class MapOp(Step):
    """Map a loop as `kernel.for` says it, for any target: `transform.map %i by grid tile 4`."""

    name = "transform.map"
    CLAUSES: ClassVar[tuple[str, ...]] = ("by", "tile")
    loop = operand_def(LoopType)
    by = prop_def(StringAttr)
    tile = opt_prop_def(IntegerAttr)

    def verify_(self) -> None:
        """Check mapping and tile."""
        if self.by.data not in MAPPINGS:
            raise VerifyException(f"maps by {self.by.data}; known: {', '.join(MAPPINGS)}")
        _at_least(self, "tile", 1)


@op_definition
class PinOp(Step):
    """Keep the nest around a loop as it is: `transform.pin %i`. What another op has made is kept in any case."""

    name = "transform.pin"
    loop = operand_def(LoopType)


@op_definition
class SequenceOp(IRDLOperation):
    """Ops of a schedule, run in order: `transform.sequence { ... }`. It stands in a module beside the kernels.

    Verified: nothing but ops of a script inside, and no handle is used behind an op that consumed it.
    """

    name = "transform.sequence"
    body = region_def("single_block")
    traits = traits_def(Isolated(), NoTerminator())

    def verify_(self) -> None:
        """Check the ops inside, and the life of handles."""
        consumed: dict[SSAValue, Operation] = {}
        for op in self.body.block.ops:
            if not isinstance(op, Step):
                raise VerifyException(f"{op.name} is no op of a schedule")
            for handle in op.handles:
                if handle in consumed:
                    name = f"%{handle.name_hint}" if handle.name_hint else "a handle"
                    raise VerifyException(f"{op.name} uses {name}, which {consumed[handle].name} has consumed")
            if len(set(op.handles)) < len(op.handles):
                raise VerifyException(f"{op.name} takes one loop twice")
            if op.CONSUMES:
                consumed.update(dict.fromkeys(op.handles, op))

    @classmethod
    def parse(cls, parser: Parser) -> SequenceOp:
        """Parse `{ ... }`."""
        return cls.create(regions=(parser.parse_region(),))

    def print(self, printer: Printer) -> None:
        """Print what `parse` reads."""
        printer.print_string(" ")
        printer.print_region(self.body)


Transform = Dialect(
    "transform",
    [
        SequenceOp, MatchOp, InsideOp, TileOp, InterchangeOp, UnrollOp, UnrollAndJamOp, FuseOp, VectorizeOp,
        ParallelizeOp, MapOp, PinOp,
    ],
    [LoopType],
)  # fmt: skip
