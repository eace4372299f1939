"""Attention as people write it on a CPU: `python benchmarks/attention_cpu.py --out attention_cpu.jsonl`.

The variants of `attention_variants.py` on one thread, in float32 and bfloat16, at the sizes of `SHAPES`: `eager`;
`default`, inductile without options; `loops`, with `loop_products`; `inductor`; `flex` and `flex_inductor`,
flex_attention compiled by inductile and by Inductor, forward alone (torch has no gradient of it on a CPU). `--backward`
measures forward with the gradients of q, k and v. Times are processor milliseconds of this process, the least of
several calls, everybody in turns; `error` is the norm of the difference to float64's. Results are appended as they
come, what the file holds is not run again, and `--table` prints it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from gpu import make_importable, read_results
from loop_attention import NAMES

#: batch, heads, length, head size
SHAPES = {"512": (1, 8, 512, 64), "1024": (1, 12, 1024, 64)}
WHO = ("eager", "default", "loops", "inductor", "flex", "flex_inductor")
#: seconds for all that is measured of one row
_SECONDS = 1.5


def program_of(who: str, name: str, inputs: Sequence[Any], backward: bool) -> Callable[..., Any] | None:
    """The function that computes a variant; None where `who` cannot."""
    from attention_variants import VARIANTS, flex_of

    q, extra = inputs[0], inputs[3:]
    if who == "eager":
        return VARIANTS[name]
    given: dict[str, Any] = {} if "inductor" in who else {"backend": "inductile"}
    if who == "loops":
        given["options"] = {"loop_products": True, "pre_grad": "remove-identities"}
    if not who.startswith("flex"):
        return torch.compile(VARIANTS[name], dynamic=False, **given)
    flex = flex_of(name, q, extra)
    return None if flex is None or flex.grouped or backward else _flex(flex, q, given)


def _flex(flex: Any, q: Any, given: dict[str, Any]) -> Callable[..., Any]:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    length = q.shape[2]
    mask = None if flex.mask is None else create_block_mask(flex.mask, None, None, length, length, device="cpu")
    compiled = torch.compile(flex_attention, dynamic=False, **given)
    return lambda q, k, v, *_: compiled(q, k, v, score_mod=flex.score, block_mask=mask)


def rows_of(name: str, size: str, dtype: torch.dtype, whos: Sequence[str], backward: bool) -> list[dict[str, Any]]:
    """Rows of one variant, all measured in turns."""
    from attention_variants import VARIANTS, extra_of

    torch.manual_seed(0)
    q, k, v = (torch.randn(SHAPES[size]).to(dtype).requires_grad_(backward) for _ in range(3))
    inputs = [q, k, v, *extra_of(name, q)]
    wide = [x.detach().double() if x.is_floating_point() else x for x in inputs]
    exact = VARIANTS[name](*wide)
    runs: dict[str, Callable[[], Any]] = {}
    rows: dict[str, dict[str, Any]] = {}
    for who in whos:
        row = {"name": name, "size": size, "dtype": str(dtype)[6:], "who": who, "backward": backward}
        torch._dynamo.reset()
        try:
            run = program_of(who, name, inputs, backward)
            if run is None:
                continue
            runs[who] = _with_gradients(run, inputs) if backward else lambda run=run: run(*inputs)
            row["error"] = float((runs[who]().double() - exact).norm() / exact.norm())
        except Exception as failure:
            runs.pop(who, None)
            row["failed"] = f"{type(failure).__name__}: {failure}"[:300]
        rows[who] = row
    for who, took in _timed(runs).items():
        rows[who]["ms"] = took
    return list(rows.values())


def _with_gradients(run: Callable[..., Any], inputs: Sequence[Any]) -> Callable[[], Any]:
    gradient = torch.randn(inputs[0].shape).to(inputs[0].dtype)

    def call() -> Any:
        result = run(*inputs)
        torch.autograd.grad(result, inputs[:3], gradient)
        return result.detach()

    return call


def _timed(runs: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The least processor milliseconds of each."""
    found = dict.fromkeys(runs, float("inf"))
    begin = time.perf_counter()
    for number in range(40):
        if number >= 3 and time.perf_counter() - begin > _SECONDS:
            break
        for who, run in runs.items():
            started = time.process_time()
            run()
            found[who] = min(found[who], 1000 * (time.process_time() - started))
    return found


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A Markdown table for each kind of row."""
    lines: list[str] = []
    kinds = dict.fromkeys((row["backward"], row["dtype"], row["size"]) for row in rows)
    for backward, dtype, size in kinds:
        title = f"{'x'.join(map(str, SHAPES[size]))}, {dtype}, {'forward with backward' if backward else 'forward'}"
        lines += ["", f"## {title}", "", f"| variant | {' | '.join(WHO)} |", "|---" * (len(WHO) + 1) + "|"]
        for name in NAMES:
            found = {
                row["who"]: f"{row['ms']:.1f}" if "ms" in row else "failed"
                for row in rows
                if (row["name"], row["backward"], row["dtype"], row["size"]) == (name, backward, dtype, size)
            }
            if found:
                lines.append(f"| {name} | {' | '.join(found.get(who, '-') for who in WHO)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, or print the table of a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("attention_cpu.jsonl"))
    parser.add_argument("--variants", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--sizes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "bfloat16"), default=["float32", "bfloat16"])
    parser.add_argument("--who", nargs="+", choices=WHO, default=list(WHO))
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--table", action="store_true", help="print the table of the file, and run nothing")
    args = parser.parse_args()
    make_importable()
    torch.set_num_threads(1)
    rows = read_results(args.out)
    seen = {(row["name"], row["size"], row["dtype"], row["backward"]) for row in rows}
    jobs = [(name, size, dtype) for size in args.sizes for dtype in args.dtypes for name in args.variants]
    for name, size, dtype in () if args.table else jobs:
        if (name, size, dtype, args.backward) in seen:
            continue
        for row in rows_of(name, size, getattr(torch, dtype), args.who, args.backward):
            rows.append(row)
            with args.out.open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
