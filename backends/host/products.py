"""Matrix products by another library than the one that ATen calls for them.

Uses the private op `mkldnn::_linear_pointwise` of torch builds with oneDNN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import torch

from ...errors import UnsupportedError
from ...passes.common.implementations import (
    ALIGNMENT,
    BLAS,
    EXACT_DEPTH,
    FLOATS,
    IMPLEMENTATION,
    LIBRARY,
    ONEDNN,
    SCRATCH,
    SCRATCH_BYTES,
    TURNS,
    turns,
)

if TYPE_CHECKING:  # programs that are loaded call what is here, and load nothing of the compiler
    from ...dialects.aten import AtenOp


def has_onednn() -> bool:
    """Whether this torch can multiply float32 matrices by oneDNN."""
    return _linear() is not None


def _linear() -> Callable[..., torch.Tensor] | None:
    if not torch.backends.mkldnn.is_available():
        return None
    packet = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    return None if packet is None else packet.default


def _onednn() -> Mapping[str, Callable[..., torch.Tensor]]:
    if _linear() is None:
        raise UnsupportedError(
            "the IR wants products by oneDNN, which this torch was built without: "
            "leave out loop-select-implementation, or run it with products=blas"
        )
    return {"aten.mm": mm_by_onednn, "aten.addmm": addmm_by_onednn}


def mm_by_onednn(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`left @ right` by oneDNN."""
    return torch.ops.mkldnn._linear_pointwise.default(left, right.t(), None, "none", [], "")


def addmm_by_onednn(bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`left @ right + bias` by oneDNN, the bias one of columns."""
    return torch.ops.mkldnn._linear_pointwise.default(left, right.t(), bias, "none", [], "")


def mm_in_turns(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`left @ right`, row-major, by products that write rows that begin at aligned addresses; see `TURNS`."""
    with torch.no_grad():
        size = left.element_size()
        per, columns = ALIGNMENT // size, right.shape[1]
        out = torch.empty((left.shape[0], columns), dtype=left.dtype, device=left.device)
        count = turns(columns, size)
        if count == 1 or columns < 2 * per or left.shape[0] < count:
            return torch.mm(left, right, out=out)
        ends = torch.cat((right.t()[:per], right.t()[columns - per :]))
        both = out.as_strided((left.shape[0], 2, per), (columns, columns - per, 1))
        both.copy_(torch.mm(left, ends.t()).view(-1, 2, per))
        for turn in range(count):
            first = -turn * columns % per
            width = (columns - first) // per * per
            torch.mm(left[turn::count], right[:, first : first + width], out=out[turn::count, first : first + width])
        return out


def mm_by_scratch(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`left @ right`, row-major, by products into rows that are padded; see `SCRATCH`."""
    with torch.no_grad():
        per, (rows, columns) = ALIGNMENT // left.element_size(), (left.shape[0], right.shape[1])
        out = torch.empty((rows, columns), dtype=left.dtype, device=left.device)
        width = columns // per * per
        if width in (0, columns) or rows == 0:
            return torch.mm(left, right, out=out)
        out[:, columns - per :].copy_(torch.mm(left, right[:, columns - per :]))
        most = max(SCRATCH_BYTES // ((width + per) * left.element_size()), 1)
        scratch = torch.empty((min(rows, most), width + per), dtype=left.dtype, device=left.device)
        for first in range(0, rows, most):
            part = left[first : first + most]
            made = torch.mm(part, right[:, :width], out=scratch[: part.shape[0], :width])
            out[first : first + most, :width].copy_(made)
        return out


def int_mm_by_floats(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`torch._int_mm` by products of float32, which are exact: see `EXACT_DEPTH`. Blocks take little memory."""
    with torch.no_grad():
        rows, columns = left.shape[0], right.shape[1]
        out = torch.zeros((rows, columns), dtype=torch.int32, device=left.device)
        for first in range(0, left.shape[1], EXACT_DEPTH):
            depth = slice(first, first + EXACT_DEPTH)
            part = left[:, depth].to(torch.float32)
            for start in range(0, columns, _BLOCK_OF_COLUMNS):
                block = slice(start, start + _BLOCK_OF_COLUMNS)
                out[:, block] += torch.mm(part, right[depth, block].to(torch.float32)).to(torch.int32)
        return out


_BLOCK_OF_COLUMNS = 1024


def way_to_multiply_integers() -> str:
    """Who multiplies matrices of integers on this machine: ATen where the processor has instructions for it (VNNI)."""
    is_fast = getattr(torch.cpu, "_is_vnni_supported", lambda: False)()
    return LIBRARY if is_fast else FLOATS


def has_matrix_units() -> bool:
    """Whether the CPU has units for products of matrices of 16 bits (AMX).

    There the library is the faster one for one row of bfloat16, too: 1x1280 by 1000 columns with a packed weight took
    0.22 ms on a Xeon with them, torch 2.11, and a nest of sums 0.36.
    """
    return getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)()


def _by_floats() -> Mapping[str, Callable[..., torch.Tensor]]:
    return {"aten._int_mm": int_mm_by_floats}


def _in_turns() -> Mapping[str, Callable[..., torch.Tensor]]:
    return {"aten.mm": mm_in_turns}


def _by_scratch() -> Mapping[str, Callable[..., torch.Tensor]]:
    return {"aten.mm": mm_by_scratch}


_PROVIDERS: Mapping[str, Callable[[], Mapping[str, Callable[..., torch.Tensor]]]] = {
    ONEDNN: _onednn,
    TURNS: _in_turns,
    SCRATCH: _by_scratch,
    FLOATS: _by_floats,
}


def implementation_of(op: AtenOp) -> Callable[..., torch.Tensor] | None:
    """What runs an op instead of ATen's own, if the IR chose something. UnsupportedError for what nobody provides."""
    chosen = op.attributes.get(IMPLEMENTATION)
    name = str(getattr(chosen, "data", ""))
    if chosen is None or name == BLAS:
        return None
    provider = _PROVIDERS.get(name)
    found = None if provider is None else provider().get(op.name)
    if found is None:
        raise UnsupportedError(f"{op.name} has no implementation {chosen}")
    return found
