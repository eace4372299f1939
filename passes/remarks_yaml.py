"""Remarks as YAML in the form of LLVM's optimization records, which `opt-viewer` and its kin read.

--- !Missed
Pass:            loop-fuse
Name:            loop.generate
DebugLoc:        { File: model.py, Line: 4, Column: 0 }
Reason:          'not fused ...'
Args:
  - bytes:           '4096'
...
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from .remarks import Remark

#: kind of remark -> tag of its YAML document
TAGS = {"passed": "!Passed", "missed": "!Missed", "failure": "!Failure", "analysis": "!Analysis"}
_PLAIN = re.compile(r"[A-Za-z_/][\w./-]*", re.ASCII)
#: what YAML reads as something else than text
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


def remarks_yaml(remarks: Iterable[Remark]) -> str:
    """One YAML document for each remark, in order."""
    return "".join(_document(remark) for remark in remarks)


def _document(remark: Remark) -> str:
    rows = [("Pass", _scalar(remark.pass_name)), ("Name", _scalar(remark.op))]
    file, _, line = remark.location.rpartition(":")
    if file:
        rows.append(("DebugLoc", f"{{ File: {_scalar(file)}, Line: {line}, Column: 0 }}"))
    rows.append(("Reason", _scalar(remark.reason)))
    if remark.suggestion:
        rows.append(("Suggestion", _scalar(remark.suggestion)))
    lines = [f"--- {TAGS[remark.kind]}", *(f"{key + ':':<17}{value}" for key, value in rows)]
    if remark.figures:
        lines.append("Args:")
        lines += [f"  - {name + ':':<17}{_scalar(str(value))}" for name, value in remark.figures.items()]
    return "\n".join([*lines, "...", ""])


def _scalar(text: str) -> str:
    """A plain YAML string where that is safe, else a double-quoted one, for which JSON's escapes are valid."""
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)
