"""Results of kernels that nothing reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation

from ...dialects import host, kernel
from ..analysis.launches import launches_in
from ..counters import counter
from .simplify_block import remove_dead


def drop_unread_results(module: ModuleOp, functions: Iterable[kernel.FuncOp]) -> None:
    """Let kernels not store what they do not load, and what no launch of theirs leaves to anything else, in place."""
    launches: dict[str, list[host.LaunchOp]] = {}
    for _, launch in launches_in(module):
        launches.setdefault(launch.kernel.root_reference.data, []).append(launch)
    for function in functions:
        own = launches.get(function.sym_name.data, [])
        for argument in reversed(function.body.block.args):
            stores = [use.operation for use in argument.uses]
            plain = all(isinstance(op, kernel.StoreOp) for op in stores)
            unread = own and plain and all(_is_last_seen(launch, argument.index) for launch in own)
            if unread and counter("kernel-join-columns-unread"):
                _drop(function, argument, stores, own)
        remove_dead(function.body.block)


def _is_last_seen(launch: host.LaunchOp, position: int) -> bool:
    """Whether only this launch uses a buffer that the program allocates for it."""
    value = launch.buffers[position]
    return isinstance(value.owner, host.EmptyOp) and sum(1 for _ in value.uses) == 1


def _drop(
    function: kernel.FuncOp, argument: BlockArgument, stores: Sequence[Operation], launches: Iterable[host.LaunchOp]
) -> None:
    for store in stores:
        assert store.parent is not None
        store.parent.erase_op(store)
    for launch in launches:
        value = launch.buffers[argument.index]
        launch.operands = [buffer for k, buffer in enumerate(launch.buffers) if k != argument.index]
        block = launch.parent
        assert block is not None and isinstance(value.owner, Operation)
        block.erase_op(value.owner)
    function.body.block.erase_arg(argument)
