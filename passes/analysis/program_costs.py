"""Bytes, operations and a lower bound of the time of each kernel and call, read from kernel and host level IR.

Bytes are those that have to cross between memory and a kernel at least once: each element of a buffer counts once,
however often it is read. What a kernel reads only after writing it itself is not read from memory. The values of
symbols are given, or their hints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import host, kernel
from ...dialects.aten import AtenOp, CallOp
from ...dialects.aten.types import TensorType
from ...dialects.sym import Expr
from ...machines.costs import cost_of
from ...machines.roofline import Roofline
from ...records import dataclass
from .footprint import Values, elements, iterations, value_of
from .functions import kernels_of
from .loops import Loop
from .nests import Access, Nest, element_bytes
from .sizes import Sizes


@dataclass(frozen=True)
class Cost:
    """Bytes read and written, and scalar operations, weighted by `machines/costs.py`."""

    read: int = 0
    written: int = 0
    operations: int = 0

    @property
    def bytes(self) -> int:
        """Bytes that move."""
        return self.read + self.written

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.read + other.read, self.written + other.written, self.operations + other.operations)

    def __mul__(self, times: int) -> Cost:
        return Cost(self.read * times, self.written * times, self.operations * times)

    def seconds(self, machine: Roofline) -> float:
        """The least time on a machine: what bounds it, memory or arithmetic, and one launch."""
        return machine.launch + max(self.bytes / machine.bandwidth, self.operations / machine.operations)


@dataclass
class Row:
    """A kernel or a call in a program: its kind, its cost once, and how often it runs."""

    name: str
    kind: str
    cost: Cost
    times: int = 1


@dataclass
class ProgramCost:
    """Costs of a host function, in order of first use, with what it allocates.

    allocated: bytes of all tensors that it makes
    peak:      the most bytes of those alive at once, arguments left out
    kept:      bytes of a pool that stays between calls; it is alive all the time
    """

    name: str
    rows: list[Row] = field(default_factory=list)
    allocated: int = 0
    peak: int = 0
    kept: int = 0

    @property
    def total(self) -> Cost:
        """Everything together."""
        return sum((row.cost * row.times for row in self.rows), Cost())

    def seconds(self, machine: Roofline) -> float:
        """The least time of all of it, one after another."""
        return sum(row.cost.seconds(machine) * row.times for row in self.rows)


def kernel_cost(function: kernel.FuncOp, values: Values) -> Cost:
    """The cost of one launch of a kernel, for values of its symbols."""
    read = written = 0
    for buffer, accesses in _by_buffer(function).items():
        assert isinstance(buffer.type, kernel.BufferType)
        extent = max(int(value_of(buffer.type.extent, values)), 0)
        stores = [a for a in accesses if isinstance(a.op, kernel.StoreOp)]
        loads = [a for a in accesses if isinstance(a.op, kernel.LoadOp)]
        combined = [a for a in stores if isinstance(a.op, kernel.StoreOp) and a.op.kind.data != "set"]
        if stores and accesses[0] in stores:
            loads = []  # what it reads later it has made itself
        size = element_bytes(buffer.type)
        written += size * min(_touched(stores, values), extent)
        read += size * min(_touched([*loads, *combined], values), extent)
    return Cost(read, written, _operations(function.body.block, (), values))


def _by_buffer(function: kernel.FuncOp) -> dict[SSAValue, list[Access]]:
    """The accesses to each parameter, in program order."""
    found: dict[SSAValue, list[Access]] = {}
    for access in _accesses(function.body.block):
        if access.op.buffer in function.body.block.args:
            found.setdefault(access.op.buffer, []).append(access)
    return found


def _accesses(block: Block) -> Iterator[Access]:
    for op in block.ops:
        if isinstance(op, Loop):
            yield from Nest.of(op).accesses
        elif isinstance(op, kernel.LoadOp | kernel.StoreOp):
            yield Access(op, op.map.data[0], frozenset(), (), element_bytes(op.buffer.type))


def _touched(accesses: Iterable[Access], values: Values) -> int:
    """Elements that some accesses touch; equal ones count once, others are taken to be apart."""
    found: dict[object, int] = {}
    for access in accesses:
        loops = [loop for loop in access.loops if loop.axis.data in access.index.free_symbols | access.varying]
        bounds = tuple((loop.axis.data, loop.lo.data, loop.hi.data) for loop in loops)
        key = (access.index, bounds, access.varying, tuple(access.op.dynamic) if access.varying else ())
        if key not in found:
            dynamic = len(access.op.dynamic) > 0
            found[key] = iterations(loops, values) if dynamic else elements(access.index, access.loops, values)
    return sum(found.values())


def _operations(block: Block, loops: tuple[Loop, ...], values: Values) -> int:
    """Scalar operations of a block in a nest."""
    times = iterations(loops, values)
    total = 0
    for op in block.ops:
        if isinstance(op, Loop):
            inner = (*loops, op)
            total += sum(_operations(region.block, inner, values) for region in op.regions[:1])
            total += iterations(inner, values) * len(op.results)  # the combiner
        else:
            total += times * cost_of(op.name).operations
    return total


def program_costs(module: ModuleOp, values: Mapping[str, int] | None = None) -> list[ProgramCost]:
    """The costs of each host function of a module, for values of its symbols, which are their hints otherwise."""
    kernels = kernels_of(module)
    programs = [op for op in module.ops if isinstance(op, host.FuncOp)]
    return [_Program(program, kernels, values or {}).run() for program in programs]


class _Program:
    """Walks a host function."""

    def __init__(self, function: host.FuncOp, kernels: Mapping[str, kernel.FuncOp], given: Mapping[str, int]) -> None:
        self.function = function
        self.kernels = kernels
        self.sizes = Sizes.of_function(function, given)
        self.values = self.sizes.values
        self.rows: dict[tuple[str, Cost], Row] = {}
        self.known: dict[tuple[str, tuple[int, ...]], Cost] = {}

    def run(self) -> ProgramCost:
        result = ProgramCost(self.function.sym_name.data)
        pools = [op.out for op in self.function.body.block.ops if isinstance(op, host.EmptyOp) and op.kept is not None]
        alive: dict[SSAValue, int] = {pool: self._bytes(pool) for pool in pools}
        result.kept = sum(alive.values())
        for op in self.function.body.block.ops:
            if isinstance(op, host.LaunchOp):
                self._add(op.kernel.root_reference.data, "kernel", self._launch(op))
            elif isinstance(op, host.CopyOp):
                self._add(op.name, "copy", Cost(self._bytes(op.source), self._bytes(op.target), 0))
            elif isinstance(op, AtenOp | CallOp):
                self._add(op.target, "call", call_cost(op, self.sizes))
            elif isinstance(op, host.FreeOp):
                for value in op.values:
                    if value not in pools:
                        alive.pop(value, None)
            alive.update({v: self._bytes(v) for v in op.results if self._allocates(op, v)})
            result.allocated += sum(self._bytes(v) for v in op.results if self._allocates(op, v))
            result.peak = max(result.peak, sum(alive.values()))
        result.rows = list(self.rows.values())
        return result

    def _allocates(self, op: Operation, value: SSAValue) -> bool:
        if not isinstance(value.type, TensorType):
            return False
        if isinstance(op, AtenOp):
            return not op.schema.is_view
        return isinstance(op, CallOp) or (isinstance(op, host.EmptyOp) and not op.pool)

    def _add(self, name: str, kind: str, cost: Cost) -> None:
        row = self.rows.get((name, cost))
        if row is None:
            self.rows[name, cost] = Row(name, kind, cost)
        else:
            row.times += 1

    def _launch(self, op: host.LaunchOp) -> Cost:
        function = self.kernels.get(op.kernel.root_reference.data)
        if function is None:
            return Cost()
        passed = tuple(int(value_of(e, self.values)) for e in op.symbols.data)
        key = (function.sym_name.data, passed)
        if key not in self.known:
            names = (s.data for s in function.symbols)
            self.known[key] = kernel_cost(function, dict(zip(names, passed, strict=True)))
        return self.known[key]

    def _bytes(self, value: SSAValue) -> int:
        return self.sizes.bytes(value.type) if isinstance(value.type, TensorType) else 0


#: ops that multiply matrices -> positions of the two factors among the tensor operands
_PRODUCTS = {
    "aten.mm": (0, 1), "aten.bmm": (0, 1), "aten.addmm": (1, 2), "aten.baddbmm": (1, 2), "aten.linear": (0, 1),
    "aten._addmm_activation": (1, 2),
}  # fmt: skip


def flops(op: Operation, sizes: Sizes) -> int | None:
    """Multiplications and additions of a matrix product, a convolution or attention; None for other ops."""
    if not isinstance(op, AtenOp) or not op.results or not isinstance(op.results[0].type, TensorType):
        return None
    elements_out = sizes.elements(op.results[0].type)
    factors = _PRODUCTS.get(op.name)
    if factors is not None:
        return 2 * elements_out * sizes.of(_shape(op.operands[factors[0]])[-1])
    if op.name == "aten.convolution":
        return 2 * elements_out * sizes.product(_shape(op.operands[1])[1:])
    if "attention" in op.packet and "key" in op.schema.by_name:
        key = op.arg("key")
        assert isinstance(key, SSAValue)
        return 4 * elements_out * sizes.of(_shape(key)[-2])
    return None


def _shape(value: SSAValue) -> tuple[Expr, ...]:
    assert isinstance(value.type, TensorType)
    return value.type.shape


def call_cost(op: Operation, sizes: Sizes) -> Cost:
    """The cost of an ATen op called as it is; a view costs nothing, one that is not known an operation an element."""
    if isinstance(op, AtenOp) and op.schema.is_view:
        return Cost()
    inputs = [v.type for v in op.operands if isinstance(v.type, TensorType)]
    outputs = [v.type for v in op.results if isinstance(v.type, TensorType)]
    read, written = sum(map(sizes.bytes, inputs)), sum(map(sizes.bytes, outputs))
    known = flops(op, sizes)
    if known is None:
        known = max([sum(map(sizes.elements, outputs)), *map(sizes.elements, inputs)])
    return Cost(read, written, known)
