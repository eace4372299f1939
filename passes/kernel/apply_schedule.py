"""The pass `kernel-apply-schedule`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import kernel, transform
from ...errors import UserError
from ...records import dataclass
from ..analysis.loops import Loop, is_loop
from ..counters import counting
from ..remarks import format_location, remark
from . import schedules
from .pinned import pin


class KernelApplySchedule(ModulePass):
    """Apply schedules written by hand: run the `transform.sequence` ops of a module on the loops of its kernels.

    Level: kernel.

    Precondition: loops are as they are in front of `kernel-map`, or have the mappings that somebody wrote.
    Guarantee: the ops of each sequence have run in order, each of them legal by the dependences of the kernel as it was
    then; the sequences are gone. Nests that an op has changed or mapped, or that `transform.pin` names, are `pinned`:
    the passes behind, which choose for all others, leave their loops alone. An op that does not fit, or would change
    what the kernel computes, is a UserError that names the op, the loop and the dependence.

        transform.sequence {
          %i = transform.match kernel "scale"
          %blocks, %lane = transform.tile %i sizes [64]
          transform.vectorize %lane lanes 16 }
        kernel.func @scale(...) { kernel.for i0 in 0 to 512 { ... } }
    becomes
        kernel.func @scale(...) {
          kernel.for i1 in 0 to 8 pinned { kernel.for i0 in 64*i1 to 64*i1 + 64 map vector tile 16 { ... } } }
    """

    name = "kernel-apply-schedule"
    level: ClassVar[str] = "kernel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run every sequence. UserError for an op that does not fit."""
        for sequence in [each for each in op.body.block.ops if isinstance(each, transform.SequenceOp)]:
            run = _Run(op)
            with counting():  # what the user wrote is no decision
                for step in sequence.body.block.ops:
                    assert isinstance(step, transform.Step)
                    run.step(step)
            op.body.block.erase_op(sequence)


@dataclass
class _Run:
    """One sequence: which loop each handle stands for."""

    module: ModuleOp
    loops: dict[SSAValue, Loop] = field(default_factory=dict)

    def step(self, step: transform.Step) -> None:
        """Run an op, and pin the nest that it worked on."""
        given = [self._loop(step, handle) for handle in step.operands]
        where = _place_of(given[0]) if given else ""
        try:
            made = _STEPS[type(step)](self.module, step, given)
        except schedules.IllegalTransformError as error:
            raise _failed(step, f"{where}: {error.problem}" if where else error.problem, error.remedy) from error
        for handle, loop in zip(step.results, made, strict=True):
            self.loops[handle] = loop
        if given and not isinstance(step, transform.InsideOp):
            pin((made or given)[0])
            remark("passed", KernelApplySchedule.name, (made or given)[0], f"{step.name} on {where}")

    def _loop(self, step: transform.Step, handle: SSAValue) -> Loop:
        loop = self.loops[handle]
        if next(iter(_kernels_around(loop)), None) is None:
            name = f"%{handle.name_hint}" if handle.name_hint else "of its operand"
            raise _failed(step, f"the loop {name} is no more, for an op before has rebuilt it", "match it again")
        return loop


def _kernels_around(loop: Operation) -> Iterator[kernel.FuncOp]:
    parent = loop.parent_op()
    while parent is not None:
        if isinstance(parent, kernel.FuncOp) and parent.parent is not None:
            yield parent
        parent = parent.parent_op()


def _place_of(loop: Loop) -> str:
    (function,) = list(_kernels_around(loop))[:1]
    return f"{loop.name} {loop.axis.data} of @{function.sym_name.data}"


def _failed(step: transform.Step, problem: str, remedy: str = "") -> UserError:
    """An error that says which op of the script failed, and where that stands."""
    place = format_location(step.location) if isinstance(step.location, FileLineColLoc) else ""
    return UserError(
        f"{place}: error: {step.name} fails: {problem}" if place else f"{step.name} fails: {problem}", remedy
    )


