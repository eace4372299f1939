"""The xDSL context of inductile: our dialects and the stock ones we use, loaded when a file names them."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.ir import Dialect, Operation

from .. import extensions


def _aten() -> Dialect:
    from .aten import Aten

    return Aten


def _sym() -> Dialect:
    from .sym import Sym

    return Sym


def _scalar() -> Dialect:
    from .scalar import Scalar

    return Scalar


def _loop() -> Dialect:
    from .loop import Loop

    return Loop


def _kernel() -> Dialect:
    from .kernel import Kernel

    return Kernel


def _host() -> Dialect:
    from .host import Host

    return Host


def _machine() -> Dialect:
    from .machine import Machine

    return Machine


def _transform() -> Dialect:
    from .transform import Transform

    return Transform


def _builtin() -> Dialect:
    from xdsl.dialects.builtin import Builtin

    return Builtin


def _func() -> Dialect:
    from xdsl.dialects.func import Func

    return Func


def _arith() -> Dialect:
    from xdsl.dialects.arith import Arith

    return Arith


def _math() -> Dialect:
    from xdsl.dialects.math import Math

    return Math


#: our dialects, from the user's graph down to the program around the kernels
DIALECTS: dict[str, Callable[[], Dialect]] = {
    "sym": _sym, "aten": _aten, "scalar": _scalar, "loop": _loop, "kernel": _kernel, "host": _host,
    "machine": _machine, "transform": _transform,
}  # fmt: skip
STOCK_DIALECTS: dict[str, Callable[[], Dialect]] = {
    "builtin": _builtin, "func": _func, "arith": _arith, "math": _math,
}  # fmt: skip


class InductileContext(Context):
    """A context that makes `aten` op classes one by one from their schemas, when a file names them.

    Loading the dialect the ordinary way would build two thousand classes.
    """

    def _get_known_op(self, name: str) -> type[Operation] | None:
        if name.startswith("aten."):
            from .aten import op_class

            return op_class(name)
        return super()._get_known_op(name)

    def load_registered_dialect(self, name: str) -> None:
        """Load a dialect; of `aten` only types and attributes."""
        if name != "aten":
            return super().load_registered_dialect(name)
        dialect = _aten()
        self._loaded_dialects[name] = dialect
        for attribute in dialect.attributes:
            self.load_attr_or_type(attribute)


def new_context() -> InductileContext:
    """A context that knows every dialect of inductile, and those of other packages."""
    context = InductileContext()
    for name, factory in (STOCK_DIALECTS | DIALECTS).items():
        context.register_dialect(name, factory)
    for name, load in extensions.loaders("inductile.dialects").items():
        context.register_dialect(name, lambda load=load: load()())
    return context
