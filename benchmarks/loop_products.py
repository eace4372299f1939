"""Products on matrix units by kernels of ours, beside the library: `python benchmarks/loop_products.py --out r.jsonl`.

Twenty products of the models that `benchmarks/gpu_models.py` runs, at sizes that people run: alone, and with a bias,
relu and a residual behind them. `library` is cuBLAS, and with the epilogue cuBLAS and the kernel behind it that
inductile makes by default; `ours` one kernel of `kernel-map-products`. Device microseconds: the sum of kernel times
that the profiler saw, the cache flushed before each call. `rate` is in 10^12 operations a second, `error` relative to
float64, or float32 for large ones. `--tune` tries all tiles that are candidates on each product and names the best one;
that is what `machines/measured_nests.py` and `machines/product_tiles.py` are made of. What the file of results holds is
not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpu import Profiler, make_importable, read_results


@dataclass(frozen=True)
class Shape:
    """`batch` products of rows x depth and depth x columns; `linear` ones read the second matrix transposed."""

    model: str
    rows: int
    columns: int
    depth: int
    batch: int = 1
    linear: bool = True


SHAPES = (
    Shape("BERT-base qkv 16x512", 8192, 768, 768),
    Shape("BERT-base up 16x512", 8192, 3072, 768),
    Shape("BERT-base down 16x512", 8192, 768, 3072),
    Shape("BERT-base scores 16x512", 512, 512, 64, 192),
    Shape("GPT-2 qkv 8x512", 4096, 2304, 768, linear=False),
    Shape("GPT-2 down 8x512", 4096, 768, 3072, linear=False),
    Shape("GPT-2 vocabulary 8x512", 4096, 50257, 768),
    Shape("Llama gate 8x512", 4096, 2816, 1024),
    Shape("Llama down 8x512", 4096, 1024, 2816),
    Shape("Llama keys 8x512", 4096, 256, 1024),
    Shape("T5-small up 8x512", 4096, 2048, 512),
    Shape("T5-small down 8x512", 4096, 512, 2048),
    Shape("ResNet-50 classes 64", 64, 1000, 2048),
    Shape("ViT-B/16 qkv 64", 12608, 2304, 768),
    Shape("ViT-B/16 up 64", 12608, 3072, 768),
    Shape("ConvNeXt-T first 64", 200704, 384, 96),
    Shape("ConvNeXt-T last 64", 3136, 768, 3072),
    Shape("MobileNetV3-L classes 128", 128, 1280, 960),
    Shape("TinyLlama up, 16 tokens", 16, 5632, 2048),
    Shape("TinyLlama down, 16 tokens", 16, 2048, 5632),
)
NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


def text_of(shape: Shape, dtype: str, epilogue: bool) -> str:
    """The product as a function at the aten level."""
    element, batch = NAMES[dtype], f"{shape.batch}x" if shape.batch > 1 else ""

    def type_(sizes: str, strides: str = "") -> str:
        return f'!aten.tensor<{sizes}x{element}{strides}, device = "cuda:0">'

    k = shape.depth
    strides = f", strides = [{f'{k * shape.columns}, ' if batch else ''}1, {k}]" if shape.linear else ""
    left = type_(f"{batch}{shape.rows}x{k}")
    right, result = type_(f"{batch}{k}x{shape.columns}", strides), type_(f"{batch}{shape.rows}x{shape.columns}")
    arguments = f"%x: {left}, %w: {right}" + (f", %b: {type_(str(shape.columns))}, %r: {result}" if epilogue else "")
    op = "bmm" if batch else "mm"
    lines = [f"%p = aten.{op}(%x, %w) : {result}"]
    if epilogue:
        lines += [
            f"%s = aten.add.Tensor(%p, %b) : {result}",
            f"%a = aten.relu(%s) : {result}",
            f"%y = aten.add.Tensor(%a, %r) : {result}",
        ]
    last = "%y" if epilogue else "%p"
    body = "\n  ".join([*lines, f"func.return {last} : {result}"])
    return f"func.func @f({arguments}) -> {result} {{\n  {body}\n}}"


def program(text: str, options: str) -> Callable[..., Any]:
    """The function as a program for this GPU. `options` are those of the pipeline."""
    from xdsl.parser import Parser

    from inductile.backends.host import build
    from inductile.dialects.context import new_context
    from inductile.lowering.pipeline import named_passes
    from inductile.passes.manager import PassManager

    module = Parser(new_context(), text).parse_module()
    PassManager(named_passes(f"default{{{options}}}" if options else "default", target())).run(new_context(), module)
    run = build(module)
    return lambda *arguments: run(list(arguments))[0]


def target() -> str:
    """The name of this GPU's target."""
    import torch

    return "cuda:{}{}".format(*torch.cuda.get_device_capability())


def inputs_of(shape: Shape, dtype: str, epilogue: bool) -> list[Any]:
    """Random matrices."""
    import torch

    kind = getattr(torch, dtype)
    batch = (shape.batch,) if shape.batch > 1 else ()
    torch.manual_seed(0)
    left = torch.randn(*batch, shape.rows, shape.depth, device="cuda").to(kind)
    right = torch.randn(*batch, shape.columns, shape.depth, device="cuda").to(kind).mT
    if not shape.linear:
        right = right.contiguous()
    if not epilogue:
        return [left, right]
    residual = torch.randn(*batch, shape.rows, shape.columns, device="cuda").to(kind)
    return [left, right, torch.randn(shape.columns, device="cuda").to(kind), residual]


