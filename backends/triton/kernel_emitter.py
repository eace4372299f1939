"""Emits one `kernel.func` as a `@triton.jit` function."""

from __future__ import annotations

import re
from collections.abc import Iterable

from typing_extensions import override
from xdsl.ir import Attribute, Block, Operation

from ...dialects import kernel
from ...dialects.sym import Expr, Ranges, bounds, smin
from ...errors import UnsupportedError
from ...passes.analysis.effects import written_buffers
from ...passes.analysis.loops import Loop
from ...passes.kernel.scheduled import family_of
from ...passes.kernel.tiles import is_grid, is_persistent
from ..printing.locations import source_lines
from ..printing.walk import Walk
from . import memory, scalars
from .axes import Axes, tile_rank
from .context import Context
from .contractions import Contractions
from .custom import combine_function
from .dtypes import pointer_name
from .kernel import BOXES, MAX_INDEX, TritonKernel
from .names import comment
from .programs import Programs, programs_of
from .reductions import Reductions
from .scans import Scans, with_places_of_lanes
from .softmax_sums import SoftmaxSums
from .values import Value

_WARPS = 4
_STAGES = 3


def emit_kernel(function: kernel.FuncOp, ranges: Ranges) -> TritonKernel:
    """The Triton source of a kernel whose axes are mapped for a GPU; `ranges` are facts about its symbols.

    UnsupportedError for what Triton cannot express, or for a schedule that does not suit it.
    """
    return _KernelEmitter(with_places_of_lanes(function), ranges).run()


