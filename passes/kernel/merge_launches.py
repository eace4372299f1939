"""The pass `kernel-merge-launches`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import host, kernel
from ...dialects.aten.types import type_of
from ...dialects.machine import targets_of
from ...dialects.raw import ops_behind, ops_of
from ...dialects.sym import Expr
from ...machines import GpuTarget, Target, in_host_memory
from ...records import dataclass
from ..analysis.kept import is_kept_call
from ..analysis.launches import device_of, on_cpu, passed_sizes
from ..analysis.lifetimes import Lifetimes
from ..analysis.memory_order import HostMemory, Touched
from ..analysis.nests import bytes_of_block, work_of_block
from ..analysis.sizes import Sizes
from ..analysis.tensor_bytes import bytes_of
from ..common.choices import chosen_tile
from ..counters import counter
from ..remarks import remark
from .beside import may_stand_beside, reduces
from .one_launch import JointKernels, Launch
from .products import product_nests

_OPEN = 8
"""How many merged launches may be growing at a time."""


@dataclass(frozen=True)
class KernelMergeLaunches(ModulePass):
    """Merge small launches that do not depend on one another into one: horizontal fusion.

    Level: kernel.

    Precondition: nothing is tiled, planned or freed yet. Behind `host-reuse`, which looks at one nest a kernel.
    Guarantee: a merged kernel holds the nests of the kernels it stands for side by side, and takes their buffers, the
    common ones once. None of them writes what another uses. A launch moves down to the last one it is merged with,
    over allocations, views and independent launches only; where that cannot be, the last one moves up, with its
    allocations. One that may raise an error stays on the CPU; on a GPU nothing waits for errors.

    The pass merges a launch only if calling the kernel costs more than the work of the kernel. On the CPU the work must
    be less than `small` (`passes/analysis/nests.py`). On a GPU the kernel must move fewer bytes than the memory moves
    in the time of a launch. So the step of an optimizer is one launch for its many small parameters, and one for each
    large parameter. Merged launches that are alike share their kernel. At most `max_launches` become one, with at most
    `max_arguments` buffers and symbols; on a GPU `gpu_launches` and `gpu_arguments`, which torch's launchers take.

    On a GPU each nest has programs of its own (`beside.py`), so a kernel that only one program can run is not merged
    with others; nor is a kernel that reduces merged with one that does not. A launch does not move over an allocation
    if that would keep more than `max_kept` bytes alive; memory that the caller keeps anyway does not count.

        host.launch @scale_0(%x, %y)         // kernel.func @scale_0(%x, %y) { kernel.for ... }
        host.launch @scale_1(%a, %b)         // kernel.func @scale_1(%x, %y) { kernel.for ... }
    becomes
        host.launch @scale_0_and_1_more(%x, %y, %a, %b)   // kernel.func { kernel.for ...  kernel.for ... }
    """

    name = "kernel-merge-launches"
    level: ClassVar[str] = "kernel"
    optional: ClassVar[bool] = True

    small: int = 65536
    max_launches: int = 16
    max_arguments: int = 64
    gpu_launches: int = 32
    gpu_arguments: int = 96
    max_kept: int = 1 << 20
    loop_products: bool = False
    """Products for matrix units share launches with one another alone (`kernel-map-products`)."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Merge the launches of every host function, and drop kernels that are launched no more."""
        joint = JointKernels(op)
        merger = _Merger(self, joint, targets_of(op).main)
        for function in op.body.block.ops:
            if isinstance(function, host.FuncOp):
                merger.run(function)
        joint.erase_unlaunched()


