"""Plain C11, for one thread: it needs a C compiler and nothing else."""

from __future__ import annotations

from ..c_like.language import Language

_HERE = __name__.rpartition(".")[0]
_SHARED = f"{_HERE.rpartition('.')[0]}.c_like"

C = Language(
    name="c",
    title="C",
    headers=((_HERE, "prelude.h"), (_SHARED, "floats.h"), (_HERE, "math.h"), (_SHARED, "special.h")),
    variable="CC",
    compilers=("gcc", "clang", "cc"),
    package="gcc",
    # no -ffast-math, no contraction of a*b + c into one rounding
    flags=(
        "-O3", "-std=c11", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fPIC", "-shared",
        "-fvisibility=hidden",
    ),
    extensions="inductile.c",
)  # fmt: skip
