"""Attention as people write it, in kernels of ours and of others: `python benchmarks/loop_attention.py --out r.jsonl`.

The eleven variants of `attention_variants.py`, forward, in bfloat16, at the sizes of `SHAPES`: `eager`; `inductor`;
`inductile` as it is by default, with what it said of its choice; `library`, with the library's kernel for masks, where
it has one; `scores`, with those in memory; `autotune`, with `max_autotune`; `ours`, with `loop_products` of what is
written out, `nest` of calls, too; `flex`, flex_attention compiled by Inductor with a block mask, where it can say the
variant; `ours_flex`, the same call compiled by inductile with `loop_products`, `default_flex` without; `sdpa`,
scaled_dot_product_attention, where one is the same. Device milliseconds: the median of calls between events, the cache
flushed before each for as long as the host needs to enqueue it. `error` is the norm relative to float64's, on a part of
the heads. `--tune` tries the tiles of `TILES` on each, in `ours`; flex_attention's own rows are never among these.

`--backward` measures forward and backward of the gradients of q, k and v, in rows of their own (`"backward": true`);
`error` is then that of the result, `gradient_errors` those of the gradients. `--table --backward` prints these:

    python benchmarks/loop_attention.py --out forward.jsonl --who ours ours_flex flex eager
    python benchmarks/loop_attention.py --out backward.jsonl --backward --who ours flex sdpa inductor eager
    python benchmarks/loop_attention.py --out backward.jsonl --backward --table

Every variant and size has a process of its own, `--jobs` side by side, which compile at once and measure in turns; one
that takes longer than `--timeout` is ended, and what it had printed is kept. Results are appended as they come, and
what the file holds is not run again. `--records` prints what `machines/measured_nests.py` should say of a file with
rows of `inductile`, whose remarks name what was asked, of `library` where that took loops, and of `ours`.
"""

from __future__ import annotations

import argparse
import fcntl
import gc
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpu import make_importable, read_results
from processes import CACHES

#: batch, heads, length, head size
SHAPES = {
    "64": (4, 16, 2048, 64), "128": (4, 16, 4096, 128),
    "512x64": (16, 12, 512, 64), "1024x64": (8, 16, 1024, 64), "4096x64": (2, 16, 4096, 64),
    "1024x128": (8, 16, 1024, 128), "2048x128": (4, 16, 2048, 128), "8192x64": (1, 16, 8192, 64),
    "8192x128": (1, 16, 8192, 128), "one-1024x64": (1, 16, 1024, 64), "one-2048x64": (1, 16, 2048, 64),
    "one-2048x128": (1, 16, 2048, 128),
}  # fmt: skip
NAMES = (
    "full", "causal", "window", "alibi", "softcap", "document", "prefix", "added", "relative", "grouped",
    "differential",
)  # fmt: skip
#: kinds of masks that are none of these
KINDS = ("scattered", "distance", "blocks", "padded", "masked", "called", "called_distance")
WHO = ("ours", "ours_flex", "flex", "sdpa", "inductor", "inductile", "autotune", "library", "nest", "eager")
#: passes whose remarks are kept
CHOOSERS = ("graph-choose-products", "graph-choose-scores")
#: rows, step, warps, stages
TILES = (
    (128, 64, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (128, 128, 8, 3), (64, 64, 4, 3), (64, 128, 4, 3),
    (128, 32, 4, 4), (128, 64, 8, 2), (64, 64, 4, 4), (256, 64, 8, 3),
)  # fmt: skip


def program_of(who: str, name: str, q: Any, extra: Sequence[Any]) -> Callable[..., Any] | None:
    """The function that computes a variant; None where `who` cannot."""
    import torch
    from attention_variants import GROUPS, VARIANTS, flex_of

    if who == "eager":
        return VARIANTS[name]
    if who == "sdpa":
        if name not in ("full", "causal"):
            return None
        return lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=name == "causal")
    if who in ("flex", "ours_flex", "default_flex"):
        return _flex(name, q, extra, flex_of(name, q, extra), GROUPS, who)
    if who == "inductor":
        return torch.compile(VARIANTS[name], dynamic=False)
    return torch.compile(VARIANTS[name], backend="inductile", options=options_of(who), dynamic=False)


