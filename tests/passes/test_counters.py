"""Every pass asks a debug counter for each of its decisions, and may be refused any of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from xdsl.passes import ModulePass

from inductile.backends.numerics import NumericCheck
from inductile.dialects.context import new_context
from inductile.errors import UserError
from inductile.lowering.registry import available_passes, parse_passes
from inductile.passes.counters import Counter, counting
from inductile.passes.manager import PassManager
from inductile.tools.source import Source, split_source

FILES = Path(__file__).parents[1] / "filecheck" / "passes"
LEVELS = ("graph", "loop", "kernel", "host")
NAMES = sorted(name for name in available_passes() if name.partition("-")[0] in LEVELS)


def run(passes: Sequence[ModulePass], source: Source, counters: dict[str, Counter]) -> dict[str, Counter]:
    """Run passes, verify, and compare answers unless the module has none; the counters that were asked."""
    context = new_context()
    with counting(counters):
        try:
            PassManager(passes, [NumericCheck()]).run(context, source.parse(context))
        except UserError:
            PassManager(passes).run(context, source.parse(context))
    return counters


@pytest.mark.parametrize("name", NAMES)
def test_a_pass_asks_and_takes_no_for_an_answer(name: str) -> None:
    level, _, rest = name.partition("-")
    path = FILES / level / f"{rest.replace('-', '_')}.mlir"
    text = path.read_text()
    piped = re.search(r'RUN: .* -p "?([^"| ][^"|]*?)"? \|', text)
    assert piped is not None
    passes = parse_passes(piped[1])
    position = [p.name for p in passes].index(name)
    asked_at_all = 0
    for source in split_source(text, path.name, "// -----"):
        before = run(passes[:position], source, {})
        whole = run(passes[: position + 1], source, {})
        for counter, state in whole.items():
            earlier = before[counter].asked if counter in before else 0
            asked_at_all += state.asked - earlier
            for count in {earlier, (earlier + state.asked) // 2} if state.asked > earlier else ():
                run(passes, source, {counter: Counter(count=count)})
    assert asked_at_all > 0
