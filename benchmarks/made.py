"""What compilers make of a function: kernels, ATen calls, and the bytes that each moves."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass
class Made:
    """Launches of generated kernels, calls of ATen (or of its libraries), and the bytes that they read and write.

    Bytes are None where a compiler does not tell them; Inductor tells those of everything together.
    """

    kernels: int = 0
    calls: int = 0
    kernel_bytes: int | None = None
    call_bytes: int | None = None
    all_bytes: int | None = None

    def row(self) -> dict[str, Any]:
        """As columns of a result, MiB for bytes; what is not known is left out."""
        found: dict[str, Any] = {"kernels": self.kernels, "aten_calls": self.calls}
        sizes = {"kernels_moved": self.kernel_bytes, "aten_moved": self.call_bytes, "moved": self.all_bytes}
        return found | {name: size / 2**20 for name, size in sizes.items() if size is not None}


@contextlib.contextmanager
def watched_inductile(kinds: tuple[str, ...] = ("forward", "backward", "inference")) -> Iterator[Made]:
    """What inductile compiles meanwhile, graphs of these kinds, from the IR that its host programs are made of."""
    from inductile.backends.compiled import GraphReport
    from inductile.passes.analysis.program_costs import program_costs

    made = Made(0, 0, 0, 0, 0)
    describe = GraphReport.describe

    def watched(self: Any, module: Any, program: Any) -> None:
        describe(self, module, program)
        if self.kind not in kinds:
            return
        made.kernels += sum(self.kernels.values())
        made.calls += sum(self.aten_calls.values())
        for row in (row for program_cost in program_costs(module) for row in program_cost.rows):
            moved = row.cost.bytes * row.times
            made.all_bytes = (made.all_bytes or 0) + moved
            if row.kind == "kernel":
                made.kernel_bytes = (made.kernel_bytes or 0) + moved
            else:
                made.call_bytes = (made.call_bytes or 0) + moved

    GraphReport.describe = watched  # pyright: ignore[reportAttributeAccessIssue]
    try:
        yield made
    finally:
        GraphReport.describe = describe


def let_inductor_count() -> None:
    """Have Inductor count the bytes that its programs access. That it cannot for some program is no failure."""
    import torch._logging
    from torch._inductor.graph import GraphLowering

    torch._logging.set_logs(inductor_metrics=True)  # pyright: ignore[reportPrivateImportUsage]
    count: Callable[..., Any] = GraphLowering.count_bytes

    def guarded(self: Any) -> Any:
        try:
            return count(self)
        except Exception as error:
            print(f"Inductor does not count bytes: {type(error).__name__}: {error}")
            return 0, [], []

    GraphLowering.count_bytes = guarded


@contextlib.contextmanager
def watched_inductor() -> Iterator[Made]:
    """The bytes that programs compiled by Inductor meanwhile access; its launches are told from a profile."""
    from torch._inductor import metrics

    made, before = Made(), metrics.num_bytes_accessed
    yield made
    made.all_bytes = (metrics.num_bytes_accessed - before) or None


def watched(backend: str, kinds: tuple[str, ...] = ("forward", "backward", "inference")) -> Any:
    """The watcher of a backend; eager makes nothing."""
    if backend == "inductile":
        return watched_inductile(kinds)
    return watched_inductor() if backend == "inductor" else contextlib.nullcontext(Made())


def is_generated(kernel: str, backend: str) -> bool:
    """Whether a name in a profile is of a kernel that Inductor generated."""
    return backend == "inductor" and kernel.startswith("triton_")
