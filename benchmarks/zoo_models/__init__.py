"""Models that nobody here wrote, at tiny sizes and with random weights; `MODELS` has a row for each."""

from __future__ import annotations

from . import audio, diffusion, hugging_face, of_torch, rarer_hugging_face, timm_models, vision
from .base import Case, MissingError, Row

__all__ = ["MODELS", "Case", "MissingError", "Row"]

MODELS: dict[str, Row] = {
    row.name: row
    for family in (hugging_face, rarer_hugging_face, timm_models, vision, diffusion, audio, of_torch)
    for row in family.ROWS
}
