"""Source text and whole programs from IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ..dialects import host, kernel
from ..dialects.machine import TARGETS
from ..errors import UserError, is_of_program
from ..lowering.registry import nearest
from ..passes.analysis.functions import reached
from ..passes.kernel.scheduled import family_of
from .generators import check_generator, generator_named


class Program(Protocol):
    """An executable: takes one list of inputs, clears it, returns a list of outputs."""

    sources: dict[str, str]

    def __call__(self, args: list[Any]) -> list[Any]:
        """Run."""
        ...


#: a target to name for a generator in messages, where it is not called like it
_EXAMPLES = {"triton": "cuda:90"}


def emit_source(generator: str, module: ModuleOp) -> str:
    """Source text of the module's kernels. UserError where there are none, or only such for other generators."""
    check_generator(generator)
    kernels = [op for op in module.ops if isinstance(op, kernel.FuncOp)]
    above = next((op for op in module.ops if isinstance(op, func.FuncOp)), None)
    if above is not None and not kernels and not any(isinstance(op, host.FuncOp) for op in module.ops):
        raise UserError(
            f"there is no kernel to emit for {generator!r}: @{above.sym_name.data} is at the aten or loop level",
            "lower it first: add --pipeline default",
        )
    families = [family_of(each) for each in kernels]
    if kernels and all(family is not None and family.generator != generator for family in families):
        first = kernels[0]
        assert first.target is not None and families[0] is not None
        raise UserError(
            f"there is no kernel to emit for {generator!r}: @{first.sym_name.data} is scheduled for "
            f"{first.target.data!r}",
            f"say the machine in front of the schedule, --target {_EXAMPLES.get(generator, generator)}, or write "
            f"-t {families[0].generator}",
        )
    return generator_named(generator).emit_source(module)


def run_compiled(
    module: ModuleOp, inputs: Sequence[Any], function: str | None = None, checked: bool = True
) -> list[Any]:
    """Lower a module of any level the rest of the way, compile it and run one function on real inputs.

    checked: whether inputs, launches and accesses are checked, as the reference backend checks them
    """
    return compiled_run(module, inputs, function, checked)()


def compiled_run(
    module: ModuleOp, inputs: Sequence[Any], function: str | None = None, checked: bool = True
) -> Callable[[], list[Any]]:
    """The same in two steps: the function that is returned runs the program, as often as it is called."""
    from ..dialects.context import new_context
    from ..lowering.pipeline import remaining_passes
    from ..passes.manager import PassManager
    from .host import build

    keep_function(module, function)
    if checked:
        from .reference.run import check_arguments

        check_arguments(module, inputs)
    attach_devices(module)
    passes = remaining_passes(module)
    PassManager(passes).run(new_context(), module)
    program = build(module, checked=checked)

    def run() -> list[Any]:
        try:
            return program(list(inputs))
        except ZeroDivisionError as error:  # host programs compute sizes as Python does
            if is_of_program(error):
                raise
            raise UserError("an expression of sizes divides by zero", "mend the file") from error

    return run


def attach_devices(module: ModuleOp) -> None:
    """Let a module that names no machines name those of the devices that are here."""
    if TARGETS not in module.attributes:
        from ..lowering.fx_machines import attach_machines

        functions = [f for f in module.ops if isinstance(f, func.FuncOp | host.FuncOp)]
        signatures = [f.function_type for f in functions]
        attach_machines(module, [type_ for each in signatures for type_ in (*each.inputs, *each.outputs)])


def keep_function(module: ModuleOp, name: str | None) -> None:
    """Drop all functions but the named (or first) one and what it calls; kernels stay.

    UserError when there is no such function.
    """
    functions = [f for f in module.ops if isinstance(f, func.FuncOp | host.FuncOp)]
    names = [f.sym_name.data for f in functions]
    if not functions:
        raise UserError("the file has no function to run", "add a func.func or a host.func")
    if name is not None and name not in names:
        raise UserError(f"the file has no function {name!r}", nearest(name, names) or f"it has: {', '.join(names)}")
    kept = reached(module, name or names[0])
    for function in functions:
        if function.sym_name.data not in kept:
            function.detach()
            function.erase()