@dataclass(eq=False)
class _Bundle:
    """Launches that become one, in order.

    place: the launch where it will stand
    passed: what the launches behind that touch, over which one more would have to move up
    """

    launches: list[Launch] = field(default_factory=list)
    place: host.LaunchOp | None = None
    passed: Touched[SSAValue] = Touched()
    touched: Touched[SSAValue] = Touched()
    symbols: dict[str, Expr] = field(default_factory=dict)
    dying: int = 0

    @property
    def is_on_cpu(self) -> bool:
        return self.launches[0].is_on_cpu

    def move_to(self, launch: Launch) -> None:
        """Stand where a launch stands."""
        self.place = launch.op
        self.passed = Touched()

    def let_pass(self, launch: Launch) -> None:
        """Note a launch that stays behind these."""
        self.passed |= launch.touched

    def add(self, launch: Launch) -> None:
        """One launch more."""
        self.launches.append(launch)
        self.dying += launch.dying
        self.touched |= launch.touched
        self.symbols |= launch.symbols

    def conflicts(self, launch: Launch) -> bool:
        """Whether the order of a launch and one of these matters."""
        return self.touched.conflicts(launch.touched)

    def is_passed_by(self, launch: Launch) -> bool:
        """Whether a launch may move up to these over what stands behind them."""
        return not self.passed.conflicts(launch.touched)

    def has_room(self, launch: Launch, options: KernelMergeLaunches) -> bool:
        """Whether a launch fits in: in number, in buffers, by its symbols and its device."""
        if launch.kind != self.launches[0].kind:
            return False
        buffers = {value for each in (*self.launches, launch) for value in each.op.buffers}
        arguments = len(buffers) + len(self.symbols | launch.symbols)
        launches, most = options.max_launches, options.max_arguments
        if not self.is_on_cpu:
            launches, most = options.gpu_launches, options.gpu_arguments
        return (
            len(self.launches) < launches
            and arguments <= most
            and all(self.symbols.get(name, value) is value for name, value in launch.symbols.items())
        )


