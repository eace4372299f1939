"""The pass `host-reuse`."""

from __future__ import annotations

from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from ...dialects import host, kernel
from ...dialects.aten.types import TensorType, type_of
from ...dialects.machine import targets_of
from ...dialects.raw import maker_of, ops_of
from ...dialects.sym import ZERO, SymAttr
from ...machines import GpuTarget
from ..analysis.aliasing import may_overwrite, merge_arguments
from ..analysis.lifetimes import Lifetimes, is_used_by_call
from ..analysis.tensor_bytes import bytes_of, is_dense
from ..common.own_products import is_own_product
from ..counters import counter
from ..remarks import remark
from ._take_over import take_over

#: ATen calls whose results are fresh memory that nothing else holds, as large as their types say
FRESH = frozenset(f"aten.{name}" for name in (
    "mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward", "_addmm_activation", "linear",
))  # fmt: skip


class HostReuse(ModulePass):
    """Let kernels write over inputs that die, and allocations take over dead memory.

    Level: host.

    Precondition: nothing is freed or planned yet.
    Guarantee: a kernel that reads an input for the last time, each element no later than it writes the one of its
    result at that place, writes over the input: both are one buffer argument, in all launches of the kernel. An
    allocation otherwise takes over a dead one of equal size in bytes, the one that died last, where holding that one
    in between does not raise the peak of live bytes, but on a GPU not a small one that the launch in front uses: that
    launch and the one behind may become one. Only memory that the function allocated is reused, never
    arguments, and nothing that is returned or that a view still needs.

        %a = host.empty : T
        host.launch @k(%x, %a)
        %b = host.empty : T
        host.launch @exp(%a, %b)       // kernel.func @exp(%x: ..., %y: ...)
        host.return %b
    becomes
        %a = host.empty : T
        host.launch @k(%x, %a)
        host.launch @exp(%a)           // kernel.func @exp(%y: ...)
        host.return %a
    """

    name = "host-reuse"
    level: ClassVar[str] = "host"
    optional: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Reuse memory in every host function."""
        _InPlace(op).run()
        target = targets_of(op).main
        for function in ops_of(op.body.block):
            if isinstance(function, host.FuncOp):
                take_over(function, reusable, target.launch_bytes if isinstance(target, GpuTarget) else 0)


def reusable(value: SSAValue) -> bool:
    """Whether a value is memory that its function allocated and that nothing outside knows of.

    A collective may still read what it was given when the call has returned.
    """
    maker, kind = maker_of(value), value.type
    if maker is None or not isinstance(kind, TensorType) or is_used_by_call(value):
        return False
    if type(maker) is host.EmptyOp:
        return not maker.pool
    return (maker.name in FRESH or is_own_product(maker)) and is_dense(kind)


def _whole(value: SSAValue) -> SSAValue | None:
    """What owns the memory of a value that spans all of it; else None."""
    root = value
    while isinstance(root.owner, host.ViewOp):
        if root.owner.offset.data is not ZERO:
            return None
        root = root.owner.source
    return root if root is value or _equal_memory(root, value) else None


def _equal_memory(first: SSAValue, second: SSAValue) -> bool:
    """Whether two values fill equally long stretches of memory with elements of one type."""
    left, right = first.type, second.type
    if not isinstance(left, TensorType) or not isinstance(right, TensorType):
        return False
    if left.element != right.element or left.device != right.device:
        return False
    return is_dense(left) and is_dense(right) and bytes_of(left) is bytes_of(right)


class _InPlace:
    """Makes kernels write over inputs that die with the launch."""

    def __init__(self, module: ModuleOp) -> None:
        self.kernels: list[kernel.FuncOp] = []
        self.launches: dict[str, list[host.LaunchOp]] = {}
        self.lifetimes: dict[Block, Lifetimes] = {}
        for function in module.body.block.ops:
            if isinstance(function, kernel.FuncOp):
                self.kernels.append(function)
            elif isinstance(function, host.FuncOp):
                for op in ops_of(function.body.block):
                    if isinstance(op, host.LaunchOp):
                        self.launches.setdefault(op.kernel.root_reference.data, []).append(op)

    def run(self) -> None:
        for function in self.kernels:
            launches = self.launches.get(function.sym_name.data, [])
            while launches and (pair := self._find(function, launches)) is not None:
                merge_arguments(function, pair[1], pair[0])
                for launch in launches:
                    self._merge(launch, *pair)

    def _find(self, function: kernel.FuncOp, launches: list[host.LaunchOp]) -> tuple[int, int] | None:
        """(input, result) that may be one buffer in every launch."""
        arguments = function.body.block.args
        for written in range(len(arguments)):
            for read in range(len(arguments)):
                if read == written or arguments[read].type != arguments[written].type:
                    continue
                if not all(self._dies_here(launch, read, written) for launch in launches):
                    continue
                if self._returns_view(launches, read, written):
                    continue
                if may_overwrite(function, read, written) and counter("host-reuse"):
                    return read, written
        return None

    def _dies_here(self, launch: host.LaunchOp, read: int, written: int) -> bool:
        """Whether a launch is the last use of one buffer's memory, and the first of another that is fresh.

        Both hold as many elements in one order: the kernel sees them so. Their shapes may differ unless the result is
        returned, which must not be a view.
        """
        old, new = launch.buffers[read], launch.buffers[written]
        root = _whole(old)
        if not isinstance(new.owner, host.EmptyOp) or not reusable(new) or root is None or not reusable(root):
            return False
        if list(launch.buffers).count(old) != 1 or list(launch.buffers).count(new) != 1:
            return False
        lifetimes = self._lifetimes_of(launch)
        if old.type != new.type and (lifetimes.escapes(new) or not _equal_memory(old, new)):
            return False
        if old is not root and lifetimes.escapes(new):
            return False
        if any(root in lifetimes.roots(other) for other in launch.buffers if other is not old):
            return False
        here = lifetimes.position[launch]
        first = min(lifetimes.position[use.operation] for use in new.uses)
        return first == here and lifetimes.last[root] == here

    def _returns_view(self, launches: list[host.LaunchOp], read: int, written: int) -> bool:
        """Whether a launch would return what another one, of which it reads the result, turns into a view."""
        pairs = [(launch.buffers[read], launch.buffers[written], launch) for launch in launches]
        if all(old.type == new.type and not isinstance(old.owner, host.ViewOp) for old, new, _ in pairs):
            return False
        made = {new for _, new, _ in pairs}
        return any(_whole(old) in made and self._lifetimes_of(launch).escapes(new) for old, new, launch in pairs)

    def _lifetimes_of(self, launch: host.LaunchOp) -> Lifetimes:
        block = launch.parent
        assert block is not None
        found = self.lifetimes.get(block)
        if found is None:
            found = self.lifetimes[block] = Lifetimes(block)
        return found

    def _merge(self, launch: host.LaunchOp, read: int, written: int) -> None:
        block = launch.parent
        assert block is not None
        old, new = launch.buffers[read], launch.buffers[written]
        remark("passed", "host-reuse", launch, "writes over an input that dies", bytes=str(bytes_of(type_of(new))))
        owner = new.owner
        assert isinstance(owner, host.EmptyOp)
        kept = old
        if old.type != new.type:
            view = host.ViewOp.of(old, SymAttr.of(0), type_of(new), owner.location)
            block.insert_op_before(view, launch)
            kept = view.out
        new.replace_all_uses_with(kept)
        if (lifetimes := self.lifetimes.get(block)) is not None:
            lifetimes.merge(new, kept, launch)
        block.erase_op(owner)
        buffers = [old if buffer is kept else buffer for buffer in launch.buffers]
        del buffers[read]
        launch.operands = buffers
