"""The host dialect: the program around the kernels."""

from xdsl.ir import Dialect

from .ops import CopyOp, EmptyOp, FreeOp, FuncOp, LaunchOp, ReturnOp, ViewOp

Host = Dialect("host", [CopyOp, EmptyOp, FreeOp, FuncOp, LaunchOp, ReturnOp, ViewOp])

__all__ = ["CopyOp", "EmptyOp", "FreeOp", "FuncOp", "Host", "LaunchOp", "ReturnOp", "ViewOp"]
