"""One `kernel.func` to one function of C."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.raw import ops_in
from ...passes.analysis.effects import written_buffers
from ...records import dataclass
from ..printing.code import Code
from .checked import FAULT_STATUS
from .context import Buffer, Context, location_lines
from .language import Language
from .literals import REPORT
from .loops import SerialLoops
from .types import storage_ctype

#: a longer parameter list is broken
MAX_LINE = 116


@dataclass(frozen=True)
class KernelSource:
    """A kernel as text.

    language: that it is written in
    name:     of the C function
    text:     the function; it needs the prelude sections `sections` above it
    parameter_types: C types of the parameters, pointers first, then an int64_t for each symbol
    errors:   what status k (from 1) means
    rest:     a last argument in terms of the entry's array `a`; empty for kernels
    """

    language: Language
    name: str
    text: str
    sections: tuple[str, ...]
    parameter_types: tuple[str, ...]
    errors: tuple[str, ...]
    rest: str = ""
    buffers: tuple[str, ...] = ()
    """Names of the buffers, for what a checked kernel reports."""


def emit_kernel(
    function: kernel.FuncOp, language: Language, walk: type[SerialLoops] = SerialLoops, checked: bool = False
) -> KernelSource:
    """Write a kernel as a function that returns 0, or the number of the error that an assert found.

    walk:    writes the ops of the body
    checked: whether it checks what it does, see `checked`. It takes the extents of its buffers behind the symbols, then
        the address of the report, and returns `FAULT_STATUS` when it reports something

    Raises UnsupportedError for types and ops that the language does not have.
    """
    context = Context(language, checked)
    name = context.names.fresh(function.sym_name.data)
    types, names = _parameters(context, function)
    parameters = ", ".join(f"{ctype} {name}" for ctype, name in zip(types, names, strict=True))
    asserts = any(isinstance(op, kernel.AssertOp) for op in ops_in(function))
    out = context.out
    out.line(f"// {name}: {_summary(function)}")
    head = f"{language.export}NOINLINE int {name}("
    if len(head) + len(parameters) > MAX_LINE:
        parameters = parameters.replace(", ", ",\n    ")
    with out.block(f"{head}{parameters})"):
        if asserts:
            out.line("uint32_t failed = 0;  // bit k - 1: an assert with error code k")
        if checked:
            _check_buffers(context, function)
        walk(context).block(function.body.block)
        if checked:
            out.line(f"if ({REPORT}[0] != 0) return {FAULT_STATUS};")
        out.line("return __builtin_ffs(failed);" if asserts else "return 0;")
    return KernelSource(
        language,
        name,
        "\n".join(out.lines) + "\n",
        tuple(context.need.sections),
        tuple(ctype.replace(f" {language.restrict}", "") for ctype in types),
        tuple(e.data for e in function.errors or ()),
        buffers=tuple(context.buffers[argument].name for argument in function.body.block.args),
    )


def _check_buffers(context: Context, function: kernel.FuncOp) -> None:
    """Give the buffers their names, in front of the pointers and extents that are passed."""
    context.need("checked")
    for number, (argument, ctype) in enumerate(_pointees(function)):
        name = context.buffers[argument].name
        arguments = f"{name}_data, {name}_extent, {REPORT}, {number}"
        context.out.line(context.language.checked_buffer(ctype, name, arguments))


def _pointees(function: kernel.FuncOp) -> list[tuple[SSAValue, str]]:
    """The buffers with the types of their elements; those of buffers that are only read are const."""
    written = written_buffers(function.body.block)
    pointees: list[tuple[SSAValue, str]] = []
    for argument in function.body.block.args:
        assert isinstance(argument.type, kernel.BufferType)
        const = "" if argument in written else "const "
        pointees.append((argument, f"{const}{storage_ctype(argument.type.element)}"))
    return pointees


def _parameters(context: Context, function: kernel.FuncOp) -> tuple[list[str], list[str]]:
    """C types and names of the parameters."""
    types: list[str] = []
    names: list[str] = []
    for position, (argument, ctype) in enumerate(_pointees(function)):
        assert isinstance(argument.type, kernel.BufferType)
        name = context.names.fresh(argument.name_hint or f"b{position}")
        context.buffers[argument] = Buffer(name, argument.type.element)
        names.append(f"{name}_data" if context.checked else name)
        types.append(f"{ctype}*" if context.checked else f"{ctype}* {context.language.restrict}")
    context.has_symbols = bool(function.symbols)
    for symbol in function.symbols:
        names.append(context.names.fresh(symbol.data))
        context.symbols[symbol.data] = Code(names[-1])
        types.append("int64_t")
    if context.checked:
        names += [f"{context.buffers[argument].name}_extent" for argument in function.body.block.args]
        names.append(REPORT)
        types += [*("int64_t" for _ in function.body.block.args), "int64_t*"]
    context.parameters = dict(zip(names, types, strict=True))
    return types, names


def _summary(function: kernel.FuncOp) -> str:
    lines = dict.fromkeys(line for op in ops_in(function) for line in location_lines(op.location))
    return ", ".join(list(lines)[:8]) or "no source lines known"
