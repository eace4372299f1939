"""What the passes share that let several launches be one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from ...dialects import host, kernel
from ..analysis.launches import launches_in, written_by
from ..analysis.lifetimes import Lifetimes

Arguments = dict[tuple[SSAValue, Attribute], int]
"""Buffers of one launch in place of several, each with the type that a kernel sees it as, and their positions."""


def used_and_written(
    op: host.LaunchOp, function: kernel.FuncOp, lifetimes: Lifetimes
) -> tuple[frozenset[SSAValue], frozenset[SSAValue]]:
    """The memory that a launch of a kernel uses, and what of it it writes."""
    used, written = (
        frozenset[SSAValue]().union(*map(lifetimes.roots, values)) for values in (op.buffers, written_by(op, function))
    )
    return used, written


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


def erase_unlaunched(module: ModuleOp, functions: Iterable[kernel.FuncOp]) -> None:
    """Erase those of some kernels that were launched, but are no more."""
    launched = {launch.kernel.root_reference.data for _, launch in launches_in(module)}
    for function in functions:
        if function.sym_name.data not in launched:
            module.body.block.erase_op(function)