class _KernelEmitter(Walk):
    def __init__(self, function: kernel.FuncOp, ranges: Ranges) -> None:
        self.function = function
        block = function.body.block
        rank = max((tile_rank(op) for op in block.ops if isinstance(op, Loop)), default=0)
        self.extents = tuple(a.type.extent for a in block.args)  # pyright: ignore[reportAttributeAccessIssue]
        family = family_of(function)
        needs = None if family is None else family.triton
        nvidia = needs is not None and needs.inline_ptx
        self.context = Context(
            rank,
            ranges,
            _index_width(self.extents, ranges),
            self.extents,
            nvidia=nvidia,
            written=frozenset(written_buffers(block)),
            takes_boxes=function.boxes is not None,
        )
        self.axes = Axes(self.context)
        self.reductions = Reductions(self.context, self.axes, self.body, self.custom)
        self.scans = Scans(self.context, self.axes, self.body, self.custom)
        self.contractions = Contractions(self.context, self.axes, self.ops)
        self.softmax_sums = SoftmaxSums(self.context, self.axes, self.contractions, self.ops)
        self.functions: list[str] = []
        self.most = None if function.programs is None else function.programs.value.data
        self._location: Attribute | None = None

    def run(self) -> TritonKernel:
        """Emit."""
        context, function = self.context, self.function
        name = context.names.fresh(function.sym_name.data)
        signature = self._arguments()
        errors = () if function.errors is None else tuple(e.data for e in function.errors)
        if errors:
            context.status = context.names.fresh("status")
            signature[context.status] = "*i32"
        overlaps = context.nvidia and any(isinstance(op, kernel.AwaitOp) for op in function.walk())
        self._widen_symbols()
        programs = programs_of(function.body.block)
        self._programs(programs)
        count = programs.count if self.most is None else smin(programs.count, self.most)
        constants = dict(self.axes.constexprs)
        signature |= dict.fromkeys(constants, "constexpr")
        if context.width == "INDEX":
            signature["INDEX"] = "constexpr"
        if len(context.boxes):
            signature[BOXES] = "constexpr"
        warps = _WARPS if function.num_warps is None else function.num_warps.value.data
        stages = "" if function.num_stages is None else f", num_stages {function.num_stages.value.data}"
        head = comment(f"grid {count}, num_warps {warps}{stages}")
        return TritonKernel(
            name=name,
            source="\n\n\n".join([*self.functions, "\n".join([head, *self._function(name, signature)])]),
            signature=signature,
            constexprs=constants,
            grid=count,
            symbols=tuple(s.data for s in function.symbols),
            buffers=len(function.body.block.args),
            errors=errors,
            overlaps=overlaps,
            extents=self.extents if context.width == "INDEX" else (),
            num_warps=warps,
            num_stages=_STAGES if function.num_stages is None else function.num_stages.value.data,
            descriptor_bytes=kernel.DESCRIPTOR * len(context.boxes),
            divisors={n: d for n, d in context.ranges.divisors.items() if n in signature},
        )

    def _arguments(self) -> dict[str, str]:
        context = self.context
        signature: dict[str, str] = {}
        for position, argument in enumerate(self.function.body.block.args):
            name = context.names.fresh(argument.name_hint or f"buffer{position}")
            context.buffers[argument] = name
            signature[name] = pointer_name(argument.type.element)  # pyright: ignore[reportAttributeAccessIssue]
        for symbol in self.function.symbols:
            name = context.names.fresh(symbol.data)
            context.symbols[symbol.data] = Value(name, "int32")
            signature[name] = "i32"
        return signature

    def _widen_symbols(self) -> None:
        """Products of symbols must not overflow before they meet an axis."""
        context = self.context
        if context.width is None:
            return
        for symbol, value in list(context.symbols.items()):
            text = f"tl.cast({value}, {context.width})"
            context.symbols[symbol] = context.define(text, "int64", (), f"{value}_wide")

    def _function(self, name: str, signature: dict[str, str]) -> list[str]:
        arguments = [f"{n}: tl.constexpr" if t == "constexpr" else n for n, t in signature.items()]
        head = f"def {name}({', '.join(arguments)}):"
        lines = ["@triton.jit", head]
        if len(head) > 100:
            lines = ["@triton.jit", f"def {name}(", *(f"    {a}," for a in arguments), "):"]
        return [*lines, *self.context.boxes.lines, *(without_unused(self.context.out.lines) or ["    pass"])]

    def _programs(self, programs: Programs) -> None:
        """Emit the top level: one piece of code for all programs, or a branch for each nest."""
        block = self.function.body.block
        nest = programs.nests[0] if programs.nests else ()
        if self.most is not None:
            self._in_turns(programs, nest, self.most)
            return
        if programs.is_single:
            self.axes.decompose_program_id(nest, self.axes.program_id)
            self.ops(block.ops)
            return
        self.ops(programs.shared)
        context = self.context
        pid = context.define(self.axes.program_id, "int32" if context.width is None else "int64", (), "pid").text
        end = ""
        for nest in programs.nests:
            start, end = end, _sum(end, self.axes.count(nest).text)
            context.out.line(f"{'elif' if start else 'if'} {pid} < {end}:")
            with context.scope():
                self.axes.decompose_program_id(nest, f"({pid} - ({start}))" if start else pid)
                self.ops(nest[:1])
        if programs.rest:
            context.out.line("else:")
            with context.scope():
                self.ops(programs.rest)

    def _in_turns(self, programs: Programs, nest: tuple[kernel.ForOp, ...], most: int) -> None:
        """Emit one nest whose iterations so many programs take in turns."""
        if not (programs.is_single and nest):
            raise UnsupportedError("`programs` needs one nest on the grid, and nothing beside it")
        context = self.context
        pid = context.names.fresh("pid")
        # what is on its way for the next tile may be so while the last steps of this one are multiplied
        walks = [op for op in self.function.walk() if isinstance(op, kernel.ReduceOp) and op.mapping.data == "matrix"]
        name, flat = ("tl.range", ", flatten=True") if walks else ("range", "")
        bounds = f"{self.axes.program_id}, {self.axes.count(nest).text}, {most}"
        context.out.line(f"for {pid} in {name}({bounds}{flat}):")
        with context.scope():
            self.axes.decompose_program_id(nest, pid)
            self.ops(self.function.body.block.ops)

    def body(self, block: Block) -> None:
        """Emit the ops of a block, in order, without its terminator."""
        self.ops(block.ops)

    @override
    def ops(self, ops: Iterable[Operation]) -> None:
        """Emit ops in order, each below the user's line."""
        for op in ops:
            self._comment(op)
            super().ops((op,))

    @override
    def scalar(self, op: Operation) -> None:
        scalars.emit(self.context, op)

    def index(self, op: kernel.IndexOp) -> None:
        """Emit an index as a value."""
        scalars.emit(self.context, op)

    def load(self, op: kernel.LoadOp) -> None:
        """Emit a load."""
        memory.load(self.context, op)

    def store(self, op: kernel.StoreOp) -> None:
        """Emit a store."""
        memory.store(self.context, op)

    def barrier(self, op: kernel.BarrierOp) -> None:
        """Emit a barrier."""
        memory.barrier(self.context, op)

    def wait(self, op: kernel.AwaitOp) -> None:
        """Emit a wait for the launches in front."""
        memory.wait(self.context, op)

    def release(self, op: kernel.ReleaseOp) -> None:
        """Emit that the launch behind may begin."""
        memory.release(self.context, op)

    def check(self, op: kernel.AssertOp) -> None:
        """Emit an assert."""
        memory.check(self.context, op)

    def reduce(self, op: kernel.ReduceOp) -> None:
        """Emit a `kernel.reduce`."""
        if op.mapping.data != "matrix":
            self.reductions.emit(op)
        elif "softmax_sum" in (c.data for c in op.combiners):
            self.softmax_sums.emit(op)
        else:
            self.contractions.emit(op)

    def scan(self, op: kernel.ScanOp) -> None:
        """Emit a `kernel.scan`."""
        self.scans.emit(op)

    def local(self, op: kernel.LocalOp) -> None:
        """A register tile comes into being when it is stored."""

    def end(self, op: kernel.YieldOp) -> None:
        """What a loop does with the yielded values is the loop's matter."""

    def loop(self, op: kernel.ForOp) -> None:
        """Emit a `kernel.for`."""
        if is_grid(op):
            axis = self.axes.on_grid(op)
        else:
            axis = self.axes.covered(op) if is_persistent(op, self.context.ranges) else self.axes.looped(op)
        with axis:
            self.body(op.body.block)

    def custom(self, op: kernel.ReduceOp | kernel.ScanOp) -> str:
        """Name of a function for a combine region."""
        name = self.context.names.fresh("combine")
        assert op.combine is not None
        self.functions.append(combine_function(name, op.combine.block))
        return name

    def _comment(self, op: Operation) -> None:
        """Say which of the user's lines the following comes from, where that changes."""
        if op.location == self._location or isinstance(op, kernel.YieldOp):
            return
        # the folder tells files of one name apart; the whole path of an installed package only takes room
        text = ", ".join(source_lines(op.location, 2))
        if text:
            self._location = op.location
            self.context.out.comment(comment(text))


_WIDENED = re.compile(r"    (\w+) = tl\.cast\(")


def without_unused(lines: list[str]) -> list[str]:
    """Drop the leading conversions of symbols that nothing reads."""
    text = "\n".join(lines)
    return [
        line
        for line in lines
        if (match := _WIDENED.match(line)) is None or len(re.findall(rf"\b{match[1]}\b", text)) > 1
    ]


def _index_width(extents: tuple[Expr, ...], ranges: Ranges) -> str | None:
    """None where all offsets fit 32 bits, tl.int64 where one surely does not, INDEX where the launch decides."""
    known = [bounds(extent, ranges) for extent in extents]
    if all(most is not None and most <= MAX_INDEX for _, most in known):
        return None
    constant = all(extent.is_constant for extent in extents)
    return "tl.int64" if constant or any(least is not None and least > MAX_INDEX for least, _ in known) else "INDEX"


def _sum(left: str, right: str) -> str:
    if not left:
        return right
    return str(int(left) + int(right)) if left.isdigit() and right.isdigit() else f"{left} + {right}"
