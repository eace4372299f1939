"""Triton source from kernels, compiled and launched."""

from .kernel import TritonKernel
from .source import emit, emit_source, file_text

__all__ = ["TritonKernel", "emit", "emit_source", "file_text"]
