"""Write the table of ATen overloads, `dialects/aten/schemas.txt`, from the installed torch.

    python -m inductile.tools.generate_aten_schemas > schemas.txt

One overload a line, in torch's own notation without `aten::`, then the tags that a compiler asks for:

    add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor | core pointwise
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..dialects.aten.schema import TAGS, SchemaError, parse_schema

if TYPE_CHECKING:
    from torch import FunctionSchema

HEADER = (
    "# ATen overloads and their tags, one a line; written by tools/generate_aten_schemas.py from torch {version}.\n"
    "# Left out: out= variants, and types that no captured graph holds (dicts, futures, dimension names).\n"
)


def main() -> int:
    """Print the table."""
    import torch

    sys.stdout.write(HEADER.format(version=torch.__version__.partition("+")[0]))
    sys.stdout.writelines(f"{line}\n" for line in schema_lines())
    return 0


def schema_lines() -> list[str]:
    """The lines of the table, sorted by name."""
    import torch

    schemas = torch._C._jit_get_all_schemas()
    return sorted(line for each in schemas if (line := _line(each)) is not None)


def _line(schema: FunctionSchema) -> str | None:
    """The table's line for an overload; None for what the table leaves out."""
    if not schema.name.startswith("aten::") or any(argument.is_out for argument in schema.arguments):
        return None
    overload = _overload(schema)
    text = str(schema).removeprefix("aten::")
    if not any(word in text for word in ("Tensor", "Scalar", "Sym")):  # TorchScript's own: strings, lists, numbers
        return None
    try:
        parse_schema(text)
    except SchemaError:
        return None
    tags = sorted({tag.name for tag in overload.tags} & TAGS) if overload is not None else []
    return f"{text} | {' '.join(tags)}" if tags else text


def _overload(schema: FunctionSchema) -> Any:
    """The OpOverload; None for what only TorchScript can call."""
    import torch

    packet = getattr(torch.ops.aten, schema.name.removeprefix("aten::"), None)
    return getattr(packet, schema.overload_name or "default", None)


if __name__ == "__main__":
    sys.exit(main())
