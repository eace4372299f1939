"""`my-pipeline`: the default one with our pass where bodies are inlined and loads of one element merged."""

from __future__ import annotations

from dataclasses import replace

from inductile.lowering.pipeline import DEFAULT

PHASES = tuple(
    replace(phase, passes=phase.passes.replace("loop-inline,loop-cse,", "loop-inline,loop-cse,my-fuse-softsign,"))
    for phase in DEFAULT
)