def _match(module: ModuleOp, step: Any, given: Sequence[Loop]) -> list[Loop]:
    kernels = [op for op in module.body.block.ops if isinstance(op, kernel.FuncOp)]
    fitting = [op for op in kernels if fnmatchcase(op.sym_name.data, step.kernel.data)]
    if not fitting:
        known = ", ".join(f"@{op.sym_name.data}" for op in kernels) or "none"
        raise schedules.IllegalTransformError(f"no kernel is named {step.kernel.data!r}", f"the kernels are: {known}")
    nests = [op for function in fitting for op in function.body.block.ops if is_loop(op) and _fits(op, step)]
    if step.nest is None and len(nests) > 1:
        problem = f"{len(nests)} nests fit"
        raise schedules.IllegalTransformError(problem, "say which by `contains`, `writes`, or `nest` and its number")
    position = 0 if step.nest is None else step.nest.value.data
    if position >= len(nests):
        problem = f"there is no nest number {position} that fits" if nests else "no nest fits"
        raise schedules.IllegalTransformError(
            problem, f"{len(nests)} fit, counted from 0, in @{fitting[0].sym_name.data}"
        )
    return _path(nests[position], len(step.found))


def _fits(nest: Loop, step: transform.MatchOp) -> bool:
    ops = list(nest.walk())
    if step.contains is not None and not any(op.name == step.contains.data for op in ops):
        return False
    stores = [op for op in ops if isinstance(op, kernel.StoreOp)]
    return step.writes is None or any(op.buffer.name_hint == step.writes.data for op in stores)


def _inside(module: ModuleOp, step: Any, given: Sequence[Loop]) -> list[Loop]:
    loops = _loops_of(given[0].body.block)
    position = 0 if step.nest is None else step.nest.value.data
    if step.nest is None and len(loops) > 1:
        raise schedules.IllegalTransformError(f"{len(loops)} loops stand inside", "say which by `nest` and its number")
    if position >= len(loops):
        raise schedules.IllegalTransformError(
            f"no loop inside has the number {position}; there are {len(loops)}, from 0"
        )
    return _path(loops[position], len(step.found))


def _loops_of(block: Block) -> list[Loop]:
    return [op for op in block.ops if is_loop(op)]


def _path(loop: Loop, count: int) -> list[Loop]:
    """A loop and those inside of it, each the only one in the one before."""
    path = [loop]
    while len(path) < count:
        inner = _loops_of(path[-1].body.block)
        if len(inner) != 1:
            problem = f"the nest has {len(path)} loops inside each other, and then {len(inner) or 'none'} side by side"
            raise schedules.IllegalTransformError(problem, "ask for fewer, and use transform.inside for the rest")
        path.append(inner[0])
    return path


_Step = Callable[[ModuleOp, Any, Sequence[Loop]], Sequence[Loop]]


def _nothing(result: None) -> Sequence[Loop]:
    return ()


def _optional(value: Any) -> int | None:
    return None if value is None else value.value.data


_STEPS: dict[type[transform.Step], _Step] = {
    transform.MatchOp: _match,
    transform.InsideOp: _inside,
    transform.TileOp: lambda _, op, loops: schedules.tile(loops, transform.integers(op.sizes)),
    transform.InterchangeOp: lambda _, op, loops: schedules.interchange(loops, transform.integers(op.order)),
    transform.UnrollOp: lambda _, op, loops: [schedules.unroll(loops[0], op.factor.value.data)],
    transform.UnrollAndJamOp: lambda _, op, loops: [schedules.unroll_and_jam(loops[0], op.factor.value.data)],
    transform.FuseOp: lambda _, op, loops: [schedules.fuse(loops)],
    transform.VectorizeOp: lambda _, op, loops: _nothing(schedules.vectorize(loops[0], op.lanes.value.data)),
    transform.ParallelizeOp: lambda _, op, loops: _nothing(schedules.parallelize(loops[0], _optional(op.grain))),
    transform.MapOp: lambda _, op, loops: _nothing(schedules.map_loop(loops[0], op.by.data, _optional(op.tile))),
    transform.PinOp: lambda _, op, loops: (),
}