class _Merger:
    """Merges the launches of the functions of one module."""

    def __init__(self, options: KernelMergeLaunches, joint: JointKernels, target: Target) -> None:
        self.options = options
        self.target = target
        self.joint = joint
        self.kept: frozenset[SSAValue] = frozenset()
        """Arguments of the function at hand that its caller keeps, and results that are kept from call to call."""

    def run(self, function: host.FuncOp) -> None:
        """Visit the ops of a function in order."""
        block = function.body.block
        lifetimes = Lifetimes(block)
        sizes = Sizes.of_function(function)
        kept = (value for op in ops_of(block) if is_kept_call(op) for value in op.results)
        self.kept = frozenset((*block.args, *kept)).difference(function.given_arguments)
        open_: list[_Bundle] = []
        near: list[_Bundle] = []
        bundles: list[_Bundle] = []
        for op in block.ops:
            if isinstance(op, host.EmptyOp | host.ViewOp):
                if isinstance(op, host.EmptyOp):
                    open_ = [b for b in open_ if b.is_on_cpu or b.dying <= self.options.max_kept]
                continue
            launch = self._launch(op, lifetimes, sizes) if isinstance(op, host.LaunchOp) else None
            if launch is None:
                open_.clear()
                near.clear()
                continue
            bundle, moves_up = None, False
            if self._is_small(launch, sizes):
                bundle = next((b for b in open_ if not b.conflicts(launch) and b.has_room(launch, self.options)), None)
                if bundle is None:
                    bundle = next((b for b in near if self._may_move_up(launch, b, near, lifetimes, sizes)), None)
                    moves_up = bundle is not None
                if bundle is None or not counter("kernel-merge-launches"):
                    bundle, moves_up = _Bundle(), False
            # what this launch must not overtake can grow no more: it would move behind it
            open_ = [other for other in open_ if other is bundle or not other.conflicts(launch)]
            for other in near:
                if other is not bundle:
                    other.let_pass(launch)
            if bundle is not None:
                bundle.add(launch)
                if moves_up:
                    continue
                bundle.move_to(launch)
                if bundle not in open_:
                    open_ = [*open_, bundle][-_OPEN:]
                    near = [*near, bundle][-_OPEN:]
                    bundles.append(bundle)
        for bundle in bundles:
            if len(bundle.launches) > 1:
                self._merge(block, bundle)

    def _launch(self, op: host.LaunchOp, lifetimes: Lifetimes, sizes: Sizes) -> Launch | None:
        """What a launch does; None for one that may raise an error, or whose kernel is not here."""
        function = self.joint.kernels.get(op.kernel.root_reference.data)
        if function is None or function.target is not None or (function.errors is not None and on_cpu(op)):
            return None
        touched = HostMemory(lifetimes, self.joint.kernels).of(op)
        last = [v for v in touched.used - self.kept if lifetimes.last[v] == lifetimes.position[op]]
        dying = sum(sizes.of(bytes_of(type_of(value))) for value in last)
        device = device_of(op.buffers)
        is_sum = not in_host_memory(device) and reduces(function)
        wanted = is_sum and (self.options.loop_products or chosen_tile(function) is not None)
        is_product = wanted and self._is_product(op, function, sizes)
        return Launch(op, function, touched, dying, (device, is_sum, is_product))

    def _is_product(self, op: host.LaunchOp, function: kernel.FuncOp, sizes: Sizes) -> bool:
        """Whether matrix units of a GPU compute all of a kernel."""
        own = passed_sizes(op, [s.data for s in function.symbols], sizes)
        return isinstance(self.target, GpuTarget) and not isinstance(product_nests(function, own), str)

    def _is_small(self, launch: Launch, sizes: Sizes) -> bool:
        """Whether a launch costs more than what the kernel does."""
        own = passed_sizes(launch.op, [s.data for s in launch.function.symbols], sizes)
        block = launch.function.body.block
        if on_cpu(launch.op):
            return work_of_block(block, own) < self.options.small
        if not isinstance(self.target, GpuTarget) or not may_stand_beside(launch.function):
            return False
        return max(bytes_of_block(block, own), work_of_block(block, own)) < self.target.launch_bytes

    def _may_move_up(
        self, launch: Launch, bundle: _Bundle, near: Sequence[_Bundle], lifetimes: Lifetimes, sizes: Sizes
    ) -> bool:
        """Whether a launch may join others where they stand: over what is between, with memory that is there by then.

        Launches of a bundle that stands further down may have been in front of these.
        """
        if bundle.is_on_cpu or bundle.conflicts(launch) or not bundle.has_room(launch, self.options):
            return False
        assert bundle.place is not None
        place = lifetimes.position[bundle.place]
        further = (b for b in near if b is not bundle and b.place and lifetimes.position[b.place] > place)
        if not bundle.is_passed_by(launch) or any(b.conflicts(launch) for b in further):
            return False
        late = [value for value in launch.op.buffers if lifetimes.start(value) > place]
        if not all(isinstance(value.owner, host.EmptyOp) and not value.owner.operands for value in late):
            return False
        return sum(sizes.of(bytes_of(type_of(value))) for value in late) <= self.options.max_kept

    def _merge(self, block: Block, bundle: _Bundle) -> None:
        """Put one launch in the place of one of them, and allocations that come later in front of it."""
        ops = [launch.op for launch in bundle.launches]
        new = self.joint.launch(bundle.launches)
        remark("passed", KernelMergeLaunches.name, ops[-1], f"{len(ops)} launches are one")
        assert bundle.place is not None
        block.insert_op_before(new, bundle.place)
        for op in _behind(new, [value.owner for value in new.buffers]):
            op.detach()
            block.insert_op_before(op, new)
        for op in ops:
            block.erase_op(op)


def _behind(place: Operation, owners: Iterable[Operation | Block]) -> list[Operation]:
    """Which of the ops that make some values stand behind another op of their block, in order."""
    wanted = {owner for owner in owners if isinstance(owner, Operation)}
    return [op for op in ops_behind(place) if op in wanted]
