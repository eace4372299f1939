"""Running kernels on CPU tensors with Triton's interpreter, which needs TRITON_INTERPRET=1 before Triton is imported.

The interpreter lacks the functions of `libdevice` and `nvidia`, reduces with custom functions one element at a time,
truncates to bfloat16 instead of rounding, has no constants of it, multiplies its bits in products, rounds twice in a
fused multiply-add, makes floats of a bool that it broadcasts, and replaces all of Triton's language at each call of a
function; all mended here. Meant for tests and for looking at kernels where there is no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from .kernel import TritonKernel
from .loading import load_functions

_UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    name: getattr(torch, name)
    for name in (
        "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
        "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "erfinv", "rsqrt", "trunc", "lgamma",
    )
} | {
    "nearbyint": torch.round, "erfcx": torch.special.erfcx, "j0": torch.special.bessel_j0,
    "j1": torch.special.bessel_j1, "y0": torch.special.bessel_y0, "y1": torch.special.bessel_y1,
    "cyl_bessel_i0": torch.special.i0, "cyl_bessel_i1": torch.special.i1,
}  # fmt: skip
_BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "pow": torch.pow, "atan2": torch.atan2, "copysign": torch.copysign, "fmod": torch.fmod, "hypot": torch.hypot,
    "nextafter": torch.nextafter,
}  # fmt: skip


#: what is written in the GPU's own language
_NVIDIA: dict[str, Callable[..., torch.Tensor]] = {
    "exp2": torch.exp2, "full_exp2": torch.exp2, "reciprocal": torch.reciprocal,
    "float_of_int8": torch.Tensor.float, "float_of_uint8": torch.Tensor.float,
}  # fmt: skip
_DIGITS: dict[str, Callable[..., torch.Tensor]] = {
    "low_digits": lambda x, less: (x & 15).float() - less,
    "high_digits": lambda x, less: ((x >> 4) & 15).float() - less,
}


def _libdevice_function(function: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle, interpreter_semantic

    def call(*arguments: Any) -> Any:
        values: list[Any] = [interpreter_semantic.to_tensor(a) for a in arguments]
        result = function(*(torch.from_numpy(np.ascontiguousarray(v.handle.data)) for v in values)).numpy()
        dtype = values[0].dtype if values[0].dtype.is_floating() else tl.float32
        shaped = any(v.type.is_block() for v in values)
        return tl.tensor(TensorHandle(result, dtype), tl.block_type(dtype, list(result.shape)) if shaped else dtype)

    return call


def _to_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of float32 whose last argument says what it is converted to."""
    return lambda *arguments: function(*arguments[:-1]).to(arguments[-1])


def _load_in_lanes(buffer: Any, place: Any, mask: Any = None) -> Any:
    import triton.language as tl

    return tl.load(buffer + place, mask=mask, other=None if mask is None else 0).to(tl.float32)