def _flex(name: str, q: Any, extra: Sequence[Any], flex: Any, groups: int, who: str) -> Callable[..., Any] | None:
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    if flex is None:
        return None
    length = q.shape[2]
    mask = None
    if flex.mask is not None:
        mask = create_block_mask(flex.mask, None, None, length, length, device=str(q.device))
    given = {} if who == "flex" else {"backend": "inductile", "options": options_of(who.replace("_flex", ""))}
    compiled = torch.compile(flex_attention, dynamic=False, **given)

    def run(q: Any, k: Any, v: Any, *extra: Any) -> Any:
        if flex.grouped:
            k, v = k[:, ::groups], v[:, ::groups]
        return compiled(q, k, v, score_mod=flex.score, block_mask=mask, enable_gqa=flex.grouped)

    return run


def options_of(who: str) -> dict[str, Any]:
    """Options of inductile; `who` is its name or tile sizes, "128x64x4x3", those of backward as "chain64x64x8x2".

    "128x64x4x3+chain64x64x8x2" is both; "without-kernel-peel-masked-steps" leaves out a pass.
    """
    if who in ("inductile", "default"):
        return {}
    if who == "library":
        return {"loop_products": False}
    if who == "autotune":
        return {"max_autotune": True}
    # what recognises attention would call the library's kernel for some of them
    ours = {"loop_products": True, "pre_grad": "settle-numbers,remove-identities,write-out-flex-attention"}
    if who in ("ours", "scores"):
        return {**ours, "loop_products": who == "ours"}
    if who == "nest":
        return {"loop_products": True}
    from inductile.lowering.pipeline import pipeline_string

    if who.startswith("without-"):
        return {**ours, "pipeline": pipeline_string().replace(f"{who.removeprefix('without-')},", "")}
    pipeline = pipeline_string()
    for tile in who.split("+"):
        name, prefix = "kernel-map-softmax-sums", "softmax"
        if tile.startswith("chain"):
            name, prefix = "kernel-map-chained-products", "chain"
        values = zip(("rows", "step", "warps", "stages"), tile.removeprefix("chain").split("x"), strict=True)
        numbers = " ".join(f"{prefix}-{number}={value}" for number, value in values)
        pipeline = pipeline.replace(name, f"{name}{{{numbers}}}")
    return {**ours, "pipeline": pipeline}


def inputs_of(name: str, shape: Sequence[int]) -> list[Any]:
    """Random queries, keys, values, and what else a variant takes."""
    import torch
    from attention_variants import extra_of

    torch.manual_seed(0)
    q, k, v = (torch.randn(*shape, device="cuda").bfloat16() for _ in range(3))
    return [q, k, v, *extra_of(name, q)]


def errors_of(name: str, inputs: Sequence[Any], results: Sequence[Any]) -> list[float]:
    """How far the result, and the gradients behind it, are from float64's, on the first batch.

    From four heads at a time because of memory; float32's where that is too little.
    """
    import torch
    from attention_variants import VARIANTS

    if name in ("alibi", "grouped", "added", "relative"):  # what they do depends on the number of heads
        wide = [x[:1].double() if x.dim() == 4 else x.double() for x in inputs]
    else:
        wide = [x[:1, :2].double() if x.dim() == 4 else x for x in inputs]
    if name == "padded":
        wide[3] = inputs[3][:1]
    if wide[0].shape[2] > 2048 and wide[0].shape[1] > 2:
        wide = [x.float() if x.is_floating_point() else x for x in wide]
    leaves = [x.requires_grad_() for x in wide[:3]] if len(results) > 1 else []
    with torch.set_grad_enabled(bool(leaves)):
        exact = [VARIANTS[name](*wide)]
        if leaves:
            heads = exact[0].shape[1]
            exact += torch.autograd.grad(exact[0], leaves, gradient_of(inputs[0])[:1, :heads].to(exact[0].dtype))
    parts = [found[: each.shape[0], : each.shape[1]] for found, each in zip(results, exact, strict=True)]
    with torch.no_grad():
        return [float((f.to(e.dtype) - e).norm() / e.norm()) for f, e in zip(parts, exact, strict=True)]


