"""C++ as a language like C: what it spells its own way."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from ...records import dataclass
from ..c_like.language import Language

_KEYWORDS = frozenset({
    "alignas", "alignof", "and", "and_eq", "bitand", "bitor", "catch", "char16_t", "char32_t", "class", "compl",
    "constexpr", "const_cast", "decltype", "delete", "dynamic_cast", "explicit", "export", "friend", "mutable",
    "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected",
    "public", "reinterpret_cast", "static_assert", "static_cast", "template", "this", "thread_local", "throw", "try",
    "typeid", "typename", "using", "virtual", "wchar_t", "xor", "xor_eq",
})  # fmt: skip

_HERE, _SHARED = __name__.rpartition(".")[0], __name__.rpartition(".")[0].rpartition(".")[0] + ".c_like"
#: Everything that keeps IEEE semantics: no -ffast-math, no contraction of a*b + c into one rounding.
_FLAGS = (
    "-O3", "-std=c++17", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fopenmp", "-fPIC", "-shared",
    "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class CPlusPlus(Language):
    """Support functions are templates, which find out the types of their operands."""

    @override
    def generic(self, function: str, *types: str) -> str:
        return f"{function}<{', '.join(types)}>"

    @override
    def overloaded(self, function: str, ctype: str) -> str:
        return function

    @override
    def bit_cast(self, source: str, target: str) -> str:
        return f"bit_cast<{target}>"

    @override
    def converted(self, ctype: str, text: str) -> str:
        return f"{ctype}({text})"

    @override
    def combining(self, function: str, ctype: str, arity: int) -> str:
        arguments = [f"{{{side}{k}}}" for side in "ab" for k in range(arity)]
        return f"{function}({', '.join(arguments)});"

    @override
    def place(self, ctype: str, name: str, place: str) -> tuple[str, str]:
        return f"{ctype}& {name} = {place};", name

    @override
    def element(self, ctype: str, buffer: str, index: str, checked: bool) -> str:
        return f"{buffer}[{index}]"

    @override
    def checked_buffer(self, ctype: str, name: str, arguments: str) -> str:
        return f"const Checked<{ctype}> {name} = {{{arguments}}};"

    @override
    def scratch(self, ctype: str, name: str, extent: str) -> Sequence[str]:
        return (
            f"const Scratch<{ctype}> {name}_memory({extent});",
            f"{ctype}* {self.restrict} const {name} = {name}_memory.data;",
        )

    @override
    def checked_scratch(self, ctype: str, name: str, extent: str, report: str) -> Sequence[str]:
        return (
            f"const CheckedScratch<{ctype}> {name}_memory({extent}, {report});",
            f"const Checked<{ctype}> {name} = {name}_memory.buffer();",
        )


CPP = CPlusPlus(
    name="cpp",
    title="C++",
    headers=((_HERE, "prelude.h"), (_SHARED, "floats.h"), (_HERE, "math.h"), (_SHARED, "special.h")),
    variable="CXX",
    compilers=("g++", "clang++", "c++"),
    package="g++",
    flags=_FLAGS,
    extensions="inductile.cpp",
    keywords=_KEYWORDS,
    export='extern "C" ',
    aligned="alignas(64)",
    restrict="__restrict",
    vector_math=True,
)
