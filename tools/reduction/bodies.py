"""Strategies inside nests and kernels: loops run once, fusions dissolved, masks and schedules dropped."""

from __future__ import annotations

import re
from collections.abc import Callable

from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation

from ...dialects import host, kernel, loop
from ...dialects.access import string_attr
from ...dialects.sym import MapAttr, SymAttr
from ...passes.analysis.loops import Loop, substitute_axes
from ...passes.printing import module_text
from .structure import Sites

#: properties that an op is complete without
OPTIONAL = (
    "tile", "target", "per_thread", "num_warps", "programs", "streams", "columnwise", "on", "unique", "deterministic",
    "in_place", "atomic", "ordered", "errors",
)  # fmt: skip


def _ops_of(*kinds: type[Operation]) -> Callable[[ModuleOp], list[Operation]]:
    return lambda module: [op for op in module.walk() if isinstance(op, kinds)]


def _long_loops(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if isinstance(op, Loop) and (op.hi.data - op.lo.data).as_int() != 1]


def _run_once(op: object) -> bool:
    """`for i in lo to hi` becomes `for i in lo to lo + 1`."""
    assert isinstance(op, Loop)
    op.properties["hi"] = SymAttr.of(op.lo.data + 1)
    return True


def _unroll(op: object) -> bool:
    """A `kernel.for` becomes its body at the first iteration."""
    assert isinstance(op, kernel.ForOp)
    block, parent = op.body.block, op.parent
    if parent is None:
        return False
    substitute_axes(block, {op.axis.data: op.lo.data})
    for inner in list(block.ops)[:-1]:
        inner.detach()
        parent.insert_op_before(inner, op)
    op.detach()
    op.erase(safe_erase=False)
    return True


def _dissolve(op: object) -> bool:
    """A fusion becomes its members."""
    assert isinstance(op, loop.FusionOp)
    parent = op.parent
    if parent is None:
        return False
    for result, value in zip(op.results, loop.yielded(op.body), strict=True):
        result.replace_all_uses_with(value)
    for member in list(op.members):
        member.detach()
        member.properties.pop("on", None)
        for inner in member.walk():
            inner.properties.pop("on", None)
        parent.insert_op_before(member, op)
    op.detach()
    op.erase(safe_erase=False)
    return True


def _masked(module: ModuleOp) -> list[Operation]:
    accesses = (op for op in module.walk() if isinstance(op, loop.LoadOp | kernel.LoadOp | kernel.StoreOp))
    return [op for op in accesses if op.mask is not None]


def _unmask(op: object) -> bool:
    """A masked access becomes one that is always made."""
    if isinstance(op, kernel.StoreOp):
        new: Operation = kernel.StoreOp.of(
            op.value, op.buffer, op.map, op.dynamic, None, op.kind.data,
            op.atomic is not None, op.ordered is not None, op.location,
        )  # fmt: skip
    elif isinstance(op, kernel.LoadOp):
        new = kernel.LoadOp.of(op.buffer, op.map, op.dynamic, location=op.location)
    else:
        assert isinstance(op, loop.LoadOp)
        new = loop.LoadOp.of(op.source, op.map, op.dynamic, location=op.location)
    parent = op.parent
    assert parent is not None
    parent.insert_op_before(new, op)
    for old, result in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    op.detach()
    op.erase()
    return True


def _optional_properties(module: ModuleOp) -> list[tuple[Operation, str]]:
    return [(op, name) for op in module.walk() for name in OPTIONAL if name in op.properties]


def _drop_property(site: object) -> bool:
    op, name = site  # pyright: ignore[reportGeneralTypeIssues]
    del op.properties[name]
    return True


def _mapped(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if isinstance(op, Loop) and op.mapping.data != "serial"]


def _make_serial(op: object) -> bool:
    assert isinstance(op, Loop)
    op.properties["mapping"] = string_attr("serial")
    op.properties.pop("tile", None)
    return True


def _launches(function: kernel.FuncOp) -> list[host.LaunchOp]:
    module = function.parent_op()
    name = function.sym_name.data
    ops = module.walk() if module is not None else ()
    return [op for op in ops if isinstance(op, host.LaunchOp) and op.kernel.root_reference.data == name]


def _unused_buffers(module: ModuleOp) -> list[BlockArgument]:
    functions = (op for op in module.ops if isinstance(op, kernel.FuncOp))
    return [a for function in functions for a in reversed(function.body.block.args) if a.first_use is None]


def _drop_buffer(argument: object) -> bool:
    """A parameter that a kernel does not use, gone from its launches too."""
    assert isinstance(argument, BlockArgument)
    function, number = argument.block.parent_op(), argument.index
    assert isinstance(function, kernel.FuncOp)
    for launch in _launches(function):
        launch.operands = [v for k, v in enumerate(launch.operands) if k != number]
    argument.block.erase_arg(argument)
    return True


def _kernel_symbols(module: ModuleOp) -> list[tuple[kernel.FuncOp, int]]:
    functions = [op for op in module.ops if isinstance(op, kernel.FuncOp)]
    return [(f, k) for f in functions for k in reversed(range(len(f.symbols)))]


def _drop_kernel_symbol(site: object) -> bool:
    """An integer parameter of a kernel, which has to be unused for the module to verify and to run."""
    function, number = site  # pyright: ignore[reportGeneralTypeIssues]
    name = function.symbols.data[number].data
    text = re.sub(r"(symbols \([^)]*\))", "", module_text(function))
    if re.search(rf"(?<![\w%]){name}(?!\w)", text):
        return False
    for launch in _launches(function):
        launch.properties["symbols"] = _without(launch.symbols, number)
    function.properties["symbols"] = _without(function.symbols, number)
    return True


def _without(array: ArrayAttr[Attribute] | MapAttr, number: int) -> Attribute:
    kept = [item for k, item in enumerate(array.data) if k != number]
    return MapAttr.of(*kept) if isinstance(array, MapAttr) else ArrayAttr(kept)  # pyright: ignore[reportArgumentType]


RUN_ONCE = Sites("run loops once", _long_loops, _run_once)
UNROLL = Sites("replace loops by their bodies", _ops_of(kernel.ForOp), _unroll)
DISSOLVE = Sites("dissolve fusions", _ops_of(loop.FusionOp), _dissolve)
UNMASK = Sites("drop masks", _masked, _unmask)
DROP_PROPERTIES = Sites("drop optional properties", _optional_properties, _drop_property)
DROP_BUFFERS = Sites("drop unused buffers", _unused_buffers, _drop_buffer)
DROP_KERNEL_SYMBOLS = Sites("drop unused integers of kernels", _kernel_symbols, _drop_kernel_symbol)
MAKE_SERIAL = Sites("make loops serial", _mapped, _make_serial)
