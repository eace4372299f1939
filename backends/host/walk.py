"""One walk over a `host.func`, for every language that host programs are written in.

The walk decides what a program does and in which order: where symbols get their values, which tensors are only
addresses, what waits and what is freed behind it. A language says how these are spelled (`spelling.py`): Python in
`emit.py`, C++ over libtorch in `packages/runner/emit.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from ...dialects import host
from ...dialects.aten import CHECKED, AtenOp, CallOp, TensorType
from ...dialects.aten.binding import MEASURED, bindings
from ...dialects.aten.schema import REQUIRED, Argument
from ...dialects.aten.types import ITEM_SIZES, TensorData, torch_name
from ...dialects.host.places import number_of, place_of
from ...dialects.raw import maker_of, ops_of
from ...dialects.sym import Expr, SymIntOp
from ...errors import UnsupportedError
from ...machines import in_host_memory
from ...passes.common.implementations import IMPLEMENTATION
from .spelling import Spelling

#: bytes of freed memory that an allocation does without, so that a run of launches goes on
FEW_BYTES = 1 << 16


class HostWalk(Spelling):
    """Writes one function. Every name is of our own numbering: a0 (argument), t0 (tensor), s0 (symbol), ..."""

    def __init__(self, function: host.FuncOp) -> None:
        self.function = function
        self.lines: list[str] = []
        self.symbols: dict[str, str] = {}
        self.variables: dict[SSAValue, str] = {}
        self.pointers: dict[SSAValue, str] = {}
        """Addresses of tensors that only launches use; no tensor object is made for them."""
        self._pending: list[Any] = []
        self._freed: list[str] = []
        self._freed_bytes = 0
        self._given: list[str] = []
        self._dropped: set[SSAValue] = set()
        """Values that a part was given to drop."""
        self._places: dict[SSAValue, dict[int, str]] = {}
        """The variables of the places of each pool, by their numbers."""
        self._positions: dict[Operation, int] = {}
        self._layouts: dict[TensorData, str] = {}

    def _expr(self, expr: Expr) -> str:
        """An expression, or the variable that holds its value."""
        return self._spell(expr)

    # names

    def _symbol(self, name: str) -> str:
        return self.symbols.setdefault(name, f"s{len(self.symbols)}")

    def _fresh(self, value: SSAValue) -> str:
        name = self.variables[value] = f"t{len(self.variables)}"
        return name

    def _variable(self, value: SSAValue) -> str:
        name = self.variables.get(value)
        if name is None:
            raise UnsupportedError(f"a host program uses {value} before it is made")
        return name

    def _layout(self, kind: TensorType) -> str:
        """Sizes and strides."""
        text = self._layouts.get(kind.data)
        if text is None:
            text = self._layouts[kind.data] = f"{self._tuple(kind.shape)}, {self._tuple(kind.strides)}"
        return text

    # the walk

    def walk(self) -> None:
        """Write the lines of the function."""
        self._arguments()
        for op in ops_of(self.function.body.block):
            self._op(op)

    def _arguments(self) -> None:
        arguments = self.function.body.block.args
        names = [f"a{position}" for position in range(len(arguments))]
        self.variables.update(zip(arguments, names, strict=True))
        self._take_arguments(names)
        for attribute in self.function.symbols:
            declared = attribute.data
            if declared.arg is not None:
                source = measure(f"a{declared.arg}", declared.dim, declared.stride)
                self._let_integer(self._symbol(declared.name), source)
        self._begin()

    # Launches that follow each other are collected, so that Python pays once for all of them. Allocations and views
    # in between move before them, frees behind them; an allocation after a free starts a new run, so that the
    # memory that was freed can serve it, unless that is too little to matter.

    def _op(self, op: Operation) -> None:
        if isinstance(op, host.LaunchOp):
            self._launch(op)
        elif isinstance(op, host.FreeOp):
            self._free(op)
        elif isinstance(op, host.EmptyOp):
            if self._freed_bytes >= FEW_BYTES and not op.pool:
                self._flush()
            self._empty(op)
        elif isinstance(op, host.ViewOp):
            self._view(op)
        elif isinstance(op, SymIntOp):
            self._let_integer(self._fresh(op.result), self._spell(op.value.data))
        else:
            self._flush()
            self._statement(op)

    def _statement(self, op: Operation) -> None:
        if isinstance(op, host.ReturnOp):
            self._return([self._variable(value) for value in op.values])
        elif isinstance(op, host.CopyOp):
            self._copy(op)
        elif isinstance(op, AtenOp | CallOp):
            self._call(op)
        elif isinstance(op, host.CallOp):
            self._call_part(op)
        else:
            raise UnsupportedError(f"no host program for {op.name}")

    def _copy(self, op: host.CopyOp) -> None:
        self._do(f"{self._variable(op.target)}.copy_({self._variable(op.source)})")

    def _flush(self) -> None:
        """Write the launches that wait, then the frees behind them."""
        if self._pending:
            self._write_launches()
            self._pending = []
        for name in self._given:
            self._do(f"arena.give({name})")
        self._given = []
        if self._freed:
            self._drop(self._freed)
            self._freed, self._freed_bytes = [], 0

    def _is_kept(self, value: SSAValue) -> bool:
        """Whether memory goes back to the arena at its end of life."""
        owner = value.owner
        return isinstance(owner, host.EmptyOp) and owner.kept is not None and in_host_memory(tensor_type(value).device)

    def _free(self, op: host.FreeOp) -> None:
        values = [value for value in op.values if value in self.variables and value not in self._dropped]
        own = [value for value in values if not self._is_placed(value)]
        self._freed += [self.variables[value] for value in own]
        self._freed_bytes += sum(map(self._bytes, own))
        for value in values:
            self._freed += self._places.get(value, {}).values()
        self._given += [self.variables[value] for value in op.values if self._is_kept(value)]
        if not self._pending:
            self._flush()

    def _bytes(self, value: SSAValue) -> int:
        """Bytes of a tensor that is freed, or `FEW_BYTES` where the next allocation waits for it in any case."""
        return FEW_BYTES

    def _is_placed(self, value: SSAValue) -> bool:
        """Whether a variable is of a place in a pool, which lives as long as that."""
        maker = maker_of(value)
        return maker is not None and number_of(maker) is not None

    # memory

    def _pointer(self, value: SSAValue) -> str:
        known = self.pointers.get(value)
        return known if known is not None else self._address(self._variable(value))

    def _empty(self, op: host.EmptyOp) -> None:
        if op.offset is not None:
            self._planned(op)
            return
        kind = tensor_type(op.out)
        self._allocates(op)
        if op.kept is not None and in_host_memory(kind.device):
            arena, size = self._function_named("arena"), self._expr(kind.shape[0])
            self._let(self._fresh(op.out), f"{arena}.take({size})")
        else:
            made = self._fresh_memory(op)
            self._let(self._fresh(op.out), made)

    def _planned(self, op: host.EmptyOp) -> None:
        """Memory in a pool: an address, where that is all that is needed."""
        if not self._only_launched(op.out, views_are_placed=True) or not self._outlives(op.pool[0], op.out):
            self._in_pool(op)
            return
        assert op.offset is not None
        offset = self._expr(op.offset.data)
        if op.pool[0] not in self.pointers:
            self._set_pointer(op.pool[0], self._pointer(op.pool[0]))
        base = self._pointer(op.pool[0])
        self._set_pointer(op.out, base if offset == "0" else f"{base} + {offset}")

    def _in_pool(self, op: host.EmptyOp | host.ViewOp) -> None:
        """Make a tensor at a place of a pool; there is one already where an earlier op has the same number."""
        where = place_of(op)
        assert where is not None
        pool, offset, _ = where
        places, number = self._places.setdefault(pool, {}), number_of(op)
        if number is not None and number in places:
            self.variables[op.out] = places[number]
            return
        kind, called = tensor_type(op.out), self._function_named("in_pool")
        arguments = f"{self._variable(pool)}, {self._expr(offset)}, {self._layout(kind)}, {self._dtype(kind)}"
        self._let(self._fresh(op.out), f"{called}({arguments})")
        if number is not None:
            places[number] = self.variables[op.out]

    def _view(self, op: host.ViewOp) -> None:
        kind, offset = tensor_type(op.out), self._expr(op.offset.data)
        if self._only_launched(op.out) and self._outlives(op.source, op.out):
            base, item = self._pointer(op.source), ITEM_SIZES[torch_name(kind.element)]
            self._set_pointer(op.out, base if offset == "0" else f"{base} + {self._expr(op.offset.data * item)}")
            return
        if place_of(op) is not None and (op.source not in self.variables or op.place is not None):
            self._in_pool(op)
            return
        source, layout = self._variable(op.source), self._layout(kind)
        if kind.element == tensor_type(op.source).element:
            made = f"{self._function_named('strided')}({source}, {layout}, {offset})"
        else:  # dead memory that was of another type
            made = f"{self._function_named('retyped')}({source}, {offset}, {layout}, {self._dtype(kind)})"
        self._let(self._fresh(op.out), made)

    def _set_pointer(self, value: SSAValue, text: str) -> None:
        """Keep an address in a variable, unless it is one already."""
        if text.isidentifier():
            self.pointers[value] = text
            return
        name = self.pointers[value] = f"p{len(self.pointers)}"
        self._let_integer(name, text)

    def _only_launched(self, value: SSAValue, views_are_placed: bool = False) -> bool:
        """Whether an address is all that is needed of a tensor.

        With `views_are_placed` also where views of it are tensors, which are made at their own places of its pool.
        """
        for use in value.uses:
            user = use.operation
            if isinstance(user, host.FreeOp):
                continue
            if isinstance(user, host.ViewOp) and (views_are_placed or self._only_launched(user.out)):
                continue
            if not isinstance(user, host.LaunchOp) or not self._takes_address(user, value):
                return False
        return True

    def _outlives(self, memory: SSAValue, value: SSAValue) -> bool:
        """Whether a tensor is alive at every use of an address inside of it. A tensor of its own keeps memory alive."""
        ends = [self._position(use.operation) for use in memory.uses if isinstance(use.operation, host.FreeOp)]
        return not ends or self._last_use(value) < min(ends)

    def _last_use(self, value: SSAValue) -> int:
        last = -1
        for use in value.uses:
            user = use.operation
            if isinstance(user, host.ViewOp):
                last = max(last, self._last_use(user.out))
            elif not isinstance(user, host.FreeOp):
                last = max(last, self._position(user))
        return last

    def _position(self, op: Operation) -> int:
        if not self._positions:
            self._positions = {each: k for k, each in enumerate(ops_of(self.function.body.block))}
        return self._positions[op]

    # calls

    def _call_part(self, op: host.CallOp) -> None:
        """A part takes one list, which it clears: what nothing else holds is free as soon as it is used there."""
        given, following = self._list([self._variable(value) for value in op.arguments]), op.next_op
        freed = set(following.operands) & set(op.arguments) if isinstance(following, host.FreeOp) else set()
        freed = {value for value in freed if not self._is_placed(value)}
        if freed:
            self._dropped |= freed
            self._let_list("given", given)
            self._drop([self.variables[value] for value in op.arguments if value in freed])
            given = "given"
        self._run_part(op, given)

    def _look_at_results(self, op: AtenOp | CallOp, always: bool = False) -> None:
        """Sizes that data decided, sizes that were compiled in, and strides that are relied on, or `always`."""
        self._bind_symbols(op)
        if CHECKED in op.attributes:
            self._check_sizes(op)
        for out in op.results:
            self._fit(op, self.variables[out], out, always)

    def _fit(self, op: AtenOp | CallOp, name: str, out: SSAValue, always: bool = False) -> None:
        """Give a result the strides that kernels and views rely on, or `always`."""
        if isinstance(out.type, TensorType) and (always or (_is_launched(out) and not _is_row_major(op, out.type))):
            self._do(f"{name} = {self._function_named('fit')}({name}, {self._layout(out.type)})")

    def _bind_symbols(self, op: AtenOp | CallOp) -> None:
        """Values of the symbols that an op defines: sizes and strides of its tensors, or its integers in order."""
        for each in bindings(op) if op.binds else ():
            if each.name not in self.symbols:
                measured = measure(self.variables[op.results[each.result]], each.dim, each.stride)
                value = self._spell(each.value, {MEASURED: measured})
                self._let_integer(self._symbol(each.name), value)

    def _check_sizes(self, op: AtenOp | CallOp) -> None:
        check, called = self._function_named("check_size"), self._text(op.target)
        for out in op.results:
            if isinstance(out.type, TensorType):
                self._do(f"{check}({self.variables[out]}, {self._tuple(out.type.shape)}, {called})")


def measure(variable: str, dim: int | None, stride: int | None) -> str:
    """A size or a stride of a tensor, or an integer itself."""
    if dim is not None:
        return f"{variable}.size({dim})"
    return variable if stride is None else f"{variable}.stride({stride})"


def arguments_of(op: AtenOp) -> Iterator[tuple[Argument, bool]]:
    """The arguments of the op's schema, and whether each is given: defaults of ATen's are left out."""
    for argument in op.schema.arguments:
        yield argument, argument.is_tensor or argument.name in op.properties or argument.default is REQUIRED


def tensor_type(value: SSAValue) -> TensorType:
    """The type of a value that is a tensor."""
    assert isinstance(value.type, TensorType)
    return value.type


#: ATen's products: their meta functions, which types come from, are the first half of what computes them
_ROW_MAJOR = frozenset({"mm", "addmm", "bmm", "baddbmm"})


def _is_row_major(op: AtenOp | CallOp, kind: TensorType) -> bool:
    """Whether an op is sure to give rows one behind the other, as its type says: ATen's products do, ours by parts."""
    is_product = isinstance(op, AtenOp) and op.packet in _ROW_MAJOR and IMPLEMENTATION not in op.attributes
    return is_product and kind.is_contiguous


def _is_launched(value: SSAValue) -> bool:
    users: Sequence[Operation] = [use.operation for use in value.uses]
    return any(isinstance(user, host.LaunchOp | host.ViewOp) for user in users)
