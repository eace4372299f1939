"""What tells one language of this kind from another: how it spells the few things that they do not spell alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from ...records import dataclass
from .prelude import Prelude

if TYPE_CHECKING:  # graphs from the cache ask about the compiler, and load nothing of ours
    from xdsl.ir import Operation

    from .scalars import Rule


@dataclass(frozen=True, eq=False)
class Language:
    """A language, with the compiler that takes it. What is said here holds for C; C++ overrides some of it.

    name:       of the code generator, and of its folder in the cache
    title:      what people call it
    headers:    packages and files of the support code, in the order in which sections appear
    variable:   of the environment, which names a compiler
    compilers:  those that are tried otherwise
    package:    what has to be installed for one
    flags:      of every compile
    libraries:  behind the source
    keywords:   words that are no identifiers, besides those of C
    ending:     of files, by which a compiler knows the language; the name if nothing is said
    export:     in front of a function that other files see
    aligned:    in front of an array that starts at a cache line
    restrict:   behind a pointer that nothing else points into
    scalar_rules: class of op -> how it is written here instead of as in the others
    extensions: the entry point group of packages that add rules
    vector_math: whether functions of libm are declared with their vector variants
    """

    name: str
    title: str
    headers: Sequence[tuple[str, str]]
    variable: str
    compilers: Sequence[str]
    package: str
    flags: Sequence[str]
    extensions: str
    libraries: Sequence[str] = ("-lm",)
    keywords: frozenset[str] = frozenset()
    ending: str = ""
    export: str = ""
    aligned: str = "_Alignas(64)"
    restrict: str = "restrict"
    vector_math: bool = False
    scalar_rules: Mapping[type[Operation], Rule] = field(default_factory=lambda: MappingProxyType({}))

    @cached_property
    def prelude(self) -> Prelude:
        """The support code."""
        return Prelude(self.headers, self.export, self.vector_math)

    def generic(self, function: str, *types: str) -> str:
        """The variant of a support function for C types that its operands do not say."""
        return "_".join((function, *types))

    def overloaded(self, function: str, ctype: str) -> str:
        """The variant of a support function for the C type of its first operand."""
        return f"{function}_{ctype}"

    def bit_cast(self, source: str, target: str) -> str:
        """The support function that gives the bits of one C type to another."""
        return f"bit_cast_{source}_{target}"

    def converted(self, ctype: str, text: str) -> str:
        """A literal as one of a narrow type."""
        return f"(({ctype}){text})"

    def combining(self, function: str, ctype: str, arity: int) -> str:
        """The statement by which a support function combines values `b0, b1, ...` into variables `a0, a1, ...`."""
        arguments = [f"&{{a{k}}}" for k in range(arity)] + [f"{{b{k}}}" for k in range(arity)]
        return f"{self.overloaded(function, ctype)}({', '.join(arguments)});"

    def place(self, ctype: str, name: str, place: str) -> tuple[str, str]:
        """A declaration that keeps an element of memory under a name, and the element by that name."""
        return f"{ctype}* {name} = &{place};", f"*{name}"

    def element(self, ctype: str, buffer: str, index: str, checked: bool) -> str:
        """An element of a buffer."""
        return f"AT({ctype}, {buffer}, {index})" if checked else f"{buffer}[{index}]"

    def checked_buffer(self, ctype: str, name: str, arguments: str) -> str:
        """The declaration of a buffer that knows its extent: address, extent, report, number."""
        return f"const Checked {name} = {{(void*){arguments}}};"

    def scratch(self, ctype: str, name: str, extent: str) -> Sequence[str]:
        """The declaration of a local buffer on the heap, which is freed at the end of its block."""
        return (
            f"SCRATCH void* {name}_memory = scratch({extent}, sizeof({ctype}));",
            f"{ctype}* {self.restrict} const {name} = ({ctype}*){name}_memory;",
        )

    def checked_scratch(self, ctype: str, name: str, extent: str, report: str) -> Sequence[str]:
        """The same for a checked kernel."""
        return (
            f"SCRATCH void* {name}_memory = 0;",
            f"const Checked {name} = checked_scratch({extent}, sizeof({ctype}), {report}, &{name}_memory);",
        )


class Needs:
    """The sections of the support code that a kernel uses, and the language that it is written in."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.sections: dict[str, None] = {}

    def __call__(self, section: str) -> None:
        """Note that the text uses a section."""
        self.sections[section] = None
