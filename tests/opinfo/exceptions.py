"""Cases of the operator database that may differ from eager, each with its reason."""

from __future__ import annotations

_NOT_OURS = "aot_eager fails as well"
_UINT8_RESAMPLING = "eager computes in 16-bit fixed point; torch's own tracing already differs"

#: case name -> why it is not owed
EXCEPTIONS: dict[str, str] = {
    "linalg.polar:complex64": _NOT_OURS,
    "view_as_complex:float32:gradient": _NOT_OURS,
    "nn.functional.upsample_bilinear:uint8": _UINT8_RESAMPLING,
}