def exact_of(inputs: Sequence[Any]) -> Any:
    """What the product is, in float64 where that is not too long."""
    import torch

    wide = torch.float64 if inputs[0].numel() * inputs[1].shape[-1] < 1 << 34 else torch.float32
    left, right, *others = (x.to(wide) for x in inputs)
    found = left @ right
    return (found + others[0]).relu() + others[1] if others else found


def measured(run: Callable[..., Any], inputs: Sequence[Any], exact: Any, profiler: Profiler) -> tuple[float, float]:
    """Device microseconds and error of a call."""
    result = run(*inputs)
    for _ in range(2):
        run(*inputs)
    error = float((result.to(exact.dtype) - exact).norm() / exact.norm())
    kernels = profiler.kernels(lambda: run(*inputs), 10)
    return 1000 * sum(took for took, _ in kernels.values()), error


def rows_of(shape: Shape, dtype: str, epilogue: bool, tune: bool, profiler: Profiler) -> Iterator[dict[str, Any]]:
    """Measure one product by everybody who can."""
    inputs, text = inputs_of(shape, dtype, epilogue), text_of(shape, dtype, epilogue)
    exact = exact_of(inputs)
    tf32 = " allow-tf32=true" if dtype == "float32" and is_tf32() else ""
    candidates = {"library": "choices=none", "default": "", "ours": f"loop-products=true{tf32}"}
    names = ("tile-rows", "tile-columns", "tile-depth", "warps", "stages", "depth-parts", "resident")
    names = (*names, "last-rows", "last-columns", "last-depth")
    for tile in tiles() if tune else ():
        numbers = " ".join(f"{name}={number}" for name, number in zip(names, tile, strict=False))
        candidates["x".join(map(str, tile))] = f"loop-products=true{tf32} {numbers}"
    for name, options in candidates.items():
        begin = time.perf_counter()
        row = {**asdict(shape), "dtype": dtype, "epilogue": epilogue, "tune": tune, "who": name}
        try:
            took, error = measured(program(text, options), inputs, exact, profiler)
        except Exception as failure:  # a tile that does not fit the card is a row of the table too
            yield {**row, "failed": repr(failure)[:200]}
            continue
        operations = 2.0 * shape.batch * shape.rows * shape.columns * shape.depth
        rate = operations / took / 1e6
        yield {**row, "us": took, "rate": rate, "error": error, "seconds": time.perf_counter() - begin}


def tiles() -> tuple[tuple[int, ...], ...]:
    """The tiles that are candidates of `mode="max-autotune"`."""
    from inductile.machines.measured_nests import PRODUCT_TILES

    return PRODUCT_TILES


def is_tf32() -> bool:
    """Whether the library multiplies float32 in TF32."""
    import torch

    return bool(torch.backends.cuda.matmul.allow_tf32)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A Markdown table of each dtype, alone and with the epilogue, and the geometric mean and worst of the ratios."""
    lines: list[str] = []
    for key in dict.fromkeys((row["dtype"], row["epilogue"]) for row in rows):
        lines += ["", f"## {key[0]}, {'with an epilogue of two operands' if key[1] else 'alone'}", ""]
        lines += ["| product | rows x columns x depth | library us | ours us | ratio | best tile | error |"]
        lines += ["|---|---|---|---|---|---|---|"]
        ratios: list[float] = []
        own = [row for row in rows if (row["dtype"], row["epilogue"]) == key]
        for model in dict.fromkeys(row["model"] for row in own):
            found = {row["who"]: row for row in own if row["model"] == model}
            lines.append(_line(found, ratios))
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            lines += ["", f"library's time over ours: geometric mean {mean:.2f}, worst {min(ratios):.2f}"]
    return "\n".join(lines)


def _line(found: dict[str, dict[str, Any]], ratios: list[float]) -> str:
    one = next(iter(found.values()))
    ran = {who: row for who, row in found.items() if "us" in row}
    size = f"{one['batch']}x " if one["batch"] > 1 else ""
    size += f"{one['rows']} x {one['columns']} x {one['depth']}"
    tried = {who: row["us"] for who, row in ran.items() if who not in ("library", "ours")}
    best = min(tried, key=lambda who: tried[who], default="")
    if "library" not in ran or "ours" not in ran:
        return f"| {one['model']} | {size} | failed | | | {best} | |"
    library, ours = ran["library"]["us"], ran["ours"]["us"]
    ratios.append(library / ours)
    told = f"{best}: {tried[best]:.1f} us" if best else ""
    error = f"{ran['ours']['error']:.1e} ({ran['library']['error']:.1e})"
    return f"| {one['model']} | {size} | {library:.1f} | {ours:.1f} | {library / ours:.2f} | {told} | {error} |"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16"], choices=NAMES)
    parser.add_argument("--products", nargs="+", default=[], help="words of the names of products; all by default")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--tf32", action="store_true")
    args = parser.parse_args()
    make_importable()
    import torch

    torch.backends.cuda.matmul.allow_tf32 = args.tf32
    print(torch.cuda.get_device_name(), torch.__version__, flush=True)
    done = read_results(args.out) if args.out.exists() else []
    seen = {(row["model"], row["dtype"], row["epilogue"], row["tune"]) for row in done}
    profiler = Profiler()
    for dtype in args.dtypes:
        for shape in SHAPES:
            if args.products and not any(word in shape.model for word in args.products):
                continue
            for epilogue in (False, True):
                if (shape.model, dtype, epilogue, args.tune) in seen:
                    continue
                with args.out.open("a") as out:
                    for row in rows_of(shape, dtype, epilogue, args.tune, profiler):
                        out.write(json.dumps(row) + "\n")
                        print(json.dumps(row), flush=True)
    print(table(read_results(args.out)))


if __name__ == "__main__":
    main()
