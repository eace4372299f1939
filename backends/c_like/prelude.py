"""Support code that generated kernels include: sections of header files, and declarations of libm."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pkgutil import get_data

from ...records import dataclass

#: Vector variants in libmvec: (function, arity, whether they need glibc 2.35 or later). Without an entry a libm
#: function is called one element at a time.
VECTOR_FUNCTIONS: dict[str, tuple[int, bool]] = {
    **dict.fromkeys(("cos", "exp", "log", "sin"), (1, False)),
    **dict.fromkeys(
        (
            "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cosh", "erf", "erfc", "exp2", "expm1",
            "log10", "log1p", "log2", "sinh", "tan", "tanh",
        ),
        (1, True),
    ),
    "pow": (2, False),
    "atan2": (2, True),
    "hypot": (2, True),
}  # fmt: skip

#: libm functions without vector variants
SCALAR_FUNCTIONS: dict[str, int] = {
    "fmod": 2, "lgamma": 1, "nextafter": 2, "j0": 1, "j1": 1, "y0": 1, "y1": 1,
}  # fmt: skip

_HEADING = re.compile(r"//@ (\w+)(?:: (\w+(?:, \w+)*))?$")
_LIBM = "libm_"


@dataclass(frozen=True)
class Section:
    """A part of a header: its text and the names of the sections that it builds on."""

    name: str
    needs: tuple[str, ...]
    text: str


def libm_section(function: str) -> str:
    """Name of the section that declares a libm function (`expf`, `exp`)."""
    return _LIBM + function


_DEFINED = re.compile(
    r"""\#define\ (\w+) | struct\ (\w+) | ^\}\ (\w+);
    | ^(?:template\ <.*>\ |(?:NO)?INLINE\ |HIDDEN\ |static\ |inline\ |extern\ |"C"\ )*[\w:*]+[\ *]+(\w+)\(""",
    re.MULTILINE | re.VERBOSE,
)
#: libm functions that only the headers call; kernels like such names for their buffers and axes
_WRAPPED = frozenset({"j0", "j1", "y0", "y1"})
_TYPES = frozenset(f"{sign}int{width}_t" for sign in ("", "u") for width in (8, 16, 32, 64))
#: functions that a macro defines for several types
_OF_TYPES = re.compile(r"\b(\w+_)##")
_OPERANDS = _TYPES | {"float", "double", "bool"}


class Prelude:
    """The support code of one language.

    headers: package and file name of each header, in the order in which their sections appear
    export:  in front of declarations of functions of C
    vector:  whether functions of libm are declared with their vector variants
    """

    def __init__(self, headers: Sequence[tuple[str, str]], export: str, vector: bool) -> None:
        self.headers, self.export, self.vector = headers, export, vector

    @cached_property
    def sections(self) -> dict[str, Section]:
        """All sections of the headers by name, in order."""
        return {section.name: section for header in self.headers for section in _sections(*header)}

    @cached_property
    def reserved(self) -> frozenset[str]:
        """Identifiers that the support code may define, which a kernel's own names must avoid."""
        names = set(_TYPES)
        for section in self.sections.values():
            lines = [line for line in section.text.splitlines() if not line.startswith(("    ", "//"))]
            for groups in _DEFINED.findall("\n".join(lines)):  # bodies define nothing that others see
                names.update(filter(None, groups))
            of_types = _OF_TYPES.findall(section.text) if "##" in section.text else ()
            names.update(name + type_ for name in of_types for type_ in _OPERANDS)
        for function in (*VECTOR_FUNCTIONS, *SCALAR_FUNCTIONS):
            names |= {function, function + "f"}
        return frozenset(names - _WRAPPED)

    def text(self, used: Iterable[str]) -> str:
        """The text of `base` and the given sections with all they need, each once, in the order of the headers."""
        wanted: set[str] = set()

        def want(name: str) -> None:
            if name in wanted:
                return
            wanted.add(name)
            for need in self.sections[name].needs if name in self.sections else ("libm",):
                want(need)

        for name in ("base", *used):
            want(name)
        functions = sorted(name.removeprefix(_LIBM) for name in wanted if name.startswith(_LIBM))
        parts: list[str] = []
        for name in self.sections:
            if name in wanted:
                parts.append(self.sections[name].text)
            if name == "libm" and functions:
                parts.append("".join(map(self._declaration, functions)))
        return "\n".join(part for part in parts if part.strip())

    def _declaration(self, function: str) -> str:
        """Declaration of a libm function; the suffix f means float."""
        base, scalar = function, "double"
        if function not in VECTOR_FUNCTIONS and function not in SCALAR_FUNCTIONS:
            base, scalar = function.removesuffix("f"), "float"
        attribute = "__attribute__((const, nothrow))"
        if base in VECTOR_FUNCTIONS:
            arity, recent = VECTOR_FUNCTIONS[base]
            if self.vector:
                attribute = "VECTOR_MATH_2_35" if recent else "VECTOR_MATH"
        else:
            arity = SCALAR_FUNCTIONS[base]
        return f"{self.export}{attribute} {scalar} {function}({', '.join([scalar] * arity)});\n"


def _sections(package: str, header: str) -> Iterator[Section]:
    data = get_data(package, header)  # at a sixth of what `importlib.resources` takes
    if data is None:
        raise FileNotFoundError(f"{package} has no {header}")
    text = data.decode()
    name, needs, lines = "", (), []
    for line in [*text.splitlines(), "//@ end"]:
        heading = _HEADING.match(line) if line.startswith("//@") else None
        if heading is None:
            lines.append(line)
            continue
        if name:
            yield Section(name, needs, "\n".join(lines).strip() + "\n")
        name, needs, lines = heading[1], tuple((heading[2] or "").split(", ")) if heading[2] else (), []