def gradient_of(q: Any) -> Any:
    """The gradient of the result, from which backward begins."""
    import torch

    return torch.randn(q.shape, device=q.device, generator=torch.Generator(q.device).manual_seed(2)).to(q.dtype)


@contextmanager
def alone(lock: str) -> Iterator[None]:
    """While no other process measures."""
    with open(lock, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def with_gradients(run: Callable[..., Any], inputs: Sequence[Any]) -> Callable[..., Any]:
    """A call that returns the result and the gradients of queries, keys and values."""
    import torch

    leaves = [x.detach().requires_grad_() for x in inputs[:3]]
    rest = inputs[3:]
    gradient = gradient_of(inputs[0])

    def call(*_: Any) -> Any:
        result = run(*leaves, *rest)
        return result.detach(), *torch.autograd.grad(result, leaves, gradient)

    return call


def kernels_of(run: Callable[[], Any]) -> dict[str, float]:
    """Device microseconds of each kernel of a call: the median of several calls."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    times: dict[str, list[float]] = {}
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(5):
            run()
        torch.cuda.synchronize()
    for event in profiled.events() or ():
        if event.device_type.name == "CUDA" and event.device_time > 0:
            times.setdefault(event.name, []).append(event.device_time)
    return {name[:60]: round(sorted(each)[len(each) // 2], 1) for name, each in times.items()}


def measure(
    who: str, name: str, inputs: Sequence[Any], lock: str, backward: bool = False, by_kernel: bool = False
) -> dict[str, Any]:
    """One row: times, error, peak, seconds of the first call, and what our passes said of it."""
    import torch

    from inductile.backends.choice.timing import microseconds
    from inductile.passes.remarks import collecting

    torch._dynamo.reset()
    with torch.set_grad_enabled(backward), collecting() as remarks:
        run = program_of(who, name, inputs[0], inputs[3:])
        if run is None:
            return {"none": True}
        if backward:
            run = with_gradients(run, inputs)
        begin = time.perf_counter()
        result = run(*inputs)
        torch.cuda.synchronize()
        first = time.perf_counter() - begin
        with alone(lock):
            for _ in range(2):
                run(*inputs)
            torch.cuda.synchronize()
            gc.collect()  # graphs of calls in front hold memory until their cycles are found
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            run(*inputs)
            torch.cuda.synchronize()
            peak = (torch.cuda.max_memory_allocated() - before) / 2**20
            took = microseconds({who: lambda: run(*inputs)}, "cuda")[who] / 1000
            kernels = kernels_of(lambda: run(*inputs)) if by_kernel else {}
            errors = errors_of(name, inputs, result if backward else [result])
    said = [f"{r.kind}: {r.reason} {r.figures}" for r in remarks if r.pass_name in CHOOSERS]
    row = {"ms": took, "error": errors[0], "peak": peak, "first": first, "said": said}
    row |= {"kernels": kernels} if by_kernel else {}
    return row | {"gradient_errors": errors[1:]} if backward else row


def work(name: str, size: str, whos: Sequence[str], lock: str, backward: bool, by_kernel: bool) -> None:
    """Print a line for each way to compute a variant."""
    make_importable()
    inputs = inputs_of(name, SHAPES[size])
    for who in whos:
        row = {"variant": name, "size": size, "who": who, **({"backward": True} if backward else {})}
        try:
            row |= measure(who, name, inputs, lock, backward, by_kernel)
        except Exception as failure:  # a tile that does not fit the card is a row of the table too
            row["failed"] = f"{type(failure).__name__}: {failure}"[:400]
        print(json.dumps(row), flush=True)


class Results:
    """The file of results, to which threads append; of its rows those with `backward`, or those without."""

    def __init__(self, path: Path, backward: bool) -> None:
        self.path = path
        self.backward = backward
        rows = [row for row in read_results(path) if "variant" in row]  # the file may hold other results
        self.rows = [row for row in rows if row.get("backward", False) == backward]
        self.lock = threading.Lock()

    def add(self, row: dict[str, Any]) -> None:
        """Append a row and say it."""
        with self.lock:
            self.rows.append(row)
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)

    def missing(self, name: str, size: str, whos: Sequence[str]) -> list[str]:
        """Who has no row yet."""
        found = {row["who"] for row in self.rows if (row["variant"], row["size"]) == (name, size)}
        return [who for who in whos if who not in found]


def in_process(
    name: str, size: str, whos: Sequence[str], results: Results, timeout: float, cache: str, lock: str, by_kernel: bool
) -> None:
    """Run a variant in a process of its own; whoever ran when time was up has a row that says so."""
    left = results.missing(name, size, whos)
    while left:
        environment = os.environ | {variable: f"{cache}/{folder}" for variable, folder in CACHES.items()}
        command = [sys.executable, __file__, "--worker", name, size, "--lock", lock, "--who", *left]
        command += ["--backward"] if results.backward else []
        command += ["--kernels"] if by_kernel else []
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        timer = threading.Timer(timeout, process.kill)
        timer.start()
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()))  # noqa: B023  # joined below
        reader.start()
        for line in process.stdout or ():
            if line.startswith("{"):
                results.add(json.loads(line))
        process.wait()
        reader.join()
        timer.cancel()
        left = results.missing(name, size, left)
        if left:
            problem = f"exit code {process.returncode} after at most {timeout:.0f} s: {''.join(errors)[-300:]}"
            row = {"variant": name, "size": size, "who": left[0], "failed": problem}
            results.add({**row, "backward": True} if results.backward else row)
            left = left[1:]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A Markdown table of each size, and geometric means of flex_attention's time over ours."""
    lines: list[str] = []
    for size in dict.fromkeys(row["size"] for row in rows):
        tuned = any(is_tile(row["who"]) for row in rows)
        lines += ["", f"## {'x'.join(map(str, SHAPES[size]))}", ""]
        lines += [f"| variant | {' | '.join(WHO)} | best tile | error ours / eager |", "|---" * (len(WHO) + 3) + "|"]
        ratios: list[float] = []
        for name in (*NAMES, *KINDS):
            found = {row["who"]: row for row in rows if (row["variant"], row["size"]) == (name, size)}
            if found:
                lines.append(_line(name, found, ratios))
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            best = " with the best tiles" if tuned else ""
            lines += ["", f"flex_attention's time over ours{best}: geometric mean {mean:.2f}, worst {min(ratios):.2f}"]
    return "\n".join(lines)


def is_tile(who: str) -> bool:
    """Whether somebody is ours with tiles of its own."""
    return who[0].isdigit() or who.startswith("chain")


def _line(name: str, found: dict[str, dict[str, Any]], ratios: list[float]) -> str:
    def cell(who: str, key: str = "ms", digits: str = ".3f") -> str:
        row = found.get(who, {})
        return format(row[key], digits) if key in row else "failed" if "failed" in row else "-"

    tiles = {who: row["ms"] for who, row in found.items() if (is_tile(who) or who == "ours") and "ms" in row}
    best = min(tiles, key=lambda who: tiles[who], default="")
    if best and "ms" in found.get("flex", {}):
        ratios.append(found["flex"]["ms"] / tiles[best])
    text = f"{best} {tiles[best]:.3f}" if best else "-"
    errors = f"{cell('ours', 'error', '.1e')} / {cell('eager', 'error', '.1e')}"
    return f"| {name} | {' | '.join(map(cell, WHO))} | {text} | {errors} |"


#: what remarks of `graph-choose-scores` and `graph-choose-products` were asked about, and whether loops were taken
_ASKED = re.compile(r"attention (\d+x\d+x\d+x\d+) \w+ with ([\w:+]*\w(?:, [\w:+]*\w)*)")


def records(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Lines for the table of measured nests: of a kind and size the variant for which loops were the least ahead."""
    times: dict[tuple[str, str], dict[str, float]] = {}
    asked: dict[tuple[str, str], tuple[str, str, bool]] = {}
    kinds: dict[str, str] = {}
    for row in rows:
        key = row["variant"], row["size"]
        if "ms" in row:
            times.setdefault(key, {})[row["who"]] = row["ms"]
        found = [m for said in row.get("said", ()) if (m := _ASKED.search(said))] if row["who"] == "inductile" else []
        if found:
            kinds[row["variant"]] = found[0][2].replace(",", "")
            asked[key] = found[0][1], kinds[row["variant"]], row["said"][0].startswith("passed")
    for name, size in times:
        if name in kinds and (name, size) not in asked:
            batch, heads, length, width = SHAPES[size]
            asked[name, size] = f"{batch * heads}x{length}x{length}x{width}", kinds[name], True
    worst: dict[tuple[str, str], tuple[float, float, float, str]] = {}
    for key, (sizes, steps, took_loops) in asked.items():
        library = times[key].get("library", math.inf if took_loops else times[key]["inductile"])
        nest = times[key].get("ours", math.inf)
        if math.isfinite(nest) and math.isfinite(library):
            row_of = nest / library, library, nest, key[0]
            worst[sizes, steps] = max(worst.get((sizes, steps), row_of), row_of)
    lines: list[str] = []
    for (sizes, steps), (_, library, nest, name) in sorted(worst.items(), key=lambda each: each[0][::-1]):
        heads, length, _, width = sizes.split("x")
        numbers = f"{heads}, {length}, {width}, {1000 * library:.4g}, {1000 * nest:.4g}"
        lines.append(f'    _attention("{steps}", {numbers}),  # {name}')
    return lines


def main() -> None:
    """Measure, or print the table of a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("loop_attention.jsonl"))
    parser.add_argument("--variants", nargs="+", choices=(*NAMES, *KINDS), default=list(NAMES))
    parser.add_argument("--sizes", nargs="+", choices=SHAPES, default=["64", "128"])
    parser.add_argument(
        "--who",
        nargs="+",
        default=list(WHO),
        help="of these, or tiles as rows x step x warps x stages, chain in front; or without-PASS",
    )
    parser.add_argument("--backward", action="store_true", help="forward and backward, in rows of their own")
    parser.add_argument("--tune", action="store_true", help="try the tiles of TILES too")
    parser.add_argument("--kernels", action="store_true", help="the time of each kernel, too")
    parser.add_argument("--apart", type=int, default=100, help="of --who in one process")
    parser.add_argument("--jobs", type=int, default=4, help="processes side by side")
    parser.add_argument("--timeout", type=float, default=240, help="seconds for a variant at a size")
    parser.add_argument("--table", action="store_true", help="print the table of the file, and run nothing")
    parser.add_argument("--records", action="store_true", help="print the lines of records, and run nothing")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--lock", help="a file that others who measure at the same time lock, too")
    args = parser.parse_args()
    if args.worker:
        name, size = args.worker
        return work(name, size, args.who, args.lock, args.backward, args.kernels)
    results = Results(args.out, args.backward)
    whos = [*args.who, *("x".join(map(str, tile)) for tile in TILES if args.tune)]
    if args.records:
        return print("\n".join(records(results.rows)))
    if not args.table:
        with tempfile.TemporaryDirectory() as cache, ThreadPoolExecutor(args.jobs) as pool:
            parts = [whos[k : k + args.apart] for k in range(0, len(whos), args.apart)]
            jobs = [(name, size, part) for size in args.sizes for part in parts for name in args.variants]

            def run(job: tuple[str, str, list[str]]) -> None:
                lock = args.lock or f"{cache}/lock"
                in_process(*job, results, args.timeout, cache, lock, args.kernels)

            list(pool.map(run, jobs))
    print(table(results.rows))


if __name__ == "__main__":
    main()
