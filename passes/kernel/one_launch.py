"""What the passes share that let several launches be one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Region, SSAValue

from ...dialects import host, kernel
from ...dialects.sym import Expr, MapAttr
from ..analysis.functions import kernels_of
from ..analysis.launches import launches_in
from ..analysis.memory_order import Touched
from ..common.locations import merged

Arguments = dict[tuple[SSAValue, Attribute], int]
"""Buffers of one launch in place of several, each with the type that a kernel sees it as, and their positions."""


@dataclass(eq=False)
class Launch:
    """A launch, its kernel, and what it does to memory."""

    op: host.LaunchOp
    function: kernel.FuncOp
    touched: Touched[SSAValue]

    @property
    def symbols(self) -> dict[str, Expr]:
        """What it passes for each symbol."""
        return {s.data: value for s, value in zip(self.function.symbols, self.op.symbols.data, strict=True)}


#: puts what the kernels of some launches do into a block, by their buffers there; names the errors that it may report
Fill = Callable[[Block, Sequence[dict[SSAValue, SSAValue]]], Iterable[str]]


class JointKernels:
    """Kernels that do what several of a module did, each made once.

    kernels:  all kernels by name, these among them
    made:     those that were made, by what they are made of
    """

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.kernels = kernels_of(module)
        self.made: dict[tuple[object, ...], kernel.FuncOp] = {}
        self._replaced: set[kernel.FuncOp] = set()

    def launch(self, launches: Sequence[Launch], suffix: str, fill: Fill) -> host.LaunchOp:
        """One launch for several, which is not inserted yet, of a kernel called like the first with a suffix."""
        arguments, places = common_arguments((each.op, each.function) for each in launches)
        symbols = {name: value for each in launches for name, value in each.symbols.items()}
        key = (*(each.function for each in launches), *places, *symbols)
        function = self.made.get(key)
        if function is None:
            types = [type_ for _, type_ in arguments]
            function = self.made[key] = self._kernel(
                [e.function for e in launches], places, types, symbols, suffix, fill
            )
        location = merged(each.op.location for each in launches)
        buffers = [value for value, _ in arguments]
        return host.LaunchOp.of(function.sym_name.data, buffers, MapAttr.of(*symbols.values()), location)

    def _kernel(
        self,
        functions: Sequence[kernel.FuncOp],
        places: Sequence[Sequence[int]],
        types: Sequence[Attribute],
        symbols: Iterable[str],
        suffix: str,
        fill: Fill,
    ) -> kernel.FuncOp:
        block = Block(arg_types=types)
        maps: list[dict[SSAValue, SSAValue]] = []
        for function, place in zip(functions, places, strict=True):
            maps.append({a: block.args[p] for a, p in zip(function.body.block.args, place, strict=True)})
            for argument, new in maps[-1].items():
                new.name_hint = new.name_hint or argument.name_hint
        errors = list(fill(block, maps))
        block.add_op(kernel.YieldOp.create())
        name = free_name(functions[0].sym_name.data + suffix, self.kernels)
        location = merged(function.location for function in functions)
        result = kernel.FuncOp.of(name, list(symbols), Region(block), errors, location=location)
        self.module.body.block.insert_op_before(result, functions[0])
        self.kernels[name] = result
        self._replaced.update(functions)
        return result

    def erase_unlaunched(self) -> None:
        """Erase the kernels that were launched, and that others stand for everywhere."""
        launched = {launch.kernel.root_reference.data for _, launch in launches_in(self.module)}
        for function in self._replaced:
            if function.sym_name.data not in launched:
                self.module.body.block.erase_op(function)


def common_arguments(
    launches: Iterable[tuple[host.LaunchOp, kernel.FuncOp]],
) -> tuple[Arguments, list[tuple[int, ...]]]:
    """The buffers of launches, common ones once, and the positions among them of those of each launch.

    A buffer that kernels see as different types stays two arguments.
    """
    arguments: Arguments = {}
    places = [
        tuple(
            arguments.setdefault((value, argument.type), len(arguments))
            for value, argument in zip(op.buffers, function.body.block.args, strict=True)
        )
        for op, function in launches
    ]
    return arguments, places


def free_name(name: str, taken: Collection[str]) -> str:
    """A name for a kernel that no other has."""
    number = sum(known == name or known.startswith(f"{name}_") for known in taken)
    return f"{name}_{number}" if number else name
