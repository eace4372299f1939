"""Values on each instruction set that torch and the processor have: a few kernels of every kind, repeated.

The tests marked `numeric` run with the best set as all others do. They run again, in a process of their own, with each
other one; torch's kernels and ours are then built for that.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from .. import eager_compare
from ..warm.python import python
from .catalogue import INF, NAN

Tensor = torch.Tensor
#: what torch calls a set of instructions -> flags of /proc/cpuinfo that it needs
CAPABILITIES = {
    "default": (),
    "avx2": ("avx2", "fma"),
    "avx512": ("avx512f", "avx512vl", "avx512bw", "avx512dq", "fma"),
}
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
#: no multiple of a vector, with a part that is one
SHAPE = (5, 77)


def _floats(dtype: torch.dtype, special: bool = True) -> Tensor:
    x = torch.randn(SHAPE, generator=torch.Generator().manual_seed(1)).to(dtype)
    if special:
        x.view(-1)[::29] = torch.tensor([NAN, INF, -INF, -0.0, 0.0, 1.0, -1.0], dtype=dtype).repeat(2)
    return x


def _elementwise(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    functions = (torch.exp, torch.tanh, torch.sigmoid, torch.erf, torch.sin, torch.floor, torch.round, torch.sign)
    least, most = torch.minimum(x, y), torch.maximum(x, y)
    return (*(f(x) for f in functions), x / y, x.abs().sqrt(), F.gelu(x), torch.where(x > y, x, -y), least, most)


def _casts(x: Tensor) -> tuple[Tensor, ...]:
    return x.double(), x.bfloat16(), x.half(), x.nan_to_num(3.0, 7.0, -7.0).to(torch.int32), x > 0


def _integers(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return x + y, x * y, x // y, x % y, x & y, x | y, x < y, torch.maximum(x, y), x.float() / y


def _reductions(x: Tensor) -> tuple[Tensor, ...]:
    both = [f(x, d) for d in (0, 1) for f in (torch.sum, torch.mean, torch.amax, torch.argmin, torch.var, torch.cumsum)]
    return (*both, x.sum(), x.amax(), x.softmax(-1), x.log_softmax(0), (x > 0).all(1))


def _norms(x: Tensor) -> tuple[Tensor, ...]:
    rows = F.layer_norm(x, SHAPE[1:])
    return rows, F.rms_norm(x, SHAPE[1:]), F.group_norm(x[:, :76].reshape(5, 4, 19), 2), F.normalize(x, dim=0)


def _convolution(x: Tensor, w: Tensor, scale: Tensor) -> Tensor:
    y = F.conv2d(x, w, padding=1)
    mean, variance = torch.zeros_like(scale), torch.ones_like(scale)
    return F.relu(F.batch_norm(y, mean, variance, scale, scale, training=True)).mean((2, 3))


def _check(function: Callable[..., Any], *inputs: Tensor, **arguments: Any) -> None:
    faults = eager_compare.compare(function, inputs, dynamic=False, **arguments)
    assert not faults, faults


def _wide(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *inputs: function(*(each.double() for each in inputs))


@pytest.mark.numeric
@pytest.mark.parametrize("dtype", FLOATS)
def test_elementwise(dtype: torch.dtype) -> None:
    x = _floats(dtype)
    _check(_elementwise, x, x.flip(0).contiguous(), reference=_wide(_elementwise))


@pytest.mark.numeric
def test_casts() -> None:
    _check(_casts, _floats(torch.float32) * 1000)


@pytest.mark.numeric
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_integers(dtype: torch.dtype) -> None:
    x = torch.randint(-128, 128, SHAPE, generator=torch.Generator().manual_seed(2)).to(dtype)
    y = x.flip(0).contiguous()
    _check(_integers, x, torch.where(y == 0, torch.ones_like(y), y))


@pytest.mark.numeric
@pytest.mark.parametrize("dtype", FLOATS)
def test_reductions(dtype: torch.dtype) -> None:
    _check(_reductions, _floats(dtype, special=False), reference=_wide(_reductions))


@pytest.mark.numeric
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms(dtype: torch.dtype) -> None:
    _check(_norms, _floats(dtype, special=False), reference=_wide(_norms))


@pytest.mark.numeric
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_training_of_a_convolution(dtype: torch.dtype) -> None:
    """As far from the result in float64 as eager is: gradients that cancel have few digits, element by element."""
    shapes = ((2, 3, 9, 9), (5, 3, 3, 3), (5,))
    generator = torch.Generator().manual_seed(3)
    inputs = [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes]
    wide = [each.detach().double().requires_grad_() for each in inputs]
    compiled = torch.compile(_convolution, backend="inductile", dynamic=False)
    ours, eagers, exact = (
        [result, *torch.autograd.grad(result.square().sum(), of)]
        for result, of in ((compiled(*inputs), inputs), (_convolution(*inputs), inputs), (_convolution(*wide), wide))
    )
    for one, other, reference in zip(ours, eagers, exact, strict=True):
        assert (one.dtype, one.stride()) == (other.dtype, other.stride())
        errors = [
            float((e.detach().double() - reference.detach()).norm() / reference.detach().norm()) for e in (one, other)
        ]
        assert errors[0] <= 1.5 * errors[1] + torch.finfo(dtype).eps, errors


@pytest.mark.numeric
def test_capability_is_the_one_asked_for() -> None:
    wanted = os.environ.get("ATEN_CPU_CAPABILITY")
    assert wanted in (None, torch.backends.cpu.get_cpu_capability().lower())


def _instructions() -> frozenset[str]:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return frozenset(next((line for line in lines if line.startswith("flags")), "").split())


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="only x86 has several sets")
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_on_another_instruction_set(capability: str, tmp_path: Path) -> None:
    lacking = [flag for flag in CAPABILITIES[capability] if flag not in _instructions()]
    if lacking:
        pytest.skip(f"the processor has no {', '.join(lacking)}")
    if capability == torch.backends.cpu.get_cpu_capability().lower():
        pytest.skip(f"{capability} is what all other tests run with")
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability, "INDUCTILE_CACHE_DIR": str(tmp_path)}
    command = [python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "numeric", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
