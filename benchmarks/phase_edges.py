"""What the edge between dependent phases costs on a GPU: a launch, one that began early, a barrier of the grid.

`python benchmarks/phase_edges.py --out r.jsonl`. A phase is as short as one can be: each program adds 1 to the word
that its neighbour wrote in the phase before. A row has the microseconds of a phase, as the difference of long and short
chains, and whether every word was right. Ways: `launches` of a recorded graph; `overlapped`, with programmatic
dependent launch; `barriers`, one cooperative launch in which programs count their arrivals in memory and wait.
"""

# ruff: noqa: N803  # constants of kernels are written like this
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import torch
import triton
import triton.language as tl

SHORT, LONG = 100, 600
PROGRAMS = (1, 132, 264, 528)
WARPS = 4


@triton.jit
def arrive(counter, ARRIVALS: tl.constexpr):
    """One more arrival, behind all that the program wrote; the counter is 0 again behind so many."""
    tl.inline_asm_elementwise(
        "{.reg .pred p; .reg .u32 t; .reg .u64 g; bar.sync 0; mov.u32 t, %tid.x; setp.eq.u32 p, t, 0;"
        "cvta.to.global.u64 g, $1; @p red.release.gpu.global.inc.u32 [g], " + ARRIVALS + " - 1; mov.u32 $0, 0;}",
        "=r,l", [counter.to(tl.int64)], tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit
def wait_for(counter, arrivals):
    """Wait until so many arrivals are counted; what was written before them is seen by loads from here on.

    A wait gives up after some 50 ms, so that a fault of this file does not hold the card; the words are wrong then.
    """
    tl.inline_asm_elementwise(
        """{
        .reg .pred p; .reg .u32 t, v, i; .reg .u64 g;
        mov.u32 t, %tid.x; setp.ne.u32 p, t, 0; cvta.to.global.u64 g, $1;
        @p bra ARRIVED;
        mov.u32 i, 0;
        AGAIN: ld.acquire.gpu.global.u32 v, [g]; setp.ge.u32 p, v, $2;
        @p bra ARRIVED;
        add.u32 i, i, 1; setp.lt.u32 p, i, 100000;
        @p bra AGAIN;
        ARRIVED: bar.sync 0; mov.u32 $0, 0;
        }""",
        "=r,l,r", [counter.to(tl.int64), arrivals.to(tl.int32)], tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


@triton.jit
def step(words, number, PROGRAMS: tl.constexpr):
    """Phase `number`: a program's word is its neighbour's of the phase before, and 1. Odd phases write half 0."""
    here = tl.program_id(0)
    value = tl.load(words + (number % 2) * PROGRAMS + (here + 1) % PROGRAMS)
    tl.store(words + ((number + 1) % 2) * PROGRAMS + here, value + 1)


@triton.jit
def phase(words, number: tl.constexpr, PROGRAMS: tl.constexpr, OVERLAPPED: tl.constexpr):
    if OVERLAPPED:
        tl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], tl.int32, is_pure=False, pack=1)
        tl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], tl.int32, is_pure=False, pack=1)
    step(words, number, PROGRAMS)


@triton.jit
def phases(words, counter, COUNT: tl.constexpr, PROGRAMS: tl.constexpr, ARRIVALS: tl.constexpr):
    for number in range(COUNT):
        step(words, number, PROGRAMS)
        arrive(counter, ARRIVALS)
        wait_for(counter, (number + 1) * PROGRAMS)
    arrive(counter, ARRIVALS)


def chain(way: str, count: int, programs: int, words: torch.Tensor, counter: torch.Tensor) -> None:
    """So many phases."""
    if way == "barriers":
        arrivals = str((count + 1) * programs)
        phases[(programs,)](words, counter, count, programs, arrivals, num_warps=WARPS, launch_cooperative_grid=True)
        return
    overlapped = way == "overlapped"
    for number in range(count):
        phase[(programs,)](words, number % 2, programs, overlapped, num_warps=WARPS, launch_pdl=overlapped)


def microseconds(run: Callable[[], None]) -> float:
    """The least of some replays of what `run` launches."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    least = float("inf")
    for _ in range(8):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        graph.replay()
        ended.record()
        torch.cuda.synchronize()
        least = min(least, 1e3 * began.elapsed_time(ended))
    return least


def measured(way: str, programs: int) -> dict[str, object]:
    """A row."""
    words = torch.zeros(2 * programs, dtype=torch.int32, device="cuda")
    counter = torch.zeros(1, dtype=torch.int32, device="cuda")
    row: dict[str, object] = {"way": way, "programs": programs}
    try:
        times = [microseconds(lambda n=n: chain(way, n, programs, words, counter)) for n in (SHORT, LONG)]
        words.zero_()
        chain(way, LONG, programs, words, counter)
        right = bool((words[:programs] == LONG).all()) and int(counter) == 0
        row |= {"us": round((times[1] - times[0]) / (LONG - SHORT), 3), "right": right}
    except Exception as error:
        row["failed"] = f"{type(error).__name__} {error}"[-300:]
    return row


def main() -> None:
    """Measure all ways."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args()
    for programs in PROGRAMS:
        for way in ("launches", "overlapped", "barriers"):
            with args.out.open("a") as file:
                file.write(json.dumps(measured(way, programs)) + "\n")


if __name__ == "__main__":
    main()
