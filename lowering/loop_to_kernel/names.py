"""Readable kernel names, derived from what a kernel computes."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.ir import Operation

from ...dialects.scalar import FUNCTION_OPS, CastOp, PhiloxOp

#: ops that a name mentions only when the kernel holds nothing more telling
_PLAIN: dict[type[Operation], str] = {
    arith.AddfOp: "add", arith.AddiOp: "add", arith.SubfOp: "sub", arith.SubiOp: "sub", arith.MulfOp: "mul",
    arith.MuliOp: "mul", arith.DivfOp: "div", arith.DivSIOp: "div", arith.DivUIOp: "div", arith.NegfOp: "neg",
    arith.MaximumfOp: "max", arith.MinimumfOp: "min", arith.CmpfOp: "compare", arith.CmpiOp: "compare",
    arith.AndIOp: "and", arith.OrIOp: "or", arith.XOrIOp: "xor", arith.SelectOp: "where", CastOp: "cast",
}  # fmt: skip
_FUNCTIONS: dict[type[Operation], str] = {PhiloxOp: "random"}
_FUNCTIONS.update((op, name) for name, op in FUNCTION_OPS.items())

#: what a kernel that computes these, in this order, is called
_KNOWN: tuple[tuple[tuple[str, ...], str], ...] = (
    (("max", "exp", "sum", "log"), "log_softmax"),
    (("max", "exp", "sum"), "softmax"),
    (("welford", "rsqrt"), "norm"),
    (("sum", "sum", "rsqrt"), "norm"),
    (("sum", "rsqrt"), "rms_norm"),
    (("erf",), "gelu"),
)
_LONGEST = 4


def strong_label(op: Operation) -> str | None:
    """What an op is worth in a kernel's name: a function such as `exp`, or None."""
    if op.name.startswith("math."):
        return "abs" if op.name[5:8] == "abs" else op.name[5:]
    return _FUNCTIONS.get(type(op))


def plain_label(op: Operation) -> str | None:
    """The word for everyday arithmetic, or None."""
    return _PLAIN.get(type(op))


def kernel_name(strong: list[str], plain: list[str], reads: bool) -> str:
    """A name such as `softmax`, `tanh_sum` or `add_mul` from the labels of a kernel's ops, in order.

    One that computes nothing copies what it reads, or fills memory.
    """
    for wanted, name in _KNOWN:
        if _is_subsequence(wanted, strong):
            return name
    words = list(dict.fromkeys(strong)) or list(dict.fromkeys(plain)) or ["copy" if reads else "fill"]
    return "_".join(words[:_LONGEST])


def _is_subsequence(wanted: Iterable[str], labels: Iterable[str]) -> bool:
    rest = iter(labels)
    return all(word in rest for word in wanted)
