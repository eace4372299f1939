"""Kernels that do what several of a module did, as `kernel-merge-launches` makes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import host, kernel
from ...dialects.sym import Expr, MapAttr, SymAttr, const
from ...machines import in_host_memory
from ..analysis.functions import kernels_of
from ..analysis.launches import launches_in
from ..analysis.loops import kernel_names
from ..analysis.memory_order import Touched
from ..common.locations import merged
from .beside import lay_beside


@dataclass(eq=False)
class Launch:
    """A launch, its kernel, and what it does to memory.

    dying: bytes of memory that nothing behind it uses, and that the program frees then
    kind:  what launches that become one have in common: the device, on a GPU whether they reduce, and whether they are
           products for matrix units
    """

    op: host.LaunchOp
    function: kernel.FuncOp
    touched: Touched[SSAValue]
    dying: int
    kind: tuple[str, bool, bool]

    @property
    def is_on_cpu(self) -> bool:
        """Whether threads of the host run it."""
        return in_host_memory(self.kind[0])

    @property
    def symbols(self) -> dict[str, Expr]:
        """What it passes for each symbol."""
        return {s.data: value for s, value in zip(self.function.symbols, self.op.symbols.data, strict=True)}


class JointKernels:
    """Kernels in the place of several, each made once: `made`, by what they are made of."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.kernels = kernels_of(module)
        self.made: dict[tuple[object, ...], kernel.FuncOp] = {}
        self._replaced: set[kernel.FuncOp] = set()

    def launch(self, launches: Sequence[Launch]) -> host.LaunchOp:
        """One launch for several, not inserted yet. A buffer that kernels see as the same type is passed once."""
        arguments: dict[tuple[SSAValue, Attribute], int] = {}
        places = [
            tuple(
                arguments.setdefault((value, argument.type), len(arguments))
                for value, argument in zip(each.op.buffers, each.function.body.block.args, strict=True)
            )
            for each in launches
        ]
        symbols = {name: value for each in launches for name, value in each.symbols.items()}
        key = (*(each.function for each in launches), *places, *symbols)
        function = self.made.get(key)
        if function is None:
            block = Block(arg_types=[type_ for _, type_ in arguments])
            function = self.made[key] = self._kernel(launches, places, block, list(symbols))
        location = merged(each.op.location for each in launches)
        buffers = [value for value, _ in arguments]
        return host.LaunchOp.of(function.sym_name.data, buffers, MapAttr.of(*symbols.values()), location)

    def _kernel(
        self, launches: Sequence[Launch], places: Sequence[Sequence[int]], block: Block, symbols: list[str]
    ) -> kernel.FuncOp:
        """What the kernels of launches do, one behind the other, in a kernel called like the first."""
        functions = [each.function for each in launches]
        taken = set[str]().union(*map(kernel_names, functions))
        errors: dict[str, int] = {}
        for launch, function, place in zip(launches, functions, places, strict=True):
            values: dict[SSAValue, SSAValue] = {}
            for argument, position in zip(function.body.block.args, place, strict=True):
                values[argument] = block.args[position]
                block.args[position].name_hint = block.args[position].name_hint or argument.name_hint
            if launch.is_on_cpu:
                block.add_ops([op.clone(values) for op in list(function.body.block.ops)[:-1]])
                continue
            last = block.last_op
            lay_beside(function, block, values, taken)
            _renumber_errors(block, last, function, errors)
        block.add_op(kernel.YieldOp.create())
        name = _free_name(f"{functions[0].sym_name.data}_and_{len(launches) - 1}_more", self.kernels)
        location = merged(function.location for function in functions)
        result = self.kernels[name] = kernel.FuncOp.of(name, symbols, Region(block), list(errors), location=location)
        self.module.body.block.insert_op_before(result, functions[0])
        self._replaced.update(functions)
        return result

    def erase_unlaunched(self) -> None:
        """Erase the kernels that were launched, and that others stand for everywhere."""
        launched = {launch.kernel.root_reference.data for _, launch in launches_in(self.module)}
        for function in self._replaced:
            if function.sym_name.data not in launched:
                self.module.body.block.erase_op(function)


def _renumber_errors(block: Block, last: Operation | None, function: kernel.FuncOp, errors: dict[str, int]) -> None:
    """Let the asserts of a kernel that was laid down behind `last` report errors by the numbers of the merged one."""
    if function.errors is None:
        return
    codes = [errors.setdefault(error.data, len(errors) + 1) for error in function.errors]
    op = block.first_op if last is None else last.next_op
    while op is not None:
        for each in op.walk():
            if isinstance(each, kernel.AssertOp):
                old = each.code.data.as_int()
                assert old is not None
                each.properties["code"] = SymAttr.of(const(codes[old - 1]))
        op = op.next_op


def _free_name(name: str, taken: Collection[str]) -> str:
    """A name for a kernel that no other has."""
    number = sum(known == name or known.startswith(f"{name}_") for known in taken)
    return f"{name}_{number}" if number else name