def _tree_reduce(self: Any, inputs: Sequence[Any]) -> list[Any]:
    """Reduce by combining neighbours, all pairs at once; every extent is a power of two."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    whole = self.axis is None
    axis = 0 if whole else self.axis
    arrays = [v.handle.data.reshape(-1) if whole else v.handle.data for v in inputs]
    dtypes = [v.dtype for v in inputs]

    def block(array: np.ndarray, dtype: Any) -> Any:
        return tl.tensor(TensorHandle(array, dtype), tl.block_type(dtype, list(array.shape)))

    while arrays[0].shape[axis] > 1:
        left = [block(a.take(range(0, a.shape[axis], 2), axis), d) for a, d in zip(arrays, dtypes, strict=True)]
        right = [block(a.take(range(1, a.shape[axis], 2), axis), d) for a, d in zip(arrays, dtypes, strict=True)]
        result = self.combine_fn.fn(*left, *right)
        parts = result if isinstance(result, tuple) else (result,)
        arrays = [p.handle.data for p in parts]
    if whole and self.keep_dims:
        arrays = [a.reshape((1,) * inputs[0].handle.data.ndim) for a in arrays]
    elif not self.keep_dims:
        arrays = [a.squeeze(axis) for a in arrays]
    return [self.to_tensor(a if a.ndim else a.item(), d) for a, d in zip(arrays, dtypes, strict=True)]


def _rounding_casts(cast: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter's cast of values, which it holds as bits where they are bfloat16."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def cast_impl(self: Any, source: Any, target: Any) -> Any:
        if source.dtype.scalar == tl.bfloat16 and target.scalar != tl.bfloat16:
            wide = torch.from_numpy(source.data.view(np.int16)).view(torch.bfloat16).float().numpy()
            source = TensorHandle(wide, tl.float32)
        if target.scalar != tl.bfloat16 or source.dtype.scalar == tl.bfloat16:
            return cast(self, source, target)
        rounded = torch.from_numpy(np.ascontiguousarray(source.data)).bfloat16()
        return TensorHandle(rounded.view(torch.int16).numpy().view(np.uint16), tl.bfloat16)

    return cast_impl


def _splat(self: Any, block: Any, scalar: Any) -> Any:
    """A block of one value, in the value's own type: that of a comparison's handle is the type compared."""
    from triton.runtime.interpreter import TensorHandle

    return TensorHandle(np.full(block.shape, scalar.data.reshape(-1)[0], dtype=scalar.data.dtype), block.scalar)


def _fused(self: Any, x: Any, y: Any, z: Any) -> Any:
    """x * y + z of float32, rounded once but for rare cases; the interpreter rounds the product too."""
    from triton.runtime.interpreter import TensorHandle

    wide = [v.data.astype(np.float64) if v.data.dtype == np.float32 else v.data for v in (x, y, z)]
    return TensorHandle((wide[0] * wide[1] + wide[2]).astype(z.data.dtype), z.dtype.scalar)


#: 8-bit floats, whose bits the interpreter holds
_FLOATS8 = {"fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2}


def _dots(dot: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter's products, of values where it has bits (bfloat16, 8-bit floats); others as wide as sums."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    def widened(value: Any, total: Any) -> Any:
        if value.dtype.scalar == tl.bfloat16:
            wide = torch.from_numpy(np.ascontiguousarray(value.data).view(np.int16)).view(torch.bfloat16).float()
            return TensorHandle(wide.numpy(), tl.float32)
        if (byte := _FLOATS8.get(str(value.dtype.scalar))) is not None:
            bits = torch.from_numpy(np.ascontiguousarray(value.data).view(np.uint8))
            return TensorHandle(bits.view(byte).float().numpy(), tl.float32)
        return TensorHandle(value.data.astype(total.data.dtype), total.dtype.scalar)

    def create_dot(self: Any, left: Any, right: Any, total: Any, *others: Any) -> Any:
        return dot(self, widened(left, total), widened(right, total), total, *others)

    return create_dot


def _bfloat16_constant(self: Any, value: float) -> Any:
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    bits = torch.tensor([value]).bfloat16().view(torch.int16).numpy().view(np.uint16)
    return TensorHandle(bits, tl.bfloat16)


def _bfloat16_atomics(atomic: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter's atomics, with sums of bfloat16 lane by lane."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle, _interpreter

    def create_atomic_rmw(self: Any, kind: Any, places: Any, values: Any, mask: Any, sem: Any, scope: Any) -> Any:
        if values.dtype.scalar != tl.bfloat16:
            return atomic(self, kind, places, values, mask, sem, scope)
        lanes = zip(places.data.flat, values.data.flat, mask.data.flat, strict=True)
        on, word = np.ones(1, dtype=bool), np.dtype(np.uint16)
        for place, bits, inside in lanes:
            if inside:
                where = np.array([place], dtype=np.uint64)
                both = np.concatenate([_interpreter.load(where, on, np.zeros(1, word), word), [bits]]).astype(word)
                total = torch.from_numpy(both.view(np.int16)).view(torch.bfloat16).float().sum().bfloat16()
                _interpreter.store(where, total.reshape(1).view(torch.int16).numpy().view(np.uint16), on)
        return TensorHandle(values.data, tl.bfloat16)

    return create_atomic_rmw


def _call_of_function() -> Callable[..., Any]:
    """A call inside a kernel, which replaces the language once for each function: for the launch it has been."""
    from triton.runtime import interpreter

    replaced: set[Callable[..., Any]] = set()

    def call(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if self.fn not in replaced:
            replaced.add(self.fn)
            interpreter._patch_lang(self.fn)
        function = self.rewrite()
        try:
            return function(*arguments, **keywords)
        except Exception as error:
            raise interpreter.InterpreterError(repr(error)) from error

    return call


def install() -> None:
    """Give Triton's interpreter what it lacks; does nothing the second time."""
    from triton.language.extra import libdevice
    from triton.runtime import interpreter

    from . import nvidia

    builder: Any = interpreter.InterpreterBuilder
    functions: Any = interpreter.InterpretedFunction
    reductions: Any = interpreter.ReduceOps
    if reductions.generic_reduce is _tree_reduce:
        return
    reductions.generic_reduce = _tree_reduce
    functions.__call__ = _call_of_function()
    builder.create_splat = _splat
    builder.create_fma = _fused
    builder.create_atomic_rmw = _bfloat16_atomics(builder.create_atomic_rmw)
    builder.create_dot = _dots(builder.create_dot)
    builder.get_bf16 = _bfloat16_constant
    builder.cast_impl = _rounding_casts(builder.cast_impl)
    for name, function in _NVIDIA.items():
        setattr(nvidia, name, _libdevice_function(function))
    for name, function in _DIGITS.items():
        setattr(nvidia, name, _to_dtype(_libdevice_function(function)))
    nvidia.settled = lambda x: x
    of_int8 = _libdevice_function(torch.Tensor.float)
    nvidia.half_of_int8 = lambda x, dtype, pack: of_int8(x).to(dtype)
    nvidia.load_in_lanes = nvidia.load_in_lanes_where = _load_in_lanes
    for name in ("let_next_begin", "await_launches"):  # kernels run one after the other
        setattr(nvidia, name, lambda: None)
    for name, function in {**_UNARY, **_BINARY}.items():
        setattr(libdevice, name, _libdevice_function(function))


def run_interpreted(kernel: TritonKernel, buffers: Sequence[torch.Tensor], symbols: Mapping[str, int]) -> list[str]:
    """Run a kernel on CPU tensors, in place. Returns the errors that it reported."""
    import triton.language as tl

    install()
    function = load_functions([kernel])[0]
    status = [torch.zeros(1, dtype=torch.int32)] if kernel.errors else []
    constants: dict[str, Any] = dict(kernel.constexprs)
    if kernel.chooses_index:
        constants["INDEX"] = tl.int64 if kernel.needs_wide_index(symbols) else tl.int32
    programs = kernel.programs(symbols)
    if programs:
        function[(programs,)](*buffers, *(symbols[s] for s in kernel.symbols), *status, **constants)
    code = int(status[0].item()) if status else 0
    return [kernel.errors[code - 1]] if code else []
