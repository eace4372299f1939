"""The host dialect: the program around the kernels."""

from xdsl.ir import Dialect

from .ops import CallOp, CopyOp, EmptyOp, FreeOp, FuncOp, LaunchOp, ReturnOp, ViewOp

Host = Dialect("host", [CallOp, CopyOp, EmptyOp, FreeOp, FuncOp, LaunchOp, ReturnOp, ViewOp])

__all__ = ["CallOp", "CopyOp", "EmptyOp", "FreeOp", "FuncOp", "Host", "LaunchOp", "ReturnOp", "ViewOp"]
