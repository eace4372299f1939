"""The passes of the loop level together: what they leave computes the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from .conftest import Check, only_function

PASSES = (
    "loop-eliminate-views,loop-simplify-indices,loop-cse,loop-dce,loop-inline,loop-cse,loop-dce,loop-fuse"
)
