"""Who computes products and attention fastest: `python benchmarks/choices.py --out choices.jsonl`.

What `mode="max-autotune"` measures, for the products of `loop_products.py`, alone and with an epilogue, and for the
variants of `attention_variants.py` that nothing recognises as attention, as they are by default. A row of the file is
a question with the times of all candidates in microseconds; at the end come the lines for
`machines/measured_nests.py`, which decides by default. What the file holds is not run again. `--device cpu` measures
the libraries and nests of a CPU, in float32.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gpu import make_importable, read_results
from loop_attention import NAMES
from loop_attention import SHAPES as ATTENTION_SHAPES
from loop_products import SHAPES, Shape

_MARK = ", as measured for "


def product_of(shape: Shape, epilogue: bool) -> Callable[..., Any]:
    """The product as a function of its matrices."""
    import torch

    def product(x: Any, w: Any, *others: Any) -> Any:
        made = x @ (w.mT if shape.linear else w)
        return torch.relu(made + others[0]) + others[1] if others else made

    return product


def inputs_of(shape: Shape, device: str, epilogue: bool) -> list[Any]:
    """Random matrices, of bfloat16 on a GPU."""
    import torch

    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    batch = (shape.batch,) if shape.batch > 1 else ()
    columns = (shape.columns, shape.depth) if shape.linear else (shape.depth, shape.columns)
    sizes = [(*batch, shape.rows, shape.depth), (*batch, *columns)]
    if epilogue:
        sizes += [(shape.columns,), (*batch, shape.rows, shape.columns)]
    return [torch.randn(size, device=device).to(dtype) for size in sizes]


def measured(function: Callable[..., Any], inputs: list[Any]) -> Iterator[dict[str, Any]]:
    """Compile a function, and tell what its questions were answered."""
    import torch

    from inductile.passes.remarks import collecting

    torch._dynamo.reset()
    options: dict[str, Any] = {"max_autotune": True, "cache_graphs": False}
    with torch.no_grad(), collecting() as remarks:
        torch.compile(function, backend="inductile", options=options, dynamic=False)(*inputs)
    for each in remarks:
        if each.pass_name == "graph-choose-products":
            chosen, _, shape = each.reason.partition(_MARK)
            times = {name: float(str(us).removesuffix(" us")) for name, us in each.figures.items()} if shape else {}
            yield {"question": shape or each.reason, "chosen": chosen if shape else "", "us": times}


def line_of(row: dict[str, Any]) -> str | None:
    """What `machines/measured_nests.py` should say of a question; None where it was not one of both."""
    nests = {name: us for name, us in row["us"].items() if name.startswith("nest")}
    library = min((us for name, us in row["us"].items() if name not in nests), default=None)
    if not nests or library is None:
        return None
    best = min(nests, key=lambda name: nests[name])
    kind, sizes, _, *ops = row["question"].split(" ", 4)
    tile = best.partition(" ")[2]
    batch, rows, columns, depth = sizes.split("x")
    if kind == "attention":
        names = ops[-1].replace(",", "") if ops else ""
        return f"    # {row['name']}, {sizes}, {best}\n    _attention({names!r}, {library}, {nests[best]}),"
    more = (f", batch={batch}" if batch != "1" else "") + (", behind=True" if ops else "")
    return f'    _product({rows}, {columns}, {depth}, {library}, {nests[best]}, "{tile}"{more}),'


def jobs(device: str, words: list[str], attention: bool) -> Iterator[tuple[str, Callable[..., Any], Callable[[], Any]]]:
    """Names, functions, and what makes their inputs."""
    from attention_variants import VARIANTS
    from loop_attention import inputs_of as inputs_of_attention

    for shape in SHAPES:
        for epilogue in (False, True):
            name = f"{shape.model}{', epilogue' if epilogue else ''}"
            if not words or any(word in name for word in words):
                yield name, product_of(shape, epilogue), lambda s=shape, e=epilogue: inputs_of(s, device, e)
    for size in ATTENTION_SHAPES if attention else ():
        for variant in NAMES:
            name = f"attention {variant} {size}"
            if not words or any(word in name for word in words):
                shape = ATTENTION_SHAPES[size]
                yield name, VARIANTS[variant], lambda v=variant, s=shape: inputs_of_attention(v, s)


def main() -> None:
    """Measure, and print lines for the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("choices.jsonl"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", nargs="+", default=[], help="words of the names of products and variants")
    args = parser.parse_args()
    make_importable()
    rows = read_results(args.out) if args.out.exists() else []
    seen = {row["name"] for row in rows}
    with tempfile.TemporaryDirectory() as cache:
        import os

        os.environ["INDUCTILE_CACHE_DIR"] = cache
        for name, function, inputs in jobs(args.device, args.only, args.device != "cpu"):
            if name in seen:
                continue
            try:
                found = list(measured(function, inputs())) or [
                    {"question": "nothing was asked", "chosen": "", "us": {}}
                ]
            except Exception as error:  # a row of the table too
                found = [{"question": f"failed: {error!r}"[:300], "chosen": "", "us": {}}]
            for row in found:
                row["name"] = name
                rows.append(row)
                with args.out.open("a") as out:
                    out.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)
    print("\n".join(filter(None, map(line_of, rows))))


if __name__ == "__main__":
    main()
