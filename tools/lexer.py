"""A Pygments lexer for IR files of every level: `pygmentize -l inductile x.mlir`, and code blocks of documentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

_WORDS = (
    "in|on|along|into|if|else|map|tile|to|at|symbols|errors|target|per_thread|num_warps|programs|streams|combine|"
    "attributes|strides|device|columnwise|"
    "unique|masked|deterministic|in_place|atomic|ordered|parallel|vector|serial|unroll|grid|floordiv|ceildiv|mod|min|max"
)


class InductileLexer(RegexLexer):
    """Ops, types, values, symbols and index expressions."""

    name = "inductile"
    aliases: ClassVar[Sequence[str]] = ["inductile"]
    filenames: ClassVar[Sequence[str]] = ["*.mlir"]
    url = "https://xdsl.dev"

    tokens: ClassVar = {
        "root": [
            (r"//.*?$", Comment.Single),
            (r'"(?:\\.|[^"\\])*"', String.Double),
            (r"%[\w.$-]+(?:#\d+)?", Name.Variable),
            (r"@[\w.$-]+", Name.Function),
            (r"\^\w+", Name.Label),
            (r"(!)([\w.]+)", bygroups(Punctuation, Keyword.Type)),
            (r"(#)([\w.]+)", bygroups(Punctuation, Name.Attribute)),
            (r"(?:builtin|func|sym|aten|loop|kernel|host|scalar|arith|math)\.[\w.]+", Name.Builtin),
            (r"\b(?:bf16|f\d+\w*|[su]?i\d+|index)\b(?![\w.])", Keyword.Type),
            (rf"\b(?:{_WORDS}|true|false|none|dense|loc|unknown)\b", Keyword),
            (r"-?\d+\.\d*(?:[eE][+-]?\d+)?|-?\d+(?=x)|-?\d+", Number),
            (r"(?<=\d)x|(?<=\))x", Punctuation),
            (r"->|[=+*/-]", Operator),
            (r"[{}()\[\]<>,:|?]", Punctuation),
            (r"[A-Za-z_][\w.]*", Name),
            (r"\s+", Text),
        ]
    }
