"""The host dialect: the program around the kernels."""

from xdsl.ir import Dialect

from .memory import EmptyOp, FreeOp, ViewOp
from .ops import CallOp, CopyOp, FuncOp, LaunchOp, ReturnOp

Host = Dialect("host", [CallOp, CopyOp, EmptyOp, FreeOp, FuncOp, LaunchOp, ReturnOp, ViewOp])

__all__ = ["CallOp", "CopyOp", "EmptyOp", "FreeOp", "FuncOp", "Host", "LaunchOp", "ReturnOp", "ViewOp"]
