"""Memory ops of the kernel level: load, store, local buffers, index values, checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, IntegerType, LocationAttr, StringAttr, UnitAttr, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    base,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from ..access import segments, string_attr
from ..assembly import (
    DYNAMIC,
    EXPR,
    INDICES,
    MASK,
    MASK_OTHER,
    NUMBER,
    AssemblyOp,
    clause,
    flag,
    mark,
    one_of,
    operand,
    prop,
    types,
)
from ..aten.types import scalar_type
from ..fields import op_definition
from ..loop.nests import COMBINES
from ..scalar import number_of
from ..shared_ops import IndexBase, LoadBase
from ..sym import Expr, MapAttr, SymAttr, as_expr
from .types import BufferType

#: Which lines of a cache go first: those that nobody needs again, or all others.
CACHE_HINTS = ("evict_first", "evict_last")
#: How a local buffer lies in registers: as a value of all lanes, or as a variable that a loop carries.
REGISTERS = ("tile", "carried")
#: The halves of an access of two neighbours, the lower place first.
HALVES = ("even", "odd")
_BOX = clause("box", NUMBER)
_WORDS = one_of("half", HALVES), one_of("cache", CACHE_HINTS)
_BUFFER = operand("buffer", BufferType), INDICES, DYNAMIC


@op_definition
class LoadOp(LoadBase):
    """Read one element at a linear index: `%v = kernel.load %x[4096*i0 + r0] if %mask else %zero`.

    Dynamic indices are written `%w[768*d0 + i1] (d0 = %token)`. A hint says which lines the cache gives up first:
    `kernel.load evict_last %x[i0]`; it changes no value. `kernel.load even %x[2*i0]` is half of one access of two
    neighbours, the other is `kernel.load odd %x[2*i0 + 1]` in the same block; they are read where the first one stands.

    `kernel.load in_lanes %x[i1 - i0]` is done by each lane for the element that it uses, one by one: no lanes load for
    others, and pass on, what lies side by side. It changes no value.

    `kernel.load box 768 %x[768*i0 + i1]` says that the buffer is a matrix with rows of 768 elements, of which the tile
    of a product's factor is a box (`boxes.py`): a copy engine brings it to the program. It changes no value.
    """

    name = "kernel.load"
    buffer = operand_def(base(BufferType))
    cache = opt_prop_def(StringAttr)
    half = opt_prop_def(StringAttr)
    box = opt_prop_def(IntegerAttr)
    in_lanes = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect())
    SYNTAX: ClassVar = (_BOX, flag("in_lanes"), *_WORDS, *_BUFFER, MASK_OTHER)

    def verify_(self) -> None:
        """Check the index and the types."""
        _verify_linear(self.map)
        _verify_cache(self)
        assert isinstance(self.buffer.type, BufferType)
        if self.value.type != scalar_type(self.buffer.type.element):
            raise VerifyException(f"loads {self.value.type} from a buffer of {self.buffer.type.element}")
        loop = self.parent_op()  # which verifies what is a box
        if self.box is not None and loop is not None and loop.properties.get("mapping") != string_attr("matrix"):
            raise VerifyException("loads a box, but it is no factor of a product on matrix units")
        super().verify_()


@op_definition
class StoreOp(AssemblyOp):
    """Write one element: `kernel.store %v, %y[4096*i0 + r0] if %mask`, or combine with what is there:
    `kernel.store add atomic %v, %y[d0] (d0 = %j)`.

    `atomic` is needed where two iterations that run at once may meet in one place. `ordered` says that iterations
    may meet and the outcome depends on their order, which is row-major: the loops around it must stay serial.
    `evict_first` and `evict_last` are those of `kernel.load`, and so are `even` and `odd`; two halves are stored where
    the second one stands.
    """

    name = "kernel.store"
    value = operand_def()
    buffer = operand_def(base(BufferType))
    dynamic = var_operand_def(IntegerType)
    mask = opt_operand_def(i1)
    map = prop_def(MapAttr)
    kind = prop_def(StringAttr)
    atomic = opt_prop_def(UnitAttr)
    ordered = opt_prop_def(UnitAttr)
    cache = opt_prop_def(StringAttr)
    half = opt_prop_def(StringAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())
    SYNTAX: ClassVar = (
        one_of("kind", COMBINES, usual="set"), flag("atomic"), flag("ordered"), *_WORDS,
        operand("value"), mark(","), *_BUFFER, MASK,
    )  # fmt: skip

    @staticmethod
    def of(
        value: SSAValue,
        buffer: SSAValue,
        index: MapAttr,
        dynamic: Sequence[SSAValue] = (),
        mask: SSAValue | None = None,
        kind: str = "set",
        atomic: bool = False,
        ordered: bool = False,
        location: LocationAttr | None = None,
    ) -> StoreOp:
        """Build; `kind` is one of `loop.COMBINES`."""
        masked = () if mask is None else (mask,)
        properties: dict[str, Attribute] = {
            "map": index,
            "kind": string_attr(kind),
            "operandSegmentSizes": segments(1, 1, len(dynamic), len(masked)),
        }
        if atomic:
            properties["atomic"] = UnitAttr()
        if ordered:
            properties["ordered"] = UnitAttr()
        return StoreOp.create(operands=(value, buffer, *dynamic, *masked), properties=properties, location=location)

    def verify_(self) -> None:
        """Check the index, the kind and the types."""
        _verify_linear(self.map)
        _verify_cache(self)
        assert isinstance(self.buffer.type, BufferType)
        if self.value.type != scalar_type(self.buffer.type.element):
            raise VerifyException(f"stores {self.value.type} into a buffer of {self.buffer.type.element}")
        if self.kind.data not in COMBINES:
            raise VerifyException(f"combines by {self.kind.data}; known: {', '.join(COMBINES)}")


@op_definition
class LocalOp(AssemblyOp):
    """A local buffer of undefined content, one for each iteration of the enclosing loop:
    `%row = kernel.local : !kernel.buffer<f32, 4096, local>`.

    `kernel.local columnwise` says that lanes of a GPU lie along the iterations: in memory equal elements of neighbours
    would have to be neighbours. `kernel.local tile` is one value of all lanes of a GPU's program, in registers: each
    lane reads what it stored itself. `kernel.local carried` is such a tile that a loop carries to its next iteration;
    lanes along further axes may add to it (`kernel.store add atomic`).

    `kernel.local heap` is too large for the stack of a CPU's thread, or of a size that no compiler knows.
    """

    name = "kernel.local"
    columnwise = opt_prop_def(UnitAttr)
    registers = opt_prop_def(StringAttr)
    heap = opt_prop_def(UnitAttr)
    buffer = result_def(base(BufferType))
    SYNTAX: ClassVar = (flag("columnwise"), one_of("registers", REGISTERS), flag("heap"), types())

    @staticmethod
    def of(element: Attribute, extent: Attribute) -> LocalOp:
        """Build from an element type and the extent as a `SymAttr`."""
        assert isinstance(extent, SymAttr)
        return LocalOp.create(result_types=(BufferType.get(element, extent.data, True),))

    def verify_(self) -> None:
        """Check that the type is local."""
        assert isinstance(self.buffer.type, BufferType)
        if not self.buffer.type.local:
            raise VerifyException("kernel.local makes a local buffer")
        if self.registers is None:
            return
        if self.heap is not None:
            raise VerifyException("lies either in registers or on the heap")
        if self.registers.data not in REGISTERS:
            raise VerifyException(f"lies in registers as {self.registers.data}; known: {', '.join(REGISTERS)}")
        for use in self.buffer.uses:
            access = use.operation
            if not isinstance(access, LoadOp | StoreOp) or access.dynamic:
                raise VerifyException("lies in registers, which have no places that a dynamic index finds")
            if not isinstance(access, StoreOp):
                continue
            adds = access.kind.data == "add" and access.atomic is not None and self.registers.data == "carried"
            if access.mask is not None or not (access.kind.data == "set" or adds):
                raise VerifyException("lies in registers, which are stored as a whole, or added to by a loop's lanes")


@op_definition
class BarrierOp(AssemblyOp):
    """All threads of a GPU's program meet: what they stored before is seen by all of them behind: `kernel.barrier`.

    A program of several warps (`num_warps`) that works on tiles needs one between a store and a load of the same place
    at another index, for another thread may have stored it. The interpreter reports a race where there is none.
    """

    name = "kernel.barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@op_definition
class AwaitOp(AssemblyOp):
    """The launches in front have ended, and all that they wrote is in memory: `kernel.await`.

    A kernel that has one may begin while the launch in front of it still runs, on a GPU that can do so; each program
    then waits here, before it reads what a launch of the same program wrote, and before it writes anything. To wait a
    second time changes nothing.
    """

    name = "kernel.await"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@op_definition
class ReleaseOp(AssemblyOp):
    """The launch behind may begin, once all programs have come here or ended: `kernel.release`.

    What it reads of this kernel's results waits in an await of its own, until this kernel has ended.
    """

    name = "kernel.release"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@op_definition
class IndexOp(IndexBase):
    """An index expression as an i64 value: `%i = kernel.index 4*i0 + d0 (d0 = %j)`."""

    name = "kernel.index"


@op_definition
class AssertOp(AssemblyOp):
    """Set the kernel's status when a condition is false for any element; the host raises:
    `kernel.assert %ok, 1`. Code `k` is the k-th entry (from 1) of the function's `errors`."""

    name = "kernel.assert"
    condition = operand_def(i1)
    code = prop_def(SymAttr)
    traits = traits_def(MemoryWriteEffect())
    SYNTAX: ClassVar = (operand("condition"), mark(","), prop("code", EXPR))

    def verify_(self) -> None:
        """Check that the code is a number."""
        code = self.code.data.as_int()
        if code is None or code < 1:
            raise VerifyException(f"the code of an error is 1, 2, ..., not {self.code.data}")


