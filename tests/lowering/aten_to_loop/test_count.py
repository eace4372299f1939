"""How much of ATen is lowered; a rule that is lost shows here."""

from __future__ import annotations

import torch

from inductile.lowering.aten_to_loop import RULES

from ...versions import torch_version

LEAST_PACKETS = 245
#: packets that torch has since this version
SINCE = {"_foreach_clone": (2, 12)}


def _packets() -> set[str]:
    return {name.removeprefix("aten.").partition(".")[0] for name in RULES if name.startswith("aten.")}


def test_lowered_packets() -> None:
    assert len(_packets()) >= LEAST_PACKETS


def test_lowered_packets_are_torch_operators() -> None:
    wanted = [name for name in sorted(_packets()) if SINCE.get(name, (0, 0)) <= torch_version()]
    assert [name for name in wanted if not hasattr(torch.ops.aten, name)] == []
