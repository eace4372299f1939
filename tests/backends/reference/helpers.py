"""Parsing and running IR text."""

from __future__ import annotations

from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from inductile.backends.reference import run_module
from inductile.dialects.context import new_context

#: torch dtype -> element type as IR writes it
ELEMENTS = {
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.bool: "i1",
    torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.uint8: "ui8",
    torch.uint16: "ui16", torch.uint32: "ui32", torch.uint64: "ui64",
}  # fmt: skip


def parse(text: str) -> ModuleOp:
    """A verified module."""
    module = Parser(new_context(), text).parse_module()
    module.verify()
    return module


def run(text: str, *inputs: torch.Tensor | int, **options: Any) -> list[Any]:
    """Results of the only function of a module."""
    return run_module(parse(text), list(inputs), **options)


def tensor_type(tensor: torch.Tensor) -> str:
    """The type of a contiguous tensor."""
    sizes = "".join(f"{n}x" for n in tensor.shape)
    return f"!aten.tensor<{sizes}{ELEMENTS[tensor.dtype]}>"


def elementwise(body: str, result: str, *inputs: torch.Tensor, wide: bool = False) -> torch.Tensor:
    """Run `body`, which makes %r of element type `result` from %a, %b, %c, for each element of vectors."""
    names = "abc"[: len(inputs)]
    count = len(inputs[0])
    arguments = ", ".join(f"%t{n}: {tensor_type(t)}" for n, t in zip(names, inputs, strict=True))
    loads = "\n".join(f"%{n} = loop.load %t{n}[i0]" for n in names)
    out = f"!aten.tensor<{count}x{result}>"
    (found,) = run(
        f"""func.func @f({arguments}) -> {out} {{
          %y = loop.generate (i0 in {count}) {{
            {loads}
            {body}
            loop.yield %r
          }} : {out}
          func.return %y : {out}
        }}""",
        *inputs,
        wide=wide,
    )
    return found
