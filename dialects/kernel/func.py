"""`kernel.func`: one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, LocationAttr, StringAttr, UnitAttr, i8
from xdsl.ir import Attribute, Region
from xdsl.irdl import opt_prop_def, prop_def, region_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ..access import string_attr
from ..assembly import NUMBER, SIGNATURE, TEXT, TEXTS, AssemblyOp, Part, Read, clause, flag, region
from ..fields import op_definition
from ..traits import Isolated
from .types import BufferType

#: numbers of the schedule, in the order of their text
_NUMBERS = [clause(name, NUMBER) for name in ("per_thread", "num_warps", "num_stages", "programs", "boxes")]


#: bytes of a descriptor of boxes
DESCRIPTOR = 128


def _read_symbols(parser: Parser, read: Read) -> None:
    names: list[str] = []
    if parser.parse_optional_keyword("symbols") is not None:
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
    read.properties["symbols"] = ArrayAttr(list(map(string_attr, names)))


def _print_symbols(printer: Printer, op: FuncOp) -> None:
    if op.symbols.data:
        printer.print_string(f" symbols ({', '.join(s.data for s in op.symbols)})")


@op_definition
class FuncOp(AssemblyOp):
    """One kernel over buffers and integers.

        kernel.func @softmax(%x: !kernel.buffer<f32, 4096*s0>, %y: !kernel.buffer<f32, 4096*s0>) symbols (s0)
            errors ["IndexError: index out of range"] target "cpp" {
          kernel.for i0 in 0 to s0 map parallel { ... }
          kernel.yield
        }

    `symbols` are integer parameters that index expressions use. `errors` lists what `kernel.assert` codes mean.
    `target` names the machine that the mapping was chosen for ("cpp", "cuda:90", ...); absent before tiling. On a GPU
    `num_warps 8` behind it is a part of the schedule: the warps that run one program. So are `num_stages 3`, the steps
    of a loop over products that are on their way at once (software pipelining), and `programs 264`: as many
    programs at most, which take the iterations of the grid in turns, and `boxes 2`: descriptors of boxes (`boxes.py`)
    that each program makes for its loads in the last buffer, which has `DESCRIPTOR` bytes for each of them. Until
    there are warps, `per_thread 16` says how many elements of a tile one thread works on. `streams` says that a launch
    touches more than a cache holds and nobody reads its results soon.
    Which buffers are written follows from the stores. Buffers do not overlap, except that one buffer may be both
    read and written.
    """

    name = "kernel.func"
    sym_name = prop_def(StringAttr)
    symbols = prop_def(ArrayAttr[StringAttr])
    errors = opt_prop_def(ArrayAttr[StringAttr])
    target = opt_prop_def(StringAttr)
    per_thread = opt_prop_def(IntegerAttr)
    num_warps = opt_prop_def(IntegerAttr)
    num_stages = opt_prop_def(IntegerAttr)
    programs = opt_prop_def(IntegerAttr)
    boxes = opt_prop_def(IntegerAttr)
    streams = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(Isolated(), SymbolOpInterface())
    SYNTAX: ClassVar = (
        SIGNATURE, Part(_read_symbols, _print_symbols), clause("errors", TEXTS), clause("target", TEXT), *_NUMBERS,
        flag("streams"), region(),
    )  # fmt: skip

    @staticmethod
    def of(
        sym_name: str,
        symbols: Sequence[str],
        body: Region,
        errors: Sequence[str] = (),
        target: str | None = None,
        location: LocationAttr | None = None,
    ) -> FuncOp:
        """Build; the body's block arguments are the buffers and its terminator is an empty `kernel.yield`."""
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(sym_name),
            "symbols": ArrayAttr([string_attr(s) for s in symbols]),
        }
        if errors:
            properties["errors"] = ArrayAttr([StringAttr(e) for e in errors])
        if target is not None:
            properties["target"] = StringAttr(target)
        return FuncOp.create(properties=properties, regions=(body,), location=location)

    def verify_(self) -> None:
        """Check that parameters are buffers that are not local, and the numbers of the schedule."""
        if self.num_warps is not None and (w := self.num_warps.value.data) & (w - 1) | (w < 1):
            raise VerifyException(f"a program has 1, 2, 4, ... warps, not {w}")
        if self.per_thread is not None and self.per_thread.value.data < 1:
            raise VerifyException(f"a thread works on 1 element or more, not {self.per_thread.value.data}")
        if self.num_stages is not None and self.num_stages.value.data < 1:
            raise VerifyException(f"a kernel has 1 stage or more, not {self.num_stages.value.data}")
        if self.programs is not None and self.programs.value.data < 1:
            raise VerifyException(f"a kernel has 1 program or more, not {self.programs.value.data}")
        if self.boxes is not None:
            _verify_boxes(self, self.boxes.value.data)
        for argument in self.body.block.args:
            if not isinstance(argument.type, BufferType) or argument.type.local:
                raise VerifyException(f"a kernel takes buffers, not {argument.type}")


def _verify_boxes(function: FuncOp, count: int) -> None:
    """Check that there is memory for descriptors."""
    last = function.body.block.args[-1].type if function.body.block.args else None
    if count < 1 or not isinstance(last, BufferType) or last.element != i8:
        raise VerifyException(f"makes {count} descriptors of boxes, at least 1, and its last buffer has bytes for them")
