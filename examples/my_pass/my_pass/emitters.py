"""`my.softsign` in C++ and Triton: texts with `{0}` for the operand."""

from __future__ import annotations

from inductile.backends.c_like.scalars import by_width, text_rule

from .dialect import SoftsignOp

CPP = {
    SoftsignOp: by_width(
        text_rule("{0} / (1.0f + __builtin_fabsf({0}))"),
        text_rule("{0} / (1.0 + __builtin_fabs({0}))"),
    )
}

TRITON = {SoftsignOp: {"float32": "tl.div_rn({0t}, 1.0 + tl.abs({0t}))", "": "{0t} / (1.0 + tl.abs({0t}))"}}
