"""The examples of the FileCheck tests compute the same after their pass, and after all passes of the level."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import Check, loop_phase

EXAMPLES = sorted((Path(__file__).parents[2] / "filecheck" / "passes" / "loop").glob("*.mlir"))
#: the phase as it is, but for parts that are as small as the examples
WHOLE = loop_phase("loop-split-reductions{min-length=16 parts=3}")
#: examples whose answers differ by right, by a reason
OTHERWISE = {
    "pack_weights": "the library's kernel for packed weights rounds sums to 16 bits in other places",
    "split_products": "parts of a depth are added in another order, and sums of 16 bits are rounded behind it",
}
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
    if which == "own" and example.stem in OTHERWISE:
        pytest.skip(OTHERWISE[example.stem])
    passes = own["passes"] if which == "own" else WHOLE
    check_same(_FOR.format(own["target"], text) if own["target"] else text, passes, sizes={"s0": 5, "s1": 3})
