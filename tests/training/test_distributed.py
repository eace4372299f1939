"""Two processes over gloo: data parallel training against the same training in one, and functional collectives."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from .processes import jobs_in_two_processes

#: each is (script, arguments), and what each rank says in the end, how often
JOBS = {
    "ddp": (("distributed_worker.py", "ddp"), "agrees", 1),
    "fsdp": (("distributed_worker.py", "fsdp"), "agrees", 1),
    "collectives": (("collectives_worker.py",), "agrees on", 7),
}


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_two_processes(tmp_path: Path) -> None:
    """All jobs in one test: they share the imports, which take longest."""
    jobs = [(*command, "{rank}", str(tmp_path / name)) for name, (command, _, _) in JOBS.items()]
    for (name, (_, said, often)), outputs in zip(JOBS.items(), jobs_in_two_processes(jobs), strict=True):
        for rank, output in enumerate(outputs):
            assert output.count(f"rank {rank} {said}") == often, f"{name}: {output}"
