"""Random small tensor programs: pointwise, view, reduction, indexing and in-place ops on inputs of many kinds.

A program is data: inputs and steps, each step an op with the positions of its operands. `Program.run` executes it with
torch, so the same object is eager's meaning and what gets compiled. All choices come from a `choose(options)` function,
which hypothesis or a seeded generator supplies.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

T = TypeVar("T")
Choose = Callable[[Sequence[Any]], Any]
Tensor = torch.Tensor

FLOATS = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.uint8, torch.int8, torch.int16)
DTYPES = (*FLOATS, *INTEGERS, torch.bool)
SPECIAL = (0.0, -0.0, 1.0, -1.0, float("nan"), float("inf"), -float("inf"), 0.5, 3.0)
SIZES = (1, 2, 3, 5, 8, 17)

UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "neg": lambda x: -x if x.dtype != torch.bool else ~x,
    "abs": torch.abs,
    "relu": lambda x: torch.relu(x) if x.dtype != torch.bool else x.clone(),
    "exp": torch.exp,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "sqrt": lambda x: torch.sqrt(x.abs()),
    "sin": torch.sin,
    "erf": torch.erf,
    "square": lambda x: x * x,
    "add_half": lambda x: x + 0.5,
    "add_zero": lambda x: x + 0,
    "times_three": lambda x: x * 3,
    "reciprocal": torch.reciprocal,
    "logical_not": torch.logical_not,
    "isnan": torch.isnan,
    "sign": lambda x: torch.sign(x),
    "floor": lambda x: torch.floor(x) if x.is_floating_point() else x.clone(),
    "to_float": lambda x: x.to(torch.float32),
    "to_half": lambda x: x.to(torch.bfloat16),
    "to_bool": lambda x: x.to(torch.bool),
    "clamp": lambda x: torch.clamp(x, -1, 2) if x.dtype not in (torch.bool, torch.uint8) else x.clone(),
    "clone": torch.clone,
    "gelu": lambda x: torch.nn.functional.gelu(x) if x.is_floating_point() else x.clone(),
    "silu": lambda x: torch.nn.functional.silu(x) if x.is_floating_point() else x.clone(),
}
BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add,
    "mul": torch.mul,
    "sub": lambda a, b: a - b if torch.bool not in (a.dtype, b.dtype) else a ^ b if a.dtype == b.dtype else a + b,
    "div": torch.div,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "fmin": torch.fmin,
    "lt": torch.lt,
    "eq": torch.eq,
    "ge": torch.ge,
    "where": lambda a, b: torch.where(a > b, a, b),
    "logical_and": torch.logical_and,
    "atan2": torch.atan2,
    "remainder_two": lambda a, b: torch.remainder(a, 2) + b if a.dtype != torch.bool else a & (b > 0),
}
REDUCTIONS: dict[str, Callable[..., Tensor]] = {
    "sum": lambda x, d, k: x.sum(d, keepdim=k),
    "mean": lambda x, d, k: x.float().mean(d, keepdim=k),
    "amax": lambda x, d, k: x.amax(d, keepdim=k),
    "amin": lambda x, d, k: x.amin(d, keepdim=k),
    "any": lambda x, d, k: x.any(d, keepdim=k),
    "all": lambda x, d, k: x.all(d, keepdim=k),
    "argmax": lambda x, d, k: (x if x.dtype != torch.bool else x.to(torch.uint8)).argmax(d, keepdim=k),
    "softmax": lambda x, d, k: x.float().softmax(d),
    "log_softmax": lambda x, d, k: x.float().log_softmax(d),
    "var": lambda x, d, k: x.float().var(d, keepdim=k, correction=0),
    "cumsum": lambda x, d, k: x.cumsum(d),
    "logsumexp": lambda x, d, k: x.float().logsumexp(d, keepdim=k),
}

#: kinds of steps that `wide` programs have besides: indices, integer division, scans, and writes through views
WIDE: dict[str, Callable[..., Tensor]] = {
    "index_put": lambda x, d: x.index_put((_rows(x),), x[:1].clone().squeeze(0)),
    "index_put_accumulate_": lambda x, d: x.index_put_((_rows(x),), torch.ones_like(x[:1])[0], accumulate=True),
    "scatter": lambda x, d: x.scatter(d, _ramp(x, d)[..., :1], 1),
    "scatter_add": lambda x, d: x.scatter_add(d, _ramp(x, d), x),
    "gather_ramp": lambda x, d: x.gather(d, _ramp(x, d)),
    "stack_views": lambda x, d: torch.stack([x, x.flip(d)], d),
    "as_strided": lambda x, d: x.as_strided((2, x.shape[d] - 1), (x.stride(d), x.stride(d))),
    "diagonal_add_": lambda x, d: x.diagonal().add_(1).sum() + x,
    "slice_add_": lambda x, d: x.narrow(d, 1, x.shape[d] - 1).add_(1),
    "transpose_mul_": lambda x, d: x.transpose(0, d).mul_(2),
    "floor_divide": lambda x, d: torch.div(x, -3, rounding_mode="floor"),
    "remainder": lambda x, d: torch.remainder(x, -3),
    "fmod": lambda x, d: torch.fmod(x, -3),
    "divide_by_itself": lambda x, d: torch.div(x, x.abs() + 1, rounding_mode="trunc"),
    "add_true": lambda x, d: x + True,
    "add_300": lambda x, d: x + 300,
    "divide_int": lambda x, d: x / 2,
    "cumprod": lambda x, d: (x.sign() if x.is_floating_point() else x).cumprod(d),
    "cummax": lambda x, d: x.cummax(d).values,
    "logcumsumexp": lambda x, d: x.float().logcumsumexp(d),
    "argmin_ties": lambda x, d: x.sign().argmin(d),
    "prod": lambda x, d: x.sign().prod(d),
    "pad_all": lambda x, d: torch.nn.functional.pad(x, (1, 0) * x.dim(), value=2),
    "split": lambda x, d: x.split(2, d)[-1],
    "add_expanded": lambda x, d: x + x[:1].expand_as(x),
}


def _rows(x: Tensor) -> Tensor:
    return torch.tensor([0, -1, 0]) % x.shape[0]


def _ramp(x: Tensor, d: int) -> Tensor:
    """Indices 0, 1, 2, 0, 1, ... as far as dimension d goes, of the shape of x."""
    return (torch.arange(x.numel()) % 3 % x.shape[d]).reshape(x.shape)


@dataclass
class Program:
    """Inputs and steps. A step is (kind, name, operand positions, parameters)."""

    inputs: list[Tensor]
    steps: list[tuple[str, str, tuple[int, ...], tuple[Any, ...]]] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    low_precision: bool = False
    """Whether some value is float16 or bfloat16: compared under the option that rounds like eager."""

    def run(self, *inputs: Tensor) -> list[Tensor]:
        """Execute on inputs; in-place steps change them."""
        values: list[Tensor] = list(inputs)
        for step in self.steps:
            values.append(execute(step, values))
        return [values[k] for k in self.outputs]

    def __str__(self) -> str:
        lines = [f"v{k} = {i.dtype} {tuple(i.shape)} strides {i.stride()}" for k, i in enumerate(self.inputs)]
        for k, (kind, name, operands, parameters) in enumerate(self.steps, start=len(self.inputs)):
            shown = ", ".join([*(f"v{o}" for o in operands), *map(repr, parameters)])
            lines.append(f"v{k} = {kind}.{name}({shown})")
        return "\n".join([*lines, f"return {', '.join(f'v{k}' for k in self.outputs)}"])


def execute(step: tuple[str, str, tuple[int, ...], tuple[Any, ...]], values: list[Tensor]) -> Tensor:
    """Value of one step."""
    kind, name, operands, parameters = step
    args = [values[k] for k in operands]
    if kind == "unary":
        return UNARY[name](*args)
    if kind == "binary":
        return BINARY[name](*args)
    if kind == "reduce":
        return REDUCTIONS[name](args[0], *parameters)
    if kind == "view":
        return getattr(args[0], name)(*parameters)
    if kind == "wide":
        return WIDE[name](*args, *parameters)
    if kind == "index":
        return INDEXING[name](*args, *parameters)
    return INPLACE[name](*args, *parameters)


INDEXING: dict[str, Callable[..., Tensor]] = {
    "take_rows": lambda x, rows: x[torch.tensor(rows)],
    "slice": lambda x, d, start, step: x.narrow(d, start, x.shape[d] - start)[
        (slice(None),) * d + (slice(None, None, step),)
    ],
    "flip": lambda x, d: x.flip(d),
    "cat": lambda x, d: torch.cat([x, x * 2 if x.dtype != torch.bool else x], d),
    "stack": lambda x, d: torch.stack([x, x], d),
    "roll": lambda x, d: x.roll(1, d),
    "pad": lambda x, d: torch.nn.functional.pad(x, (1, 2)),
    "gather": lambda x, d: x.gather(d, torch.zeros_like(x, dtype=torch.int64)),
    "index_add": lambda x, d: (
        x.index_add(d, torch.zeros(x.shape[d], dtype=torch.int64), x) if x.dtype != torch.bool else x
    ),
    "masked_fill": lambda x, d: x.masked_fill(x > 0, 1),
    "tril": lambda x, d: x.tril() if x.dim() >= 2 else x.clone(),
}
INPLACE: dict[str, Callable[..., Tensor]] = {
    "add_": lambda x: x.add_(1) if x.dtype != torch.bool else x.logical_not_(),
    "mul_": lambda x: x.mul_(2) if x.dtype != torch.bool else x.logical_not_(),
    "zero_first": lambda x: _first(x).zero_(),
    "copy_flip": lambda x: x.copy_(x.flip(0)) if x.dim() else x.add_(1) if x.dtype != torch.bool else x,
    "fill_row": lambda x: _first(x).fill_(1),
}


def _first(x: Tensor) -> Tensor:
    return x[0] if x.dim() else x


def random_input(choose: Choose) -> Tensor:
    """A tensor of some dtype, shape and strides; contiguous, transposed, sliced or with special values."""
    dtype = choose(DTYPES)
    shape = [choose(SIZES) for _ in range(choose((0, 1, 1, 2, 2, 3)))]
    if shape and choose((False,) * 11 + (True,)):
        shape[choose(range(len(shape)))] = 0
    generator = torch.Generator().manual_seed(choose(range(1000)))
    if dtype.is_floating_point:
        x = torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)
        if x.numel() and choose((False, False, True)):
            x.view(-1)[0] = choose(SPECIAL)
    elif dtype == torch.bool:
        x = torch.rand(shape, generator=generator) > 0.5
    else:
        low = 0 if dtype == torch.uint8 else -5
        x = torch.randint(low, 100, shape, generator=generator).to(dtype)
    form = choose(("plain", "plain", "transposed", "sliced"))
    if form == "transposed" and x.dim() >= 2:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if form == "sliced" and x.dim() >= 1:
        return torch.cat([x, x], -1)[..., ::2] if x.shape[-1] else x
    return x


KINDS = ("unary",) * 4 + ("binary",) * 4 + ("view",) * 3 + ("reduce",) * 2 + ("index",) * 2 + ("inplace",)


def random_step(choose: Choose, values: list[Tensor], wide: bool) -> tuple[str, str, tuple[int, ...], tuple[Any, ...]]:
    """One more step that is likely to be legal; the caller tries it."""
    kind = choose(KINDS + ("wide",) * 8 if wide else KINDS)
    k = choose(range(len(values)))
    x = values[k]
    d = choose(range(x.dim())) if x.dim() else 0
    if kind == "unary":
        return kind, choose(tuple(UNARY)), (k,), ()
    if kind == "binary":
        return kind, choose(tuple(BINARY)), (k, choose(range(len(values)))), ()
    if kind == "wide":
        return kind, choose(tuple(WIDE)), (k,), (d,)
    if kind == "reduce":
        return kind, choose(tuple(REDUCTIONS)), (k,), (d, choose((False, True)))
    if kind == "view":
        return _view_step(choose, k, x, d)
    if kind == "index":
        name = choose(tuple(INDEXING))
        if name == "take_rows":
            rows = tuple(choose(range(max(x.shape[0], 1))) for _ in range(3)) if x.dim() else (0,)
            return kind, name, (k,), (rows,)
        if name == "slice":
            return kind, name, (k,), (d, choose((0, 1)), choose((1, 2)))
        return kind, name, (k,), (d,)
    return kind, choose(tuple(INPLACE)), (k,), ()


def _view_step(choose: Choose, k: int, x: Tensor, d: int) -> tuple[str, str, tuple[int, ...], tuple[Any, ...]]:
    name = choose(("transpose", "unsqueeze", "reshape", "flatten", "expand", "squeeze", "permute", "select"))
    if name == "transpose":
        return "view", name, (k,), (d, choose(range(x.dim())) if x.dim() else 0)
    if name == "unsqueeze" or name == "select":
        return "view", name, (k,), (d,) if name == "unsqueeze" else (d, 0)
    if name == "reshape":
        return "view", name, (k,), (-1,) if x.numel() else (tuple(x.shape),)
    if name == "expand":
        return "view", name, (k,), (choose((2, 3)), *x.shape)
    if name == "permute":
        return "view", name, (k,), tuple(reversed(range(x.dim())))
    return "view", name, (k,), ()


def random_program(choose: Choose, steps: int, wide: bool = False) -> Program:
    """A program whose every step eager accepts, with small values only."""
    program = Program([random_input(choose) for _ in range(choose((1, 2, 2, 3)))])
    values: list[Tensor] = [x.clone() for x in program.inputs]
    for _ in range(steps):
        step = random_step(choose, values, wide)
        try:
            if writes(step) and (overlaps_itself(values[step[2][0]]) or windowed(program, values, step[2][0])):
                continue
            value = execute(step, list(values))
        except (RuntimeError, IndexError, TypeError, ValueError, ZeroDivisionError):
            continue
        if not isinstance(value, Tensor) or value.numel() > 20000 or value.is_complex() or magnifies(step, value):
            continue
        program.steps.append(step)
        values.append(value)
    count = len(values)
    chosen = {count - 1, *(choose(range(count)) for _ in range(choose((0, 1, 2))))}
    program.outputs = sorted(chosen)
    program.low_precision = any(v.dtype in (torch.float16, torch.bfloat16) for v in values)
    return program


def writes(step: tuple[str, str, tuple[int, ...], tuple[Any, ...]]) -> bool:
    """Whether a step writes to its first operand."""
    return step[0] == "inplace" or step[1].endswith("_")


def magnifies(step: tuple[str, str, tuple[int, ...], tuple[Any, ...]], value: Tensor) -> bool:
    """Whether a step makes more of a rounding of its operand than values may differ: exp(x) has x times its error."""
    return step[1] == "exp" and bool((value[value.isfinite()] > 1e4).any())


def windowed(program: Program, values: list[Tensor], k: int) -> bool:
    """Whether a value lies in memory of which `as_strided` made a view: AOTAutograd refuses writes to views of it."""
    first = len(program.inputs)
    made = [values[first + n] for n, step in enumerate(program.steps) if step[1] == "as_strided"]
    return any(values[k].untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for x in made)


def overlaps_itself(x: Tensor) -> bool:
    """Whether elements share a place: what a write to such a tensor does is undefined, and eager refuses some."""
    length = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True)) if x.numel() else 0
    return torch.arange(length).as_strided(x.shape, x.stride()).unique().numel() < x.numel()


def compile_options(program: Program) -> dict[str, bool]:
    """Options under which inductile owes eager's values: low precision rounds where eager rounds."""
    return {"emulate_precision_casts": True} if program.low_precision else {}


def reference(program: Program) -> Callable[..., Any] | None:
    """A program of low precision in float32; it writes to its arguments as the program does."""
    if not program.low_precision:
        return None

    def run(*args: Tensor) -> Any:
        wide = [x.float() if x.is_floating_point() and x.itemsize < 4 else x for x in args]
        outputs = program.run(*wide)
        for x, result in zip(args, wide, strict=True):
            if result is not x:
                x.copy_(result)
        return outputs

    return run


def seeded_program(seed: int, steps: int = 8, wide: bool = False) -> Program:
    """The program of a seed."""
    generator = random.Random(seed)
    return random_program(lambda options: generator.choice(options), steps, wide)
