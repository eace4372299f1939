"""loop -> kernel + host: each fusion becomes a kernel over buffers, each function a program that launches them."""

from .convert import LowerLoopToKernel

__all__ = ["LowerLoopToKernel"]