def other_half(op: LoadOp | StoreOp) -> LoadOp | StoreOp | None:
    """The access in the block of a half that is the other half: of the place behind an even one, or in front."""
    if op.half is None or op.parent is None:
        return None
    place = op.map.data[0] + (1 if op.half.data == HALVES[0] else -1)
    for other in op.parent.ops:
        if not isinstance(other, LoadOp | StoreOp) or other.name != op.name or other.half in (None, op.half):
            continue
        if other.buffer is op.buffer and other.map.data[0] == place:
            return other
    return None


def stored_between(one: LoadOp | StoreOp, other: LoadOp | StoreOp) -> bool:
    """Whether either place may be stored to in between; the first store of a pair is done where the second one is."""
    block = one.parent_block()
    assert block is not None
    ops = list(block.ops)
    first, last = sorted((ops.index(one), ops.index(other)))
    stores = [op for outer in ops[first + 1 : last] for op in outer.walk() if isinstance(op, StoreOp)]
    same = [op for op in stores if op.buffer is one.buffer]
    return any(_may_meet(op, half) for op in same for half in (one, other))


def _may_meet(op: StoreOp, half: LoadOp | StoreOp) -> bool:
    difference = (op.map.data[0] - half.map.data[0]).as_int()
    return bool(op.dynamic) or difference is None or difference == 0


