"""The examples of the FileCheck tests compute the same after their pass, and after all passes of the level."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import Check

EXAMPLES = sorted((Path(__file__).parents[2] / "filecheck" / "passes" / "loop").glob("*.mlir"))
WHOLE = ",".join(
    (
        "loop-eliminate-views,loop-simplify-indices,loop-cse,loop-dce,loop-merge-updates,loop-select-pieces",
        "loop-channels-last,loop-assign-layouts,loop-inline,loop-cse,loop-dce,loop-unroll-pieces,loop-split-axes",
        "loop-join-moments,loop-split-reductions{min-length=16 parts=3},loop-fuse,loop-bufferize",
    )
)
_RUN = re.compile(
    r"// RUN: inductile-opt %s (?:--target (?P<target>\S+) )?-p (?P<quote>[\"']?)(?P<passes>.+?)(?P=quote)(?= )"
)
#: how a module says what it is for
_FOR = 'builtin.module attributes {{machine.targets = #machine.targets<cpu = "cpp", cuda = "{}">}} {{\n{}\n}}'


@pytest.mark.rotates(3, each="example")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("which", ["own", "whole"])
def test_examples_compute_the_same(example: Path, which: str, check_same: Check) -> None:
    text = example.read_text()
    own = _RUN.search(text)
    assert own is not None
    passes = own["passes"] if which == "own" else WHOLE
    check_same(_FOR.format(own["target"], text) if own["target"] else text, passes, sizes={"s0": 5, "s1": 3})
