"""The pass `kernel-deduplicate`."""

from __future__ import annotations

from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.passes import ModulePass

from ...dialects import host, kernel
from ...dialects.raw import ops_of
from ..common.locations import merged
from ..counters import counter
from .scheduled import for_host
from .value_numbering import Key, kernel_key


class KernelDeduplicate(ModulePass):
    """Keep one of kernels that are equal but for names.

    Level: kernel.

    Precondition: none. It pays off before `kernel-tile`, which then schedules each kernel once.
    Guarantee: no two kernels are equal but for the names of symbols, axes and values, unless one is launched on the
    CPU's tensors and the other is not: they get schedules of their own. Launches name the one that stays, the first.
    Kernels that nothing launches stay, when they are unlike any other.

        kernel.func @exp_0(...) { ... }    kernel.func @exp_1(...) { the same }
        host.launch @exp_0(%x, %y)         host.launch @exp_1(%y, %z)
    becomes
        kernel.func @exp_0(...) { ... }
        host.launch @exp_0(%x, %y)         host.launch @exp_0(%y, %z)
    """

    name = "kernel-deduplicate"
    level: ClassVar[str] = "kernel"
    optional: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Keep the first of equal kernels."""
        block = op.body.block
        first: dict[tuple[Key, bool], kernel.FuncOp] = {}
        on_cpu = for_host(op)
        replaced: dict[str, str] = {}
        for function in list(block.ops):
            if not isinstance(function, kernel.FuncOp):
                continue
            key = kernel_key(function), function.sym_name.data in on_cpu
            kept = first.setdefault(key, function)
            if kept is not function and counter(self.name):
                replaced[function.sym_name.data] = kept.sym_name.data
                kept.location = merged((kept.location, function.location))
                block.erase_op(function, safe_erase=False)
        if replaced:
            _redirect(op, {old: SymbolRefAttr(new) for old, new in replaced.items()})


def _redirect(module: ModuleOp, kernels: dict[str, SymbolRefAttr]) -> None:
    for function in module.body.block.ops:
        if not isinstance(function, host.FuncOp):
            continue
        for op in ops_of(function.body.block):
            if isinstance(op, host.LaunchOp):
                target = kernels.get(op.kernel.root_reference.data)
                if target is not None:
                    op.properties["kernel"] = target