def _verify_half(op: LoadOp | StoreOp) -> None:
    if op.half is None:
        return
    if op.half.data not in HALVES:
        raise VerifyException(f"is the {op.half.data} half; known: {', '.join(HALVES)}")
    if op.mask is not None or op.dynamic or (isinstance(op, StoreOp) and op.kind.data != "set"):
        raise VerifyException("half of an access of two places has no mask, no dynamic index, and sets what it stores")
    if op.parent is None:
        return
    other = other_half(op)
    if other is None:
        raise VerifyException("the block has no other half of this access of two places")
    if any(type(use.operation) is not type(op) for use in op.buffer.uses) or stored_between(op, other):
        raise VerifyException("halves of one access change places with an access between them that may meet them")


def _verify_cache(op: LoadOp | StoreOp) -> None:
    _verify_half(op)
    if op.cache is None:
        return
    if op.cache.data not in CACHE_HINTS:
        raise VerifyException(f"hints {op.cache.data} to the cache; known: {', '.join(CACHE_HINTS)}")
    assert isinstance(op.buffer.type, BufferType)
    if op.buffer.type.local:
        raise VerifyException("a local buffer lies in no cache that takes hints")


def _verify_linear(index: MapAttr) -> None:
    if len(index.data) != 1:
        raise VerifyException(f"a buffer has one linear index, not {len(index.data)}")


def index_of(value: SSAValue) -> Expr | None:
    """The expression that an integer is; None for one that is computed or loaded."""
    owner, number = value.owner, number_of(value)
    if isinstance(owner, IndexOp):
        return None if owner.dynamic else owner.expr.data
    return as_expr(number) if isinstance(number, int) else None
