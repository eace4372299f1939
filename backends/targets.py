"""Targets by name, and building a whole program from IR: the one place that knows every code generator."""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ..dialects import host, kernel
from ..dialects.aten import TensorType
from ..errors import UserError, is_of_program
from ..lowering.registry import nearest
from ..passes.common.functions import reached

if TYPE_CHECKING:
    from .config import Config

_PACKAGE = __package__


class Program(Protocol):
    """An executable: takes one list of inputs, clears it, returns a list of outputs."""

    sources: dict[str, str]

    def __call__(self, args: list[Any]) -> list[Any]:
        """Run."""
        ...


#: code generator -> module with `emit_source(module, target) -> str`
GENERATORS: dict[str, str] = {"cpp": ".cpp", "triton": ".triton"}
_SPEC = re.compile(r'(?P<generator>\w+)(?:\{\s*target="?(?P<target>[\w:]+)"?\s*\})?')


def parse_target(spec: str) -> tuple[str, str]:
    """(generator, target) of `cpp` or `triton{target="cuda:90"}`. Raises UserError for anything else."""
    match = _SPEC.fullmatch(spec.strip())
    if match is None:
        raise UserError(f"cannot read the target {spec!r}", 'write cpp or triton{target="cuda:90"}')
    generator = match["generator"]
    if generator not in GENERATORS:
        hint = nearest(generator, GENERATORS) or f"known: {', '.join(GENERATORS)}"
        raise UserError(f"unknown target {generator!r}", hint)
    default = {"triton": "cuda:90"}.get(generator, generator)
    return generator, match["target"] or default


def emit_source(spec: str, module: ModuleOp) -> str:
    """Source text of the module's kernels for a target spec. UserError where nothing is lowered to kernels yet."""
    generator, target = parse_target(spec)
    above = next((op for op in module.ops if isinstance(op, func.FuncOp)), None)
    if above is not None and not any(isinstance(op, kernel.FuncOp | host.FuncOp) for op in module.ops):
        raise UserError(
            f"there is no kernel to emit for {spec!r}: @{above.sym_name.data} is at the aten or loop level",
            "lower it first: add --pipeline default",
        )
    return importlib.import_module(GENERATORS[generator], _PACKAGE).emit_source(module, target)


def target_of_device(module: ModuleOp) -> str:
    """Target of the tiling passes: `cpp`, or that of the GPU that the functions' tensors live on."""
    for function in module.ops:
        if not isinstance(function, func.FuncOp | host.FuncOp):
            continue
        types = [*function.function_type.inputs.data, *function.function_type.outputs.data]
        devices = {t.device for t in types if isinstance(t, TensorType) and t.device != "cpu"}
        if devices:
            from .triton.devices import tiling_target

            return tiling_target(min(devices))
    return "cpp"


def build(
    module: ModuleOp,
    config: Config | None = None,
    references: Mapping[str, Any] | None = None,
    carriers: Collection[int] | None = None,
    checked: bool = False,
) -> Program:
    """Emit, compile and link a module at kernel + host level into an executable program.

    `references` are the graphs and objects that its calls name; `carriers` the positions of the inputs that may carry
    the negative or conjugate bit, None where nobody watches over that. A `checked` program checks its launches and
    every access of its C++ kernels, so that no IR that verifies can crash the process.
    """
    from .host import build as build_program

    return build_program(module, config, references, carriers, checked)


def run_compiled(
    module: ModuleOp, inputs: Sequence[Any], function: str | None = None, checked: bool = True
) -> list[Any]:
    """Lower a module of any level the rest of the way, compile it and run one function on real inputs.

    checked: whether inputs, launches and accesses are checked, as the reference backend checks them
    """
    from ..dialects.context import new_context
    from ..lowering.pipeline import remaining_passes
    from ..passes.manager import PassManager

    keep_function(module, function)
    if checked:
        from .reference.run import check_arguments

        check_arguments(module, inputs)
    passes = remaining_passes(module, target_of_device(module))
    PassManager(passes).run(new_context(), module)
    try:
        return build(module, checked=checked)(list(inputs))
    except ZeroDivisionError as error:  # host programs compute sizes as Python does
        if is_of_program(error):
            raise
        raise UserError("an expression of sizes divides by zero", "mend the file") from error


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
